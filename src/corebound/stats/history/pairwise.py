"""Compare two points of one history, using the variation of the other points as noise."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from corebound.stats.comparison import Comparison, verdict_of
from corebound.stats.history.change_point import HistoryArrays, Places, ratio_of
from corebound.stats.intervals import CONFIDENCE, NORMAL_REACH, Array, Interval

# With fewer points their noise is unknown, and two points cannot be compared.
MIN_NOISE_POINTS = 10
# With fewer points, the median of a level is close to each of them.
_MIN_LEVEL_POINTS = 5
# Noise changes over the years; this many points around the two determine it.
_MAX_NOISE_POINTS = 300


def compare_points(
    history: HistoryArrays, before: int, after: int, *, changed: Sequence[int], margin: float
) -> Comparison | None:
    """Compare two points by the differences among other points of the same level.

    A point is one measurement, often a single process. It cannot tell how much it would differ
    from another measurement of the same commit, but its history can. So the ratio's interval
    is as wide as 95 of 100 differences between two points of the same level. It covers spikes,
    drift and bimodal points as they occur in the history.

    Args:
        before: Index of the first point.
        after: Index of the second point.
        changed: The change points of the history, as first indices; `history` has the segments.
        margin: How far either way still counts as equal, above 0, as in `compare`.

    Returns:
        The comparison; without an interval and a p-value, and `inconclusive`, if fewer than
        `MIN_LEVEL_POINTS` points determine the noise. None if one of the two has no value.

    Raises:
        ValueError: `margin` is not above 0.

    The interval is an empirical quantile of the differences between points, and the p-value is
    the share of them that are as large. Neither is conformal prediction, which would require the
    two points to be exchangeable with the others and excluded from the levels. They are included,
    and pairs of points share points. That the error rate is as stated is measured, not proven:
    docs/explanation/statistics/change-points.md has the numbers.
    """
    if margin <= 0:
        raise ValueError("a margin is above 0")
    middle = float(history.logs[before] - history.logs[after])
    if math.isnan(middle):
        return None
    residuals = _residuals(history, changed, around=(before, after))
    interval, p_value = None, None
    if residuals.size >= MIN_NOISE_POINTS:
        differences = _differences(residuals)
        own_reach = NORMAL_REACH * math.hypot(history.errors[before], history.errors[after])
        reach = max(_reach(differences, residuals.size), own_reach)
        interval = Interval(
            low=ratio_of(middle - reach), high=ratio_of(middle + reach), confidence=CONFIDENCE
        )
        as_far = differences.size - int(np.searchsorted(differences, abs(middle)))
        p_value = (1 + as_far) / (1 + differences.size)
    return Comparison(
        speedup_ratio=ratio_of(middle),
        interval=interval,
        verdict=verdict_of(interval, margin),
        pairs=0,
        per_block=(),
        p_value=p_value,
        launches_needed=None,
    )


def _residuals(history: HistoryArrays, changed: Sequence[int], *, around: tuple[int, int]) -> Array:
    """Distances from the median of their level, of the points nearest to these two."""
    residuals: list[Array] = []
    places: list[NDArray[np.int64]] = []
    for indices in _levels(history, sorted(changed)):
        if indices.size >= _MIN_LEVEL_POINTS:
            level = history.logs[indices]
            # The median of few points is closer to them than the true level is.
            shrunk = math.sqrt(indices.size / (indices.size - 1))
            residuals.append((level - np.median(level)) * shrunk)
            places.append(indices)
    if not residuals:
        return np.empty(0)
    indices = np.concatenate(places)
    away = np.minimum(*(np.abs(indices - place) for place in around))
    near = np.argsort(away, kind="stable")[:_MAX_NOISE_POINTS]
    return np.concatenate(residuals)[near]


def _levels(history: HistoryArrays, changed: Sequence[int]) -> Iterator[Places]:
    """The points of each level, without those that have no value."""
    for segment in history.segments:
        measured = segment[~np.isnan(history.logs[segment])]
        yield from np.split(measured, np.searchsorted(measured, changed))


def _differences(residuals: Array) -> Array:
    """Absolute differences between all pairs, ascending."""
    first, second = _pairs(residuals.size)
    return np.sort(np.abs(residuals[first] - residuals[second]))


# Series of one project have similar lengths, so the indices are reused.
@lru_cache(maxsize=8)
def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n, 1)


def _reach(distances: Array, points: int) -> float:
    """The value that 95 of 100 differences do not exceed; slightly more with few points."""
    share = min(CONFIDENCE * (1 + 1 / points), 1.0)
    return float(distances[min(math.ceil(share * distances.size), distances.size) - 1])
