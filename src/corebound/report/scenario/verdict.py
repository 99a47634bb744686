"""The verdict of a scenario in a sentence, its basis, and notices."""

import math
from collections.abc import Sequence

from corebound.analysis.commit_comparison import sides_verdict
from corebound.analysis.fairness import Check
from corebound.analysis.incomplete_run import IncompleteRun
from corebound.analysis.launch_counts import (
    DISTURBED,
    LaunchCounts,
    disturbed,
    first_reason,
    launch_counts,
)
from corebound.analysis.launch_metrics import metric_of
from corebound.analysis.noise_floor import calibration_for, noise_floor_note
from corebound.analysis.scenario_result import (
    BaselineComparison,
    CellResult,
    ScenarioResult,
)
from corebound.analysis.unconfirmed import Unconfirmed, unconfirmed
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
    headline_speed,
    listed,
    relative_speed,
    rich,
    strong,
    value_bounds,
    value_text,
)
from corebound.diagnosis.evidence import stops_hidden_by_the_median
from corebound.records.calibration import Calibration
from corebound.records.launch_record import Launch
from corebound.report.elements import Hero
from corebound.scenario.cell import Cell, Scalar
from corebound.scenario.compared_axis import compared_axis
from corebound.stats.comparison import Comparison
from corebound.stats.launch_summary import CellSummary
from corebound.units import duration, percent


def flags(result: ScenarioResult, checks: Sequence[Check]) -> tuple[Flag, ...]:
    """The notices below the verdict, the fairness checks last."""
    is_compared = compared_axis(result.source.document) is not None
    raised = [
        # Of two sides it is the headline.
        None if is_compared else _slow_configuration(result),
        uncommitted_flag((result,)),
        _ended_early(result),
        _disturbed_launches(result),
        # Of two sides they are below the headline.
        None if is_compared else discarded_flag(launch_counts(result.launches)),
        _unsteady_launches(result),
        _short_iterations(result),
        _skipped_cells(result),
        _fairness_checks([check.passed for check in checks if check.passed is not None]),
    ]
    return tuple(flag for flag in raised if flag is not None)


def _fairness_checks(evaluated: Sequence[bool]) -> Flag | None:
    if not evaluated:
        return None
    passed = sum(evaluated)
    failed = len(evaluated) - passed
    evidence = "evaluated from the records"
    if not failed:
        title = f"{count(passed, 'fairness check')} passed"
        return Flag(tone="good", sign="✓", title=title, detail=evidence, link="#fairness")
    return Flag.warning(
        title=f"{count(failed, 'fairness check')} {'needs' if failed == 1 else 'need'} attention",
        detail=f"{passed} of {len(evaluated)} passed, {evidence}",
        link="#fairness",
    )


def uncommitted_flag(results: Sequence[ScenarioResult]) -> Flag | None:
    """A warning that the project under test was measured with uncommitted changes."""
    names = {
        snapshot.name
        for result in results
        if (snapshot := result.run.snapshot_in({cell.cell.environment for cell in result.cells}))
    }
    if not names:
        return None
    return Flag.warning(
        title=f"Measured with uncommitted changes: {', '.join(sorted(names))}",
        detail="not part of the history",
    )


def _slow_configuration(result: ScenarioResult) -> Flag | None:
    if result.trap is None:
        return None
    cell, comparison = result.trap.cell, result.trap.comparison
    return Flag(
        tone="bad",
        sign="▼",
        title=f"{headline_speed(comparison, cell.cell.words_in_sentence)}: {full_name(cell.cell)}",
        detail=_times_text(cell),
        link="#configurations",
    )


def _times_text(cell: CellResult) -> str:
    summary = cell.summary
    per = "" if cell.cell.metric else f" per {metric_of((cell,)).unit}"
    text = f"{value_text(summary.median_ns, cell.cell)}{per}{_interval_text(summary)}"
    if summary.cpu_median_ns is None:
        return text
    return f"{text}, {duration(summary.cpu_median_ns)} of CPU time"


