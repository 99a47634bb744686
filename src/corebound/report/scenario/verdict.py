"""The verdict of a scenario in a sentence, its basis, and notices."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.analysis.incomplete_run import IncompleteRun
from corebound.analysis.launch_metrics import disturbed, figure_of, left_out
from corebound.analysis.noise_floor import noise_words
from corebound.analysis.scenario_result import BaselineComparison, CellStudy, ScenarioResult
from corebound.analysis.wording import (
    Flag,
    Text,
    TextSpan,
    axis_value,
    capital,
    coded,
    compared_bounds,
    compared_with,
    count,
    doing,
    full_name,
    rich,
    speedup,
    strong,
    time_text,
    times_slower,
    within,
)
from corebound.records.calibration import Calibration
from corebound.records.launch_record import Launch
from corebound.report.elements import Hero
from corebound.scenario.cell import Scalar
from corebound.stats.comparison import Comparison
from corebound.stats.launch_summary import CellSummary
from corebound.units import duration, percent

# A configuration this much slower than the baseline is highlighted as a trap.
_MUCH_SLOWER = 0.5


def flags(study: ScenarioResult, checks_passed: int, checks: int) -> tuple[Flag, ...]:
    """The notices below the verdict.

    Args:
        study: The scenario's result.
        checks_passed: How many fairness checks passed.
        checks: How many could be evaluated.
    """
    raised = [
        _slow_configuration(study),
        uncommitted_flag((study,)),
        _ended_early(study),
        _disturbed_launches(study),
        _discarded_launches(study),
        _lost_launches(study),
        _unsteady_launches(study),
        _skipped_cells(study),
    ]
    if checks:
        all_passed = checks_passed == checks
        raised.append(
            Flag(
                tone="good" if all_passed else "warn",
                sign="✓" if all_passed else "!",
                title=f"{checks_passed} of {checks} fairness checks passed",
                detail="each evaluated from the records",
                link="#fairness",
            )
        )
    return tuple(flag for flag in raised if flag is not None)


def uncommitted_flag(studies: Sequence[ScenarioResult]) -> Flag | None:
    """A warning that the project under test was measured with uncommitted changes."""
    found = {
        snapshot.name
        for study in studies
        if (snapshot := study.run.snapshot_in({one.cell.environment for one in study.cells}))
    }
    if not found:
        return None
    return Flag.warning(
        title=f"Measured with uncommitted changes: {', '.join(sorted(found))}",
        detail="not part of the history",
    )


def _slow_configuration(study: ScenarioResult) -> Flag | None:
    if not study.ranked:
        return None
    cell, comparison = study.ranked[-1].cell, study.ranked[-1].comparison
    if comparison.verdict != "slower" or comparison.speedup_ratio > _MUCH_SLOWER:
        return None
    return Flag(
        tone="bad",
        sign="▼",
        title=f"{times_slower(comparison.speedup_ratio)}: {full_name(cell.cell)}",
        detail=_times_text(cell),
        link="#settings",
    )


def _times_text(cell: CellStudy) -> str:
    summary = cell.summary
    interval = summary.interval
    where = f" {within(interval.low, interval.high, time_text)}" if interval else ""
    each = f"{time_text(summary.median_ns)}{where} {figure_of((cell,)).each}"
    if summary.cpu_median_ns is None:
        return each
    return f"{each}, {duration(summary.cpu_median_ns)} of CPU time"


def _ended_early(study: ScenarioResult) -> Flag | None:
    left = study.incomplete
    if left is None:
        return None
    return Flag.warning(
        title=f"The run ended early{budget_note(left)}",
        detail=left.says,
        link="#cells",
    )


def budget_note(left: IncompleteRun) -> str:
    """The time budget of the run, if that is why it ended; else empty."""
    return f" (--budget\N{NO-BREAK SPACE}{left.budget})" if left.budget else ""


def _disturbed_launches(study: ScenarioResult) -> Flag | None:
    hit = [(cell, launch) for cell in study.cells for launch in disturbed(cell)]
    if not hit:
        return None
    total = sum(len(cell.summary.launches) for cell in study.cells)
    are, its = ("was", "its") if len(hit) == 1 else ("were", "their")
    return Flag.warning(
        title=f"{count(len(hit), 'launch', 'launches')} in the figures {are} disturbed",
        detail=f"of {total}, by {_causes(hit)} for most of {its} time: {_cell_names(hit)}",
        link="#launches",
    )


def _discarded_launches(study: ScenarioResult) -> Flag | None:
    hit = [(cell, launch) for cell in study.cells for launch in left_out(cell)]
    if not hit:
        return None
    total = sum(cell.summary.count("ok") for cell in study.cells)
    return Flag.warning(
        title=f"{count(len(hit), 'disturbed launch', 'disturbed launches')} left out",
        detail=f"of {total}, by {_causes(hit)}: {_cell_names(hit)}",
        link="#launches",
    )


def _causes(hit: Sequence[tuple[CellStudy, Launch]]) -> str:
    each = (one.disturbance.by for _, one in hit if one.disturbance)
    return " and ".join(dict.fromkeys(cause for by in each for cause in by))


def _cell_names(hit: Sequence[tuple[CellStudy, Launch]]) -> str:
    named = list(dict.fromkeys(full_name(cell.cell) for cell, _ in hit))
    more = f" and {count(len(named) - 1, 'more cell')}" if len(named) > 1 else ""
    return f"{named[0]}{more}"


def _lost_launches(study: ScenarioResult) -> Flag | None:
    said = lost_launches_text([study])
    if not said:
        return None
    total = sum(cell.summary.attempts - cell.summary.count("skipped") for cell in study.cells)
    return Flag.warning(
        title=said, detail=f"of {total}; none of them is in any figure", link="#launches"
    )


def lost_launches_text(studies: Sequence[ScenarioResult]) -> str:
    """The number of launches without a result, by status; empty if there are none."""
    counts = {
        status: sum(cell.summary.count(status) for study in studies for cell in study.cells)
        for status in ("invalid", "failed", "timed-out")
    }
    said = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    noun = "launch" if sum(counts.values()) == 1 else "launches"
    return said and f"{said} {noun}"


def _unsteady_launches(study: ScenarioResult) -> Flag | None:
    unsettled = sum(cell.summary.unsettled for cell in study.cells)
    if not unsettled:
        return None
    total = sum(len(cell.summary.launches) for cell in study.cells)
    return Flag.warning(
        title=f"{count(unsettled, 'launch', 'launches')} never became steady",
        detail=f"of {total}; counted, because leaving them out would flatter",
        link="#launches",
    )


def _skipped_cells(study: ScenarioResult) -> Flag | None:
    skipped = [cell.cell for cell in study.cells if cell.summary.count("skipped")]
    if not skipped:
        return None
    return Flag(
        tone="plain",
        sign="–",
        title=f"{count(len(skipped), 'cell')} skipped",
        detail=f"this host cannot hold {unsupported_values(study)}",
        link="#skipped" if any(cell.is_measured for cell in study.cells) else "#launches",
    )


def unsupported_values(study: ScenarioResult) -> str:
    """What this host cannot hold: the values that only skipped cells have, or else the cells."""
    skipped = [one.cell for one in study.cells if one.summary.count("skipped")]
    aside = {cell.key for cell in skipped}
    fitting = [cell for cell in study.planned if cell.key not in aside]
    for axis, _ in skipped[0].axes:
        values = {dict(cell.axes).get(axis) for cell in skipped}
        if fitting and values.isdisjoint(dict(cell.axes).get(axis) for cell in fitting):
            return _first_and_more([axis_value(cell, axis) for cell in skipped])
    return _first_and_more([full_name(cell) for cell in skipped])


def _first_and_more(names: list[str]) -> str:
    named = list(dict.fromkeys(names))
    return named[0] if len(named) == 1 else f"{named[0]} and {len(named) - 1} more"


def hero(
    study: ScenarioResult, checks_passed: int, checks: int, noise: Calibration | None = None
) -> Hero:
    """The top of a scenario's page.

    Args:
        study: The scenario's result.
        checks_passed: How many fairness checks passed.
        checks: How many could be evaluated.
        noise: The host's calibration that applies to it; None if there is none.
    """
    verdict, support = verdict_of(study)
    floor = noise_words(noise, launches=_launches_per_cell(study))
    fixed = (
        *_hidden_axes(study),
        *(f"{name} {value}" for name, value in _fixed_parameters(study).items()),
    )
    return Hero(
        title=study.scenario.title,
        question=study.scenario.question,
        context=", ".join((*fixed, f"on {study.run.host.name}")),
        verdict=verdict,
        support=(*support, *rich(f" {floor}")) if floor else support,
        flags=flags(study, checks_passed, checks),
    )


def _launches_per_cell(study: ScenarioResult) -> int:
    """The number of launches per cell behind the verdict."""
    leader = study.leader
    measured = [leader.cell] if leader else study.cells
    return min((len(one.summary.launches) for one in measured), default=0)


def _hidden_axes(study: ScenarioResult) -> tuple[str, ...]:
    """The values that every configuration has, on axes that the run left with one value."""
    cell = next((one.cell for one in study.cells), None)
    return tuple(axis_value(cell, axis) for axis in cell.hidden_axes) if cell else ()


def _fixed_parameters(study: ScenarioResult) -> dict[str, Scalar]:
    """Parameters that no axis varies, with the values from the run's profile."""
    if not study.planned:
        return {}
    first = study.planned[0]
    return {name: value for name, value in first.parameters if name not in dict(first.axes)}


