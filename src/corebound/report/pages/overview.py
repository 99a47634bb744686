"""The first page: the latest results, scenario by scenario."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.claims import judge_claims
from corebound.analysis.commands import FIRST, CommandLine, cell_command, reproduce_command
from corebound.analysis.host_records import Record
from corebound.analysis.launch_metrics import status_counts
from corebound.analysis.noise_floor import calibration_for
from corebound.analysis.scenario_result import BaselineComparison, ScenarioResult
from corebound.analysis.wording import (
    NO_BASELINE,
    NOT_MEASURED,
    Flag,
    Text,
    TextSpan,
    VerdictWord,
    compared_with,
    count,
    day,
    rich,
    strong,
    verdict_word,
)
from corebound.errors import Fault
from corebound.records.calibration import Calibration
from corebound.records.history import Series
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import IntervalPlot, comparison_axis, ratio_ticks
from corebound.report.elements import Head, Hero, Tick, damaged_records
from corebound.report.inputs import PageContext
from corebound.report.pages.series_table import SeriesGroup, last_change, no_change, series_groups
from corebound.report.pages.whats_new import WhatsNew, whats_new
from corebound.report.scenario.cells import cell_plot
from corebound.report.scenario.verdict import (
    budget_note,
    lost_launches_text,
    uncommitted_flag,
    verdict_of,
)
from corebound.stats.history.regressions import Change
from corebound.stats.multiplicity import suite_findings
from corebound.units import percent


class Trend(Struct, frozen=True, kw_only=True):
    """A scenario's trend: the values of one cell, the scenario's status, and its last change.

    Attributes:
        series: The cell's history.
        mode: CSS class of the cell's colour.
        status: The scenario's current status.
        change: Its last change; None if there is none.
        unchanged: The text in place of a change if there is none.
    """

    series: Series
    mode: str
    status: VerdictWord
    change: Change | None
    unchanged: str


def scenario_trend(
    result: ScenarioResult, chosen: Sequence[str], history: ChangeHistory
) -> Trend | None:
    """The trend on this host of the first of these cells, or of any cell that has one.

    Args:
        result: The scenario's result.
        chosen: Keys of cells, the preferred one first.
        history: The histories.
    """
    all_series = [
        series
        for series in history.grown(project=None, scenario=result.scenario.name)
        if series.host == result.run.host.id
    ]
    if not all_series:
        return None
    by_cell = {series.cell: series for series in all_series}
    shown_series = next((by_cell[key] for key in chosen if key in by_cell), all_series[0])
    return Trend(
        series=shown_series,
        mode=history.label(shown_series).mode,
        status=_change_state(result, all_series, history),
        change=last_change(all_series, history),
        unchanged=no_change(all_series, history),
    )


def _change_state(
    result: ScenarioResult, all_series: Sequence[Series], history: ChangeHistory
) -> VerdictWord:
    """The current status of a scenario in a word: that of its worst new change."""
    changes = [
        change for series in all_series for change in history.of(series) if history.is_news(change)
    ]
    if any(change.is_regression for change in changes):
        return VerdictWord(tone="bad", sign="▼", word="slower")
    if any(launch.status not in {"ok", "skipped"} for launch in result.launches):
        return VerdictWord(tone="warn", sign="!", word="launches lost")
    if changes:
        return VerdictWord(tone="good", sign="▲", word="faster")
    if any(series.id in history.not_analysed for series in all_series):
        return VerdictWord(tone="warn", sign="!", word="not analysed")
    short = all(series.id in history.too_short for series in all_series)
    return VerdictWord(tone="plain", sign="", word="too short to tell" if short else "nothing new")


# With more benchmarks than this, only the history page lists them.
_MOST = 50


def imported_series(history: ChangeHistory) -> tuple[SeriesGroup, ...]:
    """The benchmarks of all projects; empty if there are too many for the first page."""
    imported = [series for series in history.histories if series.project is not None]
    benchmarks = {(series.project, series.host, series.scenario) for series in imported}
    return series_groups(imported, history) if len(benchmarks) <= _MOST else ()


def imported_projects(history: ChangeHistory) -> tuple[str, ...]:
    """What was imported, with one entry per project."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for series in history.histories:
        if series.project is not None:
            groups.setdefault(series.project, []).append((series.scenario, series.host))
    return tuple(
        f"{project}: {count(len({name for name, _ in pairs}), 'benchmark')} on "
        f"{count(len({host for _, host in pairs}), 'machine')}"
        for project, pairs in sorted(groups.items())
    )


