"""The page that compares two commits of an imported project."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import NO_COMMAND, CommandLine, between_command
from corebound.analysis.commit_comparison import COMMITS_CAVEAT, CommitComparison, ComparedSeries
from corebound.analysis.compared import comparison_summary, no_difference_note
from corebound.analysis.series_names import series_name, short_cell_names
from corebound.analysis.wording import (
    NOT_COMPARED,
    Label,
    ValueWithBounds,
    VerdictWord,
    day,
    display_unit,
    interval_name,
    rich,
    verdict_word,
    within,
)
from corebound.records.history import HistoryPoint
from corebound.records.run_record import Commit
from corebound.report.charts.intervals import comparison_plot
from corebound.report.elements import Head, Hero
from corebound.report.history.panel import HistoryPanel, history_panel
from corebound.report.inputs import PageContext
from corebound.report.pages.changes import commit_link
from corebound.report.pages.compare import (
    ComparePage,
    CompareRow,
    RatioTable,
    comparison_verdict,
    side_by_side,
)
from corebound.report.urls import commits_data, series_url
from corebound.units import significant

# The series that differ most. The histories of the others are on their benchmarks' pages.
_MOST_HISTORIES = 6
# The largest number of rows without a clear difference; the command shows all of them.
_MOST_UNCLEAR = 250
_MOST_NAMED = 50


def commits_page(comparison: CommitComparison, context: PageContext) -> ComparePage:
    """Build the page of one comparison, with the histories in which both commits are marked."""
    history = context.history
    findings = [series for series in comparison.series if series.is_finding]
    all_series = [series for series in comparison.series if not series.is_finding]
    short = [commit.sha[:10] for commit in (comparison.before, comparison.after)]
    first = comparison.series[0]
    left_out = max(len(all_series) - _MOST_UNCLEAR, 0)
    return ComparePage(
        what="commit",
        head=Head(
            title=f"{comparison.project}: commits {short[0]} and {short[1]}",
            description=f"Two commits of {comparison.project}, benchmark by benchmark.",
            made=f"Imported from {comparison.project}; page made {day(context.now)}.",
        ),
        hero=Hero(
            title=f"Two commits of {comparison.project}",
            context=f"{short[0]} against {short[1]}",
            verdict=comparison_verdict(
                [series.comparison for series in findings if series.comparison],
                what=("series", "series"),
                words=("worse", "better"),
            ),
            support=rich(
                f"{comparison_summary(comparison.series, ('series', 'series'))}. {COMMITS_CAVEAT}",
                _of_samples(comparison.series),
                ""
                if all(_reproduce_command(series) for series in comparison.series)
                else f" {NO_COMMAND}",
            ),
        ),
        command=CommandLine(shlex.join(("corebound", "compare", *short))),
        runs=(
            _commit("Before", comparison.before, commit_link(first.series, first.before_point)),
            _commit("After", comparison.after, commit_link(first.series, first.after_point)),
        ),
        findings=_table(findings, history),
        others=_table(all_series[:_MOST_UNCLEAR], history),
        others_summary=no_difference_note(all_series),
        others_note=f"{left_out:,} more are not shown; the CSV below has all." if left_out else "",
        not_comparable=_limit(comparison.not_comparable),
        only_in_one=_limit(comparison.only_in_one),
        histories=_histories(findings, history),
        data=f"../{commits_data(comparison.project, comparison.before.sha, comparison.after.sha)}",
    )


def _limit(named: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    more = len(named) - _MOST_NAMED
    return (*named[:_MOST_NAMED], *([(f"{more:,} more", "")] if more > 0 else []))


def _commit(what: str, commit: Commit, link: str) -> tuple[str, str, str]:
    subject = f" {commit.subject}" if commit.subject else ""
    return what, f"{commit.sha[:10]}{subject}, {day(commit.committed_at)}", link


def _table(all_series: Sequence[ComparedSeries], history: ChangeHistory) -> RatioTable:
    names = short_cell_names([series.series for series in all_series])
    rows = tuple(
        _row(series, replace(history.label(series.series), name=name, more=""))
        for series, name in zip(all_series, names, strict=True)
    )
    margins = [series.margin for series in all_series]
    # Memory is neither faster nor slower.
    return RatioTable.of(rows, margins=margins, column=math.inf)


def _row(series: ComparedSeries, label: Label) -> CompareRow:
    comparison = series.comparison
    length, unit = display_unit(
        series.series,
        [value for value in (series.before, series.after) if value] or [1.0],
    )
    before, after = side_by_side(
        _value_with_bounds(series.before_point, length, unit),
        _value_with_bounds(series.after_point, length, unit),
        unit=unit,
    )
    return CompareRow(
        title=series.series.title,
        address=f"../{series_url(series.series)}",
        label=label,
        before=before,
        after=after,
        plot=comparison_plot(comparison, margin=series.margin, verdict=_verdict(series)),
        comparison=comparison,
        change=series.ratio_text,
        verdict=_verdict(series),
        note="",
        command=_reproduce_command(series),
    )


def _value_with_bounds(point: HistoryPoint, length: float, unit: str) -> ValueWithBounds:
    if point.value is None:
        return ValueWithBounds(value=point.missing or "–")

    def text(value: float) -> str:
        return f"{significant(value / length)} {unit}".strip()

    ends = within(*point.bounds, text) if point.bounds else ""
    return ValueWithBounds(value=text(point.value), ends=ends)


def _of_samples(all_series: Sequence[ComparedSeries]) -> str:
    """What the brackets below the values contain, if there are any."""
    if not any(series.before_point.bounds or series.after_point.bounds for series in all_series):
        return ""
    name = interval_name(series.series for series in all_series)
    return f" Below each value is the {name} of its own samples."


def _verdict(series: ComparedSeries) -> VerdictWord:
    if series.verdict is None:
        return NOT_COMPARED
    verdict = verdict_word(series.verdict)
    if series.unit == "ns" or not series.is_finding:
        return verdict
    # Only times have a speed.
    return replace(verdict, word="less" if series.is_less else "more")


def _reproduce_command(series: ComparedSeries) -> CommandLine | None:
    return between_command((series.series,), series.before_point, series.after_point)


def _histories(
    findings: Sequence[ComparedSeries], history: ChangeHistory
) -> tuple[HistoryPanel, ...]:
    """The histories of the series that differ most, with both commits marked."""
    return tuple(
        history_panel(
            (series.series,),
            history,
            title=series_name(series.series),
            compared=[(series.before_point.at, "before"), (series.after_point.at, "after")],
        )
        for series in findings[:_MOST_HISTORIES]
    )
