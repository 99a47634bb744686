"""The result of `corebound tune` in words: the recommendation, how sure it is, what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from corebound.analysis.commands import CommandLine, original_command
from corebound.analysis.recommendation import Race
from corebound.analysis.tuning import Standing, TuneResult
from corebound.analysis.wording import (
    NO_ESTIMATE,
    axis_value,
    binding_name,
    capital,
    count,
    day,
    ends,
    relative_speed,
    speed_bounds,
)
from corebound.records.tuning import Objective
from corebound.scenario.cell import Cell
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import is_usable_ratio
from corebound.units import duration, percent

DEFAULT = "the default"
# What one configuration is compared with another, if it is better, or worse.
_BETTER: Mapping[Objective, tuple[str, str]] = {
    "latency": ("faster", "slower"),
    "throughput": ("more throughput", "less throughput"),
    "rate": ("more requests per second", "fewer requests per second"),
    "cost": ("less CPU time", "more CPU time"),
}


def name_of(cell: Cell, default: Cell | None) -> str:
    """A configuration by its binding and by what else differs from the default.

    `the default` for the default itself.
    """
    if default is not None and cell.key == default.key:
        return DEFAULT
    values = dict(default.axes) if default is not None else {}
    others = [
        axis_value(cell, axis)
        for axis, value in cell.axes
        if axis != "binding" and values.get(axis) != value
    ]
    return ", ".join([binding_name(cell), *others])


def names(result: TuneResult) -> dict[str, str]:
    """The names of all configurations of a result, by key."""
    default = result.cells.get(result.contest.default or "")
    cells = [
        *result.contest.cells,
        *(cell for cell, _ in result.skipped),
        *(cell for cell, _ in result.duplicates),
    ]
    return {cell.key: name_of(cell, default) for cell in cells}


def times(comparison: Comparison | None, objective: Objective) -> str:
    """How a configuration compares: `1.30× faster (95 % CI 1.21–1.39)`."""
    if comparison is None or comparison.interval is None:
        return NO_ESTIMATE
    interval = comparison.interval
    if not is_usable_ratio(interval.low, interval.high):
        return NO_ESTIMATE
    text: str = comparison.verdict
    if text in {"faster", "slower"}:
        text = relative_speed(comparison.speedup_ratio, words=_BETTER[objective])
    return f"{text} (95 % CI {speed_bounds(interval.low, interval.high)})"


def headline(result: TuneResult, *, bounds: bool = True) -> str:
    """What to do, in a sentence; if `bounds`, with the gain and its interval."""
    known, recommended = names(result), result.recommended
    if result.advice == "unfinished":
        return "The race is not complete. Continue it with `--resume`."
    if recommended is None:
        return "No configuration works on this host."
    name, default = known[recommended.key], result.against(result.contest.default)
    if result.advice == "keep the default":
        return "Keep the default: no configuration tried is clearly better."
    if result.contest.default is None or default is None:
        return f"Use {name}; the default gives no result on this host."
    if result.advice == "inconclusive":
        return f"Keep the default for now{f': {inconclusive_winner(result)}' if bounds else '.'}"
    compared = times(default, result.tuning.objective)
    if not bounds:
        compared = compared.partition(" (")[0]
    return f"Use {name}: {compared} than the default."


def provenance(result: TuneResult, record: str) -> tuple[str, ...]:
    """What a file that sets a recommendation says of itself, by its file of records."""
    run = result.run
    return (
        f"Scenario: {result.source.path} ({result.source.document['name']})",
        f"Host: {run.host.name} ({run.host.id})",
        f"Date: {day(run.started_at)}",
        f"Gain: {headline(result)}",
        f"Record: {record}, run {run.id}",
        f"The race again: {original_command(run).line}",
        f"Whether it still holds: {verify_command(result).line}",
    )


def verify_command(result: TuneResult) -> CommandLine:
    """The command that checks a recommendation with new launches."""
    words = ["corebound", "tune", result.source.path]
    if result.tuning.load:
        words += ["--only", ",".join(f"{name}={value}" for name, value in result.tuning.load)]
    if result.tuning.objective != "latency":
        words += ["--objective", result.tuning.objective]
    return CommandLine(shlex.join([*words, "--verify"]))


def inconclusive_winner(result: TuneResult) -> str:
    """That fresh launches do not decide between the winner and the default; else empty."""
    default = result.against(result.contest.default)
    if result.advice != "inconclusive" or result.recommended is None or default is None:
        return ""
    return (
        f"{names(result)[result.recommended.key]} won the race, but its fresh launches do not"
        f" clearly beat the default: {times(default, result.tuning.objective)}."
    )


def certainty(result: TuneResult) -> tuple[str, ...]:
    """How sure the recommendation is, a sentence each."""
    race, finalists = result.standing.race, result.standing.finalists
    if race.ending is None or finalists is None:
        return ()
    tried = len(result.contest.cells)
    sure = percent(1 - result.tuning.rule.error, 0)
    sentences = []
    if race.ending == "decided":
        sentences.append(
            f"With {sure} confidence, none of the {count(tried, 'configuration')} tried is more"
            f" than {percent(result.tuning.rule.margin, 0)} better than the winner of the race."
        )
    elif 0 < race.faster_at_most < 1:
        limit = {"blocks": "the maximum number of blocks", "time": "its share of the budget"}
        sentences.append(
            f"The race ended after {limit.get(race.ending, 'its launches')}. With {sure}"
            " confidence, no configuration tried is more than"
            f" {percent(race.faster_at_most)} better than the winner."
        )
    else:
        sentences.append(
            "The race ended too early to say how much better another configuration may be."
            " Give it a larger `--budget`."
        )
    fresh = min((one.summary.attempts for one in result.confirmed), default=0)
    sentences.append(
        f"The ratios come from {count(fresh, 'fresh launch', 'fresh launches')} of each finalist,"
        " made after the race, so that selecting the winner does not bias them."
    )
    if result.advice == "inconclusive" and (ranges := _ranges(result)):
        sentences.append(ranges)
    disturbed = max((len(one.summary.left_out) for one in result.confirmed), default=0)
    if disturbed:
        sentences.append(
            f"Other programs disturbed up to {disturbed} of a finalist's launches, which do not"
            " count."
        )
    most = max((one.summary.attempts for one in result.confirmed), default=0)
    if most > fresh >= result.tuning.rule.confirm_blocks:
        sentences.append(
            f"These did not decide between the winner and the default, so these two got {most}."
        )
    if fresh < result.tuning.rule.confirm_blocks:
        sentences.append(
            f"The budget ended before all {result.tuning.rule.confirm_blocks} of each were made;"
            " `--resume` makes the others."
        )
    if len(finalists.ties) > 1:
        known = names(result)
        tied = "; ".join(known[key] for key in finalists.ties)
        sentences.append(
            f"Ties: {tied}. Of these, the one with the least CPU time, then the fewest CPUs, is"
            " recommended."
        )
    return tuple(sentences)


def _ranges(result: TuneResult) -> str:
    """The fastest and the slowest fresh launch of the winner and of the default; empty if alike."""
    default = result.contest.default
    by_key = {
        one.cell.key: [launch.median_ns for launch in one.summary.launches]
        for one in result.confirmed
    }
    winner, other = by_key.get(result.confirmed[0].cell.key), by_key.get(default or "")
    if not winner or not other or max(map(_range_ratio, (winner, other))) < _WIDE:
        return ""
    of_winner, of_default = (
        ends(min(medians), max(medians), duration) for medians in (winner, other)
    )
    return f"Launches of the winner took {of_winner}, those of the default {of_default}."


# Launches that differ by this factor differ for a reason.
_WIDE = 1.2


def _range_ratio(medians: Sequence[float]) -> float:
    return max(medians) / min(medians)


def not_tried(result: TuneResult) -> tuple[tuple[str, str], ...]:
    """What took no part in the race, each with the reason."""
    known = names(result)
    return (
        *((capital(known[cell.key]), reason) for cell, reason in result.skipped),
        *((one.name, one.reason) for one in result.tuning.not_tried),
    )


def same_as_others(result: TuneResult) -> tuple[tuple[str, str], ...]:
    """What is the same as another configuration on this host, each with that one."""
    known = names(result)
    return tuple(
        (capital(known[cell.key]), f"the same as {known[other.key]} on this host")
        for cell, other in result.duplicates
    )


def race_line(now: Standing, cells: Sequence[Cell], default: str | None) -> str:
    """A line about a race: `Block 3: 5 of 12 remain; physical cores, 2 threads leads.`"""
    by_key = {cell.key: cell for cell in cells}
    known = {key: name_of(cell, by_key.get(default or "")) for key, cell in by_key.items()}
    race = now.race
    dropped = [known[one.key] for one in race.dropped if one.block == race.blocks - 1]
    text = f"Block {race.blocks}: {len(race.remaining)} of {len(cells)} remain"
    if race.leader is not None:
        text += f". Leader: {known[race.leader]}"
    if dropped:
        text += f". Dropped: {'; '.join(dropped)}"
    if now.finalists is not None:
        text += f". Confirming with fresh launches of {len(now.finalists.keys)}"
    return f"{text}."


def races(results: Iterable[TuneResult]) -> dict[tuple[str, str], Race]:
    """What races for latency decided, by the scenario's name and the host's id.

    A scenario with several loads has a race for each; none of them is about all of it.

    Args:
        results: The latest races that still hold.
    """
    return {
        (str(result.source.document["name"]), result.run.host.id): Race(
            says=headline(result, bounds=False),
            basis=f"A race of {count(len(result.contest.cells), 'configuration')} decided this on"
            f" {result.run.started_at[:10]}; it overrides the comparison of this run.",
        )
        for result in results
        if result.tuning.objective == "latency"
        and not result.tuning.load
        and result.recommended is not None
        and result.advice != "inconclusive"
    }
