"""Find the change points of a history: their location, size and recovery.

Each segment, of one environment, is searched separately, and then all recent segments together.
A machine in the cloud may get one processor on one run and another on the next. Ten runs after a
change, each processor may have only two points. A commit changes all of them by the same ratio.
So, with each segment's own level subtracted, all points form one series.
"""

from __future__ import annotations

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
from corebound.stats.intervals import CONFIDENCE, Array, Interval

# Smaller changes do not matter; a scenario can set another threshold.
THRESHOLD = 0.02
# A change that began longer ago is not new, even on the first look at the history.
RECENT_NIGHTS = 30
# Seed of the permutation test, fixed so that results are reproducible.
_SEED = 0


def change_points_of(
    course: HistoryArrays, *, threshold: float, memory: SegmentCache | None = None
) -> tuple[ChangePoint, ...]:
    """Find where the level of a history changes lastingly, up or down.

    Each segment is analysed separately, even if points of others lie between its own.
    If several segments show one change, the clearest one represents it. Five detectors vote;
    docs/statistics.md explains how, and how often they are right. The same points always give
    the same change points.

    Args:
        course: The history; points without a value are skipped.
        threshold: Least change that matters, above 0; 0.02 is a ratio of 1.02
            or of its reciprocal.
        memory: Results of earlier analyses; new ones are added.

    Returns:
        The change points in time order.

    Raises:
        ValueError: `threshold` is not above 0.
    """
    if threshold <= 0:
        raise ValueError("a threshold is above 0")
    remembered = memory or SegmentCache()
    n = course.logs.size
    by_segment: list[list[ChangePoint]] = []
    for nights in course.segments:
        present = nights[~np.isnan(course.logs[nights])]
        values, errors = course.logs[present], course.errors[present]
        segment = Segment(values=values, errors=errors, threshold=threshold, seed=_SEED)
        found = analyse_segment(segment, remembered).steps
        by_segment.append([step.moved(present) for step in found])
    more = steps_by_turns(
        course,
        deduplicate_change_points(by_segment),
        threshold=threshold,
        seed=_SEED,
        memory=remembered,
    )
    told = deduplicate_change_points(
        [
            _with_recoveries(deduplicate_change_points([steps, more.get(which, ())]), threshold)
            for which, steps in enumerate(by_segment)
        ]
    )
    return tuple(
        replace(
            step,
            status="old" if step.status == "new" and _long_ago(step, n) else step.status,
            recovery=step.recovery and _as_told(step, step.recovery, told),
        )
        for step in told
    )


def deduplicate_change_points(by_segment: Sequence[Sequence[ChangePoint]]) -> list[ChangePoint]:
    """Merge the change points of several segments, in time order, each shared one only once.

    A shared change point is taken from the segment with the smallest p-value. Its location is
    narrowed to the range that all of them allow.
    """
    told: list[tuple[int, ChangePoint]] = []
    every = ((which, step) for which, steps in enumerate(by_segment) for step in steps)
    for which, step in sorted(every, key=lambda one: (one[1].p_value, one[1].at)):
        same = (
            at for at, (other, one) in enumerate(told) if other != which and _are_one(one, step)
        )
        at = next(same, None)
        if at is None:
            told.append((which, step))
        else:
            told[at] = (told[at][0], _narrowed(told[at][1], step))
    return sorted((step for _, step in told), key=lambda step: step.at)


def _are_one(one: ChangePoint, other: ChangePoint) -> bool:
    """Whether two segments may show the same change."""
    return one.direction == other.direction and _overlap(one, other)


def _overlap(one: ChangePoint, other: ChangePoint | Recovery) -> bool:
    return max(one.last_good, other.last_good) < min(one.first_bad, other.first_bad)


def _narrowed(step: ChangePoint, other: ChangePoint) -> ChangePoint:
    last_good = max(step.last_good, other.last_good)
    first_bad = min(step.first_bad, other.first_bad)
    at = min(max(step.at, last_good + 1), first_bad)
    return replace(step, last_good=last_good, first_bad=first_bad, at=at)


def _with_recoveries(steps: Sequence[ChangePoint], threshold: float) -> list[ChangePoint]:
    """Add to the change points of one segment how far later ones reversed them."""
    return [
        replace(
            step,
            status="recovered"
            if any(
                _undone(steps[index : later + 1], threshold)
                for later in range(index + 1, len(steps))
            )
            else step.status,
            recovery=_recovery(step, steps[index + 1 :], threshold),
        )
        for index, step in enumerate(steps)
    ]


def _recovery(step: ChangePoint, later: Sequence[ChangePoint], threshold: float) -> Recovery | None:
    side = 1 if step.direction == "up" else -1
    moved = math.log(step.ratio)
    found, back = None, 0
    for one in later:
        moved += math.log(one.ratio)
        if one.direction == step.direction:
            continue
        back += 1
        if side * moved >= side * math.log(step.ratio):
            continue  # it only reversed later changes
        found = Recovery(
            at=one.at,
            last_good=one.last_good,
            first_bad=one.first_bad,
            steps=back,
            left=ratio_of(moved),
            whole=side * moved < math.log1p(threshold),
        )
        if found.whole:
            break
    return found


def _as_told(step: ChangePoint, recovery: Recovery, told: Sequence[ChangePoint]) -> Recovery:
    """A recovery with the location of the reported change point that caused it."""
    for one in told:
        if one.direction != step.direction and _overlap(one, recovery):
            return replace(recovery, at=one.at, last_good=one.last_good, first_bad=one.first_bad)
    return recovery


