"""The data model of detection: a history as arrays, and the change points found in it."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.records.decisions import Direction
from corebound.stats.intervals import Array, Interval

Places = NDArray[np.int64]


class HistoryArrays(Struct, frozen=True, kw_only=True):
    """A history as columns, for detection over many points.

    Attributes:
        logs: n logarithms of values in time order; NaN if a point has no value.
        errors: Their standard errors, from each point's own launches; 0 if unknown.
        segments: For each environment, the indices of its points, in time order. Within a
            segment only commits change the level, even if other environments lie in between.
    """

    logs: Array
    errors: Array
    segments: tuple[Places, ...]

    @property
    def latest(self) -> Places:
        """The current segment, which holds the last point; empty without points."""
        last = self.logs.size - 1
        return next(
            (segment for segment in self.segments if segment[-1] == last),
            np.empty(0, dtype=np.int64),
        )

    def level_since(self, start: int) -> Places:
        """The points of the current segment from `start` on that have a value."""
        current = self.latest[self.latest >= start]
        return current[~np.isnan(self.logs[current])]


def segments_of(environment_key: Sequence[Hashable], borders: Sequence[int]) -> tuple[Places, ...]:
    """The segments of points with these environments, ordered by their first points.

    An environment may come back: a machine in the cloud may get one processor and then another,
    and commits measured later are placed among those measured long ago.

    Args:
        environment_key: The environment of each point.
        borders: The points at which the environment changes.

    >>> [places.tolist() for places in segments_of("aabba", (2, 4))]
    [[0, 1, 4], [2, 3]]
    """
    segments: dict[Hashable, list[Places]] = {}
    edges = (0, *borders, len(environment_key)) if environment_key else ()
    for start, end in itertools.pairwise(edges):
        segments.setdefault(environment_key[start], []).append(np.arange(start, end))
    return tuple(np.concatenate(pieces) for pieces in segments.values())


ChangeStatus = Literal["new", "recovered", "old"]
# The range of shifts whose ratio, and its reciprocal, a float can hold.
_MOST_SHIFT = 700.0
# Beyond this, a level exceeds the range of a float.
_MOST_LEVEL = math.log(sys.float_info.max)


def ratio_of(shift: float) -> float:
    """Convert a shift of logarithms to a ratio, limited to what a float holds, about 10^304.

    >>> ratio_of(0.0), ratio_of(1e4) == ratio_of(1e5)
    (1.0, True)
    """
    return math.exp(min(max(shift, -_MOST_SHIFT), _MOST_SHIFT))


def level_of(log: float) -> float:
    """Convert a logarithm to a value, limited to the largest float.

    >>> level_of(0.0), level_of(1e4) == sys.float_info.max
    (1.0, True)
    """
    return math.exp(log) if log < _MOST_LEVEL else sys.float_info.max


class Recovery(Struct, frozen=True, kw_only=True):
    """How far later change points in the opposite direction reversed a change.

    Attributes:
        at, last_good, first_bad: As in `ChangePoint`, of the opposite change point that brought
            the level back to what it was, or beyond. If none did, of the last opposite one.
        steps: How many opposite change points there are, including that one.
        left: Level after that one over the level before the change: 1.0 is fully recovered.
        whole: Whether the level came back, within the threshold, or went beyond.
    """

    at: int
    last_good: int
    first_bad: int
    steps: int
    left: float
    whole: bool


class ChangePoint(Struct, frozen=True, kw_only=True):
    """A lasting change within one segment.

    Attributes:
        at: Index of the first point after it. The change is equally likely to lie before or after.
        last_good: Index of the last point before all possible locations.
        first_bad: Index of the first point after all of these. The change came after
            `last_good` and no later than `first_bad`, in 97 % or more of simulated changes.
        before: Level before, in the unit of the values.
        ratio: Level after over level before.
        interval: The 95 % interval of the ratio; None if the points are too few.
        p_value: A score on the scale of p-values (`detectors.score`), times the number of places
            where the segment could have changed. Input of `multiplicity.benjamini_hochberg`
            over a suite.
        status: `recovered` if a later change point reversed it. Else `old` if it was known or
            began more than 30 points ago. Else `new`.
        recovery: How far later change points reversed it; None without any in the opposite
            direction.
        is_early: Whether it is an early warning, which the detectors do not confirm yet.
    """

    at: int
    last_good: int
    first_bad: int
    direction: Direction
    before: float
    ratio: float
    interval: Interval | None
    p_value: float
    status: ChangeStatus
    recovery: Recovery | None = None
    is_early: bool = False

    def moved(self, places: NDArray[np.int64]) -> ChangePoint:
        """The same change point, with indices converted to those of the whole history."""
        return replace(
            self,
            at=int(places[self.at]),
            last_good=int(places[self.last_good]),
            first_bad=int(places[self.first_bad]),
        )
