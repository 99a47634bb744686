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

from corebound.exchange.asv.environments import cells_of, host_of, label
from corebound.exchange.asv.results import DAMAGES, Known, ResultFile, Row, more_is_better, unit_of
from corebound.exchange.reading import clean
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
_FAILED = "it failed"
_NO_RESULT = "the file has no result for it"


class Column(NamedTuple):
    """One cell in every file, in the order the files were read.

    Attributes:
        figures: Results in the series' unit; NaN if a result cannot be used in ratios.
        lows, highs: asv's interval; NaN if it cannot be used in ratios.
        launches: The samples of each result; empty if asv did not keep them.
        missing: Why there is no result; None if there is one.
    """

    figures: Floats
    lows: Floats
    highs: Floats
    launches: Sequence[tuple[float, ...]]
    missing: Sequence[str | None]


class Rows:
    """The rows of a benchmark, as long as the values of its parameters stay the same.

    Attributes:
        params: The values of each parameter. Results are for their product, the last one fastest.
        files: The number of each file.
        circumstances: The circumstances in which each was measured.
    """

    __slots__ = ("_cells", "_figures", "_highs", "_launches", "_lows", "_odd", "_scale", "_unit",
                 "circumstances", "files", "params")  # fmt: skip

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
        self.circumstances: list[EnvironmentKey] = []
        self._cells = math.prod(map(len, params))
        if self._cells > _MOST_CELLS:
            raise ValueError(f"it has {self._cells:,} combinations of parameters")
        self._unit = unit
        self._scale = _NS if unit == "seconds" else 1.0
        # A column may end before the last row; the rest counts as missing.
        self._figures = array("d")
        self._lows = array("d")
        self._highs = array("d")
        self._launches: list[tuple[float, ...]] = []
        # Why a result is not a number, by its place in the column.
        self._odd: dict[int, str] = {}

    def add(self, file: int, circumstances: EnvironmentKey, row: Row) -> None:
        """Add a file's row completely, or nothing of it.

        Raises:
            AttributeError, KeyError, TypeError, ValueError, OverflowError: The row is damaged.
        """
        figures, _, _, lows, highs, samples = row
        at = len(self.files) * self._cells
        try:
            if lows and highs:
                self._put(self._lows, at, lows)
                self._put(self._highs, at, highs)
            if samples:
                self._put_samples(at, samples)
            # Last, because it also stores why results are missing.
            self._put_figures(at, figures)
        except DAMAGES:
            for column in (self._lows, self._highs, self._launches):
                del column[at:]
            raise
        self.files.append(file)
        self.circumstances.append(circumstances)

    def _put(self, column: array[float], at: int, told: Any) -> None:
        """Store numbers at a position, NaN for missing ones."""
        if len(column) != at:
            _fill(column, at)
        own = told if len(told) == self._cells else told[: self._cells]
        try:
            column.fromlist(own)
        except TypeError:
            column.extend([math.nan if one is None else float(one) for one in own])

    def _put_samples(self, at: int, told: Any) -> None:
        # Older files do not nest the samples of a benchmark without parameters.
        of_one = isinstance(told, list) and isinstance(told[0], int | float)
        own = [told] if of_one else told[: self._cells]
        self._launches.extend(repeat((), at - len(self._launches)))
        self._launches.extend([_finite(one or (), self._scale) for one in own])

    def _put_figures(self, at: int, told: Any) -> None:
        if told is None:
            self._odd.update(zip(range(at, at + self._cells), repeat(_FAILED), strict=False))
            return
        if not isinstance(told, list):
            if not isinstance(told, int | float):
                raise TypeError("its figures are no list")
            told = [told]
        if len(told) != self._cells:
            rest = range(at + len(told), at + self._cells)
            self._odd.update(zip(rest, repeat(_NO_RESULT), strict=False))
            told = told[: self._cells]
        if not _NUMBERS.issuperset(map(type, told)):
            told = [self._number(place, one) for place, one in enumerate(told, at)]
        if len(self._figures) != at:
            _fill(self._figures, at)
        try:
            self._figures.fromlist(told)
        except OverflowError:
            self._figures.extend(map(_double, told))

    def _number(self, place: int, value: Any) -> float:
        """A valid result; for any other value, store the reason and return NaN."""
        if isinstance(value, int | float) and type(value) in _NUMBERS:
            return value
        self._odd[place] = _FAILED if value is None else f"{clean(str(value))[:40]!r} is no number"
        return math.nan

    def column(self, index: int) -> Column:
        """Extract one combination of parameters after all files have been added."""
        n = len(self.files)
        raw = self._of(self._figures, index)
        with np.errstate(over="ignore"):  # overflow gives an infinite result
            figures = raw * self._scale
            lows = self._of(self._lows, index) * self._scale
            highs = self._of(self._highs, index) * self._scale
        # Ratios need finite numbers above 0.
        told = (figures > 0) & (figures < math.inf)
        # A single sample has an infinite interval. The interval of a few very different samples
        # can end below 0.
        bounded = told & (lows > 0) & (lows <= highs) & (highs < math.inf)
        missing: list[str | None] = [None] * n
        for at in map(int, np.flatnonzero(~told)):
            missing[at] = self._why(at * self._cells + index, raw[at], figures[at])
        return Column(
            figures=np.where(told, figures, math.nan),
            lows=np.where(bounded, lows, math.nan),
            highs=np.where(bounded, highs, math.nan),
            launches=self._samples(index, told) if self._launches else [()] * n,
            missing=missing,
        )

    def _samples(self, index: int, told: Iterable[bool]) -> list[tuple[float, ...]]:
        every = itertools.chain(self._launches[index :: self._cells], repeat(()))
        # The last iterable is infinite.
        return [made if good else () for made, good in zip(every, told, strict=False)]

    def _of(self, column: array[float], index: int) -> Floats:
        _fill(column, len(self.files) * self._cells)
        return np.array(column[index :: self._cells])

    def _why(self, place: int, raw: float, figure: float) -> str:
        """Why a result cannot be compared."""
        if place in self._odd:
            return self._odd[place]
        if math.isnan(figure):
            # asv writes NaN for a skipped benchmark; a `track_…` benchmark can also return it.
            return "it was skipped or came to NaN"
        if math.isinf(figure):
            return "an infinite figure is none"
        # If one result is 0, most are, and a history can have millions.
        return sys.intern(incomparable(f"{raw:g} {self._unit}"))


