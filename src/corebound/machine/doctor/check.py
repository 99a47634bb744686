"""The types of a host check: its result, the settings that fix it, and their commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.machine.doctor.snapshot import Moment
from corebound.machine.sysfs import Tree, shown
from corebound.machine.topology import Topology, cpu_list

# `unavailable`: the host does not show it, which means neither zero nor ok.
State = Literal["ok", "warning", "unavailable"]
Group = Literal["processor", "CPUs", "load", "memory", "kernel", "tools", "environments"]


class HostCheck(Struct, frozen=True, kw_only=True):
    """The result of one check.

    Attributes:
        check: The check's name, such as `swappiness`.
        value: The observed value, in words; if unavailable, what is missing.
        why: How it affects a measurement.
        fix: The command that fixes a warning, or what to do if there is no command.
        undo: The command that restores the observed value; None if there is none.
    """

    check: str
    group: Group
    state: State
    value: str
    why: str
    fix: str | None
    undo: str | None


class HostFacts(Struct, frozen=True, kw_only=True):
    """The input of the checks: a host's files, two snapshots, and facts from other modules.

    Attributes:
        topology: The host's topology; None if the host shows no CPUs.
        before, after: Two snapshots taken a moment apart.
        pid: Our own process, which does not count as a disturbance.
        sudo: Whether the checks run under sudo, so that another user than root will measure.
        tools: The programs of `tools.PROGRAMS` that were found; None if not looked for.
        environments: Whether each environment has been made; None if not looked for.
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
    """A change of a setting that fixes a warning.

    `path` is relative to the root; `prior` is the current value, `value` the recommended one.
    """

    path: str
    prior: str
    value: str


class JudgedCheck(Struct, frozen=True, kw_only=True):
    """A check with the settings that root may safely change to fix it.

    `later` replaces the check in records if it contains details that are valid only now, such
    as process ids.
    """

    host_check: HostCheck
    changes: tuple[Change, ...] = ()
    later: HostCheck | None = None

    @property
    def kept(self) -> HostCheck:
        """The check as it is stored in a record."""
        return self.later or self.host_check


class Subject(Struct, frozen=True, kw_only=True):
    """The subject of a check: creates its results."""

    check: str
    group: Group
    why: str

    def ok(self, value: str) -> JudgedCheck:
        """A result with nothing to fix."""
        return JudgedCheck(host_check=self._host_check("ok", value))

    def unavailable(self, value: str) -> JudgedCheck:
        """A result for something that the host does not show; `value` says what is missing."""
        return JudgedCheck(host_check=self._host_check("unavailable", value))

    def unreadable(self, text: str) -> JudgedCheck:
        """A result for something that the host shows but corebound does not understand."""
        return self.unavailable(f"not understood: {shown(text)}")

    def warning(self, value: str, *, fix: str, undo: str | None = None) -> JudgedCheck:
        """A warning that only the user can fix."""
        return JudgedCheck(host_check=self._host_check("warning", value, fix=fix, undo=undo))

    def mendable(self, value: str, changes: Sequence[Change]) -> JudgedCheck:
        """A warning that changes of settings fix; the commands are derived from them."""
        made = self._host_check(
            "warning",
            value,
            fix=command((change.path, change.value) for change in changes),
            undo=command((change.path, change.prior) for change in changes),
        )
        return JudgedCheck(host_check=made, changes=tuple(changes))

    def _host_check(
        self, state: State, value: str, *, fix: str | None = None, undo: str | None = None
    ) -> HostCheck:
        return HostCheck(
            check=self.check,
            group=self.group,
            state=state,
            value=value,
            why=self.why,
            fix=fix,
            undo=undo,
        )


_SYSCTL = "proc/sys/"
_NUMBERED = re.compile(r"(.*/[a-z]*)([0-9]+)(/[^/]+)")


def command(settings: Iterable[tuple[str, str]]) -> str:
    """The command for root that writes each value into its file, given as (path, value).

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
    """The paths; those that differ in one number only become one brace expansion."""
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
