"""The output of `corebound compare`, for runs and commits: text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from corebound import text as corebound_text
from corebound import units
from corebound.analysis.commit_comparison import COMMITS_CAVEAT, CommitComparison, ComparedSeries
from corebound.analysis.comparison import (
    RUNS_CAVEAT,
    Compared,
    RunComparison,
    commit_words,
    run_to_run_words,
    unclear_in,
    unknown_in,
)
from corebound.analysis.launch_metrics import disturbed_words
from corebound.analysis.serialize import commit_comparison_document, run_comparison_document
from corebound.analysis.series_names import short_names
from corebound.analysis.wording import compared_bounds, count, figure_text
from corebound.cli.output.json import indented
from corebound.cli.output.run import SIGNS, verdict_of
from corebound.cli.output.terminal import Console
from corebound.records.history import HistoryPoint
from corebound.records.run_record import Commit, Run

_CELLS, _SERIES = ("cell", "cells"), ("series", "series")
_HEADINGS = ("", "before", "after", "ratio", "95 %", "verdict")
_VERDICT_WIDTH = len("= equivalent")


class Row(Struct, frozen=True, kw_only=True):
    """One row: its name (in a terminal `short`, below `group`), its values, and the verdict."""

    name: str
    before: str
    after: str
    verdict: str
    compared: Compared
    short: str
    group: str = ""


class ComparisonText(Struct, frozen=True, kw_only=True):
    """A comparison in displayable form.

    Attributes:
        before, after: The descriptions of the two.
        each: The word for a row, singular and plural.
        rows: All rows, those that differ first.
        closing: Notes outside the rows.
        document: The complete comparison, for scripts.
    """

    before: str
    after: str
    each: tuple[str, str]
    rows: tuple[Row, ...]
    closing: tuple[str, ...]
    document: dict[str, Any]


def of_runs(found: RunComparison, noise: Sequence[str] = ()) -> ComparisonText:
    """Prepare the output for two runs; `noise` describes the smallest detectable difference."""
    return ComparisonText(
        before=_named(found.before),
        after=_named(found.after),
        each=_CELLS,
        rows=tuple(
            Row(
                name=one.cell.id,
                before=_time(one.before.median_ns),
                after=_time(one.after.median_ns),
                verdict=", ".join(
                    filter(
                        None,
                        (
                            _verdict(one),
                            found.code if one.is_finding else None,
                            disturbed_words(one.before, one.after),
                        ),
                    )
                ),
                compared=one,
                short=f"  {one.cell.label}",
                group=one.cell.scenario,
            )
            for one in found.cells
        ),
        closing=(
            *_closing(found, _CELLS, "runs"),
            f"{RUNS_CAVEAT} {run_to_run_words(found)}".strip(),
            *noise,
        ),
        document=run_comparison_document(found, noise),
    )


def of_commits(found: CommitComparison) -> ComparisonText:
    """Prepare the output for two commits of an imported project."""
    names = short_names([one.series for one in found.series])
    return ComparisonText(
        before=_commit_named(found.project, found.before),
        after=_commit_named(found.project, found.after),
        each=_SERIES,
        rows=tuple(
            Row(
                name=name,
                before=_figure(one, one.before),
                after=_figure(one, one.after),
                verdict=_less_or_more(one),
                compared=one,
                short=name,
            )
            for one, name in zip(found.series, names, strict=True)
        ),
        closing=(*_closing(found, _SERIES, "commits"), COMMITS_CAVEAT),
        document=commit_comparison_document(found),
    )


def show(told: ComparisonText, console: Console, *, all_: bool) -> None:
    """Print the two, the differences, and a note about hidden rows."""
    for what, named in (("before", told.before), ("after", told.after)):
        console.print(_line(f"{what}: {named}"))
    shown = _shown(told, all_=all_)
    if shown:
        table = Table(box=None, padding=(0, 1))
        table.add_column(_HEADINGS[0], overflow="fold")
        for heading in _HEADINGS[1:-1]:
            table.add_column(heading, justify="right", no_wrap=True)
        # A long verdict wraps, so that the other columns stay readable; a short one does not.
        table.add_column(_HEADINGS[-1], justify="right", min_width=_VERDICT_WIDTH)
        group = ""
        for one in sorted(shown, key=lambda one: one.group):
            if one.group != group:
                group = one.group
                table.add_row(_line(group))
            table.add_row(*map(_line, (one.short, *_values(one)[1:])))
        console.print(table)
    for line in (*_hidden(told, all_=all_), *told.closing):
        console.print(_line(line))


def _line(text: str) -> Text:
    return Text(corebound_text.one_line(text))


def as_markdown(told: ComparisonText, *, all_: bool) -> str:
    """Render the comparison as Markdown, for a pull request."""
    before, after = map(corebound_text.markdown, (told.before, told.after))
    lines = [f"Before: {before}  ", f"After: {after}", ""]
    shown = _shown(told, all_=all_)
    if shown:
        lines += [f"| {' | '.join(_HEADINGS)} |", "|---|--:|--:|--:|--:|---|"]
        lines += [f"| {' | '.join(map(corebound_text.markdown, _values(one)))} |" for one in shown]
        lines.append("")
    closing = (*_hidden(told, all_=all_), *told.closing)
    return "\n".join((*lines, *map(corebound_text.markdown, closing)))


def as_json(told: ComparisonText) -> str:
    """Render the complete comparison as JSON: all rows, with or without a difference."""
    return indented(told.document)


def _shown(told: ComparisonText, *, all_: bool) -> list[Row]:
    return [one for one in told.rows if all_ or one.compared.is_finding]


def _hidden(told: ComparisonText, *, all_: bool) -> list[str]:
    compared = [one.compared for one in told.rows]
    unclear, unknown = unclear_in(compared), unknown_in(compared)
    if all_ or not unclear + unknown:
        return []
    alike = f"{unclear:,} of {len(compared) - unknown:,} {told.each[1]} do not clearly differ; "
    lacking = f"{count(unknown, *told.each)} not compared, for a figure is missing; "
    return [f"{alike if unclear else ''}{lacking if unknown else ''}--all shows them."]


def _closing(
    found: RunComparison | CommitComparison, each: tuple[str, str], those: str
) -> list[str]:
    lines = [f"not compared: {name}: {why}" for name, why in found.unlike]
    if found.alone:
        are = "is" if len(found.alone) == 1 else "are"
        lines.append(f"{count(len(found.alone), *each)} {are} in one of the {those} only.")
    return lines


def _named(run: Run) -> str:
    commit = f", commit {commit_words(run.commit)}" if run.commit else ""
    return f"{run.id}, {run.started_at}, {run.host.name}{commit}"


def _commit_named(project: str, commit: Commit) -> str:
    return f"{project}, commit {commit.sha[:10]}, {commit.committed_at} {commit.subject}".strip()


def _values(one: Row) -> tuple[str, ...]:
    comparison = one.compared.comparison
    return (
        one.name,
        one.before,
        one.after,
        units.ratio(comparison.speedup_ratio) if comparison else "–",
        compared_bounds(comparison) or "–",
        one.verdict,
    )


def _verdict(one: Compared) -> str:
    """The verdict; inconclusive if it is not significant after correction for all comparisons."""
    if one.comparison is None:
        return "not compared"
    if one.verdict != one.comparison.verdict:
        return f"{SIGNS['undecided']} undecided"
    return verdict_of(one.comparison)


def _time(value_ns: float | None) -> str:
    return "–" if value_ns is None else units.duration(value_ns)


def _less_or_more(one: ComparedSeries) -> str:
    """The verdict; values other than times are less or more instead of faster or slower."""
    if one.series.unit == "ns" or one.verdict is None or not one.is_finding:
        return _verdict(one)
    return f"{SIGNS[one.verdict]} {'less' if one.is_less else 'more'}"


def _figure(one: ComparedSeries, point: HistoryPoint) -> str:
    return "–" if point.value is None else figure_text(one.series, point.value)
