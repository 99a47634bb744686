"""When a launch has warmed up, or that it never does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view
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


SteadyKind = Literal["steady", "warm-up then steady", "slowdown", "never steady"]

# The worse kind last, for a launch of several workers is as its worst.
_KINDS: tuple[SteadyKind, ...] = ("steady", "warm-up then steady", "slowdown", "never steady")

_MIN_SEGMENT = 2
# With so few samples there is no elbow to be seen: what a cut must gain, in multiples of ln n.
_SHORT = 50
_SHORT_PENALTY = 10.0
_SHORT_MIN_SEGMENT = 5
# Noise below 0.1 % of an iteration is no reason to cut: no verdict hangs on it.
_VARIANCE_FLOOR = 0.001**2
# Segments whose means differ by less than this are the same: Traini et al. (2022).
_MARGIN = 0.05
_Z = 1.96
# What must be steady at the end: 500 of 3,000 iterations in Traini et al. (2022).
_LEAST_STEADY = 1 / 6
# Shorter spells of speed are luck, not a slowdown to warn of.
_LEAST_SLOWED = 1 / 20
_OUTLIER_WINDOW = 200
_NEVER_OUTLIERS = 20
# Longer series are looked at in so many groups: the cost of cutting grows with the
# square, and a start need not be known to the iteration among thousands.
_MOST_POINTS = 3000


class SteadyState(Struct, frozen=True, kw_only=True):
    """How a launch behaved, and from which iteration on its samples count.

    Attributes:
        kind: `steady` from its first iteration; `warm-up then steady`;
            `slowdown`, steady in the end but slower than before; or
            `never steady`.
        start: Index of the first steady iteration. Where there is none, that
            after the first fifth: the samples still have to be counted somehow.
    """

    kind: SteadyKind
    start: int


def steady_state(samples_ns: Sequence[int]) -> SteadyState:
    """Find where a launch's iterations become, and stay, as long as at its end.

    The first iterations that stand out singly (imports, compilation, caches)
    are taken off; the rest, less its outliers, is cut where its mean or its
    variance changes; then, from the end backwards, segments count as steady as
    long as their mean is not clearly more than 5 % off that of the last.

    Args:
        samples_ns: n durations in time order, warm-ups included.

    Returns:
        The kind and the start; `steady` from 0 where n < 2. Beyond 3,000 samples
        the start is known to a 3,000th of them.

    Source: Barrett et al., "Virtual machine warmup blows hot and cold" (2017),
    doi:10.1145/3133876; equivalence and the least steady share as in Traini et
    al., "Towards effective assessment of steady state performance in Java
    software" (2022), doi:10.1007/s10664-022-10247-x.

    >>> steady_state([900, 60, 45, 44, 45, 46, 45, 44, 46, 45, 45, 44])
    SteadyState(kind='warm-up then steady', start=2)
    """
    group = -(-len(samples_ns) // _MOST_POINTS)
    if group > 1:
        whole = len(samples_ns) // group * group
        medians_ns = np.median(np.reshape(samples_ns[:whole], (-1, group)), axis=1)
        found = _find(medians_ns)
        return SteadyState(kind=found.kind, start=found.start * group)
    return _find(np.asarray(samples_ns, dtype=np.float64))


def unsettled_start(n: int) -> int:
    """From where on to count n samples of which none are known to be steady."""
    return n // 5


def worst(found: Iterable[SteadyState]) -> SteadyState:
    """How several workers' launch behaved: as the one that settled worst, and last."""
    return max(found, key=lambda state: (_KINDS.index(state.kind), state.start))


