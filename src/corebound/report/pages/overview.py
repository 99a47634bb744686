"""The first page: the largest effect and what to set, then every scenario with its advice."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.advice import Advice, advise, greatest_difference, headline
from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.claims import claims_in_words, judge_claims
from corebound.analysis.duplicate_names import long_names
from corebound.analysis.effects import Effect
from corebound.analysis.host_records import Record
from corebound.analysis.launch_counts import first_reason, launch_counts
from corebound.analysis.launch_metrics import metric_of
from corebound.analysis.noise_floor import calibration_for
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.suggested_commands import FIRST, RESUME, CommandLine, reproduce_command
from corebound.analysis.unconfirmed import cause_of, why_open
from corebound.analysis.wording import (
    NO_BASELINE,
    NOT_MEASURED,
    Flag,
    Text,
    TextSpan,
    VerdictWord,
    capital,
    coded,
    compared_bounds,
    count,
    day,
    headline_speed,
    relative_speed,
    rich,
    strong,
    verdict_word,
)
from corebound.errors import Fault
from corebound.groups import grouped
from corebound.records.calibration import Calibration
from corebound.records.history import Series
from corebound.report.charts.intervals import NARROW_COLUMN, effect_axis, effect_ticks
from corebound.report.charts.value_bars import ValueBars
from corebound.report.elements import Action, Content, Head, Hero, Page, action_of, damaged_records
from corebound.report.inputs import PageContext
from corebound.report.pages.series_table import last_change
from corebound.report.pages.whats_new import whats_new
from corebound.report.scenario.verdict import budget_note, uncommitted_flag, verdict_of
from corebound.scenario.cell import Cell
from corebound.scenario.compared_axis import compared_axis
from corebound.units import percent, ratio


def scenario_trend(
    result: ScenarioResult, chosen: Sequence[str], history: ChangeHistory
) -> Content | None:
    """The trend on this host of the first of these cells, or of any cell that has one.

    Args:
        chosen: Keys of cells, the preferred one first.
    """
    all_series = [
        series
        for series in history.histories_of(result.scenario.name)
        if series.host == result.run.host.id
    ]
    if not all_series:
        return None
    by_cell = {series.cell: series for series in all_series}
    shown_series = next((by_cell[key] for key in chosen if key in by_cell), all_series[0])
    return Content(
        series=shown_series,
        status=_change_state(result, all_series, history),
        change=last_change(all_series, history),
    )


def _change_state(
    result: ScenarioResult, all_series: Sequence[Series], history: ChangeHistory
) -> VerdictWord:
    """The current status of a scenario in a word: that of its worst new change."""
    changes = [
        change
        for series in all_series
        for change in history.changes_of(series)
        if history.is_news(change)
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
    return VerdictWord(tone="plain", sign="", word="too little data" if short else "steady")


def imported_projects(history: ChangeHistory) -> tuple[tuple[str, int, int], ...]:
    """(project, number of benchmarks, number of machines) of what was imported."""
    groups = grouped(history.histories, lambda series: series.project or "")
    return tuple(
        (project, len({each.scenario for each in own}), len({each.host for each in own}))
        for project, own in sorted(groups.items())
        if project
    )


def overview_flags(results: Sequence[ScenarioResult], faults: Sequence[Fault]) -> tuple[Flag, ...]:
    """Notices about the results of all scenarios.

    Args:
        faults: Records that could not be read.
    """
    raised = (
        damaged_records(faults),
        uncommitted_flag(results),
        _ended_early(results),
        _claims(results),
    )
    return tuple(flag for flag in raised if flag is not None)


def _ended_early(results: Sequence[ScenarioResult]) -> Flag | None:
    cut = {result.run.id: result.incomplete for result in results if result.incomplete is not None}
    if not cut:
        return None
    runs = len({result.run.id for result in results})
    ended = "used up their budget" if all(each.budget for each in cut.values()) else "ended early"
    short = sum(result.incomplete is not None for result in results)
    more = f"; {RESUME.line} continues it" if _can_be_resumed(results) else ""
    return Flag.warning(
        title=f"The run ended early{budget_note(*cut.values())}"
        if len(cut) == 1
        else f"{len(cut)} of {runs} runs {ended}",
        detail=f"partial results in {short} of {count(len(results), 'scenario')}{more}",
    )


def _can_be_resumed(results: Sequence[ScenarioResult]) -> bool:
    """Whether the latest run ended early, and no earlier one that results are from."""
    cut = {result.run.id for result in results if result.incomplete is not None}
    latest = max(results, key=lambda result: (result.run.started_at, result.run.id)).run.id
    return cut == {latest}


def _claims(results: Sequence[ScenarioResult]) -> Flag | None:
    """How many of the published claims reproduce here, and what is known of the others."""
    claims = [claim for result in results for claim in judge_claims(result)]
    if not claims:
        return None
    judgements = {claim.judgement for claim in claims}
    is_good = "reproduces" in judgements and "does not" not in judgements
    title, detail = claims_in_words(claims)
    return Flag(
        tone="good" if is_good else "plain",
        sign="✓" if is_good else "–",
        title=title,
        detail=detail or "each with its interval",
        link="claims.html",
    )


def _shown(advice: Advice) -> Effect | None:
    """The largest effect, or the largest that is seen, or else the best alternative.

    None if nothing was compared.
    """
    return advice.largest or (advice.seen.effect if advice.seen else advice.best)


def _row_verdict(advice: Advice, shown: Effect | None) -> VerdictWord:
    if advice.largest is not None:
        return verdict_word(advice.largest.comparison.verdict)
    if shown is not None:
        # Faster or slower on its own, but not after correcting for all comparisons.
        is_equivalent = shown.comparison.verdict == "equivalent"
        return verdict_word("equivalent" if is_equivalent else "inconclusive")
    measured = [cell for cell in advice.result.cells if cell.is_measured]
    if any(cell.baseline is not None for cell in measured):
        return NO_BASELINE
    return _ALONE if measured else NOT_MEASURED


def _second(advice: Advice) -> str:
    """The best alternative, if the largest effect is a slowdown of another one; else empty."""
    best, largest = advice.best, advice.largest
    if best is None or largest is None or largest.is_faster:
        return ""
    return "" if best.cell.cell in _cells(largest) else _best_alternative(advice)


def _cells(effect: Effect | None) -> list[Cell]:
    return [effect.cell.cell, effect.other.cell] if effect else []


def overview_page(
    results: Sequence[ScenarioResult],
    context: PageContext,
    *,
    tunings: Sequence[tuple[str, str, str]] = (),
    records: Sequence[Record] = (),
    faults: Sequence[Fault] = (),
) -> Page:
    """Build the overview of all scenarios, the largest effect first.

    Args:
        context: What the pages share.
        tunings: (what was tuned, address, headline) of the results of `corebound tune`.
        records: Every run with its launches, in any order.
        faults: Records that could not be read.
    """
    history = context.history
    advices = advise(results, context.races)
    news = whats_new(history, records)
    top = _headline(advices)
    if news and (news.is_news or not results):
        top = _Headline(verdict=news.verdict, support=news.support, action=_reproduce(news))
    elif news:
        known = (*rich(" "), *news.verdict)
        # Until a change can be detected, there is nothing more to say of changes.
        if any(series.id not in history.too_short for series in history.histories):
            known += (*rich(" "), *news.support)
        top = replace(top, support=(*top.support, *known))
    rows = sorted((_row(advice, history, tunings) for advice in advices), key=_by_effect)
    told = {row.race_page for row in rows}
    margin = max((result.measure.margin for result in results), default=0.02)
    shown = [row.shown.comparison for row in rows if row.shown]
    axis = effect_axis(shown, margin=margin) if shown else None
    hero = Hero(
        title="Overview",
        subject=top.subject,
        context=_measured_on(results),
        verdict=top.verdict,
        support=(*top.support, *_noise(results, context.calibrations)),
        flags=overview_flags(results, faults),
    )
    return Page(
        head=Head(title="Corebound: overview", description=hero.says),
        hero=hero,
        history=history,
        action=top.action,
        bars=top.bars,
        axis=axis,
        ticks=effect_ticks(axis, NARROW_COLUMN) if axis else (),
        news=news,
        rows=tuple(rows),
        launches=launch_counts(launch for result in results for launch in result.launches)
        if results
        else None,
        discarded=tuple(
            (result.scenario, counts)
            for result in results
            if (counts := launch_counts(result.launches)).discarded
        ),
        tunings=tuple(tuning for tuning in tunings if tuning[1] not in told),
        projects=imported_projects(history),
        first=FIRST,
    )


class _Headline(Struct, frozen=True, kw_only=True):
    """The top of the page: the verdict, its reason, a command to copy, and both values as bars.

    `subject` is the scenario that the verdict is about; empty if it is about all of them.
    """

    subject: str = ""
    verdict: Text
    support: Text
    action: Action | None = None
    bars: ValueBars | None = None


def _headline(advices: Sequence[Advice]) -> _Headline:
    """The largest effect and what to set, or else what is known and what to run."""
    if not advices:
        return _Headline(
            verdict=rich("Find the configuration that suits this host."),
            support=rich(
                "One command measures the scenarios for at most 15 minutes. The second writes this"
                " page again."
            ),
            action=Action(prompt="Run", line=FIRST[0]),
        )
    top = headline(advices)
    if top is not None and top.race is not None:
        return _Headline(
            subject=top.result.scenario.title,
            verdict=rich(strong(top.race.says)),
            support=rich(top.race.basis),
        )
    if top is not None and top.largest is not None:
        return _Headline(
            subject=_subject(top.result, top.largest),
            verdict=_effect_sentence(top.largest),
            support=_effect_support(top, top.largest),
            action=_action(top),
            bars=_value_bars(top.largest),
        )
    return _undecided(advices)


def _undecided(advices: Sequence[Advice]) -> _Headline:
    """What is known where no effect is decided, and what to run."""
    # A comparison of commits, or of values of a setting, has a verdict and no default to keep.
    own = [advice for advice in advices if not compared_axis(advice.result.source.document)]
    advices = own or advices
    to_measure = next((advice for advice in advices if advice.command is not None), None)
    action = _action(to_measure) if to_measure else None
    compared = [advice for advice in own if advice.best]
    if not compared:
        return replace(_single_values([advice.result for advice in advices]), action=action)
    most = greatest_difference(advices)
    inconclusive = sum(advice.kind == "measure" for advice in advices)
    left = f" {count(inconclusive, 'scenario')} need more launches." if inconclusive > 1 else ""
    left = left or (" One scenario needs more launches." if inconclusive else "")
    if most is None or most > _MOST_KEPT or len(compared) < len(advices):
        if (seen := _seen(advices)) is not None:
            return seen
        nearest = max(
            compared, key=lambda each: each.best.comparison.speedup_ratio if each.best else 0.0
        )
        title = f"{nearest.result.scenario.title}, " if len(advices) > 1 else ""
        support = f"Best so far: {title}{_best_alternative(nearest)}."
        verdict = rich("Keep the default until more is measured.")
        if inconclusive == len(advices) and _can_be_resumed([each.result for each in advices]):
            action = Action(prompt="Run", line=RESUME)
        elif nearest.command is not None:
            action = _action(nearest)
    else:
        verdict = rich("Keep the default: nothing beats it by more than ", strong(ratio(most)), ".")
        support = f"With 95 % confidence, in {count(len(compared), 'scenario')}."
    return _Headline(verdict=verdict, support=rich(f"{support}{left}"), action=action)


def _seen(advices: Sequence[Advice]) -> _Headline | None:
    """The largest difference that was seen where nothing is decided; None without any."""
    found = [(each.seen, each.result) for each in advices if each.seen]
    if not found:
        return None
    seen, result = max(found, key=lambda each: each[0].effect.distance)
    return _Headline(
        subject=_subject(result, seen.effect),
        verdict=coded(seen.looks),
        support=coded(f"{seen.cause}. {seen.basis}." if seen.cause else f"{seen.basis}."),
        action=Action(prompt=seen.remedy, line=seen.command),
        bars=_value_bars(seen.effect),
    )


# A larger difference that is still possible is no reason to keep the default.
_MOST_KEPT = 1.5


def _single_values(results: Sequence[ScenarioResult]) -> _Headline:
    """The headline if nothing could be compared: the first value, or why there is none."""
    measured = [result for result in results if any(cell.is_measured for cell in result.cells)]
    result = (measured or list(results))[0]
    verdict, support = verdict_of(result)
    if measured or len(results) == 1:
        return _Headline(subject=result.scenario.title, verdict=verdict, support=support)
    reason = first_reason(launch for each in results for launch in each.launches)
    return _Headline(
        verdict=rich("No launch counts yet."),
        support=coded(f"Reason: {reason}") if reason else support,
    )


def _subject(result: ScenarioResult, effect: Effect) -> str:
    """What an effect is about: `Training processes, 12 workers`."""
    return ", ".join(filter(None, (result.scenario.title, effect.title)))


def _effect_sentence(effect: Effect) -> Text:
    """The headline: `Binding to one CPU is 2.08× slower than the default.`"""
    tone: Literal["good", "bad"] = "good" if effect.is_faster else "bad"
    when = f"{effect.condition}, " if effect.condition else ""
    return rich(
        capital(f"{when}{effect.subject} is "),
        TextSpan(headline_speed(effect.comparison, effect.cell.cell.words_in_sentence), tone),
        f" than {effect.reference}.",
    )


def _effect_support(advice: Advice, effect: Effect) -> Text:
    comparison = effect.comparison
    pairs = f", {count(comparison.pairs, 'paired launch', 'paired launches')}"
    if comparison.interval is None:
        text = f"{capital(compared_bounds(comparison))}."
    else:
        text = f"95 % CI {compared_bounds(comparison)}{pairs if comparison.pairs else ''}."
    cause = cause_of(advice.result, effect.slower)
    said = () if advice.use is effect else rich(f" {advice.says}")
    return (*rich(text), *(coded(f" Likely cause: {cause}") if cause else ()), *said)


def _action(advice: Advice) -> Action | None:
    """What to set, or what to run to get more data."""
    return action_of(advice, prompt="Set" if advice.set else "Run")


def _reproduce(news: Content) -> Action | None:
    """The command that measures the first of the changes again."""
    command: CommandLine | None = news.changed[0].command if news.changed else None
    return Action(prompt="Reproduce", line=command) if command else None


def _value_bars(effect: Effect) -> ValueBars:
    """Both quantities of an effect: the reference, then the other one."""
    return ValueBars(
        quantities=(
            (capital(effect.reference), effect.other.summary, "plain"),
            (capital(effect.subject), effect.cell.summary, "good" if effect.is_faster else "bad"),
        ),
        what=f"Each launch's {metric_of((effect.cell,)).says}",
        apart=relative_speed(effect.comparison.speedup_ratio, words=effect.cell.cell.words),
    )


def _row(
    advice: Advice, history: ChangeHistory, tunings: Sequence[tuple[str, str, str]]
) -> Content:
    """What is known of a scenario after its latest run, and what to set there."""
    result, shown = advice.result, _shown(advice)
    chosen, verdict = _cells(shown), _row_verdict(advice, shown)
    keys = [cell.key for cell in chosen]
    baseline = [result.baseline.cell.key] if result.baseline else []
    told = (result.scenario.title, advice.race.says) if advice.race else None
    because = ""
    if shown is not None and verdict.word == "inconclusive":
        because = why_open(shown, result.open_reason(shown.cell) or "correction")
    return Content(
        advice=advice,
        shown=shown,
        verdict=verdict,
        # Why it is inconclusive.
        because=because,
        # All other comparisons of the scenario.
        others=tuple(
            pair.comparison
            for pair in result.ranked
            if not pair.is_itself and pair.cell.cell.key not in keys
        ),
        second=_second(advice),
        # The configurations that are the same as the recommended one.
        same=long_names(advice.same) if shown and advice.same else "",
        # Measures again what is shown, or what is still needed.
        command=advice.command or reproduce_command(result, chosen[::-1]),
        # None after a single run.
        trend=scenario_trend(result, keys + baseline, history),
        # The race that overrides the advice.
        race_page=next((page for title, page, says in tunings if (title, says) == told), ""),
    )


def _best_alternative(advice: Advice) -> str:
    """The best alternative and its verdict: `one CPU, equivalent (−1 to +1 %)`; may be empty."""
    if advice.best is None:
        return ""
    comparison = advice.best.comparison
    is_used = advice.use is not None and advice.use.cell.cell.key == advice.best.cell.cell.key
    words = relative_speed(comparison.speedup_ratio, words=advice.best.cell.cell.words_in_sentence)
    if comparison.verdict == "equivalent":
        words = "equivalent"
    elif not is_used and comparison.verdict != "slower":
        words = f"{words} than {advice.best.reference}, inconclusive"
    return f"{advice.best.name}, {words} ({compared_bounds(comparison)})"


_ALONE = VerdictWord(tone="plain", sign="", word="one configuration")


def _by_effect(row: Content) -> tuple[bool, float]:
    """The sort key of rows: the largest effect first, then what is only seen."""
    largest, seen = row.advice.largest, row.advice.seen
    return largest is None, -(
        largest.least_ratio if largest else seen.effect.distance if seen else 0.0
    )


def _measured_on(results: Sequence[ScenarioResult]) -> str:
    """On which hosts, and when last; empty without results."""
    if not results:
        return ""
    newest = max(result.run.started_at for result in results)
    hosts = list(dict.fromkeys(result.run.host.name for result in results))
    where = hosts[0] if len(hosts) == 1 else count(len(hosts), "host")
    return f"on {where}, last measured {day(newest)}"


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
