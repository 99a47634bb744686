"""A history as NumPy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[np.float64]
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
        return next((one for one in self.segments if one[-1] == last), np.empty(0, dtype=np.int64))

    def level_since(self, start: int) -> Places:
        """The points of the current segment from `start` on that have a value."""
        own = self.latest[self.latest >= start]
        return own[~np.isnan(self.logs[own])]


def segments_of(circumstances: Sequence[Hashable], borders: Sequence[int]) -> tuple[Places, ...]:
    """The segments of points with these environments, ordered by their first points.

    An environment may come back: a machine in the cloud may get one processor and then another,
    and commits measured later are placed among those measured long ago.

    Args:
        circumstances: The environment of each point.
        borders: The points at which the environment changes.

    >>> [places.tolist() for places in segments_of("aabba", (2, 4))]
    [[0, 1, 4], [2, 3]]
    """
    found: dict[Hashable, list[Places]] = {}
    edges = (0, *borders, len(circumstances)) if circumstances else ()
    for start, end in itertools.pairwise(edges):
        found.setdefault(circumstances[start], []).append(np.arange(start, end))
    return tuple(np.concatenate(pieces) for pieces in found.values())
