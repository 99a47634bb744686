"""The history of a cell: series of points, stored as columns."""

from __future__ import annotations

import itertools
import math
import operator
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from datetime import date
from functools import cached_property, lru_cache
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from msgspec import Struct

from corebound.records.run_record import Commit
from corebound.scenario.cell import Importance

# Stored with points, after the measured value. A different text would be read as a failure in
# existing histories.
INCOMPARABLE = "only values above 0 can be compared"


def incomparable(value: str) -> str:
    """Explain why a value with its unit cannot be compared.

    >>> incomparable("-2.88 %")
    '-2.88 %: only values above 0 can be compared'
    """
    return f"{value}: {INCOMPARABLE}"


def is_failure(missing: str | None) -> bool:
    """Whether a point without a value was not measured; a value of 0 or below was measured.

    >>> is_failure("it failed"), is_failure(None), is_failure(incomparable("0 bytes"))
    (True, True, False)
    """
    return missing is None or reason_kind(missing) != INCOMPARABLE


# The start of the reason if all launches of a point were refused, so that it says nothing.
REFUSED = "invalid: "


def is_refusal(missing: str | None) -> bool:
    """Whether a point has no value because its launches were refused; none of them failed."""
    return missing is not None and missing.startswith(REFUSED)


def reason_kind(missing: str) -> str:
    """The kind of reason why points have no value: the text without the measured value.

    >>> reason_kind(incomparable("0 bytes"))
    'only values above 0 can be compared'
    >>> reason_kind("failed: OSError: no space")
    'failed: OSError: no space'
    """
    return INCOMPARABLE if missing.endswith(INCOMPARABLE) else missing


T = TypeVar("T")
EnvironmentKey: TypeAlias = tuple[tuple[str, str], ...]
_EMPTY_COLUMN = array("d")
_NAN = array("d", [math.nan])
_COLUMNS = (
    "moments", "values", "environment_keys", "lows", "highs", "launches", "missing", "sides",
)  # fmt: skip


class Moment(NamedTuple):
    """The time, run and commit of a point, as in `HistoryPoint`; series share moments."""

    at: str
    run: str | None
    commit: Commit | None

    @property
    def is_of_commit(self) -> bool:
        """Whether it is its commit's date, because the time of measurement is unknown."""
        commit = self.commit
        return self.run is None and commit is not None and commit.committed_at == self.at


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?"
    r"(?:Z|([+-])(\d\d):?(\d\d))?"
)
EPOCH = date(1970, 1, 1).toordinal()


# Thousands of series share the same timestamps.
@lru_cache(maxsize=65_536)
def days_since_1970(moment: str) -> float | None:
    """Convert an ISO 8601 timestamp to days since 1970 in UTC; None if it is not a timestamp.

    A day that its month does not have is in the next month: histories of other tools have such
    dates, and one of them must not cost a chart its time axis.

    >>> days_since_1970("1970-01-02"), days_since_1970("2000-01-01T12:00:00Z")
    (1.0, 10957.5)
    >>> days_since_1970("1970-01-02T01:00:00+01:00"), days_since_1970("tonight")
    (1.0, None)
    """
    match = _TIMESTAMP.fullmatch(moment.strip())
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    try:
        first = date(year, month, 1)
        date(2000, 1, day)
    except ValueError:
        return None
    seconds = int(match[4] or 0) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    if match[7]:
        offset = int(match[8]) * 3600 + int(match[9]) * 60
        seconds -= offset if match[7] == "+" else -offset
    return first.toordinal() + day - 1 - EPOCH + seconds / 86_400


# One row of the columns of `HistoryPoints`.
_Sides: TypeAlias = tuple[float, float] | None
_Row: TypeAlias = tuple[
    Moment, float, EnvironmentKey, float, float, tuple[float, ...], str | None, _Sides
]


