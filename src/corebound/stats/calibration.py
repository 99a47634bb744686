"""How much of a difference is noise: a cell compared with itself, and what that allows to see."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from corebound.model.calibration import Noise
from corebound.stats.compare import interval_of, paired_estimates, verdict_of
from corebound.stats.interval import Interval

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
