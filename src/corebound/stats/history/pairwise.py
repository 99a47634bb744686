"""Two points of one history: is the one slower, or do nights differ so much anyway?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from corebound.stats.comparison import Comparison, verdict_of
from corebound.stats.distributions import normal_quantile
from corebound.stats.history.arrays import HistoryArrays, Places
from corebound.stats.history.change_point import ratio_of
from corebound.stats.intervals import CONFIDENCE, Interval

Array = NDArray[np.float64]

# With fewer nights their noise is not known, and without it nothing can be told of two.
LEAST_NIGHTS = 10
# Of a level with fewer nights the middle is much like each of them.
_LEAST_OF_A_LEVEL = 5
# Noise comes and goes with the years; so many nights about the two tell theirs.
_MOST_NIGHTS = 300


def compare_points(
    course: HistoryArrays, before: int, after: int, *, changed: Sequence[int], margin: float
) -> Comparison | None:
    """Compare two points by how much other nights differ that are of one level.

    A point is one measurement, often a single process: how it differs from another of the
    same commit the point itself cannot tell, its history can. So the ratio's interval is as
    wide as 95 in 100 differences between two nights that share a level are large; spikes,
    drift and nights of two kinds are in it as they are in the history.

    Args:
        course: The history.
        before: Index of the one.
        after: Index of the other.
        changed: Where its steps are, as first indices; segments are in the course.
        margin: How far either way still counts as equal, above 0, as in `compare`.

    Returns:
        The comparison; without interval, p-value or verdict where fewer than `LEAST_NIGHTS`
        tell the noise. None where one of the two has no figure.

    Raises:
        ValueError: `margin` is not above 0.

    The interval is an empirical quantile of the differences between nights, and the p-value the
    share of them that are as large. Neither is conformal prediction, which would need the two
    nights to be exchangeable with the others and left out of the levels: they are in them, and
    pairs of nights share nights. That it errs as rarely as it says is measured, not proven:
    docs/statistics.md has the figures.
    """
    if margin <= 0:
        raise ValueError("a margin is above 0")
    middle = float(course.logs[before] - course.logs[after])
    if math.isnan(middle):
        return None
    residuals = _residuals(course, changed, around=(before, after))
    interval, p_value = None, None
    if residuals.size >= LEAST_NIGHTS:
        apart = _differences(residuals)
        known = normal_quantile((1 + CONFIDENCE) / 2) * math.hypot(
            course.errors[before], course.errors[after]
        )
        reach = max(_reach(apart, residuals.size), known)
        interval = Interval(
            low=ratio_of(middle - reach), high=ratio_of(middle + reach), confidence=CONFIDENCE
        )
        as_far = apart.size - int(np.searchsorted(apart, abs(middle)))
        p_value = (1 + as_far) / (1 + apart.size)
    return Comparison(
        speedup_ratio=ratio_of(middle),
        interval=interval,
        verdict=verdict_of(interval, margin),
        pairs=0,
        per_block=(),
        p_value=p_value,
        launches_needed=None,
    )


def _residuals(course: HistoryArrays, changed: Sequence[int], *, around: tuple[int, int]) -> Array:
    """How far nights lie from the middle of their level: those that are next to these two."""
    found: list[Array] = []
    places: list[NDArray[np.int64]] = []
    for nights in _levels(course, sorted(changed)):
        if nights.size >= _LEAST_OF_A_LEVEL:
            level = course.logs[nights]
            # Their own middle is nearer to few nights than the level itself is.
            shrunk = math.sqrt(nights.size / (nights.size - 1))
            found.append((level - np.median(level)) * shrunk)
            places.append(nights)
    if not found:
        return np.empty(0)
    nights = np.concatenate(places)
    away = np.minimum(*(np.abs(nights - place) for place in around))
    near = np.argsort(away, kind="stable")[:_MOST_NIGHTS]
    return np.concatenate(found)[near]


def _levels(course: HistoryArrays, changed: Sequence[int]) -> Iterator[Places]:
    """The nights of each level, without those that have no figure."""
    for segment in course.segments:
        seen = segment[~np.isnan(course.logs[segment])]
        yield from np.split(seen, np.searchsorted(seen, changed))


def _differences(residuals: Array) -> Array:
    """Of every two nights, in order of size."""
    one, other = _pairs(residuals.size)
    return np.sort(np.abs(residuals[one] - residuals[other]))


# Series of one project are alike long.
@lru_cache(maxsize=8)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n, 1)


def _reach(apart: Array, nights: int) -> float:
    """What 95 in 100 differences do not exceed, and a little more where nights are few."""
    share = min(CONFIDENCE * (1 + 1 / nights), 1.0)
    return float(apart[min(math.ceil(share * apart.size), apart.size) - 1])