def baseline_name(study: ScenarioResult) -> str:
    """The baseline's name on the page: one cell, or a rule if there are several baselines."""
    if len(study.baselines) == 1:
        return full_name(study.baselines[0])
    return "its baseline"


def verdict_of(study: ScenarioResult) -> tuple[Text, Text]:
    """The verdict in a sentence, and its basis."""
    measured = [cell for cell in study.cells if cell.is_measured]
    if not measured:
        return _no_result(study)
    if study.winner is not None:
        return _faster(study, study.winner)
    if study.leader is not None:
        return _none_faster(study, study.leader)
    if len(measured) == 1:
        return _single_cell(measured[0])
    return (
        rich("There is nothing to compare with: the baseline has no valid launch."),
        rich("Every figure is below; a launch table says what went wrong."),
    )


def _faster(study: ScenarioResult, duel: BaselineComparison) -> tuple[Text, Text]:
    cell, baseline, comparison = duel.cell, duel.baseline, duel.comparison
    verdict = rich(
        f"{doing(cell.cell, baseline.cell)} is ",
        TextSpan(f"{speedup(comparison.speedup_ratio)} faster", "good"),
        f" than {compared_with(cell.cell, baseline.cell)}.",
    )
    others = len(study.ranked) - 1
    # A cell with an equivalent earlier cell cannot win, but may still be ahead of the winner by
    # noise.
    is_first = others and study.ranked[0].cell.cell.key == cell.cell.key
    support: list[str | TextSpan] = [
        *_interval_spans(comparison),
        *_value_spans(cell, baseline),
        f" {_pairing_text(comparison)}",
        f" It is the fastest of {count(others + 1, 'setting')} compared." if is_first else "",
    ]
    if duel.is_same_placement:
        support.append(
            " Both came to the same CPUs and threads on this host, so placement alone"
            " cannot explain the difference."
        )
    twins = sum(one.twin is not None and one.twin.key == cell.cell.key for one in study.cells)
    if twins:
        same = "Another setting comes" if twins == 1 else f"{twins} other settings come"
        support.append(f" {same} to the same CPUs and threads on this host.")
    return verdict, rich(*support)


