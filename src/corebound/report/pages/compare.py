"""The page that compares two runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import CommandLine, compare_again_command
from corebound.analysis.compared import comparison_summary, no_difference_note
from corebound.analysis.noise_floor import noise_floor_notes
from corebound.analysis.run_comparison import (
    RUNS_CAVEAT,
    ComparedCell,
    RunComparison,
    commit_title,
    run_variation_note,
)
from corebound.analysis.wording import (
    NOT_COMPARED,
    TOO_WIDE,
    Label,
    Text,
    TextSpan,
    ValueWithBounds,
    VerdictWord,
    count,
    day,
    full_name,
    label,
    open_note,
    rich,
    time_text,
    verdict_word,
    within,
)
from corebound.records.run_record import Run
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import (
    LAUNCHES_NEEDED_NOTE,
    NARROW_COLUMN,
    IntervalPlot,
    comparison_axis,
    comparison_plot,
    effect_ticks,
)
from corebound.report.elements import Head, Hero, Tick
from corebound.report.history.panel import HistoryPanel, history_panel
from corebound.report.inputs import PageContext
from corebound.report.urls import comparison_data, run_file
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval
from corebound.stats.launch_summary import CellSummary
from corebound.units import time_unit

# The cells that differ most. The histories of the others are on their scenarios' pages.
_MOST_HISTORIES = 6


class CompareRow(Struct, frozen=True, kw_only=True):
    """One cell in both runs; the bounds in `before` and `after` may be empty.

    Attributes:
        comparison: None if the two cannot be compared.
        change: Its ratio in words; empty without one.
        note: Below the verdict: how many launches would decide it, or a doubt; may be empty.
        command: Measures it again; None if unknown.
    """

    title: str
    address: str
    label: Label
    before: ValueWithBounds
    after: ValueWithBounds
    plot: IntervalPlot
    comparison: Comparison | None
    change: str
    verdict: VerdictWord
    note: str
    command: CommandLine | None


class RatioTable(Struct, frozen=True, kw_only=True):
    """Cells on one axis, which is None if no cell has a ratio."""

    axis: Axis | None
    ticks: tuple[Tick, ...]
    rows: tuple[CompareRow, ...]

    @classmethod
    def of(
        cls, rows: tuple[CompareRow, ...], *, margins: Sequence[float], column: float
    ) -> RatioTable:
        """A table of rows with these margins, whose labels fit into a column of this width."""
        comparisons = [row.comparison for row in rows if row.comparison]
        axis = comparison_axis(comparisons, margin=max(margins)) if comparisons else None
        return cls(axis=axis, ticks=effect_ticks(axis, column) if axis else (), rows=rows)


class ComparePage(Struct, frozen=True, kw_only=True):
    """The comparison of two runs: findings first, the rest folded.

    Attributes:
        what: Whether the two are runs or commits.
        runs: (what it is, name, address or empty) of both.
        others_summary: The numbers of the remaining comparisons, by why they are not findings.
        others_note: The meaning of the numbers below inconclusive verdicts; empty without any.
        not_comparable, only_in_one: Cells that are not compared, and why.
        data: Address of all values as CSV.
    """

    what: Literal["run", "commit"]
    head: Head
    hero: Hero
    command: CommandLine
    runs: tuple[tuple[str, str, str], ...]
    findings: RatioTable
    others: RatioTable
    others_summary: str
    others_note: str
    not_comparable: tuple[tuple[str, str], ...]
    only_in_one: tuple[tuple[str, str], ...]
    data: str
    histories: tuple[HistoryPanel, ...] = ()


def compare_page(comparison: RunComparison, context: PageContext) -> ComparePage:
    """Build the page of one comparison, with noise floors and with the histories of both runs."""
    noise = noise_floor_notes(context.calibrations, comparison.after, launches=comparison.launches)
    findings = [cell for cell in comparison.cells if cell.is_finding]
    cells = [cell for cell in comparison.cells if not cell.is_finding]
    unclear = _table(comparison, cells)
    title = f"{day(comparison.before.started_at)} against {day(comparison.after.started_at)}"
    return ComparePage(
        what="run",
        head=Head(
            title=f"Corebound: runs {comparison.before.id} and {comparison.after.id}",
            description=f"Two runs on {comparison.after.host.name}, cell by cell.",
            made=f"Measured with corebound {comparison.after.corebound}.",
        ),
        hero=Hero(
            title=f"Two runs on {comparison.after.host.name}",
            context=title,
            verdict=comparison_verdict([cell.comparison for cell in findings if cell.comparison]),
            support=rich(
                f"{comparison_summary(comparison.cells, ('cell', 'cells'))}. {RUNS_CAVEAT}",
                f" {run_variation_note(comparison)}",
                *(f" {floor}" for floor in noise),
            ),
        ),
        command=CommandLine(f"corebound compare {comparison.before.id} {comparison.after.id}"),
        runs=(_run("Before", comparison.before), _run("After", comparison.after)),
        findings=_table(comparison, findings),
        others=unclear,
        others_summary=no_difference_note(cells),
        others_note=LAUNCHES_NEEDED_NOTE if any(row.note for row in unclear.rows) else "",
        not_comparable=comparison.not_comparable,
        only_in_one=comparison.only_in_one,
        data=f"../{comparison_data(comparison.before, comparison.after)}",
        histories=_histories(comparison, findings, context.history),
    )


def _histories(
    comparison: RunComparison, findings: Sequence[ComparedCell], history: ChangeHistory
) -> tuple[HistoryPanel, ...]:
    """The histories of the cells that differ most, with both runs marked."""
    host = comparison.after.host.id
    series = {
        (series.scenario, series.cell): series
        for series in history.histories
        if series.host == host
    }
    words = {comparison.before.id: "before", comparison.after.id: "after"}
    panels = []
    for cell in findings:
        own = series.get((cell.scenario, cell.cell))
        moments = own.points.moments if own else ()
        marks = [(moment.at, words[moment.run]) for moment in moments if moment.run in words]
        if own is None or len(marks) < len(words):
            continue
        title = f"{cell.title}: {full_name(cell.configuration)}"
        panels.append(history_panel((own,), history, title=title, compared=marks))
    return tuple(panels[:_MOST_HISTORIES])


def comparison_verdict(
    findings: Sequence[Comparison],
    *,
    what: tuple[str, str] = ("cell", "cells"),
    words: tuple[str, str] = ("slower", "faster"),
) -> Text:
    """The verdict of a comparison, from its clear differences.

    Args:
        findings: The clear differences.
        what: The name of one item, singular and plural.
        words: The words for ratios below 1 and above 1.
    """
    slower = sum(comparison.verdict == "slower" for comparison in findings)
    faster = len(findings) - slower
    if not findings:
        return rich(f"No {what[0]} clearly differs.")
    parts: list[str | TextSpan] = []
    if slower:
        parts += [f"{count(slower, *what)} ", TextSpan(words[0], "bad")]
    if faster:
        parts += [", " if parts else "", f"{count(faster, *what)} ", TextSpan(words[1], "good")]
    return rich(*parts, ".")


def _table(comparison: RunComparison, cells: Sequence[ComparedCell]) -> RatioTable:
    rows = tuple(_row(comparison, cell) for cell in cells)
    return RatioTable.of(rows, margins=[cell.margin for cell in cells], column=NARROW_COLUMN)


def _run(what: str, run: Run) -> tuple[str, str, str]:
    commit = f", commit {commit_title(run.commit)}" if run.commit else ""
    return what, f"{run.id}, {day(run.started_at)}{commit}", f"../{run_file(run)}"


def _row(run_comparison: RunComparison, cell: ComparedCell) -> CompareRow:
    comparison = cell.comparison
    before, after = side_by_side(
        _value_with_bounds(cell.before_summary),
        _value_with_bounds(cell.after_summary),
        unit=_shared_unit((cell.before_summary.interval, cell.after_summary.interval)),
    )
    verdict = verdict_word(comparison.verdict) if comparison else NOT_COMPARED
    doubt = ""
    if cell.is_finding and run_comparison.code is not None:
        verdict, doubt = replace(verdict, tone="plain"), f"{run_comparison.code}: host or noise"
    if comparison and not cell.is_significant and comparison.verdict in {"faster", "slower"}:
        verdict = verdict_word("inconclusive")
    return CompareRow(
        title=cell.title,
        address=f"../scenario/{cell.scenario}.html",
        label=label(cell.configuration),
        before=before,
        after=after,
        plot=comparison_plot(comparison, margin=cell.margin, verdict=verdict),
        comparison=comparison,
        change=cell.ratio_text,
        verdict=verdict,
        note=doubt or open_note(comparison),
        command=compare_again_command(
            run_comparison.before, run_comparison.after, cell.configuration
        ),
    )


def side_by_side(
    before: ValueWithBounds, after: ValueWithBounds, *, unit: str
) -> tuple[ValueWithBounds, ValueWithBounds]:
    """Two values for adjacent columns: a unit that their intervals share is written once.

    Args:
        before: The earlier value.
        after: The later value.
        unit: The unit of all ends of both; empty if they share none.
    """
    if before.ends and after.ends:
        before = replace(before, ends=before.ends.removesuffix(f" {unit}"))
    return _on_one_line(before), _on_one_line(after)


def _shared_unit(intervals: Sequence[Interval | None]) -> str:
    """The unit of all ends of these intervals; empty if they differ or an interval is unknown."""
    ends_ns = [end for interval in intervals if interval for end in (interval.low, interval.high)]
    units = {time_unit(end)[1] if math.isfinite(end) else "" for end in ends_ns}
    return units.pop() if len(units) == 1 else ""


def _on_one_line(figure: ValueWithBounds) -> ValueWithBounds:
    """The value with its interval on one line, because half an interval would be misread."""
    if figure.ends == TOO_WIDE:
        return figure
    return replace(figure, ends=figure.ends.replace(" ", "\N{NO-BREAK SPACE}"))


def _value_with_bounds(summary: CellSummary) -> ValueWithBounds:
    interval = summary.interval
    return ValueWithBounds(
        value=time_text(summary.median_ns),
        ends=within(interval.low, interval.high, time_text) if interval else "",
    )
