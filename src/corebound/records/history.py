"""How a cell did over time: series of points, held as columns."""

from __future__ import annotations

import itertools
import math
import operator
from array import array
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import repeat
from typing import NamedTuple, TypeAlias, TypeVar, overload

from msgspec import Struct

from corebound.records.run_record import Commit

# As points are kept with it, what was measured stands before it; another text would be read as
# a failure in histories of before.
INCOMPARABLE = "only a figure above 0 can be compared"


def incomparable(value: str) -> str:
    """Why a value with its unit is no figure.

    >>> incomparable("-2.88 %")
    '-2.88 %: only a figure above 0 can be compared'
    """
    return f"{value}: {INCOMPARABLE}"


def is_failure(missing: str | None) -> bool:
    """Whether a point without a figure was not measured; one that is 0 or below was.

    >>> is_failure("it failed"), is_failure(None), is_failure(incomparable("0 bytes"))
    (True, True, False)
    """
    return missing is None or kind_of(missing) != INCOMPARABLE


def kind_of(missing: str) -> str:
    """Why points have no figure, the same for all of one kind: without what was measured.

    >>> kind_of(incomparable("0 bytes"))
    'only a figure above 0 can be compared'
    >>> kind_of("failed: OSError: no space")
    'failed: OSError: no space'
    """
    return INCOMPARABLE if missing.endswith(INCOMPARABLE) else missing


T = TypeVar("T")
Circumstances: TypeAlias = tuple[tuple[str, str], ...]
_NO_FIGURES = array("d")
_A_NAN = array("d", [math.nan])


class Moment(NamedTuple):
    """When, in which run and of which commit a point is, as in `Point`; series share theirs."""

    at: str
    run: str | None
    commit: Commit | None

    @property
    def is_of_commit(self) -> bool:
        """Whether it is its commit's: when that was measured is not known."""
        commit = self.commit
        return self.run is None and commit is not None and commit.committed_at == self.at


# What the columns of `Points` say of one.
_Line: TypeAlias = tuple[Moment, float, Circumstances, float, float, tuple[float, ...], str | None]


class HistoryPoint(Struct, frozen=True, kw_only=True):
    """What a cell came to once.

    Attributes:
        at: When, ISO 8601 in UTC: a run's start, or the commit's date where no more is known.
        run: The run's id; None where another tool measured.
        commit: The revision that was measured; None where that is not known.
        figure: The series' figure, above 0; None where there is none.
        bounds: Where the figure truly lies, by the point's own launches; None where unknown.
        launches: The figures it was made of, one a launch; empty where they were not kept.
        missing: Why there is no figure, in words; None where there is one.
        circumstances: (what, which) of all but the commit that may change a figure,
            such as ("kernel", "6.1.0"). Where one changes, another segment begins.
    """

    at: str
    run: str | None
    commit: Commit | None
    figure: float | None
    bounds: tuple[float, float] | None
    launches: tuple[float, ...]
    missing: str | None
    circumstances: Circumstances

    @property
    def is_of_commit(self) -> bool:
        """As that of its moment."""
        return Moment(self.at, self.run, self.commit).is_of_commit


