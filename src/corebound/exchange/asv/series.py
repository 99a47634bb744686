"""Build series from asv's results: one for each machine, environment, benchmark, parameters."""

from __future__ import annotations

import itertools
import math
import re
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.exchange.asv.environments import cells_of, host_of
from corebound.exchange.asv.layout import AsvLayout
from corebound.exchange.asv.results import DAMAGES, BenchmarkEntry, ResultFile, Row, unit_of
from corebound.exchange.measures import more_is_better
from corebound.exchange.points import (
    VERSION,
    complete_environments,
    complete_keys,
    moment_key,
    sort_points,
)
from corebound.exchange.reading import clean, label
from corebound.records.history import EnvironmentKey, HistoryPoints, Moment, Series, incomparable
from corebound.records.run_record import Commit

Floats: TypeAlias = NDArray[np.float64]
# The values of each parameter of a benchmark.
Params: TypeAlias = tuple[tuple[str, ...], ...]

_NS = 1e9
# A benchmark with more parameter combinations is damaged.
_MOST_CELLS = 1_000_000
# In Python, a bool is a number too, but of another type.
_NUMBERS = frozenset((int, float))
_FAILED = "failed"
_NO_RESULT = "the file has no result for it"


class Column(NamedTuple):
    """One cell in every file, in the order the files were read.

    Attributes:
        values: Results in the series' unit; NaN if a result cannot be used in ratios.
        lows, highs: asv's interval; NaN if it cannot be used in ratios.
        launches: The samples of each result; empty if asv did not keep them.
        missing: Why there is no result; None if there is one.
    """

    values: Floats
    lows: Floats
    highs: Floats
    launches: Sequence[tuple[float, ...]]
    missing: Sequence[str | None]


