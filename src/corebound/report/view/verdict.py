"""The verdict of a scenario in a sentence, and what it rests on."""

from __future__ import annotations

from corebound.model.calibration import Calibration
from corebound.model.plan import Scalar
from corebound.report.view.evidence import disturbed
from corebound.report.view.figure import figure_of
from corebound.report.view.flags import flags, refused_names
from corebound.report.view.noise import noise_words
from corebound.report.view.page import Hero, Piece, Text
from corebound.report.view.study import CellStudy, Duel, Study
from corebound.report.view.words import (
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
    within,
)
from corebound.stats.compare import Comparison
from corebound.stats.summary import CellSummary
from corebound.units import percent


def hero(study: Study, checks_passed: int, checks: int, noise: Calibration | None = None) -> Hero:
    """The top of a scenario's page.

    Args:
        study: The scenario.
        checks_passed: How many fairness checks passed.
        checks: How many could be judged.
        noise: The host's, measured of the same; None where it is not known.
    """
    verdict, support = verdict_of(study)
    floor = noise_words(noise, launches=_launches_of(study))
    fixed = (*_unsaid(study), *(f"{name} {value}" for name, value in _fixed(study).items()))
    return Hero(
        title=study.scenario.title,
        question=study.scenario.question,
        context=", ".join((*fixed, f"on {study.run.host.name}")),
        verdict=verdict,
        support=(*support, *rich(f" {floor}")) if floor else support,
        flags=flags(study, checks_passed, checks),
    )


def _launches_of(study: Study) -> int:
    """How many launches of each the verdict rests on."""
    leader = study.leader
    measured = [leader.cell] if leader else study.cells
    return min((len(one.summary.launches) for one in measured), default=0)


def _unsaid(study: Study) -> tuple[str, ...]:
    """What every setting has, on axes that the run left with one value."""
    cell = next((one.cell for one in study.cells), None)
    return tuple(axis_value(cell, axis) for axis in cell.unsaid) if cell else ()


def _fixed(study: Study) -> dict[str, Scalar]:
    """Parameters that no axis varies, as the run's profile left them."""
    if not study.planned:
        return {}
    first = study.planned[0]
    return {name: value for name, value in first.parameters if name not in dict(first.axes)}


def baseline_name(study: Study) -> str:
    """The baseline as the page calls it: one cell, or a rule where cells have several."""
    if len(study.baselines) == 1:
        return full_name(study.baselines[0])
    return "its baseline"


def verdict_of(study: Study) -> tuple[Text, Text]:
    """The verdict in a sentence, and what it rests on."""
    measured = [cell for cell in study.cells if cell.is_measured]
    if not measured:
        return _nothing(study)
    if study.winner is not None:
        return _faster(study, study.winner)
    if study.leader is not None:
        return _none_faster(study, study.leader)
    if len(measured) == 1:
        return _alone(measured[0])
    return (
        rich("There is nothing to compare with: the baseline has no valid launch."),
        rich("Every figure is below; a launch table says what went wrong."),
    )


def _faster(study: Study, duel: Duel) -> tuple[Text, Text]:
    cell, baseline, comparison = duel.cell, duel.baseline, duel.comparison
    verdict = rich(
        f"{doing(cell.cell, baseline.cell)} is ",
        Piece(f"{speedup(comparison.speedup_ratio)} faster", "good"),
        f" than {compared_with(cell.cell, baseline.cell)}.",
    )
    others = len(study.ranked) - 1
    # One that came to the same as another stands back, and may yet be ahead of it by noise.
    is_first = others and study.ranked[0].cell.cell.key == cell.cell.key
    support: list[str | Piece] = [
        *_interval(comparison),
        *_medians(cell, baseline),
        f" {_pairs(comparison)}",
        f" It is the fastest of {count(others + 1, 'setting')} compared." if is_first else "",
    ]
    if duel.is_again:
        support.append(
            " Both came to the same CPUs and threads on this host, so placement alone"
            " cannot explain the difference."
        )
    twins = sum(one.twin is not None and one.twin.key == cell.cell.key for one in study.cells)
    if twins:
        same = "Another setting comes" if twins == 1 else f"{twins} other settings come"
        support.append(f" {same} to the same CPUs and threads on this host.")
    return verdict, rich(*support)


