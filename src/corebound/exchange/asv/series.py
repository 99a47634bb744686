"""From asv's results to series, one for each machine, environment, benchmark, parameters."""

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
from corebound.records.history import Circumstances, HistoryPoints, Moment, Series, incomparable
from corebound.records.run_record import Commit

Floats: TypeAlias = NDArray[np.float64]
# The values of each parameter of a benchmark.
Params: TypeAlias = tuple[tuple[str, ...], ...]

_NS = 1e9
# A benchmark of more parameter combinations is damage.
_MOST_CELLS = 1_000_000
# A truth is a number in Python too, but of another type.
_NUMBERS = frozenset((int, float))
_FAILED = "it failed"
_NO_RESULT = "the file has no result for it"


class Column(NamedTuple):
    """One cell in every file, in the order they were read.

    Attributes:
        figures: In the series' unit; NaN where there is none that ratios can be made of.
        lows, highs: asv's interval, NaN where it has none that ratios can be made of.
        launches: What each figure was made of; nothing where asv did not keep it.
        missing: Why there is no figure; None where there is one.
    """

    figures: Floats
    lows: Floats
    highs: Floats
    launches: Sequence[tuple[float, ...]]
    missing: Sequence[str | None]


class Rows:
    """What files say of a benchmark, as long as the values of its parameters stay.

    Attributes:
        params: These, of each parameter; figures are of their product, the last one fastest.
        files: The number of each file.
        circumstances: In which each was measured.
    """

    __slots__ = ("_cells", "_figures", "_highs", "_launches", "_lows", "_odd", "_scale", "_unit",
                 "circumstances", "files", "params")  # fmt: skip

    def __init__(self, params: Params, unit: str) -> None:
        """Begin with no file.

        Args:
            params: As above.
            unit: Of the figures, in asv's words.

        Raises:
            ValueError: there are more combinations than any benchmark has.
        """
        self.params = params
        self.files = array("i")
        self.circumstances: list[Circumstances] = []
        self._cells = math.prod(map(len, params))
        if self._cells > _MOST_CELLS:
            raise ValueError(f"it has {self._cells:,} combinations of parameters")
        self._unit = unit
        self._scale = _NS if unit == "seconds" else 1.0
        # A column may end before the last row does: nothing is said behind its end.
        self._figures = array("d")
        self._lows = array("d")
        self._highs = array("d")
        self._launches: list[tuple[float, ...]] = []
        # Why a figure is no number, by its place in the column.
        self._odd: dict[int, str] = {}

    def add(self, file: int, circumstances: Circumstances, row: Row) -> None:
        """Take a file's row, or nothing of it.

        Raises:
            AttributeError, KeyError, TypeError, ValueError, OverflowError: it is damaged.
        """
        figures, _, _, lows, highs, samples = row
        at = len(self.files) * self._cells
        try:
            if lows and highs:
                self._put(self._lows, at, lows)
                self._put(self._highs, at, highs)
            if samples:
                self._put_samples(at, samples)
            # At last, for it is remembered why there is none.
            self._put_figures(at, figures)
        except DAMAGES:
            for column in (self._lows, self._highs, self._launches):
                del column[at:]
            raise
        self.files.append(file)
        self.circumstances.append(circumstances)

    def _put(self, column: array[float], at: int, told: Any) -> None:
        """Numbers in their places, NaN where there are none."""
        if len(column) != at:
            _fill(column, at)
        own = told if len(told) == self._cells else told[: self._cells]
        try:
            column.fromlist(own)
        except TypeError:
            column.extend([math.nan if one is None else float(one) for one in own])

    def _put_samples(self, at: int, told: Any) -> None:
        # Those of a benchmark without parameters were once not in a list of their own.
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
        """A figure that is one; of another, which is NaN then, it is remembered what it was."""
        if isinstance(value, int | float) and type(value) in _NUMBERS:
            return value
        self._odd[place] = _FAILED if value is None else f"{clean(str(value))[:40]!r} is no number"
        return math.nan

    def column(self, index: int) -> Column:
        """What a combination of parameters came to, all files having been taken."""
        n = len(self.files)
        raw = self._of(self._figures, index)
        with np.errstate(over="ignore"):  # which is an infinite figure
            figures = raw * self._scale
            lows = self._of(self._lows, index) * self._scale
            highs = self._of(self._highs, index) * self._scale
        # Ratios need numbers above 0.
        told = (figures > 0) & (figures < math.inf)
        # A single sample gives an infinite interval, and few that differ much one that ends
        # below 0.
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
        # The last one has no end.
        return [made if good else () for made, good in zip(every, told, strict=False)]

    def _of(self, column: array[float], index: int) -> Floats:
        _fill(column, len(self.files) * self._cells)
        return np.array(column[index :: self._cells])

    def _why(self, place: int, raw: float, figure: float) -> str:
        """Why there is no figure to be compared."""
        if place in self._odd:
            return self._odd[place]
        if math.isnan(figure):
            # asv writes it for what was skipped, and for a `track_…` that returns it.
            return "it was skipped or came to NaN"
        if math.isinf(figure):
            return "an infinite figure is none"
        # Where one figure is 0 most are, and a history has millions.
        return sys.intern(incomparable(f"{raw:g} {self._unit}"))


