"""Find the change points of a history: their location, size and recovery.

Each segment, of one environment, is searched separately, and then all recent segments together.
A machine in the cloud may get one processor on one run and another on the next. Ten runs after a
change, each processor may have only two points. A commit changes all of them by the same ratio.
So, with each segment's own level subtracted, all points form one series.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from corebound.stats.history.change_point import (
    ChangePoint,
    HistoryArrays,
    Places,
    Recovery,
    level_of,
    ratio_of,
)
from corebound.stats.history.detectors import REACH
from corebound.stats.history.incremental import Segment, SegmentCache, analyse_segment
from corebound.stats.history.shift_tests import (
    hodges_lehmann_shift,
    inflation,
    shift_bounds,
    spread_of,
)
from corebound.stats.history.weighted_shifts import add_weighted
from corebound.stats.intervals import CONFIDENCE, Array, Interval

# Smaller changes do not matter; a scenario can set another threshold.
THRESHOLD = 0.02
# A change that began longer ago is not new, even on the first look at the history.
RECENT_POINTS = 30


def change_points_of(
    history: HistoryArrays,
    *,
    threshold: float,
    cache_before: SegmentCache | None = None,
    weighted: bool = False,
) -> tuple[ChangePoint, ...]:
    """Find where the level of a history changes lastingly, up or down.

    Each segment is analysed separately, even if points of others lie between its own.
    If several segments show one change, the clearest one represents it. Two detectors vote;
    docs/explanation/statistics/change-points.md explains how, and how often they are right. The
    same points always give the same change points.

    Args:
        history: The history; points without a value are skipped.
        threshold: Least change that matters, above 0; 0.02 is a ratio of 1.02
            or of its reciprocal.
        cache_before: Results of earlier analyses; new ones are added.
        weighted: Whether points count by their own precision too, as in anchored histories, whose
            errors are those of ratios measured in turns.

    Returns:
        The change points in time order.

    Raises:
        ValueError: `threshold` is not above 0.
    """
    if threshold <= 0:
        raise ValueError("a threshold is above 0")
    cache = cache_before or SegmentCache()
    n = history.logs.size
    by_segment: list[list[ChangePoint]] = []
    for present, segment in measured_segments(history, threshold=threshold):
        change_points: Sequence[ChangePoint] = analyse_segment(segment, cache).steps
        if weighted:
            change_points = add_weighted(
                segment.values, segment.errors, change_points, threshold=threshold
            )
        by_segment.append([change_point.moved(present) for change_point in change_points])
    from_all_segments = change_points_across_segments(
        history,
        deduplicate_change_points(by_segment),
        threshold=threshold,
        cache=cache,
    )
    merged = deduplicate_change_points(
        [
            _add_recoveries(
                deduplicate_change_points([segment_points, from_all_segments.get(which, ())]),
                threshold,
            )
            for which, segment_points in enumerate(by_segment)
        ]
    )
    return tuple(
        replace(
            change_point,
            status="old"
            if change_point.status == "new" and n - change_point.at > RECENT_POINTS
            else change_point.status,
            recovery=change_point.recovery
            and _relocated_recovery(change_point, change_point.recovery, merged),
        )
        for change_point in merged
    )


def measured_segments(
    history: HistoryArrays, *, threshold: float
) -> Iterator[tuple[Places, Segment]]:
    """Each segment of a history, and the places of its points; those without a value left out.

    Args:
        threshold: Least change that matters.
    """
    for places in history.segments:
        present = places[~np.isnan(history.logs[places])]
        yield (
            present,
            Segment(
                values=history.logs[present],
                errors=history.errors[present],
                threshold=threshold,
            ),
        )


def deduplicate_change_points(by_segment: Sequence[Sequence[ChangePoint]]) -> list[ChangePoint]:
    """Merge the change points of several segments, in time order, each shared one only once.

    A shared change point is taken from the segment with the smallest p-value. Its location is
    narrowed to the range that all of them allow.
    """
    merged: list[tuple[int, ChangePoint]] = []
    candidates = (
        (which, change_point)
        for which, change_points in enumerate(by_segment)
        for change_point in change_points
    )
    for which, change_point in sorted(
        candidates, key=lambda known: (known[1].p_value, known[1].at)
    ):
        duplicates = (
            at
            for at, (segment, known) in enumerate(merged)
            if segment != which
            and known.direction == change_point.direction
            and _overlap(known, change_point)
        )
        at = next(duplicates, None)
        if at is None:
            merged.append((which, change_point))
        else:
            merged[at] = (merged[at][0], _narrow_location(merged[at][1], change_point))
    return sorted(
        (change_point for _, change_point in merged), key=lambda change_point: change_point.at
    )


def _overlap(change_point: ChangePoint, other: ChangePoint | Recovery) -> bool:
    return max(change_point.last_good, other.last_good) < min(
        change_point.first_bad, other.first_bad
    )


def _narrow_location(change_point: ChangePoint, other: ChangePoint) -> ChangePoint:
    last_good = max(change_point.last_good, other.last_good)
    first_bad = min(change_point.first_bad, other.first_bad)
    at = min(max(change_point.at, last_good + 1), first_bad)
    return replace(change_point, last_good=last_good, first_bad=first_bad, at=at)


def _add_recoveries(change_points: Sequence[ChangePoint], threshold: float) -> list[ChangePoint]:
    """Add to the change points of one segment how far later ones reversed them."""
    return [
        replace(
            change_point,
            status="recovered"
            if any(
                _cancel_out(change_points[index : later + 1], threshold)
                for later in range(index + 1, len(change_points))
            )
            else change_point.status,
            recovery=_recovery(change_point, change_points[index + 1 :], threshold),
        )
        for index, change_point in enumerate(change_points)
    ]


def _recovery(
    change_point: ChangePoint, later: Sequence[ChangePoint], threshold: float
) -> Recovery | None:
    side = 1 if change_point.direction == "up" else -1
    shift = math.log(change_point.ratio)
    recovery, opposite_count = None, 0
    for later_point in later:
        shift += math.log(later_point.ratio)
        if later_point.direction == change_point.direction:
            continue
        opposite_count += 1
        if side * shift >= side * math.log(change_point.ratio):
            continue  # it only reversed later changes
        recovery = Recovery(
            at=later_point.at,
            last_good=later_point.last_good,
            first_bad=later_point.first_bad,
            steps=opposite_count,
            left=ratio_of(shift),
            whole=side * shift < math.log1p(threshold),
        )
        if recovery.whole:
            break
    return recovery


def _relocated_recovery(
    change_point: ChangePoint, recovery: Recovery, change_points: Sequence[ChangePoint]
) -> Recovery:
    """A recovery with the location of the reported change point that caused it."""
    for other in change_points:
        if other.direction != change_point.direction and _overlap(other, recovery):
            return replace(
                recovery, at=other.at, last_good=other.last_good, first_bad=other.first_bad
            )
    return recovery


def _cancel_out(change_points: Sequence[ChangePoint], threshold: float) -> bool:
    """Whether the changes cancel out, within the threshold."""
    return abs(sum(math.log(change_point.ratio) for change_point in change_points)) < math.log1p(
        threshold
    )


# Fewer points hardly define a level; before a change point, half as many are enough.
_MIN_SEGMENT_POINTS = 8
# A segment whose last point is older than this no longer alternates.
_RECENT_POINTS = 30
# No detector uses more points; this allows as many on either side of the middle.
_WINDOW = 2 * REACH
# Closer to a level that changed than to one that did not.
_HALF = 0.5
# Variance of the level of normal values, relative to that of their mean.
_LEVEL_VARIANCE = math.pi / 3


def change_points_across_segments(
    history: HistoryArrays,
    change_points: Sequence[ChangePoint],
    *,
    threshold: float,
    cache: SegmentCache,
) -> Mapping[int, Sequence[ChangePoint]]:
    """Find the change points that the current segments show together.

    The search starts at the last change point but one. Each point is taken relative to the level
    of its segment. This removes part of a change, if there is one, and never adds any.

    Args:
        change_points: The change points found in single segments, in time order.
        threshold: Least change that matters, as a ratio minus 1.
        cache: Results of earlier analyses; new ones are added.

    Returns:
        For the index of each segment that shows them, its change points in time order, with the
        segment's own levels.
    """
    n = history.logs.size
    # Include the last change point: all segments together locate it more precisely.
    since = max((n - _WINDOW, *(joint_point.first_bad for joint_point in change_points[:-1])))
    segments: dict[int, Places] = {}
    for segment, places in enumerate(history.segments):
        measured = places[(places >= since) & ~np.isnan(history.logs[places])]
        if measured.size >= _MIN_SEGMENT_POINTS and measured[-1] >= n - _RECENT_POINTS:
            segments[segment] = measured
    if len(segments) < 2:
        return {}
    all_places = np.concatenate(list(segments.values()))
    off = np.concatenate(
        [logs - _level(logs) for logs in map(history.logs.take, segments.values())]
    )
    order = all_places.argsort()
    places = all_places[order]
    result = analyse_segment(
        Segment(values=off[order], errors=history.errors[places], threshold=threshold),
        cache,
    )
    by_segment: dict[int, list[ChangePoint]] = {}
    joint_points = [joint_point.moved(places) for joint_point in result.steps]
    edges = (since, *(joint_point.at for joint_point in joint_points), n)
    for joint_point, begin, end in zip(joint_points, edges, edges[2:], strict=False):
        sides = _sides(history.logs, segments, begin, joint_point.at, end)
        for segment, change_point in _sized_change_points(
            joint_point, sides, rho=result.rho, threshold=threshold
        ):
            by_segment.setdefault(segment, []).append(change_point)
    return by_segment


def _sides(
    logs: Array, segments: Mapping[int, Places], begin: int, at: int, end: int
) -> dict[int, tuple[Array, Array]]:
    """Each segment's points before and after a change point, if it has enough of both."""
    sides = {
        segment: (
            logs[places[(places >= begin) & (places < at)]],
            logs[places[(places >= at) & (places < end)]],
        )
        for segment, places in segments.items()
    }
    return {
        segment: (left, right)
        for segment, (left, right) in sides.items()
        if left.size >= _MIN_SEGMENT_POINTS // 2 and right.size
    }