def _find(series_ns: NDArray[np.float64]) -> SteadyState:
    n = series_ns.size
    if n < 2:
        return SteadyState(kind="steady", start=0)
    # A clock that saw no time pass saw less than its own step: a ratio needs some.
    series_ns = np.maximum(series_ns, 1.0)
    ratios = series_ns / np.median(series_ns)
    head = _head(ratios)
    # A segment of few samples would take the head in with what comes after it.
    skipped = head if n < _SHORT else 0
    # Where in the whole series the samples are that are no outliers.
    at = skipped + np.flatnonzero(~_outliers(ratios[skipped:]))
    bounds = [int(at[cut]) for cut in _cuts(ratios[at])]
    # Outliers place no cut, but they are samples, and count where one is.
    segments = np.split(series_ns[skipped:], [bound - skipped for bound in bounds])
    first = _first_steady(segments)
    start = max(bounds[first - 1] if first else 0, head)
    if start > n * (1 - _LEAST_STEADY):
        return SteadyState(kind="never steady", start=unsettled_start(n))
    faster = sum(len(part) for part in segments[:first] if _shift(part, segments[-1]) < 0)
    if faster > n * _LEAST_SLOWED:
        return SteadyState(kind="slowdown", start=start)
    return SteadyState(kind="warm-up then steady" if start else "steady", start=start)


def _head(ratios: NDArray[np.float64]) -> int:
    """How many of the first samples stand out from what comes after, at most half.

    These are too few to be a segment: they are told by being longer than nine
    in ten of the second half, and by more than a wider margin.
    """
    half = ratios.size // 2
    longest = np.quantile(ratios[half:], 0.9) * (1 + 2 * _MARGIN)
    ordinary = np.flatnonzero(ratios[:half] <= longest)
    return int(ordinary[0]) if ordinary.size else half


def _outliers(ratios: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Samples further from the median than 3 times what 98 % spread, in any window they are in.

    The first few are never outliers: what is slow there may be warming up.
    """
    outliers = np.zeros(ratios.size, dtype=np.bool_)
    later = ratios[_NEVER_OUTLIERS:]
    size = min(_OUTLIER_WINDOW, later.size)
    if size == 0:
        return outliers
    low, middle, high = np.quantile(sliding_window_view(later, size), (0.01, 0.5, 0.99), axis=1)
    reach = 3 * (high - low)
    above = np.pad(middle + reach, size - 1, constant_values=np.inf)
    below = np.pad(middle - reach, size - 1, constant_values=-np.inf)
    most = sliding_window_view(above, size).min(axis=1)
    least = sliding_window_view(below, size).max(axis=1)
    outliers[_NEVER_OUTLIERS:] = (later > most) | (later < least)
    return outliers


def _cuts(ratios: NDArray[np.float64]) -> tuple[int, ...]:
    """Where mean or variance change."""
    if ratios.size >= _SHORT:
        return cuts_before_elbow(ratios, min_segment=_MIN_SEGMENT, variance_floor=_VARIANCE_FLOOR)
    return change_points(
        ratios,
        penalty=_SHORT_PENALTY * math.log(ratios.size),
        min_segment=_SHORT_MIN_SEGMENT,
        variance_floor=_VARIANCE_FLOOR,
    )


def _first_steady(segments: Sequence[NDArray[np.float64]]) -> int:
    """The first segment from which on all are as long as the last."""
    for index in range(len(segments) - 2, -1, -1):
        if _shift(segments[index], segments[-1]):
            return index + 1
    return 0


def _shift(segment_ns: NDArray[np.float64], last_ns: NDArray[np.float64]) -> int:
    """1 where a segment's samples are clearly longer than the last one's, -1 where shorter.

    Clearly: the 95 % interval of the ratio of their means, by the delta method,
    lies beyond the margin.
    """
    ratio = float(segment_ns.mean() / last_ns.mean())
    error = ratio * math.sqrt(_relative_variance(segment_ns) + _relative_variance(last_ns))
    if ratio - _Z * error >= 1 + _MARGIN:
        return 1
    return -1 if ratio + _Z * error <= 1 - _MARGIN else 0


def _relative_variance(samples_ns: NDArray[np.float64]) -> float:
    """Of the mean, as a share of its square."""
    return float(samples_ns.var() / samples_ns.size / samples_ns.mean() ** 2)
