"""Maps points in time to positions along a chart, with gaps where points are missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from corebound.records.history import HistoryPoints, Moment, Series, days_since_1970
from corebound.report.charts.history import SeriesTrack
from corebound.report.charts.lines import envelope
from corebound.stats.history.regressions import Change
from corebound.stats.history.shift_tests import median

# The points' distance from the chart's edges, as a share of its width.
_EDGE = 0.015
# A pause without points counts as a gap from this multiple of the series' usual pace (its upper
# quartile) on.
_LONG = 1.8


def position(number: float, low: float, high: float) -> float:
    """The position of a place along a chart whose axis has these ends, in [0, 1]."""
    if high <= low:
        return 0.5
    return _EDGE + (number - low) / (high - low) * (1 - 2 * _EDGE)


class MomentColumn(Struct, frozen=True, kw_only=True):
    """The moments of a series on a time axis.

    Attributes:
        shares: The position of each along the chart.
        pauses: The moments that come much later after the one before than usual.
    """

    moments: Sequence[Moment]
    shares: list[float]
    pauses: list[int]


class Timeline(Struct, frozen=True, kw_only=True):
    """The horizontal axis: days since 1970, or ordinal numbers if a moment cannot be parsed.

    Attributes:
        low, high: First and last place.
        places: The place of each moment.
        is_ordinal: Whether places are only the order of the moments.
        columns: The columns of moments asked for so far, by id: most series of a page share one.
    """

    low: float
    high: float
    places: dict[str, float]
    is_ordinal: bool
    columns: dict[int, MomentColumn] = field(default_factory=dict)

    @classmethod
    def over(cls, moments: Sequence[str]) -> Timeline:
        """An axis that includes all these moments, at least one."""
        distinct = sorted(set(moments))
        days = [days_since_1970(moment) for moment in distinct]
        read = [value for value in days if value is not None]
        ordinal = len(read) < len(days)
        numbers = [float(index) for index in range(len(distinct))] if ordinal else read
        return cls(
            low=min(numbers),
            high=max(numbers),
            places=dict(zip(distinct, numbers, strict=True)),
            is_ordinal=ordinal,
        )

    def place(self, number: float) -> float:
        """The position of a place along the chart, in [0, 1]."""
        return position(number, self.low, self.high)

    def share(self, moment: str) -> float:
        """The position of a moment along the chart."""
        return self.place(self.places[moment])

    def column(self, moments: Sequence[Moment]) -> MomentColumn:
        """The moments of a series, all of them on this axis."""
        column = self.columns.get(id(moments))
        if column is None:
            numbers = [self.places[moment.at] for moment in moments]
            # It holds the moments, so that their id stays theirs.
            column = self.columns[id(moments)] = MomentColumn(
                moments=moments,
                shares=[self.place(number) for number in numbers],
                pauses=pauses_before(np.array(numbers)),
            )
        return column


def series_track(
    series: Series,
    levels: Sequence[SegmentLevel],
    line: Timeline,
    *,
    length: float,
    most: int,
    bars: bool,
    mode: str,
    dash: int,
) -> SeriesTrack:
    """The chart's content for one series.

    Args:
        series: A series with at least one value.
        length: The divisor that converts values for display.
        most: The largest number of points drawn.
        bars: Whether points have their intervals.
        mode: CSS class of its colour.
        dash: Line style of its levels.
    """
    points = series.points
    column = line.column(points.moments)
    is_seen = ~np.isnan(points.values)
    values = np.flatnonzero(is_seen).tolist()
    indices = [values[at] for at, _ in envelope(points.measured, most=most)]
    gaps = gaps_before(points, column.pauses)
    lost = sorted({column.shares[index] for index in np.flatnonzero(~is_seen).tolist()})
    lows, highs = (
        np.array(ends)[indices] / length if bars and ends else np.full(len(indices), math.nan)
        for ends in (points.lows, points.highs)
    )
    return SeriesTrack(
        mode=mode,
        dash=dash,
        shares=[column.shares[index] for index in indices],
        values=np.array(points.values)[indices] / length,
        lows=lows,
        highs=highs,
        starts=frozenset(
            at for at, index in enumerate(indices) if not at or gaps[index] > gaps[indices[at - 1]]
        ),
        missing=tuple(lost[:: len(lost) // most + 1]),
        levels=tuple(
            (
                line.share(points.moments[level.first].at),
                line.share(points.moments[level.last].at),
                level.median / length,
            )
            for level in levels
        ),
    )


def gaps_before(points: HistoryPoints, pauses: Sequence[int]) -> list[int]:
    """For each point the number of gaps before it.

    Gaps are missing values, long pauses and environment changes.

    Args:
        pauses: Those that come after a long pause.
    """
    gap = np.isnan(points.values)
    gap[[*points.breaks, *pauses]] = True
    before: list[int] = np.cumsum(gap).tolist()
    return before


def pauses_before(numbers: npt.NDArray[np.float64 | np.int64]) -> list[int]:
    """The points that come much later after the point before than usual.

    Args:
        numbers: The place of each point on the axis, in order.
    """
    paces = np.diff(numbers)
    usual = float(np.quantile(paces, 0.75)) if paces.size > 1 else 0.0
    if usual <= 0:
        return []
    later: list[int] = (np.flatnonzero(paces > _LONG * usual) + 1).tolist()
    return later


class SegmentLevel(Struct, frozen=True, kw_only=True):
    """The median of the points from one change to the next.

    `first` and `last` are the indices of its first and last point with a value.
    """

    first: int
    last: int
    median: float


def levels_between(series: Series, changes: Sequence[Change]) -> Iterator[SegmentLevel]:
    """The level of each segment between changes; segments also end where the environment changed.

    Args:
        series: A series with at least one value.
    """
    ends = (*series.points.breaks, *(change.change_point.at for change in changes))
    starts = sorted({0, *ends})
    values = np.array(series.points.values)
    for begin, end in zip(starts, (*starts[1:], values.size), strict=True):
        indices = begin + np.flatnonzero(~np.isnan(values[begin:end]))
        if indices.size:
            yield SegmentLevel(
                first=int(indices[0]),
                last=int(indices[-1]),
                median=median(values[indices]),
            )
