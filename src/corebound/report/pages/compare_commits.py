"""The page that compares two commits of an imported project."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import NO_COMMAND, CommandLine, between_command
from corebound.analysis.commit_comparison import COMMITS_CAVEAT, CommitComparison, ComparedSeries
from corebound.analysis.comparison import compared_words, unclear_words
from corebound.analysis.series_names import series_name, short_cells
from corebound.analysis.wording import (
    NOT_COMPARED,
    Label,
    ValueWithBounds,
    VerdictWord,
    compared_bounds,
    day,
    display_unit,
    interval_name,
    rich,
    speedup,
    verdict_word,
    within,
)
from corebound.records.history import HistoryPoint
from corebound.records.run_record import Commit
from corebound.report.elements import Head, Hero
from corebound.report.history.panel import HistoryPanel, history_panel
from corebound.report.pages.changes import commit_link
from corebound.report.pages.compare import (
    ComparePage,
    CompareRow,
    RatioTable,
    comparison_verdict,
    side_by_side,
)
from corebound.report.scenario.cells import comparison_axis, comparison_plot, ratio_ticks
from corebound.report.urls import commits_data, commits_file, series_url
from corebound.units import significant

# The series that differ most. The histories of the others are on their benchmarks' pages.
_MOST_HISTORIES = 6
# The largest number of rows without a clear difference; the command shows all of them.
_MOST_UNCLEAR = 250
_MOST_NAMED = 50


def commits_page(found: CommitComparison, known: ChangeHistory, *, now: str) -> ComparePage:
    """Build the page of one comparison.

    Args:
        found: The comparison.
        known: The histories, in which both commits are marked.
        now: ISO timestamp of the page.
    """
    findings = [one for one in found.series if one.is_finding]
    others = [one for one in found.series if not one.is_finding]
    short = [commit.sha[:10] for commit in (found.before, found.after)]
    first = found.series[0]
    left_out = max(len(others) - _MOST_UNCLEAR, 0)
    return ComparePage(
        address=commits_file(found.project, found.before.sha, found.after.sha),
        what="commit",
        ratio="Before over after",
        head=Head(
            title=f"{found.project}: commits {short[0]} and {short[1]}",
            description=f"Two commits of {found.project}, benchmark by benchmark.",
            root="../",
            here="Compare",
            above=(("Scenarios", "index.html"), ("History", "history.html")),
            made=f"Imported from {found.project}; page made {day(now)}.",
        ),
        hero=Hero(
            title=f"Two commits of {found.project}",
            question="",
            context=f"{short[0]} against {short[1]}",
            verdict=comparison_verdict(
                [one.comparison for one in findings if one.comparison],
                what=("series", "series"),
                words=("worse", "better"),
            ),
            support=rich(
                f"{compared_words(found.series, ('series', 'series'))}. {COMMITS_CAVEAT}",
                _of_samples(found.series),
                "" if all(_reproduce_command(one) for one in found.series) else f" {NO_COMMAND}",
            ),
            flags=(),
        ),
        command=CommandLine(shlex.join(("corebound", "compare", *short))),
        runs=(
            _commit("Before", found.before, commit_link(first.series, first.before)),
            _commit("After", found.after, commit_link(first.series, first.after)),
        ),
        findings=_table(findings, known),
        others=_table(others[:_MOST_UNCLEAR], known),
        folded=unclear_words(others),
        decides=f"{left_out:,} more are not shown; the CSV below has all." if left_out else "",
        unlike=_limit(found.unlike),
        alone=_limit(found.alone),
        histories=_histories(findings, known),
        data=f"../{commits_data(found.project, found.before.sha, found.after.sha)}",
    )


def _limit(named: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    more = len(named) - _MOST_NAMED
    return (*named[:_MOST_NAMED], *([(f"{more:,} more", "")] if more > 0 else []))


def _commit(what: str, commit: Commit, link: str) -> tuple[str, str, str]:
    subject = f" {commit.subject}" if commit.subject else ""
    return what, f"{commit.sha[:10]}{subject}, {day(commit.committed_at)}", link


def _table(series: Sequence[ComparedSeries], known: ChangeHistory) -> RatioTable:
    shown = [one.comparison for one in series if one.comparison]
    axis = comparison_axis(shown, margin=max(one.margin for one in series)) if shown else None
    return RatioTable(
        axis=axis,
        ticks=ratio_ticks(axis) if axis else (),
        rows=tuple(
            _row(one, replace(known.label(one.series), name=name, more=""))
            for one, name in zip(series, short_cells([one.series for one in series]), strict=True)
        ),
    )


def _row(one: ComparedSeries, label: Label) -> CompareRow:
    comparison = one.comparison
    length, unit = display_unit(
        one.series, [figure for figure in (one.before.value, one.after.value) if figure] or [1.0]
    )
    before, after = side_by_side(
        _value_with_bounds(one.before, length, unit),
        _value_with_bounds(one.after, length, unit),
        unit=unit,
    )
    return CompareRow(
        title=one.series.title,
        address=f"../{series_url(one.series)}",
        label=label,
        before=before,
        after=after,
        plot=comparison_plot(comparison, mode=label.mode, margin=one.margin),
        speedup=speedup(comparison.speedup_ratio) if comparison else "–",
        interval=compared_bounds(comparison),
        verdict=_verdict(one),
        needed="",
        command=_reproduce_command(one),
    )


def _value_with_bounds(point: HistoryPoint, length: float, unit: str) -> ValueWithBounds:
    if point.value is None:
        return ValueWithBounds(value=point.missing or "–")

    def text(figure: float) -> str:
        return f"{significant(figure / length)} {unit}".strip()

    ends = within(*point.bounds, text) if point.bounds else ""
    return ValueWithBounds(value=text(point.value), ends=ends)


def _of_samples(series: Sequence[ComparedSeries]) -> str:
    """What the brackets below the values contain, if there are any."""
    if not any(one.before.bounds or one.after.bounds for one in series):
        return ""
    name = interval_name(one.series for one in series)
    return f" Under a figure stands the {name} of its own samples."


def _verdict(one: ComparedSeries) -> VerdictWord:
    if one.verdict is None:
        return NOT_COMPARED
    word = verdict_word(one.verdict)
    if one.series.unit == "ns" or not one.is_finding:
        return word
    # Only times have a speed.
    return replace(word, word="less" if one.is_less else "more")


def _reproduce_command(one: ComparedSeries) -> CommandLine | None:
    return between_command((one.series,), one.before, one.after)


def _histories(
    findings: Sequence[ComparedSeries], known: ChangeHistory
) -> tuple[HistoryPanel, ...]:
    """The histories of the series that differ most, with both commits marked."""
    return tuple(
        history_panel(
            (one.series,),
            known,
            title=series_name(one.series),
            compared=[(one.before.at, "before"), (one.after.at, "after")],
        )
        for one in findings[:_MOST_HISTORIES]
    )
