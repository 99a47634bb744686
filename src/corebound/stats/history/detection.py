"""Find the change points of a history: their location, size and recovery."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from corebound.stats.history.alternating_hosts import steps_by_turns
from corebound.stats.history.arrays import HistoryArrays
from corebound.stats.history.change_point import ChangePoint, Recovery, ratio_of
from corebound.stats.history.incremental import Segment, SegmentCache, analyse_segment

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