class HistoryPoint(
    Struct,
    frozen=True,
    kw_only=True,
    # The names in stored histories.
    rename={"value": "figure", "environment_key": "circumstances"},
):
    """One result of a cell.

    Attributes:
        at: When, ISO 8601 in UTC: a run's start, or the commit's date if no more is known.
        run: The run's id; None if another tool measured it.
        commit: The measured revision; None if unknown.
        value: The series' value, above 0; None if there is none.
        bounds: The interval of the value, from the point's own launches; None if unknown.
        launches: The values of the individual launches; empty if they were not kept.
        missing: Why there is no value, in words; None if there is one.
        environment_key: (what, which) of everything but the commit that may change a value,
            such as ("kernel", "6.1.0"). When one changes, another segment begins.
        sides: The values of HEAD and of the anchor, of which `value` is the ratio; None if it is
            none. In the series' `side_unit`.
    """

    at: str
    run: str | None
    commit: Commit | None
    value: float | None
    bounds: tuple[float, float] | None
    launches: tuple[float, ...]
    missing: str | None
    environment_key: EnvironmentKey
    sides: tuple[float, float] | None = None

    @property
    def is_of_commit(self) -> bool:
        """The same as for its moment."""
        return Moment(self.at, self.run, self.commit).is_of_commit


class SharedColumns:
    """Joins columns, so that series which share both columns also share what they are joined to."""

    def __init__(self) -> None:
        """Start empty."""
        # The columns are kept with the result, so that their ids stay valid.
        self._by_ids: dict[tuple[int, int], tuple[object, object, Any]] = {}

    def joined(self, column: tuple[T, ...], later: tuple[T, ...]) -> tuple[T, ...]:
        """A column followed by another one."""
        key = id(column), id(later)
        if key not in self._by_ids:
            self._by_ids[key] = column, later, column + later
        result: tuple[T, ...] = self._by_ids[key][2]
        return result