class BenchmarkRows:
    """The rows of a benchmark, as long as the values of its parameters stay the same.

    Attributes:
        params: The values of each parameter. Results are for their product, the last one fastest.
        files: The number of each file.
        environment_keys: The environment in which each was measured.
    """

    __slots__ = (
        "_cells", "_highs", "_launches", "_lows", "_problems", "_scale", "_unit", "_values",
        "environment_keys", "files", "params",
    )  # fmt: skip

    def __init__(self, params: Params, unit: str) -> None:
        """Start without any file.

        Args:
            params: As above.
            unit: The unit of the results, in asv's words.

        Raises:
            ValueError: There are more combinations than a benchmark can have.
        """
        self.params = params
        self.files = array("i")
        self.environment_keys: list[EnvironmentKey] = []
        self._cells = math.prod(map(len, params))
        if self._cells > _MOST_CELLS:
            raise ValueError(f"it has {self._cells:,} combinations of parameters")
        self._unit = unit
        self._scale = _NS if unit == "seconds" else 1.0
        # A column may end before the last row; the rest counts as missing.
        self._values = array("d")
        self._lows = array("d")
        self._highs = array("d")
        self._launches: list[tuple[float, ...]] = []
        # Why a result is not a number, by its place in the column.
        self._problems: dict[int, str] = {}

    def add(self, file: int, environment_key: EnvironmentKey, row: Row) -> None:
        """Add a file's row completely, or nothing of it.

        Raises:
            AttributeError, KeyError, TypeError, ValueError, OverflowError: The row is damaged.
        """
        values, _, _, lows, highs, samples = row
        start = len(self.files) * self._cells
        try:
            if lows and highs:
                self._put(self._lows, start, lows)
                self._put(self._highs, start, highs)
            if samples:
                self._put_samples(start, samples)
            # Last, because it also stores why results are missing.
            self._put_values(start, values)
        except DAMAGES:
            for column in (self._lows, self._highs, self._launches):
                del column[start:]
            raise
        self.files.append(file)
        self.environment_keys.append(environment_key)

    def _put(self, column: array[float], start: int, values: Any) -> None:
        """Store numbers at a position, NaN for missing ones."""
        if len(column) != start:
            _fill(column, start)
        numbers = values if len(values) == self._cells else values[: self._cells]
        try:
            column.fromlist(numbers)
        except TypeError:
            column.extend([math.nan if value is None else float(value) for value in numbers])

    def _put_samples(self, start: int, samples: Any) -> None:
        # Older files do not nest the samples of a benchmark without parameters.
        is_flat = isinstance(samples, list) and isinstance(samples[0], int | float)
        nested = [samples] if is_flat else samples[: self._cells]
        self._launches.extend(repeat((), start - len(self._launches)))
        self._launches.extend([_finite(values or (), self._scale) for values in nested])

    def _put_values(self, start: int, values: Any) -> None:
        if values is None:
            self._problems.update(
                zip(range(start, start + self._cells), repeat(_FAILED), strict=False)
            )
            return
        if not isinstance(values, list):
            if not isinstance(values, int | float):
                raise TypeError("its values are not a list")
            values = [values]
        if len(values) != self._cells:
            rest = range(start + len(values), start + self._cells)
            self._problems.update(zip(rest, repeat(_NO_RESULT), strict=False))
            values = values[: self._cells]
        if not _NUMBERS.issuperset(map(type, values)):
            values = [self._number(index, value) for index, value in enumerate(values, start)]
        if len(self._values) != start:
            _fill(self._values, start)
        try:
            self._values.fromlist(values)
        except OverflowError:
            self._values.extend(map(_double, values))

    def _number(self, index: int, value: Any) -> float:
        """A valid result; for any other value, store the reason and return NaN."""
        if isinstance(value, int | float) and type(value) in _NUMBERS:
            return value
        self._problems[index] = (
            _FAILED if value is None else f"{clean(str(value))[:40]!r} is not a number"
        )
        return math.nan

    def column(self, index: int) -> Column:
        """Extract one combination of parameters after all files have been added."""
        n = len(self.files)
        raw = self._of(self._values, index)
        with np.errstate(over="ignore"):  # overflow gives an infinite result
            values = raw * self._scale
            lows = self._of(self._lows, index) * self._scale
            highs = self._of(self._highs, index) * self._scale
        # Ratios need finite numbers above 0.
        usable = (values > 0) & (values < math.inf)
        # A single sample has an infinite interval. The interval of a few very different samples
        # can end below 0.
        bounded = usable & (lows > 0) & (lows <= highs) & (highs < math.inf)
        missing: list[str | None] = [None] * n
        for row in map(int, np.flatnonzero(~usable)):
            missing[row] = self._why(row * self._cells + index, raw[row], values[row])
        return Column(
            values=np.where(usable, values, math.nan),
            lows=np.where(bounded, lows, math.nan),
            highs=np.where(bounded, highs, math.nan),
            launches=self._samples(index, usable) if self._launches else [()] * n,
            missing=missing,
        )

    def _samples(self, index: int, usable: Iterable[bool]) -> list[tuple[float, ...]]:
        all_samples = itertools.chain(self._launches[index :: self._cells], repeat(()))
        # The last iterable is infinite.
        return [samples if good else () for samples, good in zip(all_samples, usable, strict=False)]

    def _of(self, column: array[float], index: int) -> Floats:
        _fill(column, len(self.files) * self._cells)
        return np.array(column[index :: self._cells])

    def _why(self, index: int, raw: float, value: float) -> str:
        """Why a result cannot be compared."""
        if index in self._problems:
            return self._problems[index]
        if math.isnan(value):
            # asv writes NaN for a skipped benchmark; a `track_…` benchmark can also return it.
            return "skipped, or the value is NaN"
        if math.isinf(value):
            return "the value is infinite"
        # If one result is 0, most are, and a history can have millions.
        return sys.intern(incomparable(f"{raw:g} {self._unit}"))


def _fill(column: array[float], n: int) -> None:
    """Extend a column to n entries with NaN."""
    column.extend(repeat(math.nan, n - len(column)))


def _finite(samples: Iterable[Any], scale: float) -> tuple[float, ...]:
    """Samples in the series' unit; none if one of them is not a number that can be stored."""
    scaled = tuple([float(sample) * scale for sample in samples])
    return scaled if all(map(math.isfinite, scaled)) else ()