def overview_flags(results: Sequence[ScenarioResult], faults: Sequence[Fault]) -> tuple[Flag, ...]:
    """Notices about the results of all scenarios.

    Args:
        results: One result per scenario.
        faults: Records that could not be read.
    """
    raised = (
        damaged_records(faults),
        uncommitted_flag(results),
        _ended_early(results),
        _claims(results),
        _uncounted_launches(results),
    )
    return tuple(flag for flag in raised if flag is not None)


def _ended_early(results: Sequence[ScenarioResult]) -> Flag | None:
    cut = {result.run.id: result.incomplete for result in results if result.incomplete is not None}
    if not cut:
        return None
    short = sum(result.incomplete is not None for result in results)
    latest = max(results, key=lambda result: (result.run.started_at, result.run.id)).run.id
    # Only the latest run can be resumed.
    more = "; corebound run --resume goes on with it" if {*cut} == {latest} else ""
    return Flag.warning(
        title=f"The run ended early{budget_note(*cut.values())}"
        if len(cut) == 1
        else f"{len(cut)} runs ended early",
        detail=f"{short} of {count(len(results), 'scenario')} cut short{more}",
    )


def _uncounted_launches(results: Sequence[ScenarioResult]) -> Flag | None:
    text = lost_launches_text(results)
    if not text:
        return None
    sound = sum(cell.summary.count("ok") for result in results for cell in result.cells)
    return Flag.warning(title=text, detail=f"beside {sound:,} that count")


def _claims(results: Sequence[ScenarioResult]) -> Flag | None:
    """How many of the published claims that have a conclusive result here reproduce."""
    judgements = [claim.judgement for result in results for claim in judge_claims(result)]
    if not judgements:
        return None
    held, failed = judgements.count("reproduces"), judgements.count("does not")
    tried = held + failed
    left = len(judgements) - tried
    return Flag(
        tone="good" if held and not failed else "plain",
        sign="✓" if held and not failed else "–",
        title=f"Published claims that reproduce here: {held} of {tried}"
        if tried
        else "No published claim could be decided here",
        detail=f"{left} undecided, or not for this host" if left else "of those decided",
        link="claims.html",
    )


_TITLE = "Which cores, and how many threads?"
_ALONE = VerdictWord(tone="plain", sign="", word="one setting")


class OverviewRow(Struct, frozen=True, kw_only=True):
    """A scenario's state after its latest run.

    Attributes:
        result: The scenario's result; the row shows its leader.
        against: What the leader is compared with; empty without a leader.
        plot: The leader's comparison; None without a leader.
        launch_counts: The number of launches per status.
        command: Measures the leader again.
        trend: None after a single run.
    """

    result: ScenarioResult
    against: str
    plot: IntervalPlot | None
    verdict: VerdictWord
    launch_counts: tuple[str, ...]
    command: CommandLine
    trend: Trend | None


class OverviewPage(Struct, frozen=True, kw_only=True):
    """The site's first page; without rows it shows which commands to run.

    `news` is what is new, if there is a history. `pages` are (text, address) of pages about all
    scenarios, and `projects` of imported histories. `imported` has their benchmarks if there are
    few enough to read. `first` has the commands to run first.
    """

    head: Head
    hero: Hero
    axis: Axis | None
    ticks: tuple[Tick, ...]
    news: WhatsNew | None
    rows: tuple[OverviewRow, ...]
    pages: tuple[tuple[str, str], ...]
    projects: tuple[str, ...]
    imported: tuple[SeriesGroup, ...]
    first: tuple[CommandLine, ...] = FIRST


def overview_page(
    results: Sequence[ScenarioResult],
    context: PageContext,
    *,
    pages: Sequence[tuple[str, str]] = (),
    records: Sequence[Record] = (),
    faults: Sequence[Fault] = (),
) -> OverviewPage:
    """Build the overview of all scenarios, by name; without any it shows which commands to run.

    Args:
        results: One result per scenario.
        context: What the pages share.
        pages: (text, address) of pages about all scenarios.
        records: Every run with its launches, in any order.
        faults: Records that could not be read.
    """
    history = context.history
    clear = _clear(results)
    noise = _noise(results, context.calibrations)
    margin = max((result.measure.margin for result in results), default=0.02)
    comparisons = [result.leader.comparison for result in results if result.leader]
    axis = comparison_axis(comparisons, margin=margin) if comparisons else None
    news = whats_new(history, records)
    top = Hero(
        title="Overview",
        question=_TITLE if results else "",
        context="",
        verdict=news.verdict if news else _verdict(results, clear),
        support=(*(news.support if news else _support(results, clear)), *noise),
        flags=overview_flags(results, faults),
    )
    return OverviewPage(
        head=Head(
            title="Corebound: overview",
            description=f"{count(len(results), 'scenario')} measured with corebound.",
            root="",
            breadcrumb="Scenarios",
            parents=(),
            made=f"Page made {day(context.now)}.",
        ),
        hero=top,
        axis=axis,
        ticks=ratio_ticks(axis) if axis else (),
        news=news,
        rows=tuple(_row(result, history, clear) for result in results),
        pages=tuple(pages),
        projects=imported_projects(history),
        imported=imported_series(history),
    )