def _none_faster(study: Study, nearest: Duel) -> tuple[Text, Text]:
    name = _short_baseline(study, nearest)
    cell, comparison = nearest.cell, nearest.comparison
    # Where the nearest is the baseline once more, so are all.
    repeated = {duel.is_again for duel in study.ranked} == {True, False}
    verdicts = {duel.comparison.verdict for duel in study.ranked}
    rivals = [duel for duel in study.ranked if not (repeated and duel.is_again)]
    if "faster" not in verdicts and {one.comparison.verdict for one in rivals} == {"slower"}:
        others = "each that differs from it" if repeated else "every other one"
        verdict = rich("No setting beats ", strong(name), f" here: {others} is slower.")
    elif verdicts == {"equivalent"}:
        verdict = rich(
            f"Every setting is as fast as {name} here, within ±{percent(study.measure.margin, 0)}."
        )
    else:
        verdict = rich(f"No setting is clearly faster than {name} here.")
    support: list[str | Piece] = [
        "Nearest of those that differ from it is " if repeated else "Nearest is ",
        strong(full_name(cell.cell)),
        f" at {speedup(comparison.speedup_ratio)}. ",
        *_interval(comparison),
        *_medians(cell, nearest.baseline),
        f" {_pairs(comparison)}",
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


def _alone(cell: CellStudy) -> tuple[Text, Text]:
    summary = cell.summary
    interval = summary.interval
    between = (
        f"95 % interval [{time_text(interval.low)}, {time_text(interval.high)}]. "
        if interval
        else "One launch gives no interval. "
    )
    one = f"One {figure_of((cell,)).unit} takes "
    verdict = rich(one, Piece(time_text(summary.median_ns), "good"), ".")
    launches = count(len(summary.launches), "launch", "launches")
    return verdict, rich(between, f"{capital(full_name(cell.cell))}, {launches}.")


def _nothing(study: Study) -> tuple[Text, Text]:
    if not study.cells:
        return (
            rich("Nothing has been measured yet."),
            rich("The run ended before a launch of this scenario. Start it again to measure."),
        )
    left = study.undone
    refused = [one.cell for one in study.cells if one.summary.count("skipped")]
    if left is not None and len(refused) == len(study.cells):
        reason = next((one.reason for one in study.launches if one.reason), "no reason was kept.")
        return (
            rich("Nothing has been measured yet."),
            coded(
                f"The run ended early: {left.says}."
                f" {capital(refused_names(study))} cannot run here: {reason}"
            ),
        )
    reason = next((one.reason for one in study.launches if one.reason), "")
    tail = f" The first reason given: {reason}" if reason else ""
    return (
        rich("Nothing could be measured here."),
        coded(f"No launch of any of the {count(len(study.cells), 'cell')} was valid.{tail}"),
    )


def _interval(comparison: Comparison) -> tuple[str | Piece, ...]:
    interval = comparison.interval
    if interval is None:
        return ("Too few launches for an interval.",)
    return ("95 % interval ", strong(compared_bounds(comparison)), ".")


def _medians(cell: CellStudy, baseline: CellStudy) -> tuple[str | Piece, ...]:
    one, two = cell.summary, baseline.summary
    return (
        f" {figure_of((cell,)).says.capitalize()} ",
        *_bounded(one),
        " against ",
        *_bounded(two),
        f" over {_of_each(len(one.launches), len(two.launches))}.{_disturbed(cell, baseline)}",
    )


def _disturbed(cell: CellStudy, baseline: CellStudy) -> str:
    """How many of the launches of both were disturbed and kept; empty where none was."""
    hit = len(disturbed(cell)) + len(disturbed(baseline))
    if not hit:
        return ""
    of = len(cell.summary.launches) + len(baseline.summary.launches)
    return f" {hit} of these {of} launches {'was' if hit == 1 else 'were'} disturbed from outside."


def _bounded(summary: CellSummary) -> tuple[str | Piece, ...]:
    """A cell's figure with its interval."""
    interval = summary.interval
    said = f" {within(interval.low, interval.high, time_text)}" if interval else ""
    return strong(time_text(summary.median_ns)), said


def _of_each(one: int, two: int) -> str:
    if one == two:
        return f"{count(one, 'launch', 'launches')} each"
    return f"{one} and {count(two, 'launch', 'launches')}"


def _pairs(comparison: Comparison) -> str:
    if comparison.pairs:
        return f"Compared in {count(comparison.pairs, 'pair')} of launches that ran close in time."
    return "Compared unpaired: too few blocks hold a valid launch of both."


def _short_baseline(study: Study, duel: Duel) -> str:
    if len(study.baselines) > 1:
        return "its baseline"
    return compared_with(duel.cell.cell, duel.baseline.cell)
