"""What a comparison of two runs says, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.cli.documents import indented
from corebound.cli.outcome import verdict_of
from corebound.model.run import Run
from corebound.report.view.comparing import CAVEAT, ComparedCell, RunComparison
from corebound.stats.interval import Interval

_HEADINGS = ("cell", "before", "after", "speed-up", "95 %", "verdict")


def show(found: RunComparison, console: Console, *, all_: bool, noise: Sequence[str] = ()) -> None:
    """Print the runs, the cells that differ, what is not shown, and how much is noise."""
    for what, run in (("before", found.before), ("after", found.after)):
        console.print(Text(f"{what}: {_named(run)}"))
    shown = _shown(found, all_=all_)
    if shown:
        table = Table(box=None, padding=(0, 1))
        table.add_column(_HEADINGS[0], overflow="fold")
        for heading in _HEADINGS[1:]:
            table.add_column(heading, justify="right", no_wrap=True)
        for one in shown:
            table.add_row(*(Text(value) for value in _row(one)))
        console.print(table)
    for line in _closing(found, noise, all_=all_):
        console.print(Text(line))


def as_markdown(found: RunComparison, *, all_: bool, noise: Sequence[str] = ()) -> str:
    """The same as Markdown, for a pull request."""
    lines = [f"Before: {_named(found.before)}  ", f"After: {_named(found.after)}", ""]
    shown = _shown(found, all_=all_)
    if shown:
        lines += [f"| {' | '.join(_HEADINGS)} |", "|---|--:|--:|--:|--:|---|"]
        lines += [f"| {' | '.join(_inert(value) for value in _row(one))} |" for one in shown]
        lines.append("")
    return "\n".join((*lines, *(_inert(line) for line in _closing(found, noise, all_=all_))))


def as_json(found: RunComparison, *, noise: Sequence[str] = ()) -> str:
    """Everything, for scripts: all cells, whether they differ or not."""
    document: dict[str, Any] = {
        "before": _run(found.before),
        "after": _run(found.after),
        "note": CAVEAT,
        "noise": noise,
        "cells": [_cell(one) for one in found.cells],
        "not_alike": [{"id": name, "because": why} for name, why in found.unlike],
        "only_in_one": [{"id": name, "run": run} for name, run in found.alone],
    }
    return indented(document)


def _shown(found: RunComparison, *, all_: bool) -> list[ComparedCell]:
    return [one for one in found.cells if all_ or one.is_finding]


def _closing(found: RunComparison, noise: Sequence[str], *, all_: bool) -> list[str]:
    hidden = sum(not one.is_finding for one in found.cells)
    lines = []
    if hidden and not all_:
        lines.append(
            f"{hidden} of {len(found.cells)} cells do not clearly differ; --all shows them."
        )
    lines += [f"not compared: {name}: {why}" for name, why in found.unlike]
    if found.alone:
        lines.append(f"{len(found.alone)} cells are in one of the runs only.")
    return [*lines, CAVEAT, *noise]


def _named(run: Run) -> str:
    commit = f", commit {run.commit.sha[:10]} {run.commit.subject}" if run.commit else ""
    return f"{run.id}, {run.started_at}, {run.host.name}{commit}"


def _row(one: ComparedCell) -> tuple[str, ...]:
    compared = one.comparison
    bounds = compared.interval if compared else None
    return (
        one.cell.id,
        _time(one.before.median_ns),
        _time(one.after.median_ns),
        units.ratio(compared.speedup_ratio) if compared else "–",
        f"{bounds.low:.2f}–{bounds.high:.2f}" if bounds else "–",
        _verdict(one),
    )


def _verdict(one: ComparedCell) -> str:
    """A verdict that is not clear as one of all is none."""
    if one.comparison is None:
        return "not compared"
    if one.comparison.verdict in {"faster", "slower"} and not one.clear:
        return "? undecided"
    return verdict_of(one.comparison)


def _time(value_ns: float | None) -> str:
    return "–" if value_ns is None else units.duration(value_ns)


def _inert(text: str) -> str:
    """Text that Markdown neither takes for a column's end nor for markup."""
    for mark in "\\|<>*_`[]":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def _run(run: Run) -> dict[str, Any]:
    return {
        "run": run.id,
        "started_at": run.started_at,
        "host": run.host.id,
        "commit": run.commit.sha if run.commit else None,
        "subject": run.commit.subject if run.commit else None,
    }


def _cell(one: ComparedCell) -> dict[str, Any]:
    compared = one.comparison
    return {
        "id": one.cell.id,
        "before_ns": one.before.median_ns,
        "after_ns": one.after.median_ns,
        "speedup_ratio": compared.speedup_ratio if compared else None,
        "speedup_interval": _bounds(compared.interval) if compared else None,
        "verdict": compared.verdict if compared else None,
        "p_value": compared.p_value if compared else None,
        "launches_needed": compared.launches_needed if compared else None,
        "clear": one.clear,
    }


def _bounds(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
