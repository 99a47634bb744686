"""Every point of the histories on a page, for its charts to be looked at closely."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from corebound.model.points import Points
from corebound.model.series import Series
from corebound.report.view.addresses import anchor_of
from corebound.report.view.calendar import days_of
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.timeline import Timeline
from corebound.stats.regressions import Change

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

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Zoom:
    """What a chart says of itself to the script that zooms.

    Attributes:
        series: The places of its series, apart by spaces; keys of the points' file.
        modes: The classes of their colours, the same way.
        length: What figures are divided by.
        marks: Minutes since 1970 of its changes, apart by spaces; or places in the order.
        is_ordinal: Whether minutes are the points' order alone.
    """

    series: str
    modes: str
    length: float
    marks: str
    is_ordinal: bool


def zoom_of(
    series: Sequence[Series],
    found: Sequence[Change],
    known: Chronicle,
    line: Timeline,
    length: float,
) -> Zoom:
    """What a chart of these series, in which these changes were found, says of itself.

    Args:
        series: Those it has.
        found: Their changes.
        known: What the series are called.
        line: Where their moments are.
        length: What figures are divided by.
    """
    marks = [
        change.step.at if line.is_ordinal else round(line.places[change.since] * _MINUTES_A_DAY)
        for change in found
    ]
    return Zoom(
        series=" ".join(anchor_of(one) for one in series),
        modes=" ".join(known.label(one).mode for one in series),
        length=length,
        marks=" ".join(map(str, marks)),
        is_ordinal=line.is_ordinal,
    )


def points_script(series: Iterable[Series]) -> str:
    """The points as a script, for nothing else loads from a file.

    Of each series `t` are minutes, each since the point before; `y` figures, counted in
    `u` of the series' unit; `low` and `high` how far the bounds are below and above, counted
    the same way, both empty where no point has any; null is what there is not. `c` are
    commits, apart by spaces.
    """
    kept = {anchor_of(one): _columns(one.points) for one in series}
    return f"corebound.keep({msgspec.json.encode(kept).decode()});\n"


def _columns(points: Points) -> dict[str, object]:
    figures = np.array(points.figures)
    unit = _unit_of(figures)
    counts = _counted(figures, unit)
    low = high = np.empty(0)
    if points.lows:
        low = counts - _counted(np.array(points.lows), unit)
        high = _counted(np.array(points.highs), unit) - counts
    return {
        "t": np.diff(_moments_of(points), prepend=0).tolist(),
        "u": unit,
        "y": _listed(counts),
        "low": _listed(low),
        "high": _listed(high),
        "c": " ".join(
            moment.commit.sha[:_OF_COMMIT].replace(" ", "") if moment.commit else ""
            for moment in points.moments
        ),
    }


def _moments_of(points: Points) -> npt.NDArray[np.int64]:
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