class HistoryPoints(Sequence[HistoryPoint]):
    """Points as columns, n values each: a site has millions, and objects take ten times as much.

    Attributes:
        moments: When each was measured.
        figures: NaN where there is none.
        circumstances: In which.
        lows: Lower ends of the bounds, NaN where there are none; empty where no point has any.
        highs: Upper ends, the same way.
        launches: The figures each was made of; empty where no point has any.
        missing: Why there is no figure; empty where no point says why.
    """

    __slots__ = ("circumstances", "figures", "highs", "launches", "lows", "missing", "moments")

    def __init__(
        self,
        *,
        moments: Sequence[Moment],
        figures: array[float],
        circumstances: Sequence[Circumstances],
        lows: array[float] = _NO_FIGURES,
        highs: array[float] = _NO_FIGURES,
        launches: Sequence[tuple[float, ...]] = (),
        missing: Sequence[str | None] = (),
    ) -> None:
        """Take columns.

        Raises:
            ValueError: they are not equally long.
        """
        n = len(moments)
        whole: tuple[Sized, ...] = (figures, circumstances)
        others: tuple[Sized, ...] = (lows, highs, launches, missing)
        if any(len(one) != n for one in whole) or any(len(one) not in {0, n} for one in others):
            raise ValueError("columns are equally long")
        if len(lows) != len(highs):
            raise ValueError("bounds have two ends")
        # A tuple stays the one that it is: series share theirs. A column that says nothing
        # is empty, so that equal points have equal columns.
        self.moments = tuple(moments)
        self.figures = figures
        self.circumstances = tuple(circumstances)
        bounded = not all(map(math.isnan, lows))
        self.lows, self.highs = (lows, highs) if bounded else (_NO_FIGURES, _NO_FIGURES)
        self.launches = tuple(launches) if any(launches) else ()
        self.missing = tuple(missing) if any(one is not None for one in missing) else ()

    @classmethod
    def of(cls, points: Iterable[HistoryPoint]) -> HistoryPoints:
        """Points as columns."""
        told = tuple(points)
        ends = [point.bounds or (math.nan, math.nan) for point in told]
        return cls(
            moments=[Moment(point.at, point.run, point.commit) for point in told],
            figures=array("d", [math.nan if p.figure is None else p.figure for p in told]),
            circumstances=[point.circumstances for point in told],
            lows=array("d", [low for low, _ in ends]),
            highs=array("d", [high for _, high in ends]),
            launches=[point.launches for point in told],
            missing=[point.missing for point in told],
        )

    @property
    def measured(self) -> tuple[float, ...]:
        """The figures that there are, in order."""
        return tuple(itertools.filterfalse(math.isnan, self.figures))

    @property
    def borders(self) -> tuple[int, ...]:
        """The points at which something other than the commit changed; the first is none."""
        told = self.circumstances
        # Most share theirs, which need not be compared then.
        others = itertools.compress(range(1, len(told)), map(operator.is_not, told[1:], told))
        return tuple(at for at in others if told[at] != told[at - 1])

    def taken(self, places: Iterable[int]) -> HistoryPoints:
        """Those at these places, in this order."""
        chosen = [*places]
        return HistoryPoints(
            moments=[self.moments[at] for at in chosen],
            figures=array("d", [self.figures[at] for at in chosen]),
            circumstances=[self.circumstances[at] for at in chosen],
            lows=array("d", [self.lows[at] for at in chosen] if self.lows else []),
            highs=array("d", [self.highs[at] for at in chosen] if self.highs else []),
            launches=[self.launches[at] for at in chosen] if self.launches else (),
            missing=[self.missing[at] for at in chosen] if self.missing else (),
        )

    def under(self, circumstances: Sequence[Circumstances]) -> HistoryPoints:
        """The same in other circumstances, one a point."""
        return HistoryPoints(
            moments=self.moments,
            figures=self.figures,
            circumstances=circumstances,
            lows=self.lows,
            highs=self.highs,
            launches=self.launches,
            missing=self.missing,
        )

    def followed_by(self, later: HistoryPoints) -> HistoryPoints:
        """These, and others behind them."""
        n, m = len(self), len(later)
        return HistoryPoints(
            moments=self.moments + later.moments,
            figures=self.figures + later.figures,
            circumstances=self.circumstances + later.circumstances,
            lows=_behind(self.lows, n, later.lows, m),
            highs=_behind(self.highs, n, later.highs, m),
            launches=_after(self.launches, n, later.launches, m, ()),
            missing=_after(self.missing, n, later.missing, m, None),
        )

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[HistoryPoint]:
        lines = zip(
            self.moments,
            self.figures,
            self.circumstances,
            self.lows or repeat(math.nan),
            self.highs or repeat(math.nan),
            self.launches or repeat(()),
            self.missing or repeat(None),
            strict=False,  # what repeats has no end
        )
        return map(_point, lines)

    @overload
    def __getitem__(self, at: int) -> HistoryPoint: ...

    @overload
    def __getitem__(self, at: slice) -> HistoryPoints: ...

    def __getitem__(self, at: int | slice) -> HistoryPoint | HistoryPoints:
        if isinstance(at, slice):
            return HistoryPoints(
                moments=self.moments[at],
                figures=self.figures[at],
                circumstances=self.circumstances[at],
                lows=self.lows[at],
                highs=self.highs[at],
                launches=self.launches[at],
                missing=self.missing[at],
            )
        line = (
            self.moments[at],
            self.figures[at],
            self.circumstances[at],
            self.lows[at] if self.lows else math.nan,
            self.highs[at] if self.highs else math.nan,
            self.launches[at] if self.launches else (),
            self.missing[at] if self.missing else None,
        )
        return _point(line)

    def __eq__(self, other: object) -> bool:
        return self._told == other._told if isinstance(other, HistoryPoints) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._told)

    def __repr__(self) -> str:
        return f"Points.of({[*self]!r})"

    @property
    def _told(self) -> tuple[object, ...]:
        # As bytes, for NaN is not equal to itself.
        figures = (self.figures, self.lows, self.highs)
        return (
            self.moments,
            self.circumstances,
            self.launches,
            self.missing,
            *(column.tobytes() for column in figures),
        )


def _point(line: _Line) -> HistoryPoint:
    (at, run, commit), figure, circumstances, low, high, launches, missing = line
    return HistoryPoint(
        at=at,
        run=run,
        commit=commit,
        figure=None if math.isnan(figure) else figure,
        bounds=None if math.isnan(low) else (low, high),
        launches=launches,
        missing=missing,
        circumstances=circumstances,
    )


def _behind(one: array[float], n: int, other: array[float], m: int) -> array[float]:
    """A column of n and one of m, of which either may be empty."""
    if not one and not other:
        return one
    return (one or _A_NAN * n) + (other or _A_NAN * m)


def _after(one: tuple[T, ...], n: int, other: tuple[T, ...], m: int, nothing: T) -> tuple[T, ...]:
    """The same, of columns that hold anything."""
    if not one and not other:
        return ()
    return (one or (nothing,) * n) + (other or (nothing,) * m)


# Of files that keep series.
SERIES_SCHEMA = 3


class Series(Struct, frozen=True, kw_only=True):
    """The points of one cell on one host, oldest first.

    Attributes:
        project: Whose history it is where it was imported; None: of our own records.
        host: The host's id, or what another tool calls its machine.
        host_name: The same for the eye.
        scenario: The scenario's name, or another tool's benchmark.
        title: The same for the eye.
        cell: The cell's key within the scenario.
        unit: `ns` of a time; else the unit in words.
        margin: Least change that matters; 0.02 is a ratio of 1.02 or its reciprocal.
        reproduce: The command that measures it again; empty where there is none.
        points: At least one.
        confidence: How surely the points' bounds hold the figure; asv's do at 0.99.
        commit_url: What a commit's hash is put behind to see it; None where not known.
        code: The source of what is measured, as another tool keeps it beside its results.
        more_is_better: Whether it is a rate, of which more is better; of all else less is.
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

    @property
    def id(self) -> str:
        """Tells it from every other: `host/resnet50[binding=none]`, or `project/host/…`."""
        where = self.host if self.project is None else f"{self.project}/{self.host}"
        return f"{where}/{self.scenario}[{self.cell}]"