class HistoryPoints(Sequence[HistoryPoint]):
    """Points as columns of n values: a site has millions, and objects take ten times the memory.

    Attributes:
        moments: When each point was measured.
        values: Values, NaN if there is none.
        environment_keys: The environment of each point.
        lows: Lower ends of the bounds, NaN if there are none; empty if no point has any.
        highs: Upper ends of the bounds, in the same way.
        launches: The launches' values of each point; empty if no point has any.
        missing: Why there is no value; empty if no point has a reason.
        sides: What the values are ratios of; empty if they are none.
    """

    __slots__ = (
        "_environment_changes", "_value_count", "environment_keys", "highs", "launches", "lows",
        "missing", "moments", "sides", "values",
    )  # fmt: skip

    def __init__(
        self,
        *,
        moments: Sequence[Moment],
        values: array[float],
        environment_keys: Sequence[EnvironmentKey],
        lows: array[float] = _EMPTY_COLUMN,
        highs: array[float] = _EMPTY_COLUMN,
        launches: Sequence[tuple[float, ...]] = (),
        missing: Sequence[str | None] = (),
        sides: Sequence[_Sides] = (),
    ) -> None:
        """Take columns.

        Raises:
            ValueError: The columns differ in length.
        """
        n = len(moments)
        required: tuple[Sized, ...] = (values, environment_keys)
        optional: tuple[Sized, ...] = (lows, highs, launches, missing, sides)
        if any(len(column) != n for column in required) or any(
            len(column) not in {0, n} for column in optional
        ):
            raise ValueError("columns are equally long")
        if len(lows) != len(highs):
            raise ValueError("bounds have two ends")
        # A tuple stays the same object, because series share them. A column without information
        # is empty, so that equal points have equal columns.
        self.moments = tuple(moments)
        self.values = values
        self.environment_keys = tuple(environment_keys)
        bounded = not all(map(math.isnan, lows))
        self.lows, self.highs = (lows, highs) if bounded else (_EMPTY_COLUMN, _EMPTY_COLUMN)
        self.launches = tuple(launches) if any(launches) else ()
        self.missing = tuple(missing) if any(column is not None for column in missing) else ()
        self.sides = tuple(sides) if any(sides) else ()
        self._environment_changes: tuple[int, ...] | None = None
        self._value_count: int | None = None

    @classmethod
    def of(cls, points: Iterable[HistoryPoint]) -> HistoryPoints:
        """Convert points to columns."""
        rows = tuple(points)
        ends = [point.bounds or (math.nan, math.nan) for point in rows]
        return cls(
            moments=[Moment(point.at, point.run, point.commit) for point in rows],
            values=array("d", [math.nan if p.value is None else p.value for p in rows]),
            environment_keys=[point.environment_key for point in rows],
            lows=array("d", [low for low, _ in ends]),
            highs=array("d", [high for _, high in ends]),
            launches=[point.launches for point in rows],
            missing=[point.missing for point in rows],
            sides=[point.sides for point in rows],
        )

    @property
    def measured(self) -> tuple[float, ...]:
        """The existing values, in order."""
        return tuple(itertools.filterfalse(math.isnan, self.values))

    @property
    def value_count(self) -> int:
        """How many points have a value."""
        if self._value_count is None:
            self._value_count = len(self) - sum(map(math.isnan, self.values))
        return self._value_count

    @property
    def latest_moment(self) -> Moment:
        """The moment of the last point.

        Raises:
            IndexError: There is no point.
        """
        return self.moments[-1]

    @property
    def environment_changes(self) -> tuple[int, ...]:
        """The points at which anything but the commit changes; never includes the first point."""
        if self._environment_changes is None:
            keys = self.environment_keys
            # Most share the same object, which needs no comparison.
            is_other = map(operator.is_not, keys[1:], keys)
            candidates = itertools.compress(range(1, len(keys)), is_other)
            self._environment_changes = tuple(at for at in candidates if keys[at] != keys[at - 1])
        return self._environment_changes

    @property
    def breaks(self) -> tuple[int, ...]:
        """The environment changes that end a line in charts: another CPU model does not if values
        are ratios to an anchor.
        """
        keys = self.environment_keys
        return tuple(
            at
            for at in self.environment_changes
            if without_machine(keys[at - 1]) != without_machine(keys[at])
        )

    def select(self, indices: Iterable[int]) -> HistoryPoints:
        """The points at these indices, in this order."""
        selected = [*indices]

        def pick(column: Sequence[Any]) -> Sequence[Any]:
            values = [column[at] for at in selected] if column else []
            return array("d", values) if isinstance(column, array) else values

        return self._each(pick)

    def scaled(self, factor: float) -> HistoryPoints:
        """The same points in another unit: every number times a factor."""

        def scale(numbers: Iterable[float]) -> array[float]:
            return array("d", [number * factor for number in numbers])

        return self._with(
            values=scale(self.values),
            lows=scale(self.lows),
            highs=scale(self.highs),
            launches=[tuple(scale(values)) for values in self.launches],
        )

    def with_environment_keys(self, environment_keys: Sequence[EnvironmentKey]) -> HistoryPoints:
        """The same points with other environments, one per point."""
        return self._with(environment_keys=environment_keys)

    def _each(self, change: Callable[[Any], Any]) -> HistoryPoints:
        """The points with each column changed in the same way."""
        return self._with(**{name: change(getattr(self, name)) for name in _COLUMNS})

    def _with(self, **columns: Any) -> HistoryPoints:
        return HistoryPoints(**{name: getattr(self, name) for name in _COLUMNS} | columns)

    def followed_by(
        self, later: HistoryPoints, *, shared: SharedColumns | None = None
    ) -> HistoryPoints:
        """These points followed by later ones.

        Args:
            shared: The same for several series, so that they share columns.
        """
        n, m = len(self), len(later)
        columns = shared or SharedColumns()
        return HistoryPoints(
            moments=columns.joined(self.moments, later.moments),
            values=self.values + later.values,
            environment_keys=columns.joined(self.environment_keys, later.environment_keys),
            lows=_join_numbers(self.lows, n, later.lows, m),
            highs=_join_numbers(self.highs, n, later.highs, m),
            launches=_join(self.launches, n, later.launches, m, ()),
            missing=_join(self.missing, n, later.missing, m, None),
            sides=_join(self.sides, n, later.sides, m, None),
        )

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[HistoryPoint]:
        rows = zip(
            self.moments,
            self.values,
            self.environment_keys,
            self.lows or repeat(math.nan),
            self.highs or repeat(math.nan),
            self.launches or repeat(()),
            self.missing or repeat(None),
            self.sides or repeat(None),
            strict=False,  # `repeat` is infinite
        )
        return map(_point, rows)

    @overload
    def __getitem__(self, at: int) -> HistoryPoint: ...

    @overload
    def __getitem__(self, at: slice) -> HistoryPoints: ...

    def __getitem__(self, at: int | slice) -> HistoryPoint | HistoryPoints:
        if isinstance(at, slice):
            return self._each(operator.itemgetter(at))
        row = (
            self.moments[at],
            self.values[at],
            self.environment_keys[at],
            self.lows[at] if self.lows else math.nan,
            self.highs[at] if self.highs else math.nan,
            self.launches[at] if self.launches else (),
            self.missing[at] if self.missing else None,
            self.sides[at] if self.sides else None,
        )
        return _point(row)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HistoryPoints):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"HistoryPoints.of({[*self]!r})"

    @property
    def _identity(self) -> tuple[object, ...]:
        # Compared as bytes, because NaN is not equal to itself.
        columns = (self.values, self.lows, self.highs)
        return (
            self.moments,
            self.environment_keys,
            self.launches,
            self.missing,
            self.sides,
            *(column.tobytes() for column in columns),
        )


