"""How much of a difference is noise: a cell compared with itself."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Sequence

import msgspec
import numpy as np

from corebound.records.calibration import CALIBRATION_SCHEMA, Calibration, Noise
from corebound.records.launch_record import Launch
from corebound.records.run_record import EnvironmentLock, Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.models import Scenario, measured
from corebound.stats.comparison import compare, interval_of, paired_estimates, verdict_of
from corebound.stats.intervals import Interval, geometric_mean
from corebound.stats.launch_summary import summarise

# With fewer pairs nothing is known of how pairs vary.
LEAST_PAIRS = 3
# A rate of 5 % is known to half a per cent.
_DRAWS = 4000
# "Nine times in ten".
_POWER = 0.9
# What takes ten times as long needs no statistics.
_MOST_SLOWDOWN = math.log(10)


def noise(
    ratios: Sequence[float], *, launches: int, margin: float, adaptive: bool, seed: int
) -> Noise:
    """What comparisons of so many launches come to, where there is no difference.

    Experiments are drawn from the pairs that were measured: so many of them, each as it
    was or its two sides swapped, for which copy is called which is arbitrary. So there is
    no difference in any of them, and each varies as the pairs did. Every one is judged
    by the functions that `compare` judges with.

    Args:
        ratios: Of each pair of launches, one copy's figure over the other's, above 0.
        launches: Of each copy, in the comparisons that this is to tell of; at least 2.
        margin: How far either way still counts as equal, above 0.
        adaptive: Whether their number follows from their spread, as in `compare`.
        seed: Of the draws; the same pairs and seed give the same figures.

    Raises:
        ValueError: there are fewer than `LEAST_PAIRS` pairs, or fewer than 2 launches.

    Source: swapping sides, Fisher, "The Design of Experiments" (1935), section 21.
    """
    intervals = experiments(ratios, launches=launches, adaptive=adaptive, seed=seed)
    alarms = [verdict_of(one, margin) in {"faster", "slower"} for one in intervals]
    # Without interpolation, which knows no infinite bounds.
    seen = float(
        np.quantile([needed(one, margin) for one in intervals], _POWER, method="inverted_cdf")
    )
    return Noise(
        launches=launches,
        floor_ratio=statistics.median(one.relative_half_width for one in intervals),
        false_alarm_rate=statistics.fmean(alarms),
        detectable_ratio=math.expm1(seen) if seen <= _MOST_SLOWDOWN else None,
    )


def experiments(
    ratios: Sequence[float], *, launches: int, adaptive: bool, seed: int
) -> list[Interval]:
    """Intervals of comparisons without a difference, drawn from pairs as `noise` has it.

    Raises:
        ValueError: there are fewer than `LEAST_PAIRS` pairs, or fewer than 2 launches.
    """
    if len(ratios) < LEAST_PAIRS or launches < 2:
        raise ValueError("noise is told of two launches or more, by three pairs or more")
    logs = np.log(np.array(ratios, dtype=np.float64))
    rng = np.random.default_rng(seed)
    size = (_DRAWS, launches)
    if launches <= logs.size:
        # None twice: with repeats an experiment seems to vary less than any would.
        chosen = rng.permuted(np.tile(np.arange(logs.size), (_DRAWS, 1)), axis=1)[:, :launches]
    else:
        chosen = rng.integers(logs.size, size=size)
    drawn = logs[chosen] * rng.choice((-1.0, 1.0), size=size)
    found = (interval_of(one) for one in paired_estimates(drawn, adaptive=adaptive))
    return [one for one in found if one is not None]


def needed(interval: Interval, margin: float) -> float:
    """From which slowdown on, as a logarithm, an experiment would have been called `slower`.

    A slowdown moves the whole interval of a speed-up down. It has to lie below 1, and not
    all of it within the margin, as `verdict_of` has it.
    """
    low = math.log(interval.low) if interval.low > 0 else -math.inf
    return max(math.log(interval.high), math.log1p(margin) + low)


def spread_ratio(ratios: Sequence[float]) -> float:
    """Standard deviation of figures that vary by factors, as a share: 0.02 is 2 %."""
    return math.expm1(float(np.log(np.array(ratios, dtype=np.float64)).std(ddof=1)))


# The axis that tells the copies apart, and what it calls them.
COPY = "copy"
COPIES = ("a", "b")


def calibrated(run: Run, source: ScenarioSource, launches: Sequence[Launch]) -> Calibration | None:
    """What a calibrating run says of one of its scenarios.

    Args:
        run: The run.
        source: The scenario, one of the run's.
        launches: The run's launches of that scenario, of cells that differ in `copy` alone.

    Returns:
        The calibration; None where fewer than `LEAST_PAIRS` blocks hold an `ok` launch of
        both copies, or their figures have no ratio.

    Raises:
        pydantic.ValidationError: the recorded scenario is none this version can read.
    """
    scenario = Scenario.model_validate(source.document)
    measure = measured(scenario, run.profile)
    sides = [
        [one for one in launches if one.kind == "measure" and dict(one.cell.axes)[COPY] == copy]
        for copy in COPIES
    ]
    if not all(sides):
        return None
    one, other = (summarise(side[0].cell, side, measure.warmup) for side in sides)
    compared = compare(one, other, margin=measure.margin)
    if compared is None or compared.interval is None or compared.pairs < LEAST_PAIRS:
        return None
    ratios = [ratio for _, ratio in compared.per_block]
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
        blocks=compared.pairs,
        pair_spread_ratio=spread_ratio(ratios),
        launch_spread_ratio=geometric_mean(
            [spread_ratio([launch.median_ns for launch in side.launches]) for side in (one, other)]
        ),
        speedup_ratio=compared.speedup_ratio,
        interval=(compared.interval.low, compared.interval.high),
        verdict=compared.verdict,
        noise=tuple(
            noise(
                ratios,
                launches=count,
                margin=measure.margin,
                adaptive=measure.launches.follow_spread,
                seed=run.seed,
            )
            for count in sorted({measure.launches.min, measure.launches.max})
        ),
    )


def lock_digest(locks: Sequence[EnvironmentLock], environment: str) -> str:
    """What an environment held, hashed; empty where that is not known."""
    lock = next((one for one in locks if one.name == environment), None)
    if lock is None:
        return ""
    held = msgspec.json.encode((lock.python, lock.packages))
    return hashlib.sha256(held).hexdigest()[:12]


def _key(cell: Cell) -> str:
    """The key of the cell that the copies are of."""
    return ",".join(f"{axis}={value}" for axis, value in cell.axes if axis != COPY) or "default"
