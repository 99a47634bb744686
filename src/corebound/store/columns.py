"""Many series as columns: what their points have in common is there once, not once a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import msgspec

from corebound.model.run import Commit
from corebound.model.series import SERIES_SCHEMA, Point, Series

T = TypeVar("T")
# In a column of places: no such thing.
_NONE = -1

_Circumstances = tuple[tuple[str, str], ...]


class _Moment(msgspec.Struct, frozen=True, array_like=True):
    """When and at which commit something was measured: most series share theirs."""

    at: str
    run: str | None
    commit: int


class _Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A series; but for the first two, columns of as many values as it has points.

    `about` is it without its points. Others are places in the tables of `Columns`, and
    figures. A column that would say nothing is empty.
    """

    about: Series
    moments: list[int]
    figures: list[float | None]
    circumstances: list[int]
    lows: list[float | None] = []
    highs: list[float | None] = []
    launches: list[tuple[float, ...]] = []
    missing: list[int] = []


class Columns(msgspec.Struct, frozen=True):
    """The whole of a file of series."""

    schema: int
    commits: list[Commit]
    moments: list[_Moment]
    circumstances: list[_Circumstances]
    missing: list[str]
    series: list[_Column]


class _Table(Generic[T]):
    """Values, each once, in the order they were first seen."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._places: dict[T, int] = {}

    def place(self, value: T | None) -> int:
        if value is None:
            return _NONE
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = len(self.values)
            self.values.append(value)
        return place


def packed(series: Sequence[Series]) -> Columns:
    """Series as columns."""
    commits = _Table[Commit]()
    moments = _Table[_Moment]()
    circumstances = _Table[_Circumstances]()
    missing = _Table[str]()
    # Points share theirs: to compare what they hold each time takes twice as long.
    known: dict[tuple[str, str | None, int], int] = {}

    def moment(point: Point) -> int:
        key = (point.at, point.run, id(point.commit))
        place = known.get(key)
        if place is None:
            told = _Moment(at=point.at, run=point.run, commit=commits.place(point.commit))
            place = known[key] = moments.place(told)
        return place

    def column(one: Series) -> _Column:
        points = one.points
        bounds = [point.bounds for point in points]
        bounded = any(bounds)
        launches = [point.launches for point in points]
        lost = [missing.place(point.missing) for point in points]
        return _Column(
            about=replace(one, points=()),
            moments=[moment(point) for point in points],
            figures=[point.figure for point in points],
            circumstances=[circumstances.place(point.circumstances) for point in points],
            lows=[pair and pair[0] for pair in bounds] if bounded else [],
            highs=[pair and pair[1] for pair in bounds] if bounded else [],
            launches=launches if any(launches) else [],
            missing=lost if any(place != _NONE for place in lost) else [],
        )

    columns = [column(one) for one in series]
    return Columns(
        schema=SERIES_SCHEMA,
        commits=commits.values,
        moments=moments.values,
        circumstances=circumstances.values,
        missing=missing.values,
        series=columns,
    )


def unpacked(told: Columns) -> tuple[Series, ...]:
    """The series again; what they have in common they share.

    Raises:
        ValueError: the columns do not fit together.
    """
    # What is at place -1 is none.
    commits = (*told.commits, None)
    missing = (*told.missing, None)
    try:
        moments = [(one.at, one.run, commits[one.commit]) for one in told.moments]
        return tuple(
            replace(
                column.about,
                points=tuple(_points(column, moments, told.circumstances, missing)),
            )
            for column in told.series
        )
    except IndexError as error:
        raise ValueError(f"its columns do not fit its tables: {error}") from None


def _points(
    column: _Column,
    moments: Sequence[tuple[str, str | None, Commit | None]],
    circumstances: Sequence[_Circumstances],
    missing: Sequence[str | None],
) -> Iterator[Point]:
    empty: list[None] = [None] * len(column.moments)
    for moment, figure, which, low, high, launches, lost in zip(
        column.moments,
        column.figures,
        column.circumstances,
        column.lows or empty,
        column.highs or empty,
        column.launches or empty,
        column.missing or empty,
        strict=True,
    ):
        at, run, commit = moments[moment]
        yield Point(
            at=at,
            run=run,
            commit=commit,
            figure=figure,
            bounds=None if low is None or high is None else (low, high),
            launches=launches or (),
            missing=None if lost is None else missing[lost],
            circumstances=circumstances[which],
        )