class PointsSummary(Struct, frozen=True, kw_only=True):
    """What is known of points without reading them; each as in `HistoryPoints`."""

    points: int
    value_count: int
    latest_moment: Moment

    @classmethod
    def of(cls, points: HistoryPoints) -> PointsSummary:
        """Summarise at least one point."""
        return cls(
            points=len(points), value_count=points.value_count, latest_moment=points.latest_moment
        )


class UnreadPoints(HistoryPoints):
    """Points that are read each time they are used; the reader may cache them.

    The history of a thousand hosts is larger than the memory, but few series are used at once.
    """

    __slots__ = ("_points", "_read", "_summary")

    def __init__(
        self,
        read: Callable[[], HistoryPoints],
        summary: PointsSummary,
        *,
        shared: HistoryPoints | None = None,
    ) -> None:
        """Take the function that reads the points, and what is known without it.

        Args:
            shared: Points with the columns that other series have too, which need no reading.
        """
        # The other columns of the base class stay unset, so that `__getattr__` is asked for them.
        if shared is not None:
            self.moments, self.environment_keys = shared.moments, shared.environment_keys
            self._environment_changes = None
        self._read = read
        self._summary = summary
        # Single points that were used: those around a change.
        self._points: dict[int, HistoryPoint] = {}

    def __getattr__(self, column: str) -> Any:
        if column in HistoryPoints.__slots__:
            return getattr(self._read(), column)
        raise AttributeError(column)

    def __len__(self) -> int:
        return self._summary.points

    @overload
    def __getitem__(self, at: int) -> HistoryPoint: ...

    @overload
    def __getitem__(self, at: slice) -> HistoryPoints: ...

    def __getitem__(self, at: int | slice) -> HistoryPoint | HistoryPoints:
        if isinstance(at, slice):
            return self._read()[at]
        if at not in self._points:
            self._points[at] = self._read()[at]
        return self._points[at]

    def __iter__(self) -> Iterator[HistoryPoint]:
        return iter(self._read())

    @property
    def value_count(self) -> int:
        """How many points have a value."""
        return self._summary.value_count

    @property
    def latest_moment(self) -> Moment:
        """The moment of the last point."""
        return self._summary.latest_moment


def _point(row: _Row) -> HistoryPoint:
    (at, run, commit), value, environment_key, low, high, launches, missing, sides = row
    return HistoryPoint(
        at=at,
        run=run,
        commit=commit,
        value=None if math.isnan(value) else value,
        bounds=None if math.isnan(low) else (low, high),
        launches=launches,
        missing=missing,
        environment_key=environment_key,
        sides=sides,
    )