def _fill(column: array[float], n: int) -> None:
    """Extend a column to n entries with NaN."""
    column.extend(repeat(math.nan, n - len(column)))


def _finite(samples: Iterable[Any], scale: float) -> tuple[float, ...]:
    """Samples in the series' unit; none if one of them is not a number that can be stored."""
    scaled = tuple([float(one) * scale for one in samples])
    return scaled if all(map(math.isfinite, scaled)) else ()


def _double(value: float) -> float:
    """A float from a number with any count of digits."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


T = TypeVar("T")
# The circumstance that holds the version of a benchmark.
VERSION = "benchmark"


class _Order(NamedTuple):
    """Some files, sorted by the dates of their commits.

    Attributes:
        places: The index of each one among those files.
        moments: Their moments, in this order.
        twice: Whether several are of one commit.
    """

    places: NDArray[np.intp]
    moments: tuple[Moment, ...]
    twice: bool


class Orders:
    """Sorts files by the dates of their commits; caches the order, as benchmarks share files."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        """Take the moment of each file, by the file's number."""
        self._moments = moments
        numbers = sorted(range(len(moments)), key=lambda number: in_order(moments[number]))
        self._ranks = np.empty(len(moments), np.intp)
        self._ranks[numbers] = np.arange(len(moments))
        self._known: dict[bytes, _Order] = {}

    def points(
        self, rows: Sequence[Rows], cells: Iterable[Sequence[int]]
    ) -> Iterator[HistoryPoints]:
        """The points of cells that share the same rows of files.

        Args:
            rows: The files of the cells, with one list of parameters or several.
            cells: For each cell, its index in each of the rows.
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
    columns: Sequence[Column], order: _Order, circumstances: tuple[EnvironmentKey, ...]
) -> HistoryPoints:
    return HistoryPoints(
        moments=order.moments,
        values=_array([one.figures for one in columns], order),
        environment_keys=circumstances,
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
    """The sort key for points of imported histories."""
    return moment.at, moment.commit.sha if moment.commit else ""


def ordered(points: HistoryPoints) -> HistoryPoints:
    """Sort points and keep one for each commit: the last with a result, else the last."""
    keys = [in_order(moment) for moment in points.moments]
    chosen = dict(zip(keys, range(len(keys)), strict=True))
    if len(chosen) < len(keys):
        figured = (at for at, figure in enumerate(points.values) if not math.isnan(figure))
        chosen.update((keys[at], at) for at in figured)
    return points.select(chosen[key] for key in sorted(chosen))


def dated(points: HistoryPoints) -> HistoryPoints:
    """Complete missing circumstances from the next point that has them.

    Old files of asv lack some circumstances, such as the version of a benchmark or the number
    of CPUs. Their absence does not mean a change.
    """
    return points.with_environment_keys(_dated(points.environment_keys))


def _dated(column: Sequence[EnvironmentKey]) -> tuple[EnvironmentKey, ...]:
    result: list[EnvironmentKey] = []
    later: dict[str, str] = {}
    seen: EnvironmentKey | None = None
    now: EnvironmentKey = ()
    for circumstances in reversed(column):
        # Most points share their circumstances with the previous one.
        if circumstances is not seen:
            seen = circumstances
            own = dict(seen)
            later |= told_in(seen)
            # In a fixed order, because another order would count as another circumstance.
            names = sorted(later.keys() | own, key=lambda name: (name == VERSION, name))
            now = tuple((name, later.get(name, "")) for name in names)
            now = seen if now == seen else now
        result.append(now)
    return tuple(result[::-1])


def told_in(circumstances: EnvironmentKey) -> dict[str, str]:
    """The circumstances that are known."""
    return {name: value for name, value in circumstances if value}


# A machine, a benchmark and the key of a cell.
_Key: TypeAlias = tuple[str, str, str]
_OF_VERSION = 12
# The confidence of asv's intervals, `ci_99`.
_CONFIDENCE = 0.99


class Project(Struct, frozen=True, kw_only=True):
    """The project that a history belongs to.

    Attributes:
        name: The name given by the user or by asv.conf.json.
        benchmarks: What is known of them, by name.
        commits: The repository's data about them, by hash; unknown ones are missing.
        thresholds: asv's `regressions_thresholds`: patterns of benchmarks, and the
            smallest relevant change in them.
        margin: The smallest relevant change in all other benchmarks.
        commit_url: The prefix that asv puts before a hash to show a commit; None if unknown.
    """

    name: str
    benchmarks: Mapping[str, Known]
    commits: Mapping[str, Commit]
    thresholds: Sequence[tuple[re.Pattern[str], float]]
    margin: float
    commit_url: str | None = None


class SeriesBuilder:
    """Builds a project's series from files, which can be added one at a time in any order."""

    def __init__(self, project: Project) -> None:
        """Start without any file."""
        self._project = project
        self._moments: list[Moment] = []
        self._rows: dict[tuple[str, str, str, Params], Rows] = {}
        # The last file's rows, by machine and environment, then by benchmark.
        self._last: dict[tuple[str, str], dict[str, Rows]] = {}
        # By the machine's circumstances and by version: files repeat the same ones many times.
        self._circumstances: dict[EnvironmentKey, dict[str, EnvironmentKey]] = {}

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
        circumstances = self._circumstances.setdefault(file.facets, {})
        number = len(self._moments)
        self._moments.append(self._moment(file))
        damaged = []
        for name, told in file.results.items():
            try:
                row = file.row_of(name, told)
                params = tuple([tuple(map(str, one)) for one in row[1]]) if row[1] else ()
                rows = last.get(name)
                if rows is None or rows.params != params:
                    rows = last[name] = self._rows_of(host, environment, name, params)
                version = "" if row[2] is None else str(row[2])
                under = circumstances.get(version)
                if under is None:
                    under = circumstances[version] = _circumstances(file.facets, version)
                rows.add(number, under, row)
            except DAMAGES as error:
                damaged.append((name, repr(error)))
        return tuple(f"{name}: {why}" for name, why in sorted(damaged))

    def _moment(self, file: ResultFile) -> Moment:
        commit = self._project.commits.get(file.commit) or Commit(
            sha=file.commit, subject="", committed_at=moment(file.date_ms or 0), dirty=False
        )
        if file.measured:
            # Readers know the commit by the measured version if it is of another repository.
            named = f"{commit.subject} ({file.measured})" if commit.subject else file.measured
            commit = replace(commit, subject=label(named))
        return Moment(at=commit.committed_at, run=None, commit=commit)

    def _rows_of(self, host: str, environment: str, benchmark: str, params: Params) -> Rows:
        key = host, environment, benchmark, params
        if key not in self._rows:
            self._rows[key] = Rows(params, _about(self._project, benchmark).unit)
        return self._rows[key]

    def series(self) -> tuple[Series, ...]:
        """Build every series, by id; this consumes the collected data."""
        parts: dict[_Key, list[tuple[Rows, int]]] = {}
        for (host, environment, benchmark, params), rows in self._rows.items():
            if rows.files:
                names = _about(self._project, benchmark).params
                for index, cell in enumerate(cells_of(params, names, environment)):
                    parts.setdefault((host, benchmark, cell), []).append((rows, index))
        self._rows.clear()
        self._last.clear()
        # Cells of the same rows share everything except their results.
        alike: dict[tuple[Rows, ...], list[tuple[_Key, list[int]]]] = {}
        for key, several in parts.items():
            places = [index for _, index in several]
            alike.setdefault(tuple(rows for rows, _ in several), []).append((key, places))
        parts.clear()
        waiting = deque(alike.items())
        alike.clear()
        orders = Orders(self._moments)
        made: list[Series] = []
        # Release the collected data as it is converted.
        while waiting:
            shared, cells = waiting.popleft()
            every = orders.points(shared, [places for _, places in cells])
            for (key, _), points in zip(cells, every, strict=True):
                made.append(_series(self._project, *key, points))
        return tuple(sorted(made, key=lambda one: one.id))


