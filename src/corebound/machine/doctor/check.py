"""A check of the host: its verdict, the settings that fix it, and the commands for those."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.machine.doctor.snapshot import Moment
from corebound.machine.sysfs import Tree, shown
from corebound.machine.topology import Topology, cpu_list

# `unavailable`: the host does not show it, which is neither zero nor fine.
State = Literal["ok", "warning", "unavailable"]
Group = Literal["processor", "CPUs", "load", "memory", "kernel", "tools", "environments"]


class HostCheck(Struct, frozen=True, kw_only=True):
    """What one check saw.

    Attributes:
        check: Its name, such as `swappiness`.
        value: What was seen, in words; where unavailable, what is missing.
        why: What it does to a measurement.
        mend: The command that mends a warning, or what to do where there is none.
        undo: The command that brings the value seen back; None where there is none.
    """

    check: str
    group: Group
    state: State
    value: str
    why: str
    mend: str | None
    undo: str | None


class HostFacts(Struct, frozen=True, kw_only=True):
    """A host as the checks see it: its files, two looks a moment apart, and what the rest knows.

    Attributes:
        topology: None where the host shows no CPUs.
        before, after: The two looks.
        pid: Our own process, which is no disturbance.
        sudo: Whether somebody else, not root, is going to measure.
        tools: Programs found, of `means.PROGRAMS`; None: not looked for.
        environments: Whether each has been made; None: not looked for.
    """

    tree: Tree
    topology: Topology | None
    before: Moment
    after: Moment
    pid: int
    sudo: bool = False
    tools: frozenset[str] | None = None
    environments: Mapping[str, bool] | None = None


class Change(Struct, frozen=True, kw_only=True):
    """A setting that would mend a warning.

    `path` is relative to the root; `prior` is what it is, `value` what it ought to be.
    """

    path: str
    prior: str
    value: str


class JudgedCheck(Struct, frozen=True, kw_only=True):
    """A check, and what of the host root may safely change to mend it.

    `later` is the check for who reads it long after, where it says what only holds now, such as
    ids of processes.
    """

    host_check: HostCheck
    changes: tuple[Change, ...] = ()
    later: HostCheck | None = None

    @property
    def kept(self) -> HostCheck:
        """The check as a record keeps it."""
        return self.later or self.host_check


class Subject(Struct, frozen=True, kw_only=True):
    """What a check is about; it makes its check."""

    check: str
    group: Group
    why: str

    def ok(self, value: str) -> JudgedCheck:
        """Nothing to mend."""
        return JudgedCheck(host_check=self._host_check("ok", value))

    def unavailable(self, value: str) -> JudgedCheck:
        """The host does not show it; `value` says what is missing."""
        return JudgedCheck(host_check=self._host_check("unavailable", value))

    def unreadable(self, text: str) -> JudgedCheck:
        """The host shows something that means nothing to us."""
        return self.unavailable(f"not understood: {shown(text)}")

    def warning(self, value: str, *, mend: str, undo: str | None = None) -> JudgedCheck:
        """Something that only a person may mend."""
        return JudgedCheck(host_check=self._host_check("warning", value, mend=mend, undo=undo))

    def mendable(self, value: str, changes: Sequence[Change]) -> JudgedCheck:
        """Something that settings mend; the commands follow from them."""
        made = self._host_check(
            "warning",
            value,
            mend=command((change.path, change.value) for change in changes),
            undo=command((change.path, change.prior) for change in changes),
        )
        return JudgedCheck(host_check=made, changes=tuple(changes))

    def _host_check(
        self, state: State, value: str, *, mend: str | None = None, undo: str | None = None
    ) -> HostCheck:
        return HostCheck(
            check=self.check,
            group=self.group,
            state=state,
            value=value,
            why=self.why,
            mend=mend,
            undo=undo,
        )


_SYSCTL = "proc/sys/"
_NUMBERED = re.compile(r"(.*/[a-z]*)([0-9]+)(/[^/]+)")


def command(settings: Iterable[tuple[str, str]]) -> str:
    """The command, for root, that writes values into files, given as path and value.

    >>> command([("proc/sys/vm/swappiness", "1")])
    'sysctl -w vm.swappiness=1'
    >>> command([("sys/a/policy0/governor", "x"), ("sys/a/policy1/governor", "x")])
    'echo x | tee /sys/a/policy{0..1}/governor'
    """
    by_value: dict[str, list[str]] = {}
    for path, value in settings:
        by_value.setdefault(value, []).append(path)
    return "; ".join(_write(value, paths) for value, paths in by_value.items())


def _write(value: str, paths: Sequence[str]) -> str:
    if len(paths) == 1:
        if paths[0].startswith(_SYSCTL):
            name = paths[0].removeprefix(_SYSCTL).replace("/", ".")
            return f"sysctl -w {name}={shlex.quote(value)}"
        return f"echo {shlex.quote(value)} > /{paths[0]}"
    return f"echo {shlex.quote(value)} | tee {' '.join(_braced(paths))}"


def _braced(paths: Sequence[str]) -> list[str]:
    """The paths, those that differ in one number only as one brace expansion."""
    alike: dict[tuple[str, str], list[int]] = {}
    rest = []
    for path in paths:
        if found := _NUMBERED.fullmatch(path):
            alike.setdefault((found[1], found[3]), []).append(int(found[2]))
        else:
            rest.append(f"/{path}")
    return [f"/{head}{_braces(numbers)}{tail}" for (head, tail), numbers in alike.items()] + rest


def _braces(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    parts = [
        "{" + part.replace("-", "..") + "}" if "-" in part else part
        for part in cpu_list(numbers).split(",")
    ]
    return parts[0] if len(parts) == 1 else "{" + ",".join(parts) + "}"
