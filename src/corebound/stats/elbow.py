"""How many cuts a series deserves: as many as lie before the elbow of gain against penalty."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from corebound.stats.pelt import change_points

# The least penalty looked at, in multiples of ln n, as in Traini et al. (2022); the rest
# give candidates for segmentations of fewer cuts, whose cuts need not be among the former.
_LEAST_PENALTY = 4.0
_PENALTIES = (_LEAST_PENALTY, 15.0, 60.0)
# Where the curve has no elbow: Barrett et al. (2017).
_DEFAULT_PENALTY = 15.0

Array = NDArray[np.float64]


class _Segmentations(Struct, frozen=True, kw_only=True):
    """The best segmentation for each number of cuts.

    Attributes:
        bounds: Where cuts may be, both ends of the series included.
        costs: Of the best segmentation with k cuts, for k from 0.
        before: `before[k][j]` is the bound before `bounds[j]`, of the best k cuts up to there.
    """

    bounds: NDArray[np.int64]
    costs: Array
    before: tuple[NDArray[np.int64], ...]

    def cuts(self, penalty: float) -> tuple[int, ...]:
        """Those of the segmentation that is best at a penalty; fewer where several are."""
        numbers = np.arange(self.costs.size)
        least = int(np.argmin(self.costs + penalty * (1 + 1e-9) * numbers))
        at = self.bounds.size - 1
        found = []
        for k in range(least, 0, -1):
            at = int(self.before[k][at])
            found.append(int(self.bounds[at]))
        return tuple(reversed(found))


def cuts_before_elbow(
    values: ArrayLike, *, min_segment: int, variance_floor: float
) -> tuple[int, ...]:
    """Cut a series where its mean or variance changes, at a penalty of the series' own.

    The more a cut has to gain, the fewer there are. As the penalty rises from 4 ln n, the
    number of cuts falls steeply while they are cuts in noise and slowly once they are
    real; the penalty is that at the elbow between the two.

    Args:
        values: n numbers in time order.
        min_segment: Least length of a segment, at least 2.
        variance_floor: As in `pelt.change_points`.

    Returns:
        The first index of each segment but the first, in order.

    Source: Haynes, Eckley & Fearnhead, "Computationally efficient changepoint detection for
    a range of penalties" (2017), doi:10.1080/10618600.2015.1116445, here among the cuts
    that are best at three penalties; the elbow: Satopää et al., "Finding a 'kneedle' in
    a haystack" (2011), with sensitivity 1; both as in Traini et al. (2022).

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
    found = _segmentations(series, candidates, min_segment, variance_floor)
    penalties, numbers = _falling(found.costs, _LEAST_PENALTY * log)
    elbow = _elbow(penalties, numbers)
    if elbow is None:
        elbow = penalties[0] if penalties.size < 2 else _DEFAULT_PENALTY * log
    return found.cuts(float(elbow))


def _segmentations(
    series: Array, candidates: list[int], min_segment: int, variance_floor: float
) -> _Segmentations:
    """The best k cuts among the candidates for every k, by dynamic programming."""
    bounds = np.array([0, *candidates, series.size])
    centred = series - np.median(series)
    sums = np.concatenate(([0.0], np.cumsum(centred)))[bounds]
    squares = np.concatenate(([0.0], np.cumsum(centred * centred)))[bounds]
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
    """From which penalty on there are how many cuts: penalties rising, numbers falling."""
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
    """Kneedle on a falling convex curve, looked at from the highest penalty down.

    The first local peak of the curve's distance from its chord after which the distance
    falls by more than the mean step; None where there is none.
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