def _circumstances(facets: EnvironmentKey, version: str) -> EnvironmentKey:
    told = tuple((label(name), label(value)) for name, value in facets)
    return (*told, (VERSION, version[:_OF_VERSION]))


def moment(date_ms: int) -> str:
    """ISO 8601 in UTC, to the second.

    >>> moment(1637362095000)
    '2021-11-19T22:48:15Z'
    """
    return f"{np.datetime64(date_ms // 1000, 's')}Z"


def _about(project: Project, benchmark: str) -> Known:
    found = project.benchmarks.get(benchmark)
    return found or Known(title=benchmark, unit=unit_of(benchmark), params=())


def _series(
    project: Project, host: str, benchmark: str, cell: str, points: HistoryPoints
) -> Series:
    about = _about(project, benchmark)
    return Series(
        project=project.name,
        host=host,
        host_name=host,
        scenario=label(benchmark),
        title=label(about.title),
        cell=cell,
        unit="ns" if about.unit == "seconds" else label(about.unit),
        margin=_margin(project, benchmark),
        reproduce=("asv", "run", "--bench", rf"^{re.escape(benchmark)}\b"),
        points=points,
        confidence=_CONFIDENCE,
        commit_url=project.commit_url,
        code=about.code,
        more_is_better=more_is_better(about.unit),
    )


def _margin(project: Project, benchmark: str) -> float:
    """The largest of the matching thresholds, as in asv."""
    own = [margin for pattern, margin in project.thresholds if pattern.match(benchmark)]
    return max(own, default=project.margin)
