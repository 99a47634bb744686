"""Imported histories on disk: a file a project, a line a series."""

from __future__ import annotations

import contextlib
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from corebound.errors import Fault
from corebound.records import atomic_write, cache, codec, documents, validate
from corebound.records.codec import of_schema
from corebound.records.history import SERIES_SCHEMA, Circumstances, HistoryPoints, Moment, Series
from corebound.records.run_record import Commit

S = TypeVar("S")
T = TypeVar("T")
# In a column of places: no such thing.
_NONE = -1
_EMPTY = HistoryPoints.of(())


class _Shared(msgspec.Struct, frozen=True):
    """The first line.

    Of `moments` the last is a place in `commits`. `moment_columns` and `circumstance_columns`
    are places in `moments` and `circumstances`, for as many points as a series has.
    """

    schema: int
    series: int
    commits: list[Commit]
    moments: list[tuple[str, str | None, int]]
    moment_columns: list[bytes]
    circumstances: list[Circumstances]
    circumstance_columns: list[bytes]
    missing: list[str]


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A series: itself without its points, places of its columns, and columns of its own."""

    about: Series
    moments: int
    circumstances: int
    figures: bytes
    lows: bytes = b""
    highs: bytes = b""
    launches: list[tuple[float, ...]] = []
    missing: bytes = b""


_encoder = msgspec.json.Encoder(enc_hook=codec.plain)
_shared = msgspec.json.Decoder(_Shared)
_line = msgspec.json.Decoder(_Line, dec_hook=codec.typed)


def encode(series: Sequence[Series]) -> Iterator[bytes]:
    """Series as the lines of their file."""
    tables = _Tables()
    moments = [tables.moment_columns.of(one.points.moments) for one in series]
    circumstances = [tables.circumstance_columns.of(one.points.circumstances) for one in series]
    missing = [_packed("i", map(tables.missing.place, one.points.missing)) for one in series]
    yield _encoder.encode(tables.first_line(len(series))) + b"\n"
    for one, when, where, reasons in zip(series, moments, circumstances, missing, strict=True):
        points = one.points
        line = _Line(
            about=replace(one, points=_EMPTY),
            moments=when,
            circumstances=where,
            figures=_packed("d", points.figures),
            lows=_packed("d", points.lows),
            highs=_packed("d", points.highs),
            launches=[*points.launches],
            missing=reasons,
        )
        yield _encoder.encode(line) + b"\n"


def decode(lines: Iterable[bytes]) -> tuple[Series, ...]:
    """Series again; what several of them have in common they share.

    Raises:
        UnreadableError: they are none, damaged, or of a newer corebound.
    """
    rest = iter(lines)
    first = next(rest, b"")

    def read(_schema: int) -> tuple[Series, ...]:
        return _series(_shared.decode(first), rest)

    return of_schema(first, SERIES_SCHEMA, read)


def _series(shared: _Shared, lines: Iterator[bytes]) -> tuple[Series, ...]:
    # What is at place -1 is none.
    commits, reasons = (*shared.commits, None), (*shared.missing, None)
    for at, _, _ in shared.moments:
        validate.moment("at", at)
    moments = [Moment(at, run, commits[commit]) for at, run, commit in shared.moments]
    moment_columns = [_looked_up(moments, one) for one in shared.moment_columns]
    circumstance_columns = [
        _looked_up(shared.circumstances, one) for one in shared.circumstance_columns
    ]
    found = []
    for line in map(_line.decode, lines):
        points = HistoryPoints(
            moments=moment_columns[line.moments],
            circumstances=circumstance_columns[line.circumstances],
            figures=_unpacked("d", line.figures),
            lows=_unpacked("d", line.lows),
            highs=_unpacked("d", line.highs),
            launches=line.launches,
            missing=_looked_up(reasons, line.missing),
        )
        one = replace(line.about, points=points)
        validate.series(one)
        found.append(one)
    if len(found) != shared.series:
        raise ValueError(f"it was cut short: {len(found)} of {shared.series} series are there")
    return tuple(found)


class _Table(Generic[T]):
    """Values, each once, in the order they were first seen."""

    def __init__(self) -> None:
        self._places: dict[T, int] = {}

    @property
    def values(self) -> list[T]:
        return [*self._places]

    def place(self, value: T | None) -> int:
        if value is None:
            return _NONE
        return self._places.setdefault(value, len(self._places))


class _Places(Generic[S, T]):
    """A table of what objects come to, which have to stay meanwhile.

    Objects are shared: to compare what they hold each time would take ten times as long.
    """

    def __init__(self, told: Callable[[S], T]) -> None:
        """Take what tells what one comes to."""
        self.table = _Table[T]()
        self._told = told
        self._known: dict[int, int] = {}

    def of(self, one: S) -> int:
        (place,) = self.all((one,))
        return place

    def all(self, column: Sequence[S]) -> Iterator[int]:
        """Those of many objects, most of which are known: nothing is asked of each."""
        for key, one in dict(zip(map(id, column), column, strict=True)).items():
            if key not in self._known:
                self._known[key] = self.table.place(self._told(one))
        return map(self._known.__getitem__, map(id, column))


class _Tables:
    """What series share; grows as they are looked at."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.missing = _Table[str]()
        self._commits = _Table[Commit]()
        self._moments = _Places[Moment, tuple[str, str | None, int]](
            lambda one: (one.at, one.run, self._commits.place(one.commit))
        )
        self._circumstances = _Places[Circumstances, Circumstances](lambda one: one)
        self.moment_columns = _Places[tuple[Moment, ...], bytes](
            lambda column: _packed("i", self._moments.all(column))
        )
        self.circumstance_columns = _Places[tuple[Circumstances, ...], bytes](
            lambda column: _packed("i", self._circumstances.all(column))
        )

    def first_line(self, series: int) -> _Shared:
        return _Shared(
            schema=SERIES_SCHEMA,
            series=series,
            commits=self._commits.values,
            moments=self._moments.table.values,
            moment_columns=self.moment_columns.table.values,
            circumstances=self._circumstances.table.values,
            circumstance_columns=self.circumstance_columns.table.values,
            missing=self.missing.values,
        )


