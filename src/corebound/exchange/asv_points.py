"""Points in the order of commits' dates, as asv has them: of rows of files, and of any others."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from corebound.exchange.asv_rows import Column, Floats, Rows
from corebound.model.points import Circumstances, Moment, Points

T = TypeVar("T")
# The circumstance that a version of a benchmark is.
VERSION = "benchmark"


class _Order(NamedTuple):
    """Some files by the dates of their commits.

    Attributes:
        places: Of each one among those files.
        moments: Theirs, in this order.
        twice: Whether some are of one commit.
    """

    places: NDArray[np.intp]
    moments: tuple[Moment, ...]
    twice: bool


class Orders:
    """Files by the dates of their commits; most benchmarks are in the same files."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        """Take each file's, by its number."""
        self._moments = moments
        numbers = sorted(range(len(moments)), key=lambda number: in_order(moments[number]))
        self._ranks = np.empty(len(moments), np.intp)
        self._ranks[numbers] = np.arange(len(moments))
        self._known: dict[bytes, _Order] = {}

    def points(self, rows: Sequence[Rows], cells: Iterable[Sequence[int]]) -> Iterator[Points]:
        """The points of cells that were measured in the same rows of files.

        Args:
            rows: In which files the cells are, with one list of parameters or with several.
            cells: For each cell its place in each of the rows.
        """
        order = self._of(array("i", itertools.chain.from_iterable(one.files for one in rows)))
        told = [under for one in rows for under in one.circumstances]
        circumstances = tuple([told[place] for place in order.places])
        if not order.twice:
            circumstances = _dated(circumstances)
        for places in cells:
            columns = [one.column(place) for one, place in zip(rows, places, strict=True)]
            points = _points(columns, order, circumstances)
            yield dated(ordered(points)) if order.twice else points

    def _of(self, files: array[int]) -> _Order:
        key = files.tobytes()
        if key not in self._known:
            places = np.argsort(self._ranks[files])
            moments = tuple(self._moments[files[place]] for place in places)
            twice = len(set(map(in_order, moments))) < len(moments)
            self._known[key] = _Order(places=places, moments=moments, twice=twice)
        return self._known[key]


def _points(
    columns: Sequence[Column], order: _Order, circumstances: tuple[Circumstances, ...]
) -> Points:
    return Points(
        moments=order.moments,
        figures=_array([one.figures for one in columns], order),
        circumstances=circumstances,
        lows=_array([one.lows for one in columns], order),
        highs=_array([one.highs for one in columns], order),
        launches=_taken([one.launches for one in columns], order),
        missing=_taken([one.missing for one in columns], order),
    )


def _array(columns: Sequence[Floats], order: _Order) -> array[float]:
    return array("d", np.concatenate(columns)[order.places].tobytes())


def _taken(columns: Sequence[Sequence[T]], order: _Order) -> Sequence[T]:
    whole = [*itertools.chain.from_iterable(columns)]
    return [whole[place] for place in order.places.tolist()] if any(whole) else ()


def in_order(moment: Moment) -> tuple[str, str]:
    """What points of imported histories are sorted by."""
    return moment.at, moment.commit.sha if moment.commit else ""


def ordered(points: Points) -> Points:
    """Points in order, one of each commit: the last that has a figure, else the last."""
    keys = [in_order(moment) for moment in points.moments]
    chosen = dict(zip(keys, range(len(keys)), strict=True))
    if len(chosen) < len(keys):
        figured = (at for at, figure in enumerate(points.figures) if not math.isnan(figure))
        chosen.update((keys[at], at) for at in figured)
    return points.taken(chosen[key] for key in sorted(chosen))


def dated(points: Points) -> Points:
    """Points of files that do not tell of a circumstance get what the next that does tells.

    Old files of asv tell less, such as no version of a benchmark and no number of CPUs,
    which is no sign of a change.
    """
    return points.under(_dated(points.circumstances))


def _dated(column: Sequence[Circumstances]) -> tuple[Circumstances, ...]:
    result: list[Circumstances] = []
    later: dict[str, str] = {}
    seen: Circumstances | None = None
    now: Circumstances = ()
    for circumstances in reversed(column):
        # Most points share theirs with the one before.
        if circumstances is not seen:
            seen = circumstances
            own = dict(seen)
            later |= told_in(seen)
            # In one order, for another order is another circumstance.
            names = sorted(later.keys() | own, key=lambda name: (name == VERSION, name))
            now = tuple((name, later.get(name, "")) for name in names)
            now = seen if now == seen else now
        result.append(now)
    return tuple(result[::-1])


def told_in(circumstances: Circumstances) -> dict[str, str]:
    """Those of which something is told."""
    return {name: value for name, value in circumstances if value}
