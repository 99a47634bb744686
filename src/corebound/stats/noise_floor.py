"""Measure how much of a difference is noise, by comparing a cell with itself."""

import hashlib
import math
import statistics
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct

from corebound.records.calibration import CALIBRATION_SCHEMA, Calibration, Noise
from corebound.records.launch_record import Launch
from corebound.records.run_record import EnvironmentLock, Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.models import Scenario, measure_for
from corebound.stats.comparison import (
    Verdict,
    compare,
    interval_of,
    logs_by_block,
    paired_estimates,
    speedup_intervals,
    verdict_of,
)
from corebound.stats.intervals import Interval, geometric_mean
from corebound.stats.launch_summary import summarise
from corebound.stats.ranks import compare_ranks

# With fewer pairs, their variation is unknown.
LEAST_PAIRS = 3
# Gives a rate of 5 % to within 0.5 %.
_DRAWS = 4000
# "Nine times in ten".
_POWER = 0.9
# A slowdown of ten times or more needs no statistics.
_MOST_SLOWDOWN = math.log(10)


class Experiment(Struct, frozen=True, kw_only=True):
    """A simulated comparison: its interval, and that of its ranks; None with few launches."""

    interval: Interval
    ranks: Interval | None

    def verdict(self, margin: float) -> Verdict:
        """The verdict that `compare` would give."""
        verdict = verdict_of(self.interval, margin)
        if verdict == "inconclusive" and self.ranks is not None and not self.ranks.contains(1.0):
            return verdict_of(self.ranks, margin)
        return verdict

    def detectable_slowdown(self, margin: float) -> float:
        """The least slowdown, as a logarithm, for which it would have been `slower`."""
        intervals = (self.interval, self.ranks)
        return min(detectable_slowdown(each, margin) for each in intervals if each is not None)


def noise(
    ratios: Sequence[float],
    levels: Sequence[float],
    *,
    launches: int,
    margin: float,
    adaptive: bool,
    seed: int,
) -> Noise:
    """Simulate comparisons of this many launches where there is no difference.

    Experiments are drawn from the measured pairs. Each experiment draws as many pairs as it has
    launches, and swaps the two sides of each at random, because the copies' names are arbitrary.
    So no experiment contains a difference, and each varies as the pairs did. The functions
    that `compare` uses judge every experiment.

    Args:
        ratios: For each pair of launches, one copy's value over the other's, above 0.
        levels: For each pair, the mean of the logarithms of both values.
        launches: Launches of each copy in the simulated comparisons; at least 2.
        margin: How far either way still counts as equal, above 0.
        adaptive: Whether the number of launches depends on their spread, as in `compare`.
        seed: Seed of the draws; the same pairs and seed give the same values.

    Raises:
        ValueError: there are fewer than `LEAST_PAIRS` pairs, or fewer than 2 launches.

    Source: swapping sides, Fisher, "The Design of Experiments" (1935), section 21.
    """
    drawn = experiments(ratios, levels, launches=launches, adaptive=adaptive, seed=seed)
    # Without interpolation, which cannot handle infinite bounds.
    detectable = float(
        np.quantile(
            [experiment.detectable_slowdown(margin) for experiment in drawn],
            _POWER,
            method="inverted_cdf",
        )
    )
    return Noise(
        launches=launches,
        floor_ratio=statistics.median(each.interval.relative_half_width for each in drawn),
        false_alarm_rate=statistics.fmean(
            each.verdict(margin) in {"faster", "slower"} for each in drawn
        ),
        detectable_ratio=math.expm1(detectable) if detectable <= _MOST_SLOWDOWN else None,
    )


def experiments(
    ratios: Sequence[float],
    levels: Sequence[float],
    *,
    launches: int,
    adaptive: bool,
    seed: int,
) -> list[Experiment]:
    """Comparisons without a difference, drawn from pairs as in `noise`.

    Raises:
        ValueError: there are fewer than `LEAST_PAIRS` pairs, or fewer than 2 launches.
    """
    if len(ratios) < LEAST_PAIRS or launches < 2:
        raise ValueError("noise takes two launches or more, and three pairs or more")
    logs, middles = np.log(np.array(ratios, dtype=np.float64)), np.array(levels, dtype=np.float64)
    rng = np.random.default_rng(seed)
    size = (_DRAWS, launches)
    if launches <= logs.size:
        # No pair twice: with repeats, an experiment would vary less than a real one.
        selected = rng.permuted(np.tile(np.arange(logs.size), (_DRAWS, 1)), axis=1)[:, :launches]
    else:
        selected = rng.integers(logs.size, size=size)
    drawn = logs[selected] * rng.choice((-1.0, 1.0), size=size)
    sides = (middles[selected] - drawn / 2, middles[selected] + drawn / 2)
    estimates = paired_estimates(drawn, adaptive=adaptive)
    return [
        Experiment(interval=interval, ranks=ranks.interval if ranks else None)
        for estimate, cell_logs, baseline_logs in zip(estimates, *sides, strict=True)
        for interval in [interval_of(estimate)]
        for ranks in [compare_ranks(cell_logs, baseline_logs)]
        if interval is not None
    ]