def _join_numbers(column: array[float], n: int, other: array[float], m: int) -> array[float]:
    """Concatenate columns of n and m numbers, either of which may be empty."""
    if not column and not other:
        return column
    return (column or _NAN * n) + (other or _NAN * m)


def _join(column: tuple[T, ...], n: int, other: tuple[T, ...], m: int, filler: T) -> tuple[T, ...]:
    """The same for columns of any type."""
    if not column and not other:
        return ()
    return (column or (filler,) * n) + (other or (filler,) * m)


# In place of a host's id: values relative to the build of a pinned commit, the anchor, that was
# measured in turns with HEAD. They do not depend on the machine, so all machines share a series.
ANCHORED = "anchored"
ANCHOR_UNIT = "× anchor"
# What differs between the points of an anchored series, in their environments.
ANCHOR_KEY, MACHINE_KEY = "anchor", "CPU model"
# Between the anchor that values are relative to and the one that they were measured with.
CHAINED = " through "


def anchored_name(anchor: str) -> str:
    """What stands in place of a host's name: ratios to an anchor are of any machine."""
    return f"changing machines against {anchor}"


# The schema of files that hold series.
SERIES_SCHEMA = 3


def without_machine(key: EnvironmentKey) -> EnvironmentKey:
    """What ratios to an anchor are compared in; a chained anchor counts as its successor."""
    return tuple(
        (name, which.partition(CHAINED)[0] if name == ANCHOR_KEY else which)
        for name, which in key
        if name != MACHINE_KEY
    )


class Series(Struct, frozen=True, kw_only=True, dict=True):
    """The points of one cell on one host, oldest first; of an anchored cell, on all machines.

    Attributes:
        project: The project of an imported history; None for corebound's own records.
        host: The host's id, or another tool's name of its machine, or `ANCHORED`.
        scenario: The scenario's name, or another tool's benchmark.
        title: The scenario's display name.
        cell: The cell's key within the scenario.
        unit: `ns` for times; else the unit in words.
        margin: Least change that matters; 0.02 is a ratio of 1.02 or its reciprocal.
        reproduce: The command that reproduces the measurement; empty if there is none.
        points: At least one.
        confidence: The confidence of the points' bounds; 0.99 for asv's.
        commit_url: The URL prefix that shows a commit when its hash is appended; None if unknown.
        code: The benchmark's source code, as another tool stores it beside its results.
        more_is_better: Whether it is a rate, for which more is better; otherwise less is.
        importance: A secondary series neither sets a headline nor an exit code.
        metric: What its values are, if a launch has other series too, such as `peak memory`.
    """

    project: str | None
    host: str
    host_name: str
    scenario: str
    title: str
    cell: str
    unit: str
    margin: float
    reproduce: tuple[str, ...]
    points: HistoryPoints
    confidence: float = 0.95
    commit_url: str | None = None
    code: str | None = None
    more_is_better: bool = False
    importance: Importance = "primary"
    metric: str = ""

    @cached_property
    def id(self) -> str:
        """A unique id: `host/resnet50[binding=none]`, or `project/host/…`; then its metric."""
        where = self.host if self.project is None else f"{self.project}/{self.host}"
        return f"{where}/{self.scenario}[{self.cell}] {self.metric}".rstrip()

    @property
    def is_anchored(self) -> bool:
        """Whether its values are ratios to the anchor, measured on whatever machine came."""
        return self.project is None and self.host == ANCHORED

    @property
    def side_unit(self) -> str:
        """The unit of both values that a ratio to the anchor is of."""
        return self.unit.removeprefix(ANCHOR_UNIT).removeprefix(" in ") or "ns"

    @property
    def is_of_time(self) -> bool:
        """Whether a larger value means slower."""
        return self.unit in {"ns", ANCHOR_UNIT}


def is_primary(series: Series) -> bool:
    """Whether the series sets headlines and exit codes."""
    return series.importance == "primary"