def _packed(kind: str, values: Iterable[float]) -> bytes:
    column = array(kind, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _unpacked(kind: str, data: bytes) -> array[Any]:
    """The numbers of a column.

    Raises:
        ValueError: there is a part of one.
    """
    column = array(kind, data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _looked_up(table: Sequence[T], places: bytes) -> tuple[T, ...]:
    """What is at these places of a table.

    Raises:
        IndexError: there is no such place.
        ValueError: it is no column.
    """
    return tuple([table[place] for place in _unpacked("i", places)])


def file_of(project: str, records: Path) -> Path:
    """Where a project's series are kept, whatever characters its name has."""
    return documents.file_in(_folder_of(records), project.encode())


def _folder_of(records: Path) -> Path:
    return records / "histories"


def keep(project: str, series: Sequence[Series], records: Path) -> Path:
    """Keep a project's series in place of those that were kept before.

    Returns:
        The file they are kept in, which appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    return documents.keep(encode(series), file_of(project, records), what="the history")


def sources(projects: Iterable[str], records: Path) -> dict[str, str]:
    """For each project whose history was kept a hash of the file that it is read from."""
    found = {}
    for project in projects:
        with contextlib.suppress(OSError):
            found[project] = cache.file_digest(file_of(project, records))
    return found


def read(file: Path) -> tuple[Series, ...]:
    """The series of one project.

    Raises:
        OSError: the file cannot be read.
        codec.UnreadableError: it holds none, is damaged, or is of a newer corebound.
    """
    with atomic_write.opened(file) as lines:
        return decode(lines)


def read_all(records: Path) -> tuple[tuple[Series, ...], tuple[Fault, ...]]:
    """Every series that was kept, by id, and the files that hold none."""
    found, faults = documents.read_all(
        _folder_of(records),
        decode,
        what="this history",
        mend="Delete it and import the history again.",
    )
    series = (one for project in found for one in project)
    return tuple(sorted(series, key=lambda one: one.id)), faults
