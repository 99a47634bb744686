"""What a comparison says, of two runs or two commits, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.cli.documents import indented
from corebound.cli.outcome import verdict_of
from corebound.model.points import Point
from corebound.model.run import Commit, Run
from corebound.report.view import commits_compared, comparing
from corebound.report.view.commit_words import commit_words
from corebound.report.view.commits_compared import CommitComparison, ComparedSeries
from corebound.report.view.comparing import Compared, ComparedCell, RunComparison
from corebound.report.view.series_figure import figure_text
from corebound.report.view.series_names import short_names
from corebound.report.view.words import count
from corebound.stats.interval import Interval

_HEADINGS = ("", "before", "after", "ratio", "95 %", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line: what it is called, both figures, and what they say of one another."""

    name: str
    before: str
    after: str
    verdict: str
    compared: Compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A comparison in words.

    Attributes:
        before, after: What the two are.
        each: What a row is, one and several.
        rows: Every one, those that differ first.
        closing: What is not in the rows.
        document: Everything, for scripts.
    """

    before: str
    after: str
    each: tuple[str, str]
    rows: tuple[Row, ...]
    closing: tuple[str, ...]
    document: dict[str, Any]


def of_runs(found: RunComparison, noise: Sequence[str] = ()) -> Told:
    """Two runs; `noise` is what their host cannot tell apart."""
    return Told(
        before=_named(found.before),
        after=_named(found.after),
        each=("cell", "cells"),
        rows=tuple(
            Row(
                name=one.cell.id,
                before=_time(one.before.median_ns),
                after=_time(one.after.median_ns),
                verdict=_verdict(one),
                compared=one,
            )
            for one in found.cells
        ),
        closing=(*_closing(found, "cells", "runs"), comparing.CAVEAT, *noise),
        document={
            "before": _run(found.before),
            "after": _run(found.after),
            "note": comparing.CAVEAT,
            "noise": noise,
            "cells": [_cell(one) for one in found.cells],
            **_uncompared(found, "run"),
        },
    )


def of_commits(found: CommitComparison) -> Told:
    """Two commits of an imported project."""
    names = short_names([one.series for one in found.series])
    return Told(
        before=_commit_named(found.project, found.before),
        after=_commit_named(found.project, found.after),
        each=("series", "series"),
        rows=tuple(
            Row(
                name=name,
                before=_figure(one, one.before),
                after=_figure(one, one.after),
                verdict=_less_or_more(one),
                compared=one,
            )
            for one, name in zip(found.series, names, strict=True)
        ),
        closing=(*_closing(found, "series", "commits"), commits_compared.CAVEAT),
        document={
            "project": found.project,
            "before": _commit(found.before),
            "after": _commit(found.after),
            "note": commits_compared.CAVEAT,
            "series": [_series(one) for one in found.series],
            **_uncompared(found, "commit"),
        },
    )


def show(told: Told, console: Console, *, all_: bool) -> None:
    """Print the two, what differs, and what is not shown."""
    for what, named in (("before", told.before), ("after", told.after)):
        console.print(Text(f"{what}: {named}"))
    shown = _shown(told, all_=all_)
    if shown:
        table = Table(box=None, padding=(0, 1))
        table.add_column(_HEADINGS[0], overflow="fold")
        for heading in _HEADINGS[1:]:
            table.add_column(heading, justify="right", no_wrap=True)
        for one in shown:
            table.add_row(*(Text(value) for value in _values(one)))
        console.print(table)
    for line in (*_hidden(told, all_=all_), *told.closing):
        console.print(Text(line))


def as_markdown(told: Told, *, all_: bool) -> str:
    """The same as Markdown, for a pull request."""
    lines = [f"Before: {told.before}  ", f"After: {told.after}", ""]
    shown = _shown(told, all_=all_)
    if shown:
        lines += [f"| {' | '.join(_HEADINGS)} |", "|---|--:|--:|--:|--:|---|"]
        lines += [f"| {' | '.join(_inert(value) for value in _values(one))} |" for one in shown]
        lines.append("")
    closing = (*_hidden(told, all_=all_), *told.closing)
    return "\n".join((*lines, *(_inert(line) for line in closing)))


def as_json(told: Told) -> str:
    """Everything, for scripts: all rows, whether they differ or not."""
    return indented(told.document)


def _shown(told: Told, *, all_: bool) -> list[Row]:
    return [one for one in told.rows if all_ or one.compared.is_finding]


def _hidden(told: Told, *, all_: bool) -> list[str]:
    unknown = sum(one.compared.comparison is None for one in told.rows)
    unclear = sum(not one.compared.is_finding for one in told.rows) - unknown
    if all_ or not unclear + unknown:
        return []
    alike = f"{unclear} of {len(told.rows) - unknown} {told.each[1]} do not clearly differ; "
    lacking = f"{count(unknown, *told.each)} not compared, for a figure is missing; "
    return [f"{alike if unclear else ''}{lacking if unknown else ''}--all shows them."]


def _closing(found: RunComparison | CommitComparison, what: str, those: str) -> list[str]:
    lines = [f"not compared: {name}: {why}" for name, why in found.unlike]
    if found.alone:
        lines.append(f"{len(found.alone)} {what} are in one of the {those} only.")
    return lines


def _uncompared(found: RunComparison | CommitComparison, what: str) -> dict[str, Any]:
    return {
        "not_alike": [{"id": name, "because": why} for name, why in found.unlike],
        "only_in_one": [{"id": name, what: which} for name, which in found.alone],
    }


def _named(run: Run) -> str:
    commit = f", commit {commit_words(run.commit)}" if run.commit else ""
    return f"{run.id}, {run.started_at}, {run.host.name}{commit}"


def _commit_named(project: str, commit: Commit) -> str:
    return f"{project}, commit {commit.sha[:10]}, {commit.committed_at} {commit.subject}".strip()


def _values(one: Row) -> tuple[str, ...]:
    comparison = one.compared.comparison
    bounds = comparison.interval if comparison else None
    return (
        one.name,
        one.before,
        one.after,
        units.ratio(comparison.speedup_ratio) if comparison else "–",
        f"{bounds.low:.2f}–{bounds.high:.2f}" if bounds else "–",
        one.verdict,
    )


def _verdict(one: Compared) -> str:
    """A verdict that is not clear as one of all is none."""
    if one.comparison is None:
        return "not compared"
    if one.verdict != one.comparison.verdict:
        return "? undecided"
    return verdict_of(one.comparison)


def _time(value_ns: float | None) -> str:
    return "–" if value_ns is None else units.duration(value_ns)


def _less_or_more(one: ComparedSeries) -> str:
    """The verdict; what is no time is neither faster nor slower."""
    verdict = _verdict(one)
    if one.series.unit == "ns" or not one.is_finding:
        return verdict
    return f"{verdict.partition(' ')[0]} {'less' if one.is_less else 'more'}"


def _figure(one: ComparedSeries, point: Point) -> str:
    return "–" if point.figure is None else figure_text(one.series, point.figure)


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
        "dirty": run.commit.dirty if run.commit else None,
    }


def _commit(commit: Commit) -> dict[str, Any]:
    return {
        "commit": commit.sha,
        "committed_at": commit.committed_at,
        "subject": commit.subject,
    }


def _cell(one: ComparedCell) -> dict[str, Any]:
    return {
        "id": one.cell.id,
        "before_ns": one.before.median_ns,
        "after_ns": one.after.median_ns,
        **_compared(one),
        "launches_needed": one.comparison.launches_needed if one.comparison else None,
    }


def _series(one: ComparedSeries) -> dict[str, Any]:
    return {
        "id": one.series.id,
        "unit": one.series.unit,
        "before": one.before.figure,
        "after": one.after.figure,
        **_compared(one),
    }


def _compared(one: Compared) -> dict[str, Any]:
    comparison = one.comparison
    return {
        "speedup_ratio": comparison.speedup_ratio if comparison else None,
        "speedup_interval": _bounds(comparison.interval) if comparison else None,
        "verdict": comparison.verdict if comparison else None,
        "p_value": comparison.p_value if comparison else None,
        "clear": one.clear,
    }


def _bounds(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
