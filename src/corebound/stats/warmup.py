"""Detect when a launch reaches steady state, or that it never does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view
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
    # Centred to avoid cancellation in the sums of squares.
    centred = series - np.median(series)
    sums = np.concatenate(([0.0], np.cumsum(centred)))
    squares = np.concatenate(([0.0], np.cumsum(centred * centred)))
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


def _trace(last: NDArray[np.int64]) -> tuple[int, ...]:
    cuts: list[int] = []
    at = int(last[-1])
    while at > 0:
        cuts.append(at)
        at = int(last[at])
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


SteadyKind = Literal["steady", "warm-up then steady", "slowdown", "never steady"]

# Ordered from best to worst: a launch with several workers is classified by its worst.
_KINDS: tuple[SteadyKind, ...] = ("steady", "warm-up then steady", "slowdown", "never steady")

_MIN_SEGMENT = 2
# With fewer samples there is no elbow to find. The penalty is then fixed, in multiples of ln n.
_SHORT = 50
_SHORT_PENALTY = 10.0
_SHORT_MIN_SEGMENT = 5
# Noise below 0.1 % of an iteration is too small to affect a verdict, so it causes no cut.
_VARIANCE_FLOOR = 0.001**2
# Segments whose means differ by less than this are equal: Traini et al. (2022).
_MARGIN = 0.05
_Z = 1.96
# The share that must be steady at the end: 500 of 3,000 iterations in Traini et al. (2022).
_LEAST_STEADY = 1 / 6
# Shorter fast phases are chance, not a slowdown worth a warning.
_LEAST_SLOWED = 1 / 20
_OUTLIER_WINDOW = 200
_NEVER_OUTLIERS = 20
# Longer series are reduced to this many groups: the cost of segmenting grows with the
# square, and the start need not be exact to one iteration among thousands.
_MOST_POINTS = 3000


class SteadyState(Struct, frozen=True, kw_only=True):
    """How a launch behaved, and its first steady iteration.

    Attributes:
        kind: `steady`: from its first iteration on. `warm-up then steady`.
            `slowdown`: steady at the end, but slower than before. `never steady`.
        start: Index of the first steady iteration. If the launch never settles,
            the index after the first fifth, because the samples are still used.
    """

    kind: SteadyKind
    start: int


def steady_state(samples_ns: Sequence[int]) -> SteadyState:
    """Find the first iteration from which a launch's durations stay as they are at its end.

    1. Single outlying iterations at the start (imports, compilation, caches) are removed.
    2. The rest, without outliers, is segmented where its mean or variance changes.
    3. From the end backwards, segments count as steady as long as their mean is not
       significantly more than 5 % off that of the last segment.

    Args:
        samples_ns: n durations in time order, warm-ups included.

    Returns:
        The kind and the start; `steady` from 0 if n < 2. Beyond 3,000 samples
        the start is accurate to a 3,000th of them.

    Source: Barrett et al., "Virtual machine warmup blows hot and cold" (2017),
    doi:10.1145/3133876. The equivalence test and the least steady share are from Traini et
    al., "Towards effective assessment of steady state performance in Java
    software" (2022), doi:10.1007/s10664-022-10247-x.

    >>> steady_state([900, 60, 45, 44, 45, 46, 45, 44, 46, 45, 45, 44])
    SteadyState(kind='warm-up then steady', start=2)
    """
    group = -(-len(samples_ns) // _MOST_POINTS)
    if group > 1:
        whole = len(samples_ns) // group * group
        medians_ns = np.median(np.reshape(samples_ns[:whole], (-1, group)), axis=1)
        state = _find(medians_ns)
        return SteadyState(kind=state.kind, start=state.start * group)
    return _find(np.asarray(samples_ns, dtype=np.float64))


def unsettled_start(n: int) -> int:
    """The first of n samples to use if none is known to be steady."""
    return n // 5


def worst(found: Iterable[SteadyState]) -> SteadyState:
    """The state of a launch with several workers: the worst kind, then the latest start."""
    return max(found, key=lambda state: (_KINDS.index(state.kind), state.start))


def _find(series_ns: NDArray[np.float64]) -> SteadyState:
    n = series_ns.size
    if n < 2:
        return SteadyState(kind="steady", start=0)
    # A clock that shows no elapsed time measured less than its resolution; a ratio needs some.
    series_ns = np.maximum(series_ns, 1.0)
    ratios = series_ns / np.median(series_ns)
    head = _head(ratios)
    # In a short series, the head would end up in one segment with the samples after it.
    skipped = head if n < _SHORT else 0
    # Indices, in the whole series, of the samples that are not outliers.
    at = skipped + np.flatnonzero(~_outliers(ratios[skipped:]))
    bounds = [int(at[cut]) for cut in _cuts(ratios[at])]
    # Outliers place no cut, but they are samples of the segment that they fall into.
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
    """How many samples at the start stand out from the later ones, at most half.

    They are too few to form a segment. A sample stands out if it exceeds the 90th
    percentile of the second half by more than twice the margin.
    """
    half = ratios.size // 2
    longest = np.quantile(ratios[half:], 0.9) * (1 + 2 * _MARGIN)
    ordinary = np.flatnonzero(ratios[:half] <= longest)
    return int(ordinary[0]) if ordinary.size else half


def _outliers(ratios: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Samples more than 3 times the 1-99 % range from the median, in every window that holds them.

    The first few are never outliers: slow ones may be warm-up.
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
    """The cuts where the mean or the variance changes."""
    if ratios.size >= _SHORT:
        return cuts_before_elbow(ratios, min_segment=_MIN_SEGMENT, variance_floor=_VARIANCE_FLOOR)
    return change_points(
        ratios,
        penalty=_SHORT_PENALTY * math.log(ratios.size),
        min_segment=_SHORT_MIN_SEGMENT,
        variance_floor=_VARIANCE_FLOOR,
    )


def _first_steady(segments: Sequence[NDArray[np.float64]]) -> int:
    """Index of the first segment from which on all are equal to the last."""
    for index in range(len(segments) - 2, -1, -1):
        if _shift(segments[index], segments[-1]):
            return index + 1
    return 0


def _shift(segment_ns: NDArray[np.float64], last_ns: NDArray[np.float64]) -> int:
    """1 if a segment's samples are significantly longer than the last one's, -1 if shorter.

    Significantly: the 95 % interval of the ratio of their means, by the delta method,
    lies beyond the margin.
    """
    ratio = float(segment_ns.mean() / last_ns.mean())
    error = ratio * math.sqrt(_relative_variance(segment_ns) + _relative_variance(last_ns))
    if ratio - _Z * error >= 1 + _MARGIN:
        return 1
    return -1 if ratio + _Z * error <= 1 - _MARGIN else 0


def _relative_variance(samples_ns: NDArray[np.float64]) -> float:
    """Variance of the mean, as a share of the mean's square."""
    return float(samples_ns.var() / samples_ns.size / samples_ns.mean() ** 2)