def detectable_slowdown(interval: Interval, margin: float) -> float:
    """The least slowdown, as a logarithm, for which an experiment would have been `slower`.

    A slowdown moves the whole interval of a speed-up down. The interval must lie below 1, and
    not entirely within the margin, as in `verdict_of`.
    """
    low = math.log(interval.low) if interval.low > 0 else -math.inf
    return max(math.log(interval.high), math.log1p(margin) + low)


def spread_ratio(ratios: Sequence[float]) -> float:
    """Standard deviation of values that vary by factors, as a share: 0.02 is 2 %."""
    return math.expm1(float(np.log(np.array(ratios, dtype=np.float64)).std(ddof=1)))


# The axis that distinguishes the copies, and its values.
COPY_AXIS = "copy"
COPIES = ("a", "b")


def calibrated(run: Run, source: ScenarioSource, launches: Sequence[Launch]) -> Calibration | None:
    """The calibration that a run gives for one of its scenarios.

    Args:
        source: The scenario, one of the run's.
        launches: The run's launches of that scenario, of cells that differ in `copy` alone.

    Returns:
        The calibration; None if fewer than `LEAST_PAIRS` blocks hold an `ok` launch of
        both copies, or if their values have no ratio.

    Raises:
        pydantic.ValidationError: This version cannot read the recorded scenario.
    """
    scenario = Scenario.model_validate(source.document)
    measure = measure_for(scenario, run.profile)
    sides = [
        [
            first_copy
            for first_copy in launches
            if first_copy.kind == "measure" and dict(first_copy.cell.axes)[COPY_AXIS] == copy
        ]
        for copy in COPIES
    ]
    if not all(sides):
        return None
    first_copy, second_copy = (
        summarise(side[0].cell, side, measure.warmup, within_run=True) for side in sides
    )
    comparison = compare(first_copy, second_copy, margin=measure.margin)
    (interval,) = speedup_intervals([(first_copy, second_copy)])
    if comparison is None or interval is None or comparison.pairs < LEAST_PAIRS:
        return None
    ratios = [ratio for _, ratio in comparison.per_block]
    copies = [logs_by_block(copy) or {} for copy in (first_copy, second_copy)]
    levels = [
        statistics.fmean(statistics.fmean(copy[block]) for copy in copies)
        for block, _ in comparison.per_block
    ]
    cell = sides[0][0].cell
    return Calibration(
        schema=CALIBRATION_SCHEMA,
        run=run.id,
        at=run.started_at,
        host=run.host.id,
        host_name=run.host.name,
        kernel=run.host.kernel,
        environment=cell.environment,
        lock=lock_digest(run.environments, cell.environment),
        scenario=scenario.name,
        sha256=source.sha256,
        profile=run.profile,
        cell=_key(cell),
        blocks=comparison.pairs,
        pair_spread_ratio=spread_ratio(ratios),
        launch_spread_ratio=geometric_mean(
            [
                spread_ratio([launch.median_ns for launch in side.launches])
                for side in (first_copy, second_copy)
            ]
        ),
        speedup_ratio=comparison.speedup_ratio,
        interval=interval.ends,
        verdict=comparison.verdict,
        noise=tuple(
            noise(
                ratios,
                levels,
                launches=count,
                margin=measure.margin,
                adaptive=measure.launches.follow_spread,
                seed=run.seed,
            )
            for count in sorted({measure.launches.min, measure.launches.max})
        ),
    )


def lock_digest(locks: Sequence[EnvironmentLock], environment: str) -> str:
    """A hash of an environment's contents; empty if they are unknown."""
    lock = next((entry for entry in locks if entry.name == environment), None)
    if lock is None:
        return ""
    content = msgspec.json.encode((lock.python, lock.packages))
    return hashlib.sha256(content).hexdigest()[:12]


def _key(cell: Cell) -> str:
    """The key of the cell that was copied."""
    return (
        ",".join(f"{axis}={value}" for axis, value in cell.axes if axis != COPY_AXIS) or "default"
    )
