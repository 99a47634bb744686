"""Store imported histories: one file per project, one line per series."""

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
# The index for a missing value in a column of indices.
_NONE = -1
_EMPTY = HistoryPoints.of(())


class _Shared(msgspec.Struct, frozen=True):
    """The first line of the file.

    The last item of each of `moments` is an index into `commits`. `moment_columns` and
    `circumstance_columns` are indices into `moments` and `circumstances`, one for each point
    of a series.
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
    """A series without its points, the indices of its shared columns, and its own columns."""

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
    """Encode series as the lines of their file."""
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
    """Decode series; they share their common parts.

    Raises:
        UnreadableError: The lines are not series, damaged, or from a newer corebound.
    """
    rest = iter(lines)
    first = next(rest, b"")

    def read(_schema: int) -> tuple[Series, ...]:
        return _series(_shared.decode(first), rest)

    return of_schema(first, SERIES_SCHEMA, read)


def _series(shared: _Shared, lines: Iterator[bytes]) -> tuple[Series, ...]:
    # Index -1 gives None.
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
    """Distinct values, in the order in which they first occur."""

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
    """A table of values derived from objects, which must stay alive meanwhile.

    Objects are shared. Comparing their contents each time would take ten times as long.
    """

    def __init__(self, told: Callable[[S], T]) -> None:
        """Take the function that derives a value from an object."""
        self.table = _Table[T]()
        self._told = told
        self._known: dict[int, int] = {}

    def of(self, one: S) -> int:
        (place,) = self.all((one,))
        return place

    def all(self, column: Sequence[S]) -> Iterator[int]:
        """The indices of many objects; the value of a known object is not computed again."""
        for key, one in dict(zip(map(id, column), column, strict=True)).items():
            if key not in self._known:
                self._known[key] = self.table.place(self._told(one))
        return map(self._known.__getitem__, map(id, column))


class _Tables:
    """The parts that series share, collected while the series are processed."""

    def __init__(self) -> None:
        """Start empty."""
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
        ValueError: The last number is incomplete.
    """
    column = array(kind, data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _looked_up(table: Sequence[T], places: bytes) -> tuple[T, ...]:
    """The values at these indices of a table.

    Raises:
        IndexError: An index is out of range.
        ValueError: The data is not a column.
    """
    return tuple([table[place] for place in _unpacked("i", places)])


def file_of(project: str, records: Path) -> Path:
    """The file of a project's series; the project's name may have any characters."""
    return documents.file_in(_folder_of(records), project.encode())


def _folder_of(records: Path) -> Path:
    return records / "histories"


def keep(project: str, series: Sequence[Series], records: Path) -> Path:
    """Store a project's series, replacing earlier ones.

    Returns:
        The file, written as a whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    return documents.keep(encode(series), file_of(project, records), what="the history")


def sources(projects: Iterable[str], records: Path) -> dict[str, str]:
    """For each project with a stored history, a hash of its file."""
    found = {}
    for project in projects:
        with contextlib.suppress(OSError):
            found[project] = cache.file_digest(file_of(project, records))
    return found


def read(file: Path) -> tuple[Series, ...]:
    """The series of one project.

    Raises:
        OSError: The file cannot be read.
        codec.UnreadableError: It has no series, is damaged, or is from a newer corebound.
    """
    with atomic_write.opened(file) as lines:
        return decode(lines)


def read_all(records: Path) -> tuple[tuple[Series, ...], tuple[Fault, ...]]:
    """All stored series, by id, and the files that are not valid."""
    found, faults = documents.read_all(
        _folder_of(records),
        decode,
        what="this history",
        fix="Delete it and import the history again.",
    )
    series = (one for project in found for one in project)
    return tuple(sorted(series, key=lambda one: one.id)), faults