def _fill(column: array[float], n: int) -> None:
    """Have a column of n, NaN where nothing was said."""
    column.extend(repeat(math.nan, n - len(column)))


def _finite(samples: Iterable[Any], scale: float) -> tuple[float, ...]:
    """Samples in the series' unit; none where one of them is no number that can be kept."""
    scaled = tuple([float(one) * scale for one in samples])
    return scaled if all(map(math.isfinite, scaled)) else ()


def _double(value: float) -> float:
    """A number, however many digits it has."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


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

    def points(
        self, rows: Sequence[Rows], cells: Iterable[Sequence[int]]
    ) -> Iterator[HistoryPoints]:
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
) -> HistoryPoints:
    return HistoryPoints(
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


def ordered(points: HistoryPoints) -> HistoryPoints:
    """Points in order, one of each commit: the last that has a figure, else the last."""
    keys = [in_order(moment) for moment in points.moments]
    chosen = dict(zip(keys, range(len(keys)), strict=True))
    if len(chosen) < len(keys):
        figured = (at for at, figure in enumerate(points.figures) if not math.isnan(figure))
        chosen.update((keys[at], at) for at in figured)
    return points.taken(chosen[key] for key in sorted(chosen))


def dated(points: HistoryPoints) -> HistoryPoints:
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


# A machine, a benchmark and the key of a cell.
_Key: TypeAlias = tuple[str, str, str]
_OF_VERSION = 12
# Of asv's intervals, `ci_99`.
_CONFIDENCE = 0.99


class Project(Struct, frozen=True, kw_only=True):
    """Whose history it is.

    Attributes:
        name: As the user or asv.conf.json calls it.
        benchmarks: What is known of them, by name.
        commits: What the repository says of them, by hash; those that it lacks are missing.
        thresholds: asv's `regressions_thresholds`: patterns of benchmarks, and the
            least change that matters in them.
        margin: That of all other benchmarks.
        commit_url: What asv puts a hash behind to show a commit; None where untold.
    """

    name: str
    benchmarks: Mapping[str, Known]
    commits: Mapping[str, Commit]
    thresholds: Sequence[tuple[re.Pattern[str], float]]
    margin: float
    commit_url: str | None = None


class SeriesBuilder:
    """What files say of a project's series; they are taken one after another, in any order."""

    def __init__(self, project: Project) -> None:
        """Begin with none."""
        self._project = project
        self._moments: list[Moment] = []
        self._rows: dict[tuple[str, str, str, Params], Rows] = {}
        # By machine and environment, and by benchmark: those of the last file.
        self._last: dict[tuple[str, str], dict[str, Rows]] = {}
        # By what is told of the machine, and by version: files tell the same over and over.
        self._circumstances: dict[Circumstances, dict[str, Circumstances]] = {}

    @property
    def benchmarks(self) -> set[str]:
        """Those that files were taken of."""
        return {benchmark for (_, _, benchmark, _), rows in self._rows.items() if rows.files}

    def add(self, file: ResultFile) -> tuple[str, ...]:
        """Take what a file says; it has a date, or its commit is in the repository.

        Returns:
            The benchmarks that are damaged and were passed over, each with why.
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
            # It is what a reader knows the commit by, where that is of another repository.
            named = f"{commit.subject} ({file.measured})" if commit.subject else file.measured
            commit = replace(commit, subject=label(named))
        return Moment(at=commit.committed_at, run=None, commit=commit)

    def _rows_of(self, host: str, environment: str, benchmark: str, params: Params) -> Rows:
        key = host, environment, benchmark, params
        if key not in self._rows:
            self._rows[key] = Rows(params, _about(self._project, benchmark).unit)
        return self._rows[key]

    def series(self) -> tuple[Series, ...]:
        """Every series, by id; what was gathered of them is gone then."""
        parts: dict[_Key, list[tuple[Rows, int]]] = {}
        for (host, environment, benchmark, params), rows in self._rows.items():
            if rows.files:
                names = _about(self._project, benchmark).params
                for index, cell in enumerate(cells_of(params, names, environment)):
                    parts.setdefault((host, benchmark, cell), []).append((rows, index))
        self._rows.clear()
        self._last.clear()
        # Cells of the same rows share all but their figures.
        alike: dict[tuple[Rows, ...], list[tuple[_Key, list[int]]]] = {}
        for key, several in parts.items():
            places = [index for _, index in several]
            alike.setdefault(tuple(rows for rows, _ in several), []).append((key, places))
        parts.clear()
        waiting = deque(alike.items())
        alike.clear()
        orders = Orders(self._moments)
        made: list[Series] = []
        # What is series need not be held as it was found too.
        while waiting:
            shared, cells = waiting.popleft()
            every = orders.points(shared, [places for _, places in cells])
            for (key, _), points in zip(cells, every, strict=True):
                made.append(_series(self._project, *key, points))
        return tuple(sorted(made, key=lambda one: one.id))


def _circumstances(facets: Circumstances, version: str) -> Circumstances:
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
    """The largest of the thresholds that apply, as asv has it."""
    own = [margin for pattern, margin in project.thresholds if pattern.match(benchmark)]
    return max(own, default=project.margin)
