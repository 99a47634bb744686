"""Store imported histories: one file per project, one line per series."""

from __future__ import annotations

import os
import sys
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from io import BufferedReader
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from corebound.errors import Fault
from corebound.records import atomic_write, codec, documents, validate
from corebound.records.codec import check_schema
from corebound.records.history import (
    SERIES_SCHEMA,
    EnvironmentKey,
    HistoryPoints,
    Moment,
    PointsSummary,
    Series,
    UnreadPoints,
)
from corebound.records.run_record import Commit

S = TypeVar("S")
T = TypeVar("T")
_FOLDER = "histories"
# The index for a missing value in a column of indices.
_NONE = -1
# Series are used a benchmark at a time, or as many as share a search for changes.
_MAX_SERIES_IN_MEMORY = 256
_EMPTY = HistoryPoints.of(())
_SHARED_TEXTS = (
    "project", "host", "host_name", "scenario", "title", "unit", "reproduce", "commit_url", "code",
)  # fmt: skip


class _Shared(
    msgspec.Struct,
    frozen=True,
    rename={"environment_keys": "circumstances", "key_columns": "circumstance_columns"},
):
    """The first line of the file.

    The last item of each of `moments` is an index into `commits`. `moment_columns` and
    `key_columns` are indices into `moments` and `environment_keys`, one for each point of a
    series.
    """

    schema: int
    series: int
    commits: list[Commit]
    moments: list[tuple[str, str | None, int]]
    moment_columns: list[bytes]
    environment_keys: list[EnvironmentKey]
    key_columns: list[bytes]
    missing: list[str]


class _Columns(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    rename={"key_column": "circumstances", "moment_column": "moments", "values": "figures"},
):
    """The indices of a series' shared columns, and its own columns."""

    moment_column: int
    key_column: int
    values: bytes
    lows: bytes = b""
    highs: bytes = b""
    launches: list[tuple[float, ...]] = []
    missing: bytes = b""
    sides: list[tuple[float, float] | None] = []


class _Line(_Columns, frozen=True, kw_only=True):
    """The same with the series, which has no points of its own there."""

    about: Series


_encoder = msgspec.json.Encoder(enc_hook=codec.encode_points)
_shared = msgspec.json.Decoder(_Shared)
_line = msgspec.json.Decoder(_Line, dec_hook=codec.decode_points)
_points_of_line = msgspec.json.Decoder(_Columns)
_packed = msgspec.msgpack.Decoder(tuple[_Shared, list[_Columns]])


def encode(series: Sequence[Series]) -> Iterator[bytes]:
    """Encode series as the lines of their file."""
    first, all_columns = _columns(series)
    yield _encoder.encode(first) + b"\n"
    for item, columns in zip(series, all_columns, strict=True):
        about = replace(item, points=_EMPTY)
        yield _encoder.encode(_Line(about=about, **msgspec.structs.asdict(columns))) + b"\n"


def pack(series: Sequence[Series]) -> bytes:
    """Encode the points of series as a compact value for a cache."""
    first, all_columns = _columns(series)
    return msgspec.msgpack.encode((first, [*all_columns]))


def unpack(data: bytes) -> tuple[HistoryPoints, ...]:
    """Decode what `pack` returned: the points of each series, which share their common parts."""
    shared, columns = _packed.decode(data)
    parts = _SharedParts(shared)
    return tuple(map(parts.points, columns))


def _columns(series: Sequence[Series]) -> tuple[_Shared, Iterator[_Columns]]:
    """The parts that series share, and the columns of each."""
    commits, missing = _Table[Commit](), _Table[str]()
    moments = _ObjectTable[Moment, tuple[str, str | None, int]](
        lambda moment: (moment.at, moment.run, commits.index(moment.commit))
    )
    keys = _ObjectTable[EnvironmentKey, EnvironmentKey](lambda key: key)
    moment_columns = _ObjectTable[tuple[Moment, ...], bytes](
        lambda column: _pack("i", moments.all(column))
    )
    key_columns = _ObjectTable[tuple[EnvironmentKey, ...], bytes](
        lambda column: _pack("i", keys.all(column))
    )
    indices = [
        (moment_columns.of(item.points.moments), key_columns.of(item.points.environment_keys))
        for item in series
    ]
    # The first line has all reasons. Kept until their series' turn, columns would take memory.
    for item in series:
        deque(map(missing.index, item.points.missing), maxlen=0)
    all_columns = (
        _Columns(
            moment_column=moment_column,
            key_column=key_column,
            values=_pack("d", item.points.values),
            lows=_pack("d", item.points.lows),
            highs=_pack("d", item.points.highs),
            launches=[*item.points.launches],
            missing=_pack("i", map(missing.index, item.points.missing)),
            sides=[*item.points.sides],
        )
        for item, (moment_column, key_column) in zip(series, indices, strict=True)
    )
    shared = _Shared(
        schema=SERIES_SCHEMA,
        series=len(series),
        commits=commits.values,
        moments=moments.table.values,
        moment_columns=moment_columns.table.values,
        environment_keys=keys.table.values,
        key_columns=key_columns.table.values,
        missing=missing.values,
    )
    return shared, all_columns


