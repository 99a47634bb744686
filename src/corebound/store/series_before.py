"""Series as earlier versions kept them, in one document: a point at a time, or in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from corebound.model.points import Circumstances, Point, Points
from corebound.model.run import Commit
from corebound.model.series import Series
from corebound.store import hooks


class _Kept1(msgspec.Struct, frozen=True):
    series: tuple[Series, ...]


class _Column(msgspec.Struct, frozen=True):
    """A series, and as many places and figures as it has points; an empty column says nothing."""

    about: Series
    moments: list[int]
    figures: list[float | None]
    circumstances: list[int]
    lows: list[float | None] = []
    highs: list[float | None] = []
    launches: list[tuple[float, ...]] = []
    missing: list[int] = []


class _Kept2(msgspec.Struct, frozen=True):
    """What is at place -1 of a table is none."""

    commits: list[Commit]
    moments: list[tuple[str, str | None, int]]
    circumstances: list[Circumstances]
    missing: list[str]
    series: list[_Column]


_kept_1 = msgspec.json.Decoder(_Kept1, dec_hook=hooks.typed)
_kept_2 = msgspec.json.Decoder(_Kept2, dec_hook=hooks.typed)


def decode(data: bytes, schema: int) -> tuple[Series, ...]:
    """Series again.

    Raises:
        msgspec.DecodeError: they are none.
        IndexError, ValueError: their columns do not fit together.
    """
    if schema == 1:
        return _kept_1.decode(data).series
    told = _kept_2.decode(data)
    return tuple(replace(one.about, points=Points.of(_points(one, told))) for one in told.series)


def _points(column: _Column, told: _Kept2) -> Iterator[Point]:
    commits, missing = (*told.commits, None), (*told.missing, None)
    empty: Sequence[None] = [None] * len(column.moments)
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
        at, run, commit = told.moments[moment]
        yield Point(
            at=at,
            run=run,
            commit=commits[commit],
            figure=figure,
            bounds=None if low is None or high is None else (low, high),
            launches=launches or (),
            missing=None if lost is None else missing[lost],
            circumstances=told.circumstances[which],
        )
