"""Findings in words, for the terminal: grouped, a line each, what to do below the warnings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from corebound.host.checkup.tuning import Outcome
from corebound.model.host_check import Group, HostCheck, State

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


def describe(findings: Sequence[HostCheck]) -> str:
    """All findings. Commands are never wrapped, so that they can be copied."""
    lines = [_headline(findings)]
    for group, found in groupby(findings, key=lambda finding: finding.group):
        lines += ["", _HEADINGS[group]]
        for finding in found:
            lines += _finding(finding)
    return "\n".join(lines)


def brief(findings: Sequence[HostCheck]) -> tuple[str, ...]:
    """The warnings, a line each."""
    return tuple(
        textwrap.shorten(
            f"warning: {finding.check}: {finding.value}", width=_WIDTH, placeholder=" …"
        )
        for finding in findings
        if finding.state == "warning"
    )


def outcomes(found: Sequence[Outcome]) -> Iterator[str]:
    """What became of each setting, a line each and one more for what went wrong."""
    for one in found:
        moved = (
            f"was {one.after} already" if one.before == one.after else f"{one.before} → {one.after}"
        )
        yield f"  /{one.path}: {moved if one.fault is None else 'not as wanted'}"
        if one.fault is not None:
            yield f"    {one.fault}"
        if one.meanwhile is not None:
            yield f"    somebody had set it to {one.meanwhile} since it was tuned"


def _headline(findings: Sequence[HostCheck]) -> str:
    states = [finding.state for finding in findings]
    warnings = states.count("warning")
    return (
        f"{warnings} {'warning' if warnings == 1 else 'warnings'}, {states.count('ok')} ok, "
        f"{states.count('unavailable')} unavailable"
    )


def _finding(finding: HostCheck) -> Iterator[str]:
    state = f"{_SIGNS[finding.state]} {finding.state:{_STATE_WIDTH}}"
    head = f"  {finding.check:{_NAME_WIDTH}}{state}"
    yield from textwrap.wrap(
        head + finding.value,
        width=_WIDTH,
        subsequent_indent=" " * len(head),
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if finding.state != "warning":
        return
    yield from textwrap.wrap(
        finding.why, width=_WIDTH, initial_indent="    ", subsequent_indent="    "
    )
    if finding.mend is not None:
        yield f"    mend: {finding.mend}"
    if finding.undo is not None:
        yield f"    undo: {finding.undo}"