def _none_faster(study: ScenarioResult, nearest: BaselineComparison) -> tuple[Text, Text]:
    name = _short_baseline(study, nearest)
    cell, comparison = nearest.cell, nearest.comparison
    # True if some cells repeat the baseline and others do not. If the nearest cell repeats the
    # baseline, all do.
    repeated = {duel.is_same_placement for duel in study.ranked} == {True, False}
    verdicts = {duel.comparison.verdict for duel in study.ranked}
    rivals = [duel for duel in study.ranked if not (repeated and duel.is_same_placement)]
    if "faster" not in verdicts and {one.comparison.verdict for one in rivals} == {"slower"}:
        others = "each that differs from it" if repeated else "every other one"
        verdict = rich("No setting beats ", strong(name), f" here: {others} is slower.")
    elif verdicts == {"equivalent"}:
        verdict = rich(
            f"Every setting is as fast as {name} here, within ±{percent(study.measure.margin, 0)}."
        )
    else:
        verdict = rich(f"No setting is clearly faster than {name} here.")
    support: list[str | TextSpan] = [
        "Nearest of those that differ from it is " if repeated else "Nearest is ",
        strong(full_name(cell.cell)),
        f" at {speedup(comparison.speedup_ratio)}. ",
        *_interval_spans(comparison),
        *_value_spans(cell, nearest.baseline),
        f" {_pairing_text(comparison)}",
    ]
    by_itself = sum(
        duel.comparison.verdict == "faster" and not duel.is_itself for duel in study.ranked
    )
    if by_itself:
        rows = "One row below counts" if by_itself == 1 else f"{by_itself} rows below count"
        support.append(
            f" {rows} as faster taken alone; of {len(study.ranked)} comparisons"
            " some look so by chance, and more launches would tell."
        )
    if comparison.launches_needed:
        needed = count(comparison.launches_needed, "launch", "launches")
        support.append(f" At this noise about {needed} of each would decide it.")
    twins = sum(1 for duel in study.ranked if duel.cell.twin is not None)
    if twins:
        same = "setting comes" if twins == 1 else "settings come"
        support.append(f" {twins} {same} to the same CPUs and threads as another on this host.")
    return verdict, rich(*support)