def _double(value: float) -> float:
    """A float from a number with any count of digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


T = TypeVar("T")


class _FileOrder(NamedTuple):
    """Some files, sorted by the dates of their commits.

    Attributes:
        positions: The index of each one among those files.
        moments: Their moments, in this order.
        has_duplicates: Whether several are of one commit.
    """

    positions: NDArray[np.intp]
    moments: tuple[Moment, ...]
    has_duplicates: bool


class FileOrders:
    """Sorts files by the dates of their commits; caches the order, as benchmarks share files."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        """Take the moment of each file, by the file's number."""
        self._moments = moments
        numbers = sorted(range(len(moments)), key=lambda number: moment_key(moments[number]))
        self._ranks = np.empty(len(moments), np.intp)
        self._ranks[numbers] = np.arange(len(moments))
        self._orders: dict[bytes, _FileOrder] = {}

    def points(
        self, rows: Sequence[BenchmarkRows], cells: Iterable[Sequence[int]]
    ) -> Iterator[HistoryPoints]:
        """The points of cells that share the same rows of files.

        Args:
            rows: The files of the cells, with one list of parameters or several.
            cells: For each cell, its index in each of the rows.
        """
        order = self._of(array("i", itertools.chain.from_iterable(part.files for part in rows)))
        keys = [key for part in rows for key in part.environment_keys]
        environment_keys = tuple([keys[index] for index in order.positions])
        if not order.has_duplicates:
            environment_keys = complete_keys(environment_keys)
        # Most cells of a benchmark lack the same results, and share one column.
        known: dict[_Missing, _Missing] = {}
        for indices in cells:
            columns = [part.column(index) for part, index in zip(rows, indices, strict=True)]
            points = _points(columns, order, environment_keys, known)
            yield complete_environments(sort_points(points)) if order.has_duplicates else points

    def _of(self, files: array[int]) -> _FileOrder:
        key = files.tobytes()
        if key not in self._orders:
            positions = np.argsort(self._ranks[files])
            moments = tuple(self._moments[files[position]] for position in positions)
            has_duplicates = len(set(map(moment_key, moments))) < len(moments)
            self._orders[key] = _FileOrder(
                positions=positions, moments=moments, has_duplicates=has_duplicates
            )
        return self._orders[key]


_Missing: TypeAlias = tuple[str | None, ...]


def _points(
    columns: Sequence[Column],
    order: _FileOrder,
    environment_keys: tuple[EnvironmentKey, ...],
    known: dict[_Missing, _Missing],
) -> HistoryPoints:
    missing = tuple(_reorder([column.missing for column in columns], order))
    return HistoryPoints(
        moments=order.moments,
        values=_array([column.values for column in columns], order),
        environment_keys=environment_keys,
        lows=_array([column.lows for column in columns], order),
        highs=_array([column.highs for column in columns], order),
        launches=_reorder([column.launches for column in columns], order),
        missing=known.setdefault(missing, missing),
    )


def _array(columns: Sequence[Floats], order: _FileOrder) -> array[float]:
    return array("d", np.concatenate(columns)[order.positions].tobytes())


def _reorder(columns: Sequence[Sequence[T]], order: _FileOrder) -> Sequence[T]:
    values = [*itertools.chain.from_iterable(columns)]
    return [values[position] for position in order.positions.tolist()] if any(values) else ()


# A machine, a benchmark and the key of a cell.
_Key: TypeAlias = tuple[str, str, str]
_VERSION_LENGTH = 12
# The margin of benchmarks without a threshold in asv.conf.json: that of corebound's scenarios.
_MARGIN = 0.02
# The confidence of asv's intervals, `ci_99`.
_CONFIDENCE = 0.99


class Project(Struct, frozen=True, kw_only=True):
    """The project that a history belongs to.

    Attributes:
        layout: Its settings.
        benchmarks: What is known of them, by name.
        commits: The repository's data about them, by hash; unknown ones are missing.
    """

    layout: AsvLayout
    benchmarks: Mapping[str, BenchmarkEntry]
    commits: Mapping[str, Commit]


