"""The warm-up of a launch: detect where it ends, or that it never does, and drop it."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from corebound.records.launch_record import Worker
from corebound.scenario.cell import Cell
from corebound.scenario.models import WarmupIterations, WarmupSeconds
from corebound.stats.segmentation import change_points, cuts_before_elbow

Warmup = Literal["auto"] | WarmupIterations | WarmupSeconds

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


class SteadySamples(Struct, frozen=True, kw_only=True):
    """The samples of one worker that remain after its warm-up."""

    wall_ns: Sequence[int]
    cpu_ns: Sequence[int]
    time_slices_ns: tuple[tuple[int, float], ...]
    steady: SteadyState
    settled: bool
    reported: Sequence[tuple[float, ...]] = ()


def drop_warmup(
    worker: Worker,
    warmup: Warmup,
    *,
    is_alone: bool,
    reported: Sequence[tuple[float, ...]] = (),
) -> SteadySamples:
    """Drop a worker's warm-up, and the iterations that do not count.

    `reported` has what its command reported in each iteration, if it did.
    """
    used, steady, is_settled = _settle(worker, warmup, is_alone=is_alone, reported=reported)
    wall_ns, cpu_ns = worker.wall_ns, worker.cpu_ns
    return SteadySamples(
        wall_ns=[wall_ns[index] for index in used],
        cpu_ns=[cpu_ns[index] for index in used] if len(cpu_ns) == len(wall_ns) else (),
        time_slices_ns=tuple(
            (number, float(statistics.median(wall_ns[iterations.start : iterations.stop])))
            for number, iterations in enumerate(_counted_by_time_slice(worker, is_alone=is_alone))
            if iterations.start >= used[0]
        ),
        steady=steady,
        settled=is_settled,
        reported=[reported[index] for index in used] if reported else (),
    )


def counted_iterations(worker: Worker, *, is_alone: bool) -> list[int]:
    """Indices of a worker's iterations whose times count.

    In a launch that alternates, the first iteration of a time slice does not, because it finds
    the caches filled by the launch before. With several workers neither does the last one,
    because the others may have handed over already. A time slice of one iteration counts.

    Args:
        is_alone: Whether it is the only worker of its launch.
    """
    if not worker.time_slices:
        return list(range(len(worker.wall_ns)))
    # The first iteration of all belongs to no time slice.
    return [0, *chain.from_iterable(_counted_by_time_slice(worker, is_alone=is_alone))]


def reported_times(cell: Cell, worker: Worker, metric: int = 0) -> list[tuple[float, ...]]:
    """For each iteration the value and the samples of a metric as times; empty without it."""
    if not 0 <= metric < len(cell.metrics):
        return []
    as_time_ns = cell.metrics[metric].as_time_ns
    return [tuple(map(as_time_ns, each[metric])) for each in worker.metrics]


def first_used_iteration(
    worker: Worker, warmup: Warmup, *, is_alone: bool, reported: Sequence[tuple[float, ...]] = ()
) -> int:
    """Index of the first iteration of a worker that its launch's value uses; 0 if it made none.

    Args:
        warmup: `Measure.warmup`.
        is_alone: Whether it is the only worker of its launch.
        reported: Its `reported_times`, if the launch is judged by them.
    """
    if not worker.wall_ns:  # its launch was ended, and another worker may have some
        return 0
    used, *_ = _settle(worker, warmup, is_alone=is_alone, reported=reported)
    return used[0]


# The search takes times in nanoseconds; the unit of what a command reports does not matter.
_SETTLING_NS = 1e9


def _settle(
    worker: Worker, warmup: Warmup, *, is_alone: bool, reported: Sequence[tuple[float, ...]] = ()
) -> tuple[list[int], SteadyState, bool]:
    """Find the end of a worker's warm-up; without an iteration after it, it never settles.

    What settles is what the command `reported`, if it did.

    Returns:
        The indices of the iterations after it that count, its state, and whether it settled.
    """
    counted = counted_iterations(worker, is_alone=is_alone)
    series: Sequence[int] = worker.wall_ns
    if reported:
        middle = float(np.median([each[0] for each in reported]))
        series = [round(each[0] / middle * _SETTLING_NS) for each in reported]
    state = steady_state([series[index] for index in counted])
    steady = replace(state, start=counted[min(state.start, len(counted) - 1)])
    start = _warmup_length(worker.wall_ns, warmup, steady)
    is_settled = state.kind in {"steady", "warm-up then steady"} and steady.start <= start
    used = [index for index in counted if index >= start]
    if not used:
        used, is_settled = counted[unsettled_start(len(counted)) :], False
    return used, steady, is_settled


def _counted_by_time_slice(worker: Worker, *, is_alone: bool) -> Iterator[range]:
    """For each time slice, the iterations that count."""
    begin = 1
    for length, _ in worker.time_slices:
        end = begin + length
        yield range(begin + (length > 1), end - (length > 2 and not is_alone))
        begin = end


def _warmup_length(wall_ns: Sequence[int], warmup: Warmup, state: SteadyState) -> int:
    """How many samples the warm-up takes; a fixed warm-up can exceed their number."""
    if isinstance(warmup, WarmupIterations):
        return warmup.iterations
    if isinstance(warmup, WarmupSeconds):
        return _started_within(wall_ns, math.ceil(warmup.seconds * 1e9))
    return state.start


def _started_within(wall_ns: Sequence[int], limit_ns: int) -> int:
    """How many iterations start before this much time has elapsed."""
    started_ns = 0
    for index, sample in enumerate(wall_ns):
        if started_ns >= limit_ns:
            return index
        started_ns += sample
    return len(wall_ns)
