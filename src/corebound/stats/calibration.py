"""How much of a difference is noise: a cell compared with itself, and what that allows to see."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from corebound.model.calibration import Noise
from corebound.stats import special
from corebound.stats.compare import PRICE_OF_STOPPING
from corebound.stats.interval import CONFIDENCE

Array = NDArray[np.float64]

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
    as `compare` would.

    Args:
        ratios: Of each pair of launches, one copy's figure over the other's, above 0.
        launches: Of each copy, in the comparisons that this is to tell of; at least 2.
        margin: How far either way still counts as equal, above 0.
        adaptive: Whether their number follows from their spread, as in `compare`.
        seed: Of the draws; the same pairs and seed give the same figures.

    Raises:
        ValueError: there are fewer than `LEAST_PAIRS` pairs, or fewer than 2 launches.

    Source: swapping sides, Fisher, "The Design of Experiments" (1935), section 21; the floor is
    Student's half width with the spread of all the pairs.
    """
    if len(ratios) < LEAST_PAIRS or launches < 2:
        raise ValueError("noise is told of two launches or more, by three pairs or more")
    logs = np.log(np.array(ratios, dtype=np.float64))
    price = PRICE_OF_STOPPING if adaptive else 1.0
    means, reaches = _experiments(logs, launches, price, np.random.default_rng(seed))
    room = math.log1p(margin)
    # As in `compare`: equivalent is asked first.
    equivalent = (means - reaches >= -room) & (means + reaches <= room)
    alarms = (np.abs(means) > reaches) & ~equivalent
    # From which slowdown on an experiment would have said `slower`: its interval lies above 0,
    # and not all of it within the margin.
    needed = np.maximum(reaches - means, room - reaches - means)
    seen = float(np.quantile(needed, _POWER))
    return Noise(
        launches=launches,
        floor_ratio=math.expm1(_student(launches) * price * _spread(logs) / math.sqrt(launches)),
        false_alarm_rate=float(np.mean(alarms)),
        detectable_ratio=math.expm1(seen) if seen <= _MOST_SLOWDOWN else None,
    )


def spread_ratio(ratios: Sequence[float]) -> float:
    """Standard deviation of figures that vary by factors, as a share: 0.02 is 2 %."""
    return math.expm1(float(np.log(np.array(ratios, dtype=np.float64)).std(ddof=1)))


def _experiments(
    logs: Array, launches: int, price: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Means of drawn experiments, and how far their intervals reach."""
    size = (_DRAWS, launches)
    if launches <= logs.size:
        # None twice: with repeats an experiment seems to vary less than any would.
        chosen = rng.permuted(np.tile(np.arange(logs.size), (_DRAWS, 1)), axis=1)[:, :launches]
    else:
        chosen = rng.integers(logs.size, size=size)
    drawn = logs[chosen] * rng.choice((-1.0, 1.0), size=size)
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(launches)
    return drawn.mean(axis=1), price * _student(launches) * errors


def _spread(logs: Array) -> float:
    """Of a pair's logarithm about 0, where it lies if the copies are equal."""
    return math.sqrt(float(np.mean(logs**2)))


def _student(launches: int) -> float:
    return float(special.stdtrit(launches - 1, (1 + CONFIDENCE) / 2))
