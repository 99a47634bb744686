"""The result of a host check: what was observed, why it matters, and the commands that fix it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.machine.sysfs import Tree, read_text
from corebound.machine.topology import cpu_list

# `unavailable`: the host does not show it, which means neither zero nor ok.
State = Literal["ok", "warning", "unavailable"]
Group = Literal["processor", "CPUs", "load", "memory", "kernel", "tools", "environments"]

_LONGEST = 60


def printable(text: str) -> str:
    r"""External text made safe for a terminal: printable, one line, limited length.

    >>> printable("a\x1b[2J b\n")
    'a?[2J b?'
    """
    safe = "".join(letter if letter.isprintable() else "?" for letter in text[: _LONGEST + 1])
    return safe if len(safe) <= _LONGEST else safe[: _LONGEST - 1] + "…"


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


class SettingChange(Struct, frozen=True, kw_only=True):
    """A change of a setting that fixes a warning.

    `path` is relative to the root; `prior` is the current value, `value` the recommended one.
    """

    path: str
    prior: str
    value: str


class CheckResult(Struct, frozen=True, kw_only=True):
    """A check with the settings that root may safely change to fix it.

    `durable` replaces the check in records if it contains details that are valid only now, such
    as process ids.
    """

    host_check: HostCheck
    changes: tuple[SettingChange, ...] = ()
    durable: HostCheck | None = None

    @property
    def recorded(self) -> HostCheck:
        """The check as it is stored in a record."""
        return self.durable or self.host_check


class Subject(Struct, frozen=True, kw_only=True):
    """The subject of a check: creates its results."""

    check: str
    group: Group
    why: str

    def ok(self, value: str) -> CheckResult:
        """A result with nothing to fix."""
        return CheckResult(host_check=self._host_check("ok", value))

    def unavailable(self, value: str) -> CheckResult:
        """A result for something that the host does not show; `value` says what is missing."""
        return CheckResult(host_check=self._host_check("unavailable", value))

    def unreadable(self, text: str) -> CheckResult:
        """A result for something that the host shows but corebound does not understand."""
        return self.unavailable(f"unexpected content: {printable(text)}")

    def warning(self, value: str, *, fix: str, undo: str | None = None) -> CheckResult:
        """A warning that only the user can fix."""
        return CheckResult(host_check=self._host_check("warning", value, fix=fix, undo=undo))

    def fixable(self, value: str, changes: Sequence[SettingChange]) -> CheckResult:
        """A warning that changes of settings fix; the commands are derived from them."""
        check = self._host_check(
            "warning",
            value,
            fix=command((change.path, change.value) for change in changes),
            undo=command((change.path, change.prior) for change in changes),
        )
        return CheckResult(host_check=check, changes=tuple(changes))

    def setting(
        self,
        tree: Tree,
        path: str,
        meanings: Mapping[str, str],
        *,
        disturbing: Collection[str],
        recommended: str,
        missing: str,
    ) -> CheckResult:
        """Check a setting that has a few possible values.

        Args:
            tree: The host's files.
            path: The setting's file.
            meanings: What each value means, in words.
            disturbing: The values that are a warning.
            recommended: The value that fixes it.
            missing: What is missing if there is no such file.
        """
        value = read_text(tree, path)
        if value is None:
            return self.unavailable(missing)
        if value not in meanings:
            return self.unreadable(value)
        if value not in disturbing:
            return self.ok(meanings[value])
        change = SettingChange(path=path, prior=value, value=recommended)
        return self.fixable(meanings[value], [change])

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
    others = []
    for path in paths:
        if match := _NUMBERED.fullmatch(path):
            alike.setdefault((match[1], match[3]), []).append(int(match[2]))
        else:
            others.append(f"/{path}")
    return [f"/{head}{_braces(numbers)}{tail}" for (head, tail), numbers in alike.items()] + others


def _braces(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    parts = [
        "{" + part.replace("-", "..") + "}" if "-" in part else part
        for part in cpu_list(numbers).split(",")
    ]
    return parts[0] if len(parts) == 1 else "{" + ",".join(parts) + "}"
