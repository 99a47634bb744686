"""The data for zooming: every point of the histories on a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from corebound.records.history import HistoryPoints, Series, days_since_1970
from corebound.report.charts.axis import Axis
from corebound.report.history.timeline import SegmentLevel, Timeline, gaps_before
from corebound.report.urls import series_anchor
from corebound.stats.history.regressions import Change

_MINUTES_A_DAY = 24 * 60
# More precise than any interval of a time, and than any screen.
_DIGITS = 5
# Values below this share of the greatest may have fewer digits.
_LEAST_SHARE = 1e-9
# Smaller powers of 10 cannot serve as a divisor.
_LEAST_EXPONENT = -300
# JavaScript represents every whole number up to 2**53 exactly, and two of these are added.
_MOST_COUNTED = 2.0**52
_OF_COMMIT = 10
_LEVEL_DIGITS = 6
# Much finer than a screen; no tick lies as close to an end.
_AXIS_DIGITS = 9

FloatArray = npt.NDArray[np.float64]


class ZoomData(Struct, frozen=True, kw_only=True):
    """The data that a chart passes to the zoom script.

    Attributes:
        series: The anchors of its series, separated by spaces; these are keys of the points' file.
        length: The divisor that converts values for display.
        axis: The static chart's vertical axis, separated by spaces: its scale and its ends.
        still: The static chart's content besides points, as JSON of numbers. For each series its
            levels as (begin, end, value). Then the changes as (median estimate, surely after, no
            later than, 1 if worse). Then the environment changes. Everything but values is in
            minutes since 1970, or ordinal numbers.
        is_ordinal: Whether minutes are only the order of the points.
    """

    series: str
    length: float
    axis: str
    still: str
    is_ordinal: bool


def zoom_data(
    all_series: Sequence[Series],
    levels: Sequence[Sequence[SegmentLevel]],
    changes: Sequence[Change],
    line: Timeline,
    *,
    length: float,
    axis: Axis,
    borders: Sequence[str],
) -> ZoomData:
    """The zoom data of a chart.

    Args:
        all_series: The series in the chart.
        levels: The levels of each of them.
        changes: Their clear changes.
        line: The axis with their moments.
        length: The divisor that converts values for display.
        axis: The static chart's vertical axis.
        borders: Moments at which the environment changed.
    """
    drawn = [
        [
            (
                _minute(series, level.first, line),
                _minute(series, level.last, line),
                float(f"{level.median / length:.{_LEVEL_DIGITS}g}"),
            )
            for level in own
        ]
        for series, own in zip(all_series, levels, strict=True)
    ]
    marks = [_mark(change, line) for change in changes]
    edges = [round(line.places[moment] * _scale(line)) for moment in borders]
    return ZoomData(
        series=" ".join(series_anchor(series) for series in all_series),
        length=length,
        axis=f"{axis.scale} {axis.low:.{_AXIS_DIGITS}g} {axis.high:.{_AXIS_DIGITS}g}",
        still=msgspec.json.encode((drawn, marks, edges)).decode(),
        is_ordinal=line.is_ordinal,
    )


def _scale(line: Timeline) -> int:
    """The number of minutes, or of ordinal places, in one unit of the axis."""
    return 1 if line.is_ordinal else _MINUTES_A_DAY


def _minute(series: Series, at: int, line: Timeline) -> int:
    """When a point was measured, in minutes.

    If moments cannot be parsed, it is the point's index in its series.
    """
    if line.is_ordinal:
        return at
    return round(line.places[series.points.moments[at].at] * _MINUTES_A_DAY)


def _mark(change: Change, line: Timeline) -> tuple[float, int, int, int]:
    """A change as (median estimate, surely after, no later than, 1 if worse)."""
    step = change.change_point
    before, after, surely, latest = (
        _minute(change.series, at, line)
        for at in (max(step.at - 1, 0), step.at, step.last_good, step.first_bad)
    )
    return (before + after) / 2, surely, latest, int(change.is_regression)


def points_script(all_series: Iterable[Series]) -> str:
    """The points as a script, because a page opened from a file can load nothing else.

    For each series, `t` is in minutes since the point before. `y` has the values, in multiples of
    `u` of the series' unit. `low` and `high` are the distances of the bounds below and above, in
    the same unit; both are empty if no point has bounds. null means missing, and `no` lists the
    points without a value by reason. `gaps` are points without a line from the point before,
    although that has a value. `c` has the commits, separated by spaces.
    """
    groups = {series_anchor(series): _columns(series.points) for series in all_series}
    return f"corebound.keep({msgspec.json.encode(groups).decode()});\n"


def _columns(points: HistoryPoints) -> dict[str, object]:
    values, minutes = np.array(points.values), _minutes_of(points)
    is_seen = ~np.isnan(values)
    is_gap = np.diff(gaps_before(points, minutes.astype(np.float64)), prepend=0) > 0
    unit = _unit_of(values)
    counts = _multiples(values, unit)
    low = high = np.empty(0)
    if points.lows:
        low = counts - _multiples(np.array(points.lows), unit)
        high = _multiples(np.array(points.highs), unit) - counts
    return {
        "t": np.diff(minutes, prepend=0).tolist(),
        "u": unit,
        "y": _json_list(counts),
        "low": _json_list(low),
        "high": _json_list(high),
        "no": _missing(points),
        "gaps": (np.flatnonzero(is_gap[1:] & is_seen[1:] & is_seen[:-1]) + 1).tolist(),
        "c": " ".join(
            moment.commit.sha[:_OF_COMMIT].replace(" ", "") if moment.commit else ""
            for moment in points.moments
        ),
    }


def _missing(points: HistoryPoints) -> dict[str, list[int]]:
    """The points without a value, by reason."""
    groups: dict[str, list[int]] = {}
    for at, why in enumerate(points.missing):
        if why:
            groups.setdefault(why, []).append(at)
    return groups


def _minutes_of(points: HistoryPoints) -> npt.NDArray[np.int64]:
    """Minutes since 1970 of each point; their order if a moment cannot be parsed."""
    days = np.array([days_since_1970(moment.at) for moment in points.moments], dtype=np.float64)
    if np.isnan(days).any():
        return np.arange(days.size)
    return np.rint(days * _MINUTES_A_DAY).astype(np.int64)


def _unit_of(figures: FloatArray) -> float:
    """A power of ten such that each value is at least some ten thousand of it."""
    values = figures[np.isfinite(figures) & (figures > 0)]
    if not values.size:
        return 1.0
    least = max(float(values.min()), float(values.max()) * _LEAST_SHARE)
    exponent = math.floor(math.log10(least)) - _DIGITS + 1
    return float(10.0 ** max(exponent, _LEAST_EXPONENT))


def _multiples(figures: FloatArray, unit: float) -> FloatArray:
    """Values in multiples of `unit`; NaN if that exceeds the whole numbers of a script."""
    with np.errstate(over="ignore"):
        counts = np.rint(figures / unit)
    return np.where(np.abs(counts) < _MOST_COUNTED, counts, math.nan)


def _json_list(counts: FloatArray) -> list[int | None]:
    """Whole numbers; NaN becomes None, which JSON can represent."""
    if not np.isnan(counts).any():
        return [*map(int, counts.tolist())]
    return [None if math.isnan(count) else int(count) for count in counts.tolist()]
