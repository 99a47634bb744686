"""The output of `corebound doctor`: grouped checks, with fixes below the warnings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from corebound.machine.doctor.result import Group, HostCheck, State
from corebound.machine.doctor.tuning import SettingResult

_WIDTH = 80
_SIGNS: dict[State, str] = {"ok": "✓", "warning": "!", "unavailable": "–"}
_HEADINGS: dict[Group, str] = {
    "processor": "Processor",
    "CPUs": "CPUs",
    "load": "Load",
    "memory": "Memory",
    "kernel": "Kernel",
    "tools": "Tools",
    "environments": "Environments",
}
_NAME_WIDTH = max(len("perf_event_paranoid"), *map(len, _HEADINGS)) + 1
_STATE_WIDTH = len("unavailable") + 1


def describe(checks: Sequence[HostCheck]) -> str:
    """Render all checks. Commands are never wrapped, so that users can copy them."""
    lines = [_headline(checks)]
    for group, found in groupby(checks, key=lambda seen: seen.group):
        lines += ["", _HEADINGS[group]]
        for seen in found:
            lines += _host_check(seen)
    return "\n".join(lines)


def brief(checks: Sequence[HostCheck]) -> tuple[str, ...]:
    """The warnings, one line each."""
    lines = [
        Text(f"warning: {seen.check}: {seen.value}") for seen in checks if seen.state == "warning"
    ]
    for line in lines:
        line.truncate(_WIDTH, overflow="ellipsis")
    return tuple(line.plain for line in lines)


def outcomes(found: Sequence[SettingResult]) -> Iterator[str]:
    """The outcome for each setting, one line each, and another line for a failure."""
    for one in found:
        moved = (
            f"was {one.after} already" if one.before == one.after else f"{one.before} → {one.after}"
        )
        yield f"  /{one.path}: {moved if one.fault is None else 'not as wanted'}"
        if one.fault is not None:
            yield f"    {one.fault}"
        if one.meanwhile is not None:
            yield f"    somebody had set it to {one.meanwhile} since it was tuned"


def _headline(checks: Sequence[HostCheck]) -> str:
    states = [seen.state for seen in checks]
    warnings = states.count("warning")
    return (
        f"{warnings} {'warning' if warnings == 1 else 'warnings'}, {states.count('ok')} ok, "
        f"{states.count('unavailable')} unavailable"
    )


def _host_check(seen: HostCheck) -> Iterator[str]:
    state = f"{_SIGNS[seen.state]} {seen.state:{_STATE_WIDTH}}"
    head = f"  {seen.check:{_NAME_WIDTH}}{state}"
    yield from textwrap.wrap(
        head + seen.value,
        width=_WIDTH,
        subsequent_indent=" " * len(head),
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if seen.state != "warning":
        return
    yield from textwrap.wrap(
        seen.why, width=_WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    if seen.fix is not None:
        yield f"    fix: {seen.fix}"
    if seen.undo is not None:
        yield f"    undo: {seen.undo}"
