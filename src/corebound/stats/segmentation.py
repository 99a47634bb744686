"""Divide a series into segments, each with its own mean and variance, by PELT; how many to keep."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from corebound.stats.intervals import Array


def change_points(
    values: ArrayLike, *, penalty: float, min_segment: int, variance_floor: float
) -> tuple[int, ...]:
    """Segment a series so that each cut raises the likelihood by more than the penalty.

    Each segment is modelled as normal with its own mean and variance. The cuts minimise
    the sum over segments of `length x log(variance + floor)` plus the penalty for each
    cut. The minimum is exact: PELT only skips starts that can never be optimal again.

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
    sums, squares = _prefix_sums(series)
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    last = np.zeros(n + 1, dtype=np.int64)
    # Only the first `size` entries are in use. Growing in place keeps each
    # iteration of this loop at a few microseconds.
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
            # A start that is beaten by a cut at `end` stays beaten from `end + min_segment` on,
            # where that cut becomes possible. So it is dropped one round later.
            losing = costs >= best[end]
            stays = np.ones(size, dtype=np.bool_)
            stays[: beaten.size] = ~beaten
            size = int(np.count_nonzero(stays))
            starts[:size] = at[stays]
            beaten = losing[stays]
    return last


def _prefix_sums(series: Array) -> Array:
    """The sums before each index, and those of squares; centred, to avoid cancellation in these."""
    centred = series - np.median(series)
    return np.cumsum(np.pad([centred, centred * centred], ((0, 0), (1, 0))), axis=1)


def _trace(last: NDArray[np.int64]) -> tuple[int, ...]:
    cuts: list[int] = []
    at = -1
    while (at := int(last[at])) > 0:
        cuts.append(at)
    return tuple(reversed(cuts))


# The smallest penalty, in multiples of ln n, as in Traini et al. (2022). The larger ones add
# candidates for segmentations with fewer cuts, which need not use the same cuts.
_LEAST_PENALTY = 4.0
_PENALTIES = (_LEAST_PENALTY, 15.0, 60.0)
# Used if the curve has no elbow: Barrett et al. (2017).
_DEFAULT_PENALTY = 15.0


class _Segmentations(Struct, frozen=True, kw_only=True):
    """The best segmentation for each number of cuts.

    Attributes:
        bounds: Where cuts may be, both ends of the series included.
        costs: Cost of the best segmentation with k cuts, for k from 0.
        before: `before[k][j]` is the bound before `bounds[j]` in the best k cuts up to there.
    """

    bounds: NDArray[np.int64]
    costs: Array
    before: tuple[NDArray[np.int64], ...]

    def cuts(self, penalty: float) -> tuple[int, ...]:
        """The cuts of the best segmentation at this penalty; the one with fewest cuts on a tie."""
        numbers = np.arange(self.costs.size)
        least = int(np.argmin(self.costs + penalty * (1 + 1e-9) * numbers))
        at = self.bounds.size - 1
        state = []
        for k in range(least, 0, -1):
            at = int(self.before[k][at])
            state.append(int(self.bounds[at]))
        return tuple(reversed(state))