def _single_cell(cell: CellStudy) -> tuple[Text, Text]:
    summary = cell.summary
    interval = summary.interval
    between = (
        f"95 % interval [{time_text(interval.low)}, {time_text(interval.high)}]. "
        if interval
        else "One launch gives no interval. "
    )
    one = f"One {figure_of((cell,)).unit} takes "
    verdict = rich(one, TextSpan(time_text(summary.median_ns), "good"), ".")
    launches = count(len(summary.launches), "launch", "launches")
    return verdict, rich(between, f"{capital(full_name(cell.cell))}, {launches}.")


def _no_result(study: ScenarioResult) -> tuple[Text, Text]:
    if not study.cells:
        return (
            rich("Nothing has been measured yet."),
            rich("The run ended before a launch of this scenario. Start it again to measure."),
        )
    left = study.incomplete
    refused = [one.cell for one in study.cells if one.summary.count("skipped")]
    if left is not None and len(refused) == len(study.cells):
        reason = next((one.reason for one in study.launches if one.reason), "no reason was kept.")
        return (
            rich("Nothing has been measured yet."),
            coded(
                f"The run ended early: {left.says}."
                f" {capital(unsupported_values(study))} cannot run here: {reason}"
            ),
        )
    reason = next((one.reason for one in study.launches if one.reason), "")
    tail = f" The first reason given: {reason}" if reason else ""
    return (
        rich("Nothing could be measured here."),
        coded(f"No launch of any of the {count(len(study.cells), 'cell')} was valid.{tail}"),
    )


def _interval_spans(comparison: Comparison) -> tuple[str | TextSpan, ...]:
    interval = comparison.interval
    if interval is None:
        return ("Too few launches for an interval.",)
    return ("95 % interval ", strong(compared_bounds(comparison)), ".")


def _value_spans(cell: CellStudy, baseline: CellStudy) -> tuple[str | TextSpan, ...]:
    one, two = cell.summary, baseline.summary
    return (
        f" {figure_of((cell,)).says.capitalize()} ",
        *_value_and_interval(one),
        " against ",
        *_value_and_interval(two),
        f" over {_launches_text(len(one.launches), len(two.launches))}.",
        _disturbed_note(cell, baseline),
    )


def _disturbed_note(cell: CellStudy, baseline: CellStudy) -> str:
    """How many of both cells' launches were disturbed but kept; empty if none were."""
    hit = len(disturbed(cell)) + len(disturbed(baseline))
    if not hit:
        return ""
    of = len(cell.summary.launches) + len(baseline.summary.launches)
    return f" {hit} of these {of} launches {'was' if hit == 1 else 'were'} disturbed from outside."


def _value_and_interval(summary: CellSummary) -> tuple[str | TextSpan, ...]:
    """A cell's value with its interval."""
    interval = summary.interval
    said = f" {within(interval.low, interval.high, time_text)}" if interval else ""
    return strong(time_text(summary.median_ns)), said


def _launches_text(one: int, two: int) -> str:
    if one == two:
        return f"{count(one, 'launch', 'launches')} each"
    return f"{one} and {count(two, 'launch', 'launches')}"


def _pairing_text(comparison: Comparison) -> str:
    if comparison.pairs:
        return f"Compared in {count(comparison.pairs, 'pair')} of launches that ran close in time."
    return "Compared unpaired: too few blocks hold a valid launch of both."


def _short_baseline(study: ScenarioResult, duel: BaselineComparison) -> str:
    if len(study.baselines) > 1:
        return "its baseline"
    return compared_with(duel.cell.cell, duel.baseline.cell)