def _ended_early(result: ScenarioResult) -> Flag | None:
    incomplete = result.incomplete
    if incomplete is None:
        return None
    return Flag.warning(
        title=f"The run ended early{budget_note(incomplete)}",
        detail=incomplete.says,
        link="#configurations",
    )


def budget_note(incomplete: IncompleteRun) -> str:
    """The time budget of the run, if that is why it ended; else empty."""
    return f" (--budget\N{NO-BREAK SPACE}{incomplete.budget})" if incomplete.budget else ""


def _disturbed_launches(result: ScenarioResult) -> Flag | None:
    disturbed_pairs = [(cell, launch) for cell in result.cells for launch in disturbed(cell)]
    if not disturbed_pairs:
        return None
    total = sum(len(cell.summary.launches) for cell in result.cells)
    names = listed([*dict.fromkeys(full_name(cell.cell) for cell, _ in disturbed_pairs)], 1)
    were, its = ("was", "its") if len(disturbed_pairs) == 1 else ("were", "their")
    also = "counts" if len(disturbed_pairs) == 1 else "count"
    return Flag.warning(
        title=f"{len(disturbed_pairs):,} of {count(total, 'launch', 'launches')} {were} disturbed,"
        f" and {also}",
        detail=f"{_causes(disturbed_pairs)} for most of {its} time: {names}",
        link="#launches",
    )


def discarded_flag(counts: LaunchCounts) -> Flag | None:
    """A warning that launches do not count, with the reasons."""
    if not counts.total_discarded:
        return None
    return Flag.warning(title=counts.headline, detail=counts.reasons, link="#launches")


def _causes(pairs: Sequence[tuple[CellResult, Launch]]) -> str:
    causes = (launch.disturbance.by for _, launch in pairs if launch.disturbance)
    return " and ".join(dict.fromkeys(DISTURBED[cause] for by in causes for cause in by))


def _unsteady_launches(result: ScenarioResult) -> Flag | None:
    unsettled = sum(cell.summary.unsettled for cell in result.cells)
    if not unsettled:
        return None
    total = sum(len(cell.summary.launches) for cell in result.cells)
    return Flag.warning(
        title=f"{count(unsettled, 'launch', 'launches')} did not reach steady state",
        detail=f"of {total}; included, to avoid bias",
        link="#launches",
    )


def _short_iterations(result: ScenarioResult) -> Flag | None:
    """A warning that medians do not contain the time for which a CPU quota stops threads."""
    short = [cell for cell in result.cells if stops_hidden_by_the_median(cell.launches)]
    if not short:
        return None
    return Flag.warning(
        title=f"Iterations of {count(len(short), 'configuration')} are too short for the CPU quota",
        detail="it stops few of them, but for long; medians leave that out, so make an iteration"
        " longer than the quota's period (100 ms)",
    )


def _skipped_cells(result: ScenarioResult) -> Flag | None:
    skipped = [cell.cell for cell in result.cells if cell.summary.count("skipped")]
    if not skipped:
        return None
    return Flag(
        tone="plain",
        sign="–",
        title=f"{count(len(skipped), 'configuration')} skipped",
        detail=f"not available on this host: {unsupported_values(result)}",
        link="#configurations",
    )


def unsupported_values(result: ScenarioResult) -> str:
    """What the host cannot run: the values that only skipped cells have, or else the cells."""
    skipped = [cell.cell for cell in result.cells if cell.summary.count("skipped")]
    skipped_keys = {cell.key for cell in skipped}
    fitting = [cell for cell in result.planned if cell.key not in skipped_keys]
    for axis, _ in skipped[0].axes:
        values = {dict(cell.axes).get(axis) for cell in skipped}
        if fitting and values.isdisjoint(dict(cell.axes).get(axis) for cell in fitting):
            return listed([*dict.fromkeys(axis_value(cell, axis) for cell in skipped)], 1)
    return listed([*dict.fromkeys(map(full_name, skipped))], 1)