def _undone(steps: Sequence[ChangePoint], threshold: float) -> bool:
    """Whether the changes cancel out, within the threshold."""
    return abs(sum(math.log(step.ratio) for step in steps)) < math.log1p(threshold)


def _long_ago(step: ChangePoint, nights: int) -> bool:
    return nights - step.at > RECENT_NIGHTS


# Fewer points hardly define a level; before a change point, half as many are enough.
_OF_A_LEVEL = 8
# A segment whose last point is older than this no longer alternates.
_LATELY = 30
# No detector uses more points; this allows as many on either side of the middle.
_WINDOW = 2 * REACH
# Closer to a level that changed than to one that did not.
_HALF = 0.5
# Variance of the level of normal values, relative to that of their mean.
_OF_LEVEL = math.pi / 3


def steps_by_turns(
    course: HistoryArrays,
    known: Sequence[ChangePoint],
    *,
    threshold: float,
    seed: int,
    memory: SegmentCache,
) -> Mapping[int, Sequence[ChangePoint]]:
    """Find the change points that the current segments show together.

    The search starts at the last change point but one. Each point is taken relative to the level
    of its segment. This removes part of a change, if there is one, and never adds any.

    Args:
        course: The history.
        known: The change points found in single segments, in time order.
        threshold: Least change that matters, as a ratio minus 1.
        seed: Seed of the permutations.
        memory: Results of earlier analyses; new ones are added.

    Returns:
        For the index of each segment that shows them, its change points in time order, with the
        segment's own levels.
    """
    n = course.logs.size
    # Include the last change point: all segments together locate it more precisely.
    since = max((n - _WINDOW, *(step.first_bad for step in known[:-1])))
    segments: dict[int, Places] = {}
    for which, nights in enumerate(course.segments):
        seen = nights[(nights >= since) & ~np.isnan(course.logs[nights])]
        if seen.size >= _OF_A_LEVEL and seen[-1] >= n - _LATELY:
            segments[which] = seen
    if len(segments) < 2:
        return {}
    every = np.concatenate(list(segments.values()))
    off = np.concatenate([logs - _level(logs) for logs in map(course.logs.take, segments.values())])
    order = every.argsort()
    nights = every[order]
    found = analyse_segment(
        Segment(values=off[order], errors=course.errors[nights], threshold=threshold, seed=seed),
        memory,
    )
    told: dict[int, list[ChangePoint]] = {}
    steps = [step.moved(nights) for step in found.steps]
    edges = (since, *(step.at for step in steps), n)
    for step, begin, end in zip(steps, edges, edges[2:], strict=False):
        sides = _sides(course.logs, segments, begin, step.at, end)
        for which, one in _sized(step, sides, rho=found.rho, threshold=threshold):
            told.setdefault(which, []).append(one)
    return told


def _sides(
    logs: Array, segments: Mapping[int, Places], begin: int, at: int, end: int
) -> dict[int, tuple[Array, Array]]:
    """Each segment's points before and after a change point, if it has enough of both."""
    sides = {
        which: (
            logs[nights[(nights >= begin) & (nights < at)]],
            logs[nights[(nights >= at) & (nights < end)]],
        )
        for which, nights in segments.items()
    }
    return {
        which: (left, right)
        for which, (left, right) in sides.items()
        if left.size >= _OF_A_LEVEL // 2 and right.size
    }


def _sized(
    step: ChangePoint, sides: Mapping[int, tuple[Array, Array]], *, rho: float, threshold: float
) -> Iterator[tuple[int, ChangePoint]]:
    """A change point for each segment, all with the size estimated from the levels before it.

    Empty if the segments do not confirm it, or fewer than two show at least half of its size.
    """
    if not sides:
        return
    levels = {which: _level(left) for which, (left, _) in sides.items()}
    left, right = (
        np.concatenate([both[side] - levels[which] for which, both in sides.items()])
        for side in (0, 1)
    )
    size = hodges_lehmann_shift(left, right)
    if abs(size) < math.log1p(threshold) or (size > 0) != (step.direction == "up"):
        return
    shares = [hodges_lehmann_shift(before, after) / size for before, after in sides.values()]
    if sum(share >= _HALF for share in shares) < 2:
        return
    # The points of one segment share the error of its level.
    uncertain = inflation(right.size, rho) / right.size + sum(
        (after.size / right.size) ** 2 * _OF_LEVEL * inflation(before.size, rho) / before.size
        for before, after in sides.values()
    )
    spread = spread_of(np.concatenate((left, right - size)))
    bounds = shift_bounds(
        left, right, rho=rho, own_error=spread * math.sqrt(uncertain), confidence=CONFIDENCE
    )
    interval = bounds and Interval(
        low=ratio_of(bounds[0]), high=ratio_of(bounds[1]), confidence=CONFIDENCE
    )
    for which, level in levels.items():
        yield which, replace(step, before=level_of(level), ratio=ratio_of(size), interval=interval)


def _level(logs: Array) -> float:
    """The median of all pairwise means; if points fall into two groups, it lies between them.

    A median would fall into one of the groups by chance, and segments would differ by as much.

    Source: Hodges & Lehmann, as in `hodges_lehmann_shift`.
    """
    return hodges_lehmann_shift(-logs, logs) / 2