class SeriesBuilder:
    """Builds a project's series from files, which can be added one at a time in any order."""

    def __init__(self, project: Project) -> None:
        """Start without any file."""
        self._project = project
        self._moments: list[Moment] = []
        self._rows: dict[tuple[str, str, str, Params], BenchmarkRows] = {}
        # The last file's rows, by machine and environment, then by benchmark.
        self._last: dict[tuple[str, str], dict[str, BenchmarkRows]] = {}
        # By the machine's properties and by version: files repeat the same ones many times.
        self._environment_keys: dict[EnvironmentKey, dict[str, EnvironmentKey]] = {}

    @property
    def benchmarks(self) -> set[str]:
        """The benchmarks that occur in the files."""
        return {benchmark for (_, _, benchmark, _), rows in self._rows.items() if rows.files}

    def add(self, file: ResultFile) -> tuple[str, ...]:
        """Add a file that has a date, or whose commit is in the repository.

        Returns:
            The damaged benchmarks that were skipped, each with the reason.
        """
        host, environment = host_of(file), file.environment
        last = self._last.setdefault((host, environment), {})
        keys = self._environment_keys.setdefault(file.facets, {})
        number = len(self._moments)
        self._moments.append(self._moment(file))
        damaged = []
        for name, entry in file.results.items():
            try:
                row = file.row_of(name, entry)
                params = tuple([tuple(map(str, values)) for values in row[1]]) if row[1] else ()
                rows = last.get(name)
                if rows is None or rows.params != params:
                    rows = last[name] = self._rows_of(host, environment, name, params)
                version = "" if row[2] is None else str(row[2])
                key = keys.get(version)
                if key is None:
                    facets = [(label(facet), label(value)) for facet, value in file.facets]
                    key = keys[version] = (*facets, (VERSION, version[:_VERSION_LENGTH]))
                rows.add(number, key, row)
            except DAMAGES as error:
                damaged.append((name, repr(error)))
        return tuple(f"{name}: {reason}" for name, reason in sorted(damaged))

    def _moment(self, file: ResultFile) -> Moment:
        commit = self._project.commits.get(file.commit) or Commit(
            sha=file.commit, subject="", committed_at=moment(file.date_ms or 0), dirty=False
        )
        if file.measured:
            # Readers know the commit by the measured version if it is of another repository.
            subject = f"{commit.subject} ({file.measured})" if commit.subject else file.measured
            commit = replace(commit, subject=label(subject))
        return Moment(at=commit.committed_at, run=None, commit=commit)

    def _rows_of(
        self, host: str, environment: str, benchmark: str, params: Params
    ) -> BenchmarkRows:
        key = host, environment, benchmark, params
        if key not in self._rows:
            self._rows[key] = BenchmarkRows(params, _benchmark_of(self._project, benchmark).unit)
        return self._rows[key]

    def series(self) -> tuple[Series, ...]:
        """Build every series, by id; this consumes the collected data."""
        parts: dict[_Key, list[tuple[BenchmarkRows, int]]] = {}
        for (host, environment, benchmark, params), rows in self._rows.items():
            if rows.files:
                names = _benchmark_of(self._project, benchmark).params
                for index, cell in enumerate(cells_of(params, names, environment)):
                    parts.setdefault((host, benchmark, cell), []).append((rows, index))
        self._rows.clear()
        self._last.clear()
        # Cells of the same rows share everything except their results.
        by_rows: dict[tuple[BenchmarkRows, ...], list[tuple[_Key, list[int]]]] = {}
        for key, members in parts.items():
            indices = [index for _, index in members]
            by_rows.setdefault(tuple(rows for rows, _ in members), []).append((key, indices))
        parts.clear()
        queue = deque(by_rows.items())
        by_rows.clear()
        orders = FileOrders(self._moments)
        series: list[Series] = []
        # Release the collected data as it is converted.
        while queue:
            shared, cells = queue.popleft()
            all_points = orders.points(shared, [indices for _, indices in cells])
            for (key, _), points in zip(cells, all_points, strict=True):
                series.append(_series(self._project, *key, points))
        return tuple(sorted(series, key=lambda item: item.id))


def moment(date_ms: int) -> str:
    """ISO 8601 in UTC, to the second.

    >>> moment(1637362095000)
    '2021-11-19T22:48:15Z'
    """
    return f"{np.datetime64(date_ms // 1000, 's')}Z"


def _benchmark_of(project: Project, benchmark: str) -> BenchmarkEntry:
    entry = project.benchmarks.get(benchmark)
    return entry or BenchmarkEntry(title=benchmark, unit=unit_of(benchmark), params=())


def _series(
    project: Project, host: str, benchmark: str, cell: str, points: HistoryPoints
) -> Series:
    entry = _benchmark_of(project, benchmark)
    layout = project.layout
    margins = [margin for pattern, margin in layout.thresholds if pattern.match(benchmark)]
    return Series(
        project=layout.name,
        host=host,
        host_name=host,
        scenario=label(benchmark),
        title=label(entry.title),
        cell=cell,
        unit="ns" if entry.unit == "seconds" else label(entry.unit),
        # As in asv.
        margin=max(margins, default=_MARGIN),
        reproduce=("asv", "run", "--bench", rf"^{re.escape(benchmark)}\b"),
        points=points,
        confidence=_CONFIDENCE,
        commit_url=layout.commit_url,
        code=entry.code,
        more_is_better=more_is_better(entry.unit),
        importance=(
            "secondary"
            if any(pattern.match(benchmark) for pattern in layout.secondary)
            else "primary"
        ),
    )