def hero(
    result: ScenarioResult, checks: Sequence[Check], calibrations: Sequence[Calibration] = ()
) -> Hero:
    """The top of a scenario's page, with its fairness checks; calibrations may be of any host."""
    verdict, support = verdict_of(result)
    noise_text = noise_floor_note(
        calibration_for(calibrations, result.run, result.source),
        launches=_launches_per_cell(result),
    )
    context = (
        *_hidden_axes(result),
        *(f"{name} {value}" for name, value in _fixed_parameters(result).items()),
    )
    return Hero(
        title=result.scenario.title,
        question=result.scenario.question,
        context=", ".join((*context, f"on {result.run.host.name}")),
        verdict=verdict,
        support=(
            *support,
            *rich(*(f" {text}" for text in (_lost_text(result), noise_text) if text)),
        ),
        flags=flags(result, checks),
    )


def _lost_text(result: ScenarioResult) -> str:
    """How many launches were discarded and why, if they are most or the sides are compared."""
    counts = launch_counts(result.launches)
    is_compared = compared_axis(result.source.document) is not None
    is_told = counts.total_discarded > counts.counted or (is_compared and counts.discarded)
    return f"{counts.headline}: {counts.reasons}." if is_told else ""


def _launches_per_cell(result: ScenarioResult) -> int:
    """The number of launches per cell behind the verdict."""
    leader = result.leader
    measured = [leader.cell] if leader else result.cells
    return min((len(cell.summary.launches) for cell in measured), default=0)


def _hidden_axes(result: ScenarioResult) -> tuple[str, ...]:
    """The values that every configuration has, on axes that the run left with one value."""
    cell = result.cells[0].cell if result.cells else None
    return tuple(axis_value(cell, axis) for axis in cell.hidden_axes) if cell else ()


def _fixed_parameters(result: ScenarioResult) -> dict[str, Scalar]:
    """Parameters that no axis varies, with the values from the run's profile."""
    if not result.planned:
        return {}
    first = result.planned[0]
    return {name: value for name, value in first.parameters if name not in dict(first.axes)}


def verdict_of(result: ScenarioResult) -> tuple[Text, Text]:
    """The verdict in a sentence, and its basis."""
    measured = [cell for cell in result.cells if cell.is_measured]
    if not measured:
        return _no_result(result)
    if result.ranked and compared_axis(result.source.document) is not None:
        return _compared_sides(result)
    if result.winner is not None:
        return _faster(result, result.winner)
    if result.leader is not None:
        return _none_faster(result, result.leader)
    if len(measured) == 1:
        verdict, detail = _single_cell(measured[0])
        return verdict, rich(*map(_bound_text, result.cells), *detail)
    return (
        rich("No comparison: the baseline has no valid launch."),
        rich("The launch table below shows the reasons."),
    )


def _bound_text(cell: CellResult) -> str:
    """What is known of a cell whose launches a budget ended."""
    if cell.baseline is None or not cell.bound:
        return ""
    return f"{doing(cell.cell, cell.baseline)} is {cell.bound}. "


def _compared_sides(result: ScenarioResult) -> tuple[Text, Text]:
    """The verdict between the sides of a comparison, and the values of the largest difference."""
    largest = max(result.ranked, key=lambda pair: abs(math.log(pair.comparison.speedup_ratio)))
    name = "" if len(result.ranked) == 1 else f"Largest: {full_name(largest.cell.cell)}. "
    spans = _value_spans(largest.cell, largest.baseline, largest.comparison)
    return sides_verdict(result), rich(name, *spans)


