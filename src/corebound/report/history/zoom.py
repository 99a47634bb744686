"""Every point of the histories on a page, for its charts to be looked at closely."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from corebound.analysis.calendar import days_of
from corebound.analysis.change_history import ChangeHistory
from corebound.records.history import HistoryPoints, Series
from corebound.report.charts.axis import Axis
from corebound.report.history.timeline import Timeline, gaps_before, levels_between
from corebound.report.urls import anchor_of
from corebound.stats.history.regressions import Change

_MINUTES_A_DAY = 24 * 60
# Finer than any interval of a time, and than any screen.
_DIGITS = 5
# Figures of less than this share of the greatest may have fewer digits.
_LEAST_SHARE = 1e-9
# 10 to the power of less is no number that one can divide by.
_LEAST_EXPONENT = -300
# Beyond this not every whole number is one of a script's: 2**53, of which two are added.
_MOST_COUNTED = 2.0**52
_OF_COMMIT = 10
_LEVEL_DIGITS = 6
# Much finer than a screen, and no tick lies as near to an end.
_AXIS_DIGITS = 9

FloatArray = npt.NDArray[np.float64]


class Zoom(Struct, frozen=True, kw_only=True):
    """What a chart says of itself to the script that zooms.

    Attributes:
        series: The places of its series, apart by spaces; keys of the points' file.
        modes: The classes of their colours, the same way.
        length: What figures are divided by.
        axis: The still chart's vertical axis, apart by spaces: its scale, its ends.
        still: What the still chart has besides points, as JSON of numbers alone: of each series
            its levels, (begin, end, figure); its changes, (by an even bet at, surely after, no
            later than, 1 where that is worse); its borders. All but figures are minutes since
            1970, or places in the order.
        is_ordinal: Whether minutes are the points' order alone.
    """

    series: str
    modes: str
    length: float
    axis: str
    still: str
    is_ordinal: bool


def zoom_of(
    series: Sequence[Series],
    found: Sequence[Change],
    known: ChangeHistory,
    line: Timeline,
    *,
    length: float,
    axis: Axis,
    borders: Sequence[str],
) -> Zoom:
    """What a chart of these series, in which these changes were found, says of itself.

    Args:
        series: Those it has.
        found: Their changes.
        known: What the series are called.
        line: Where their moments are.
        length: What figures are divided by.
        axis: The still chart's vertical axis.
        borders: Moments at which something other than the commit changed.
    """
    levels = [
        [
            (
                _minute(one, first, line),
                _minute(one, last, line),
                float(f"{figure / length:.{_LEVEL_DIGITS}g}"),
            )
            for first, last, figure in levels_between(one, known.every(one))
        ]
        for one in series
    ]
    marks = [_mark(change, line) for change in found]
    edges = [round(line.places[moment] * _scale(line)) for moment in borders]
    return Zoom(
        series=" ".join(anchor_of(one) for one in series),
        modes=" ".join(known.label(one).mode for one in series),
        length=length,
        axis=f"{axis.scale} {axis.low:.{_AXIS_DIGITS}g} {axis.high:.{_AXIS_DIGITS}g}",
        still=msgspec.json.encode((levels, marks, edges)).decode(),
        is_ordinal=line.is_ordinal,
    )


def _scale(line: Timeline) -> int:
    """Minutes, or places in the order, of one place on the line."""
    return 1 if line.is_ordinal else _MINUTES_A_DAY


def _minute(series: Series, at: int, line: Timeline) -> int:
    """When a point was measured; its place in its series, where moments cannot be read."""
    if line.is_ordinal:
        return at
    return round(line.places[series.points.moments[at].at] * _MINUTES_A_DAY)


def _mark(change: Change, line: Timeline) -> tuple[float, int, int, int]:
    """By an even bet between two points; surely after one, and no later than another."""
    step = change.step
    before, after, surely, latest = (
        _minute(change.series, at, line)
        for at in (max(step.at - 1, 0), step.at, step.last_good, step.first_bad)
    )
    return (before + after) / 2, surely, latest, int(change.is_regression)


def points_script(series: Iterable[Series]) -> str:
    """The points as a script, for nothing else loads from a file.

    Of each series `t` are minutes, each since the point before; `y` figures, counted in
    `u` of the series' unit; `low` and `high` how far the bounds are below and above, counted
    the same way, both empty where no point has any; null is what there is not, and `no` which
    points have no figure, by why. `gaps` are points that no line leads to, though the one
    before has a figure. `c` are commits, apart by spaces.
    """
    kept = {anchor_of(one): _columns(one.points) for one in series}
    return f"corebound.keep({msgspec.json.encode(kept).decode()});\n"


def _columns(points: HistoryPoints) -> dict[str, object]:
    figures, minutes = np.array(points.figures), _moments_of(points)
    is_seen = ~np.isnan(figures)
    is_gap = np.diff(gaps_before(points, minutes.astype(np.float64)), prepend=0) > 0
    unit = _unit_of(figures)
    counts = _counted(figures, unit)
    low = high = np.empty(0)
    if points.lows:
        low = counts - _counted(np.array(points.lows), unit)
        high = _counted(np.array(points.highs), unit) - counts
    return {
        "t": np.diff(minutes, prepend=0).tolist(),
        "u": unit,
        "y": _listed(counts),
        "low": _listed(low),
        "high": _listed(high),
        "no": _missing(points),
        "gaps": (np.flatnonzero(is_gap[1:] & is_seen[1:] & is_seen[:-1]) + 1).tolist(),
        "c": " ".join(
            moment.commit.sha[:_OF_COMMIT].replace(" ", "") if moment.commit else ""
            for moment in points.moments
        ),
    }


def _missing(points: HistoryPoints) -> dict[str, list[int]]:
    """The points that have no figure, by what is told of it."""
    found: dict[str, list[int]] = {}
    for at, why in enumerate(points.missing):
        if why:
            found.setdefault(why, []).append(at)
    return found


def _moments_of(points: HistoryPoints) -> npt.NDArray[np.int64]:
    """Minutes since 1970 of each point; their order, where one cannot be read."""
    days = np.array([days_of(moment.at) for moment in points.moments], dtype=np.float64)
    if np.isnan(days).any():
        return np.arange(days.size)
    return np.rint(days * _MINUTES_A_DAY).astype(np.int64)


def _unit_of(figures: FloatArray) -> float:
    """A power of ten, of which each figure is some ten thousand at least."""
    seen = figures[np.isfinite(figures) & (figures > 0)]
    if not seen.size:
        return 1.0
    least = max(float(seen.min()), float(seen.max()) * _LEAST_SHARE)
    exponent = math.floor(math.log10(least)) - _DIGITS + 1
    return float(10.0 ** max(exponent, _LEAST_EXPONENT))


def _counted(figures: FloatArray, unit: float) -> FloatArray:
    """So many units; NaN where that is more than a script can count."""
    with np.errstate(over="ignore"):
        counts = np.rint(figures / unit)
    return np.where(np.abs(counts) < _MOST_COUNTED, counts, math.nan)


def _listed(counts: FloatArray) -> list[int | None]:
    """As whole numbers; None, which JSON has a word for, for NaN."""
    if not np.isnan(counts).any():
        return [*map(int, counts.tolist())]
    return [None if math.isnan(count) else int(count) for count in counts.tolist()]