def _sized_change_points(
    change_point: ChangePoint,
    sides: Mapping[int, tuple[Array, Array]],
    *,
    rho: float,
    threshold: float,
) -> Iterator[tuple[int, ChangePoint]]:
    """A change point for each segment, all with the size estimated from the levels before it.

    Empty if the segments do not confirm it, or fewer than two show at least half of its size.
    """
    if not sides:
        return
    levels = {segment: _level(left) for segment, (left, _) in sides.items()}
    left, right = (
        np.concatenate([both[side] - levels[segment] for segment, both in sides.items()])
        for side in (0, 1)
    )
    size = hodges_lehmann_shift(left, right)
    if abs(size) < math.log1p(threshold) or (size > 0) != (change_point.direction == "up"):
        return
    relative_sizes = [
        hodges_lehmann_shift(before, after) / size for before, after in sides.values()
    ]
    if sum(share >= _HALF for share in relative_sizes) < 2:
        return
    # The points of one segment share the error of its level.
    uncertain = inflation(right.size, rho) / right.size + sum(
        (after.size / right.size) ** 2 * _LEVEL_VARIANCE * inflation(before.size, rho) / before.size
        for before, after in sides.values()
    )
    spread = spread_of(np.concatenate((left, right - size)))
    bounds = shift_bounds(
        left, right, rho=rho, own_error=spread * math.sqrt(uncertain), confidence=CONFIDENCE
    )
    interval = bounds and Interval(
        low=ratio_of(bounds[0]), high=ratio_of(bounds[1]), confidence=CONFIDENCE
    )
    for segment, level in levels.items():
        yield (
            segment,
            replace(change_point, before=level_of(level), ratio=ratio_of(size), interval=interval),
        )


def _level(logs: Array) -> float:
    """The median of all pairwise means; if points fall into two groups, it lies between them.

    A median would fall into one of the groups by chance, and segments would differ by as much.

    Source: Hodges & Lehmann, as in `hodges_lehmann_shift`.
    """
    return hodges_lehmann_shift(-logs, logs) / 2