def _clear(results: Sequence[ScenarioResult]) -> frozenset[str]:
    """The ids of cells that differ from their baseline after correcting for all comparisons."""
    cells = [cell for result in results for cell in result.cells]
    findings = suite_findings([cell.comparison for cell in cells])
    return frozenset(
        cell.cell.id for cell, is_finding in zip(cells, findings, strict=True) if is_finding
    )


def _winner(result: ScenarioResult, clear: frozenset[str]) -> BaselineComparison | None:
    """The scenario's fastest configuration, if it is significant within the whole suite too."""
    winner = result.winner
    return winner if winner is not None and winner.cell.cell.id in clear else None


def _noise(results: Sequence[ScenarioResult], calibrations: Sequence[Calibration]) -> Text:
    """The sizes of the noise floors, if scenarios were calibrated."""
    scenario_calibrations = [
        calibration_for(calibrations, result.run, result.source) for result in results
    ]
    floor_ratios = [
        max(calibration.noise, key=lambda noise: noise.launches).floor_ratio
        for calibration in scenario_calibrations
        if calibration
    ]
    if not floor_ratios:
        return ()
    low, high = percent(min(floor_ratios)), percent(max(floor_ratios))
    span = low if low == high else f"{low} to ±{high}"
    return rich(f" Noise floor ±{span}, calibrated in {len(floor_ratios)} of {len(results)}.")


def _verdict(results: Sequence[ScenarioResult], clear: frozenset[str]) -> Text:
    if not results:
        return rich("No records yet.")
    faster = sum(_winner(result, clear) is not None for result in results)
    if len(results) == 1:
        return verdict_of(results[0])[0]
    compared = sum(bool(result.ranked) for result in results)
    if not compared:
        return rich("Nothing could be compared yet.")
    rest = len(results) - compared
    end = f"; {rest} could not be compared." if rest else "."
    if not faster:
        location = count(compared, "scenario")
        return rich(f"No setting clearly beats its baseline in {location}{end}")
    everywhere = faster == len(results)
    lead = f"In all {faster}" if everywhere else f"In {faster} of {len(results)}"
    return rich(
        f"{lead} scenarios a setting is ", TextSpan("faster", "good"), f" than the baseline{end}"
    )


def _support(results: Sequence[ScenarioResult], clear: frozenset[str]) -> Text:
    if not results:
        return rich("Measure a scenario, then make the report again.")
    counts: dict[str, int] = {}
    for result in results:
        word = _state(result, clear).word
        counts[word] = counts.get(word, 0) + 1
    text = ", ".join(f"{number} {word}" for word, number in counts.items())
    newest = max(results, key=lambda result: result.run.started_at)
    hosts = list(dict.fromkeys(result.run.host.name for result in results))
    location = hosts[0] if len(hosts) == 1 else count(len(hosts), "host")
    when = f"On {location}, last measured {day(newest.run.started_at)}."
    if len(results) == 1:
        return rich(f"One scenario. {when}")
    return rich("Best alternative in each scenario: ", strong(text), f". {when}")


def _state(result: ScenarioResult, clear: frozenset[str]) -> VerdictWord:
    """A scenario's state in a word: that of its best alternative."""
    if _winner(result, clear) is not None:
        return verdict_word("faster")
    if result.leader:
        nearest = result.leader.comparison.verdict
        # Faster on its own, but not significantly after correcting for all comparisons.
        return verdict_word("undecided" if nearest == "faster" else nearest)
    measured = [cell for cell in result.cells if cell.is_measured]
    if any(cell.baseline is not None for cell in measured):
        return NO_BASELINE
    return _ALONE if measured else NOT_MEASURED


def _row(result: ScenarioResult, history: ChangeHistory, clear: frozenset[str]) -> OverviewRow:
    leader = result.leader
    return OverviewRow(
        result=result,
        against=compared_with(leader.cell.cell, leader.baseline.cell) if leader else "",
        plot=cell_plot(leader.cell, margin=result.measure.margin) if leader else None,
        verdict=_state(result, clear),
        launch_counts=tuple(status_counts(result.launches)) or ("none",),
        command=cell_command(result, leader.cell) if leader else reproduce_command(result, ()),
        trend=scenario_trend(
            result,
            [cell.cell.key for cell in (leader.cell if leader else None, result.baseline) if cell],
            history,
        ),
    )
