"""Many series as columns: what their points have in common is there once, not once a point."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
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


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
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
    series: list[Column]


class _Table(Generic[T]):
    """Values, each once, in the order they were first seen."""

    def __init__(self, values: Sequence[T] = ()) -> None:
        self.values: list[T] = [*values]
        self._places: dict[T, int] = {value: place for place, value in enumerate(values)}

    def place(self, value: T | None) -> int:
        if value is None:
            return _NONE
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = len(self.values)
            self.values.append(value)
        return place


class Tables:
    """What the columns of a file share; grows as series are packed."""

    def __init__(self, told: Columns | None = None) -> None:
        """Take the tables of a file, or none."""
        self._commits = _Table[Commit](told.commits if told else ())
        self._moments = _Table[_Moment](told.moments if told else ())
        self._circumstances = _Table[_Circumstances](told.circumstances if told else ())
        self._missing = _Table[str](told.missing if told else ())
        # Points share theirs: to compare what they hold each time takes twice as long.
        self._known: dict[tuple[str, str | None, int], tuple[int, Commit | None]] = {}

    def column(self, one: Series) -> Column:
        """A series as columns."""
        points = one.points
        bounds = [point.bounds for point in points]
        bounded = any(bounds)
        launches = [point.launches for point in points]
        lost = [self._missing.place(point.missing) for point in points]
        return Column(
            about=replace(one, points=()),
            moments=[self._moment(point) for point in points],
            figures=[point.figure for point in points],
            circumstances=[self._circumstances.place(point.circumstances) for point in points],
            lows=[pair and pair[0] for pair in bounds] if bounded else [],
            highs=[pair and pair[1] for pair in bounds] if bounded else [],
            launches=launches if any(launches) else [],
            missing=lost if any(place != _NONE for place in lost) else [],
        )

    def longer(self, column: Column, later: Series) -> Column:
        """A series with points more at its end, which `later` alone has; the rest is as there."""
        before, more = len(column.moments), self.column(later)
        after = len(more.moments)
        return Column(
            about=more.about,
            moments=column.moments + more.moments,
            figures=column.figures + more.figures,
            circumstances=column.circumstances + more.circumstances,
            lows=_joined(column.lows, more.lows, before, after, None),
            highs=_joined(column.highs, more.highs, before, after, None),
            launches=_joined(column.launches, more.launches, before, after, ()),
            missing=_joined(column.missing, more.missing, before, after, _NONE),
        )

    def file(self, series: Sequence[Column]) -> Columns:
        """The whole of a file, of columns that these tables are of."""
        return Columns(
            schema=SERIES_SCHEMA,
            commits=self._commits.values,
            moments=self._moments.values,
            circumstances=self._circumstances.values,
            missing=self._missing.values,
            series=[*series],
        )

    def _moment(self, point: Point) -> int:
        key = (point.at, point.run, id(point.commit))
        known = self._known.get(key)
        if known is None:
            told = _Moment(at=point.at, run=point.run, commit=self._commits.place(point.commit))
            # With the commit, so that no other gets its id meanwhile.
            known = self._known[key] = self._moments.place(told), point.commit
        return known[0]


def _joined(one: list[T], other: list[T], before: int, after: int, nothing: T) -> list[T]:
    """Two columns, of which an empty one says nothing of as many points."""
    if not one and not other:
        return []
    return (one or [nothing] * before) + (other or [nothing] * after)


def packed(series: Sequence[Series]) -> Columns:
    """Series as columns."""
    tables = Tables()
    return tables.file([tables.column(one) for one in series])


class Opened:
    """A file's columns, as series when they are asked for."""

    def __init__(self, told: Columns) -> None:
        """Take the whole of a file.

        Raises:
            ValueError: its tables do not fit together.
        """
        self.columns = told.series
        self._circumstances = told.circumstances
        # What is at place -1 is none.
        self._missing = (*told.missing, None)
        commits = (*told.commits, None)
        with _fitting():
            self._moments = [(one.at, one.run, commits[one.commit]) for one in told.moments]

    def last(self, column: Column) -> tuple[str, Commit | None, _Circumstances]:
        """When, at which commit and in which circumstances a series ends.

        Raises:
            ValueError: it has no point, or its columns do not fit the tables.
        """
        with _fitting():
            at, _, commit = self._moments[column.moments[-1]]
            return at, commit, self._circumstances[column.circumstances[-1]]

    @cached_property
    def shas(self) -> frozenset[str]:
        """The commits that there are."""
        return frozenset(commit.sha for _, _, commit in self._moments if commit)

    def series(self, column: Column) -> Series:
        """A series again; what it has in common with others they share.

        Raises:
            ValueError: its columns do not fit the tables.
        """
        with _fitting():
            points = _points(column, self._moments, self._circumstances, self._missing)
            return replace(column.about, points=tuple(points))


@contextlib.contextmanager
def _fitting() -> Iterator[None]:
    try:
        yield
    except IndexError as error:
        raise ValueError(f"its columns do not fit its tables: {error}") from None


def unpacked(told: Columns) -> tuple[Series, ...]:
    """The series again.

    Raises:
        ValueError: the columns do not fit together.
    """
    opened = Opened(told)
    return tuple(map(opened.series, opened.columns))


def _points(
    column: Column,
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
