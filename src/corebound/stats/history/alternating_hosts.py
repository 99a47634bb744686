"""Nights of several circumstances that come by turns, looked at together.

A machine in a cloud has now one processor, now another, and of a step each has seen two nights
when the machine has seen ten. What a commit does is a ratio that all of them show, so without
each one's own level they are nights of one kind.
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

# A level of fewer nights is hardly one; of those before a step half of them do.
_OF_A_LEVEL = 8
# What was last seen longer ago comes by no turns any more.
_LATELY = 30
# No detector looks further; each side of the middle has as much.
_WINDOW = 2 * REACH
# Nearer to a level that changed than to one that did not.
_HALF = 0.5
# Variance of a level of normal nights over that of their mean.
_OF_LEVEL = math.pi / 3


def steps_by_turns(
    course: HistoryArrays,
    known: Sequence[ChangePoint],
    *,
    threshold: float,
    seed: int,
    memory: SegmentCache,
) -> Mapping[int, Sequence[ChangePoint]]:
    """Find what the segments that go on show together since the last step but one.

    Nights are taken less the level of their segment, which takes off a part of a step, if there
    is one, and adds none.

    Args:
        course: The history.
        known: The steps that segments show by themselves, in time order.
        threshold: Least change that matters, as a ratio less 1.
        seed: Of the permutations.
        memory: What was found before; what is found now is added.

    Returns:
        By the index of each segment that shows them, in time order, with its own levels.
    """
    n = course.logs.size
    # The last one too: all together tell better between which nights it lies.
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
    """The nights of each segment before a step and after it, where it has enough of them."""
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
    """A step as each segment has it, all with the size that the levels before it tell.

    None where these tell no such step, or not at least two of them half of it.
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
    # Nights of one segment share the error of its level.
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
    """The middle of all means of two nights: of two kinds of night it lies between them.

    Where a median lies in one of the two, by chance, and segments would differ by as much.

    Source: Hodges & Lehmann, as of `shift`.
    """
    return hodges_lehmann_shift(-logs, logs) / 2