def _faster(result: ScenarioResult, winner: BaselineComparison) -> tuple[Text, Text]:
    cell, baseline, comparison = winner.cell, winner.baseline, winner.comparison
    verdict = rich(
        f"{doing(cell.cell, baseline.cell)} is ",
        TextSpan(headline_speed(comparison, cell.cell.words_in_sentence), "good"),
        f" than {compared_with(cell.cell, baseline.cell)}.",
    )
    others = len(result.ranked) - 1
    # A cell with an equivalent earlier cell cannot win, but may still be ahead of the winner by
    # noise.
    is_first = others and result.ranked[0].cell.cell.key == cell.cell.key
    support: list[str | TextSpan] = [
        *_value_spans(cell, baseline, comparison),
        f" {_most(cell.cell)} of {count(others + 1, 'configuration')} compared."
        if is_first
        else "",
    ]
    if winner.is_same_placement:
        support.append(
            " Both have the same CPUs and threads on this host, so placement alone"
            " cannot explain the difference."
        )
    return verdict, rich(*support)


def _most(cell: Cell) -> str:
    """What the first of several configurations is called."""
    return "Best" if cell.metric else "Fastest"


def _none_faster(result: ScenarioResult, nearest: BaselineComparison) -> tuple[Text, Text]:
    name = _short_baseline(result, nearest)
    cell, comparison = nearest.cell, nearest.comparison
    # True if some cells repeat the baseline and others do not. If the nearest cell repeats the
    # baseline, all do.
    repeated = {alternative.is_same_placement for alternative in result.ranked} == {True, False}
    verdicts = {alternative.comparison.verdict for alternative in result.ranked}
    rivals = [
        alternative
        for alternative in result.ranked
        if not (repeated and alternative.is_same_placement)
    ]
    all_slower = {rival.comparison.verdict for rival in rivals} == {"slower"}
    if "faster" not in verdicts and all_slower:
        verdict = rich(capital(name), f" is the {_most(cell.cell).lower()}.")
    elif verdicts == {"equivalent"}:
        as_good = "as good" if cell.cell.metric else "as fast"
        verdict = rich(
            f"Every configuration is {as_good} as {name} here, within"
            f" ±{percent(result.measure.margin, 0)}."
        )
    elif (seen := unconfirmed(result)) is not None:
        return coded(seen.says), _seen_support(seen)
    else:
        verdict = rich(
            f"No configuration is clearly {cell.cell.words_in_sentence[0]} than {name} here."
        )
    support: list[str | TextSpan] = [
        f"{_most(cell.cell)} alternative: ",
        strong(full_name(cell.cell)),
        f", {relative_speed(comparison.speedup_ratio, words=cell.cell.words_in_sentence)}. ",
        *_value_spans(cell, nearest.baseline, comparison),
    ]
    by_itself = sum(
        alternative.comparison.verdict == "faster" and not alternative.is_itself
        for alternative in result.ranked
    )
    if by_itself:
        rows = "One row below counts" if by_itself == 1 else f"{by_itself} rows below count"
        support.append(
            f" {rows} as faster taken alone; of {len(result.ranked)} comparisons"
            " some look so by chance, and more launches are needed to decide."
        )
    if comparison.launches_needed:
        needed = count(comparison.launches_needed, "launch", "launches")
        support.append(f" If the difference is as seen, about {needed} of each would decide it.")
    return verdict, rich(*support)


def _seen_support(seen: Unconfirmed) -> Text:
    """The cause of what was seen, both values, and why it is not decided."""
    cell, other = seen.effect.cell, seen.effect.other
    values = [value_text(side.summary.median_ns, side.cell) for side in (cell, other)]
    return rich(
        *(coded(f"{seen.cause}. ") if seen.cause else ()),
        f"{seen.basis}: ",
        strong(values[0]),
        f" instead of {values[1]}.",
        _disturbed_note(cell, other),
    )


