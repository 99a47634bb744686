"""Where a series changes its mean or its variance: exact segmentation by PELT."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def change_points(
    values: ArrayLike, *, penalty: float, min_segment: int, variance_floor: float
) -> tuple[int, ...]:
    """Cut a series where that makes it likelier by more than the penalty.

    Each segment is taken as normal with a mean and a variance of its own; the
    cuts minimise the sum over segments of `length x log(variance + floor)`
    plus the penalty for each cut. The minimum is exact: PELT only skips starts
    that can never win again.

    Args:
        values: n numbers in time order.
        penalty: What a cut must gain, in units of twice the log likelihood.
        min_segment: Least length of a segment, at least 2.
        variance_floor: Variance added to that of each segment, above 0, in the
            square of the values' unit: what the clock cannot resolve. Without
            it a run of equal values would be infinitely likely.

    Returns:
        The first index of each segment but the first, in order.

    Raises:
        ValueError: `min_segment` or `variance_floor` is too small.

    Source: Killick, Fearnhead & Eckley, "Optimal detection of changepoints with
    a linear computational cost" (2012), doi:10.1080/01621459.2012.737745.

    >>> change_points([5, 5, 6, 5, 9, 9, 8, 9], penalty=3, min_segment=3, variance_floor=0.01)
    (4,)
    """
    if min_segment < 2:
        raise ValueError("a variance needs segments of at least 2")
    if variance_floor <= 0:
        raise ValueError("the variance floor is above 0")
    series = np.asarray(values, dtype=np.float64)
    if series.size < 2 * min_segment:
        return ()
    return _trace(_last_cuts(series, penalty, min_segment, variance_floor))


def _last_cuts(
    series: NDArray[np.float64], penalty: float, min_segment: int, variance_floor: float
) -> NDArray[np.int64]:
    """For each prefix length, the last cut of its best segmentation."""
    n = series.size
    # Centred, so that the sums of squares do not cancel.
    centred = series - np.median(series)
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred * centred)))
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(n + 1, dtype=np.int64)
    # Only the first `size` entries are in use: growing in place is what keeps
    # a step of this loop at a handful of microseconds.
    starts = np.zeros(n + 1, dtype=np.int64)
    size = 1
    beaten = np.zeros(0, dtype=np.bool_)
    for end in range(min_segment, n + 1):
        if end >= 2 * min_segment:
            starts[size] = end - min_segment
            size += 1
        at = starts[:size]
        lengths = end - at
        means = (sums[end] - sums[at]) / lengths
        variances = (squares[end] - squares[at]) / lengths - means * means
        costs = best[at] + lengths * np.log(np.maximum(variances, 0.0) + variance_floor)
        winner = int(costs.argmin())
        best[end] = costs[winner] + penalty
        last[end] = at[winner]
        if end % min_segment == 0:
            # A start that lost to a cut at `end` loses from `end + min_segment`
            # on, where that cut may first be made: so it goes one round later.
            losing = costs >= best[end]
            stays = np.ones(size, dtype=np.bool_)
            stays[: beaten.size] = ~beaten
            size = int(np.count_nonzero(stays))
            starts[:size] = at[stays]
            beaten = losing[stays]
    return last


def _trace(last: NDArray[np.int64]) -> tuple[int, ...]:
    cuts: list[int] = []
    at = int(last[-1])
    while at > 0:
        cuts.append(at)
        at = int(last[at])
    return tuple(reversed(cuts))
