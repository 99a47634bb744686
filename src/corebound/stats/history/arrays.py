"""A history as columns."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]


class HistoryArrays(Struct, frozen=True, kw_only=True):
    """A history as columns: what many nights are looked at by.

    Attributes:
        logs: n logarithms of figures in time order; NaN where a night tells nothing.
        errors: Their standard errors by the nights' own launches; 0 where not known.
        segments: Of each circumstances the indices of the nights in them, in time order. They
            are of one level but for what commits change, also where others lie between.
    """

    logs: Array
    errors: Array
    segments: tuple[Places, ...]

    @property
    def latest(self) -> Places:
        """The segment that goes on: of the last night; of no nights, none."""
        last = self.logs.size - 1
        return next((one for one in self.segments if one[-1] == last), np.empty(0, dtype=np.int64))

    def level_since(self, start: int) -> Places:
        """The nights from this one on, of the segment that goes on, that tell something."""
        own = self.latest[self.latest >= start]
        return own[~np.isnan(self.logs[own])]


def segments_of(circumstances: Sequence[Hashable], borders: Sequence[int]) -> tuple[Places, ...]:
    """The segments of nights whose circumstances these are, by their first nights.

    Circumstances may come back: a machine in a cloud has now one processor, now another, and
    commits that are measured later stand among those that were measured long ago.

    Args:
        circumstances: One a night.
        borders: The nights before which they change.

    >>> [places.tolist() for places in segments_of("aabba", (2, 4))]
    [[0, 1, 4], [2, 3]]
    """
    found: dict[Hashable, list[Places]] = {}
    edges = (0, *borders, len(circumstances)) if circumstances else ()
    for start, end in itertools.pairwise(edges):
        found.setdefault(circumstances[start], []).append(np.arange(start, end))
    return tuple(np.concatenate(pieces) for pieces in found.values())