def _single_cell(cell: CellResult) -> tuple[Text, Text]:
    summary = cell.summary
    interval = summary.interval
    between = (
        f"95 % CI {value_bounds(interval, cell.cell)}. "
        if interval
        else "One launch gives no interval. "
    )
    metric = metric_of((cell,))
    subject = f"{capital(metric.says)}: " if cell.cell.metric else f"One {metric.unit} takes "
    verdict = rich(subject, TextSpan(value_text(summary.median_ns, cell.cell), "good"), ".")
    launches = count(len(summary.launches), "launch", "launches")
    same = (
        f" All {len(cell.duplicates) + 1} configurations are the same on this host."
        if cell.duplicates
        else ""
    )
    return verdict, rich(between, f"{capital(full_name(cell.cell))}, {launches}.{same}")


def _no_result(result: ScenarioResult) -> tuple[Text, Text]:
    if not result.cells:
        return (
            rich("Nothing has been measured yet."),
            rich("The run ended before a launch of this scenario. Start it again to measure."),
        )
    incomplete = result.incomplete
    skipped = [cell for cell in result.cells if cell.summary.count("skipped")]
    reason = first_reason(result.launches)
    if incomplete is not None and len(skipped) == len(result.cells):
        return (
            rich("Nothing has been measured yet."),
            coded(
                f"The run ended early: {incomplete.says}. {capital(unsupported_values(result))}"
                f" cannot run here: {reason or 'no reason was kept.'}"
            ),
        )
    tail = f" Reason: {reason}" if reason else ""
    # Invalid ones may be valid once the host is quiet.
    launched = [launch for launch in result.launches if launch.status != "skipped"]
    may_be_valid = launched and all(launch.status == "invalid" for launch in launched)
    return (
        rich("No launch is valid yet." if may_be_valid else "Nothing could be measured here."),
        coded(
            f"No launch of any of the {count(len(result.cells), 'configuration')} was valid.{tail}"
        ),
    )


def _value_spans(
    cell: CellResult, baseline: CellResult, comparison: Comparison
) -> tuple[str | TextSpan, ...]:
    """Both values, and what the ratio between them is based on."""
    return (
        f"{metric_of((cell,)).says.capitalize()} ",
        strong(value_text(cell.summary.median_ns, cell.cell)),
        f" instead of {value_text(baseline.summary.median_ns, baseline.cell)} ",
        f"(95 % CI of the ratio {compared_bounds(comparison)}, {_pairing_text(comparison)})."
        if comparison.interval
        else f"({compared_bounds(comparison)}).",
        _launches_text(cell, baseline, comparison),
        _disturbed_note(cell, baseline),
    )


def _pairing_text(comparison: Comparison) -> str:
    if comparison.pairs:
        return count(comparison.pairs, "paired launch", "paired launches")
    return "unpaired: too few blocks hold a valid launch of both"


def _disturbed_note(cell: CellResult, baseline: CellResult) -> str:
    """How many of both cells' launches were disturbed but kept; empty if none were."""
    counts = launch_counts((*cell.launches, *baseline.launches))
    was = "was" if counts.disturbed == 1 else "were"
    launches = f"{counts.disturbed} of these {counts.counted} launches"
    return f" {launches} {was} disturbed from outside." if counts.disturbed else ""


def _interval_text(summary: CellSummary) -> str:
    """The interval of a cell's value, in the unit of the value before it; empty without one."""
    interval = summary.interval
    if interval is None or summary.median_ns is None:
        return ""
    bounds = value_bounds(interval, summary.cell, summary.median_ns)
    return f" (95 % CI {bounds})"


def _launches_text(cell: CellResult, baseline: CellResult, comparison: Comparison) -> str:
    """How many launches both have; empty if each is of a pair, so that the pairs tell it."""
    launches, others = len(cell.summary.launches), len(baseline.summary.launches)
    if launches == others:
        is_told = comparison.interval and comparison.pairs == launches
        return "" if is_told else f" {count(launches, 'launch', 'launches')} each."
    return f" {count(launches, 'launch', 'launches')}; {others} of the baseline."


def _short_baseline(result: ScenarioResult, alternative: BaselineComparison) -> str:
    if len(result.baselines) > 1:
        return "its baseline"
    return compared_with(alternative.cell.cell, alternative.baseline.cell)