def cuts_before_elbow(
    values: ArrayLike, *, min_segment: int, variance_floor: float
) -> tuple[int, ...]:
    """Segment a series where its mean or variance changes, with a penalty chosen from the data.

    A higher penalty gives fewer cuts. As the penalty rises from 4 ln n, the number of cuts
    first falls steeply, while cuts fit noise, and then slowly, once they are real. The
    penalty at the elbow between the two is used.

    Args:
        values: n numbers in time order.
        min_segment: Least length of a segment, at least 2.
        variance_floor: As in `change_points`.

    Returns:
        The first index of each segment but the first, in order.

    Source: Haynes, Eckley & Fearnhead, "Computationally efficient changepoint detection for
    a range of penalties" (2017), doi:10.1080/10618600.2015.1116445, here restricted to the cuts
    that are best at three penalties. The elbow: Satopää et al., "Finding a 'kneedle' in
    a haystack" (2011), with sensitivity 1. Both as in Traini et al. (2022).

    >>> series = [5, 6, 5] * 10 + [9, 8, 9] * 10 + [5, 6, 5] * 10
    >>> cuts_before_elbow(series, min_segment=2, variance_floor=0.01)
    (30, 60)
    """
    series = np.asarray(values, dtype=np.float64)
    log = math.log(max(series.size, 2))
    candidates = sorted(
        {
            cut
            for penalty in _PENALTIES
            for cut in change_points(
                series,
                penalty=penalty * log,
                min_segment=min_segment,
                variance_floor=variance_floor,
            )
        }
    )
    state = _segmentations(series, candidates, min_segment, variance_floor)
    penalties, numbers = _falling(state.costs, _LEAST_PENALTY * log)
    elbow = _elbow(penalties, numbers)
    if elbow is None:
        elbow = penalties[0] if penalties.size < 2 else _DEFAULT_PENALTY * log
    return state.cuts(float(elbow))


def _segmentations(
    series: Array, candidates: list[int], min_segment: int, variance_floor: float
) -> _Segmentations:
    """The best k of the candidate cuts, for every k, by dynamic programming."""
    bounds = np.array([0, *candidates, series.size])
    sums, squares = _prefix_sums(series)[:, bounds]
    lengths = bounds[None, :] - bounds[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (sums[None, :] - sums[:, None]) / lengths
        variances = (squares[None, :] - squares[:, None]) / lengths - means * means
    costs = np.full(lengths.shape, np.inf)
    long = lengths >= min_segment
    costs[long] = lengths[long] * np.log(np.maximum(variances[long], 0.0) + variance_floor)
    best = costs[0].copy()
    totals = [float(best[-1])]
    before = [np.zeros(bounds.size, dtype=np.int64)]
    every = np.arange(bounds.size)
    for _ in candidates:
        longer = best[:, None] + costs
        last = longer.argmin(axis=0)
        best = longer[last, every]
        before.append(last)
        totals.append(float(best[-1]))
    return _Segmentations(bounds=bounds, costs=np.array(totals), before=tuple(before))


def _falling(costs: Array, least: float) -> tuple[Array, Array]:
    """The number of cuts from each penalty on: penalties ascending, numbers descending."""
    number = int(np.argmin(costs + least * np.arange(costs.size)))
    penalties, numbers = [least], [number]
    while number > 0:
        fewer = np.arange(number)
        gains = (costs[:number] - costs[number]) / (number - fewer)
        penalty = float(gains.min())
        number = int(np.flatnonzero(gains <= penalty)[0])
        penalties.append(penalty)
        numbers.append(number)
    return np.array(penalties), np.array(numbers, dtype=np.float64)


def _elbow(penalties: Array, numbers: Array) -> float | None:
    """Kneedle on a falling convex curve, traversed from the highest penalty down.

    Returns the first local peak of the curve's distance from its chord after which the
    distance falls by more than the mean step; None if there is none.
    """
    if penalties.size < 2:
        return None
    x = ((penalties - penalties[0]) / (penalties[-1] - penalties[0]))[::-1]
    y = (1 - (numbers - numbers[-1]) / (numbers[0] - numbers[-1]))[::-1]
    distance = y - x
    padded = np.concatenate((distance[:1], distance, distance[-1:]))
    peaks = (distance >= padded[:-2]) & (distance >= padded[2:])
    dips = (distance <= padded[:-2]) & (distance <= padded[2:])
    step = float(np.abs(np.diff(x)).mean())
    peak, threshold = None, -math.inf
    for index in range(distance.size - 1):
        if peaks[index]:
            peak, threshold = index, float(distance[index]) - step
        if dips[index]:
            threshold = 0.0
        if peak is not None and distance[index + 1] < threshold:
            return float(penalties[::-1][peak])
    return None