def decode(lines: Iterable[bytes]) -> tuple[Series, ...]:
    """Decode series; they share their common parts.

    A file's points are checked, but kept there: they are read each time they are used. So it has to
    be replaced as a whole, as `keep` does.

    Raises:
        UnreadableError: The lines are not series, damaged, or from a newer corebound.
    """
    rest = iter(lines)
    first = next(rest, b"")
    return check_schema(first, SERIES_SCHEMA, lambda _: _series(first, rest))


def _series(first: bytes, lines: Iterator[bytes]) -> tuple[Series, ...]:
    shared = _shared.decode(first)
    unread = _UnreadLines(lines, len(first)) if isinstance(lines, BufferedReader) else None
    for at, _, _ in shared.moments:
        validate.moment("at", at)
    parts = _SharedParts(shared)
    # Thousands of series have the same names and the same code of a benchmark.
    texts: dict[object, Any] = {}
    series = []
    for line in lines:
        decoded = _line.decode(line)
        item = replace(
            decoded.about,
            points=parts.points(decoded),
            **{
                name: texts.setdefault(text, text)
                for name in _SHARED_TEXTS
                for text in (getattr(decoded.about, name),)
            },
        )
        validate.series(item)
        if unread is not None:
            item = replace(item, points=unread.points(item.points, len(line), parts))
        series.append(item)
    if len(series) != shared.series:
        raise ValueError(f"truncated: {len(series)} of {shared.series} series are present")
    return tuple(series)


class _UnreadLines:
    """The lines of an open file after its first, which are read again on use."""

    def __init__(self, file: BufferedReader, start: int) -> None:
        """Keep the file open, even if another replaces it; `start` is the first line's length."""
        self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._end = start
        self._read = lru_cache(_MAX_SERIES_IN_MEMORY)(self._points)

    def points(self, points: HistoryPoints, length: int, parts: _SharedParts) -> UnreadPoints:
        """The points of the next line in place of those that were read from it."""
        start, self._end = self._end, self._end + length
        return UnreadPoints(
            partial(self._read, start, self._end, parts), PointsSummary.of(points), shared=points
        )

    def _points(self, start: int, end: int, parts: _SharedParts) -> HistoryPoints:
        return parts.points(_points_of_line.decode(os.pread(self._file, end - start, start)))


class _SharedParts:
    """The common parts of series, decoded."""

    def __init__(self, shared: _Shared) -> None:
        """Decode them."""
        # Index -1 gives None.
        commits = (*shared.commits, None)
        moments = [Moment(at, run, commits[commit]) for at, run, commit in shared.moments]
        self._reasons = (*shared.missing, None)
        self._moments = [_look_up(moments, item) for item in shared.moment_columns]
        self._keys = [_look_up(shared.environment_keys, item) for item in shared.key_columns]

    def points(self, columns: _Columns) -> HistoryPoints:
        """Decode the columns of a series."""
        return HistoryPoints(
            moments=self._moments[columns.moment_column],
            environment_keys=self._keys[columns.key_column],
            values=_unpack("d", columns.values),
            lows=_unpack("d", columns.lows),
            highs=_unpack("d", columns.highs),
            launches=columns.launches,
            missing=_look_up(self._reasons, columns.missing),
            sides=columns.sides,
        )


class _Table(Generic[T]):
    """Distinct values, in the order in which they first occur."""

    def __init__(self) -> None:
        self._indices: dict[T, int] = {}

    @property
    def values(self) -> list[T]:
        return [*self._indices]

    def index(self, value: T | None) -> int:
        if value is None:
            return _NONE
        return self._indices.setdefault(value, len(self._indices))


class _ObjectTable(Generic[S, T]):
    """A table of values derived from objects, which must stay alive meanwhile.

    Objects are shared. Comparing their contents each time would take ten times as long.
    """

    def __init__(self, derive: Callable[[S], T]) -> None:
        """Take the function that derives a value from an object."""
        self.table = _Table[T]()
        self._derive = derive
        self._indices: dict[int, int] = {}

    def of(self, item: S) -> int:
        (index,) = self.all((item,))
        return index

    def all(self, column: Sequence[S]) -> Iterator[int]:
        """The indices of many objects; the value of a known object is not computed again."""
        for key, item in dict(zip(map(id, column), column, strict=True)).items():
            if key not in self._indices:
                self._indices[key] = self.table.index(self._derive(item))
        return map(self._indices.__getitem__, map(id, column))


def _pack(kind: str, values: Iterable[float]) -> bytes:
    column = array(kind, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _unpack(kind: str, data: bytes) -> array[Any]:
    """The numbers of a column.

    Raises:
        ValueError: The last number is incomplete.
    """
    column = array(kind, data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _look_up(table: Sequence[T], indices: bytes) -> tuple[T, ...]:
    """The values at these indices of a table.

    Raises:
        IndexError: An index is out of range.
        ValueError: The data is not a column.
    """
    return tuple([table[index] for index in _unpack("i", indices)])


def file_of(project: str, records: Path) -> Path:
    """The file of a project's series; the project's name may have any characters."""
    return documents.file_in(records / _FOLDER, project.encode())


def keep(project: str, series: Sequence[Series], records: Path) -> Path:
    """Store a project's series, replacing earlier ones.

    Returns:
        The file, written as a whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    return documents.keep(encode(series), file_of(project, records), what="the history")


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
    histories, faults = documents.read_all(
        records / _FOLDER,
        decode,
        what="this history",
        fix="Delete the file and import the history again.",
    )
    series = (item for project in histories for item in project)
    return tuple(sorted(series, key=lambda item: item.id)), faults
