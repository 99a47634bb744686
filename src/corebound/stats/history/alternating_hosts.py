"""Detect change points across segments of a history whose environments alternate.

A machine in the cloud may get one processor on one run and another on the next. Ten runs
after a change, each processor may have only two points. A commit changes all of them by the
same ratio. So, with each segment's own level subtracted, all points form one series.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from corebound.stats.history.arrays import Array, HistoryArrays, Places
from corebound.stats.history.change_point import ChangePoint, level_of, ratio_of
from corebound.stats.history.detectors import REACH
from corebound.stats.history.incremental import Segment, SegmentCache, analyse_segment
from corebound.stats.history.shift_tests import (
    hodges_lehmann_shift,
    inflation,
    shift_bounds,
    spread_of,
)
from corebound.stats.intervals import CONFIDENCE, Interval

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
