"""The result of a host check: what was observed, why it matters, and the commands that fix it."""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

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
    """A change of a setting that fixes a warning, or has been made and can be restored.

    `path` is relative to the root; `prior` is the value before, `value` the recommended one.
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
