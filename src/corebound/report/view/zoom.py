"""Every point of the histories on a page, for its charts to be looked at closely."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corebound.model.series import Point, Series
from corebound.report.view.addresses import anchor_of
from corebound.report.view.calendar import days_of
from corebound.report.view.chronicle import Chronicle
from corebound.stats.regressions import Change

_MINUTES_A_DAY = 24 * 60
# Finer than any interval of a time, and than any screen.
_DIGITS = 5


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


def moments_of(points: Sequence[Point]) -> tuple[list[int], bool]:
    """Minutes since 1970 of each point, and whether they are its order, for want of dates.

    >>> from build import a_point
    >>> moments_of([a_point(day=0), a_point(day=1)])[0][1] - moments_of([a_point(day=0)])[0][0]
    1440
    """
    days = [days_of(point.at) for point in points]
    read = [day for day in days if day is not None]
    if len(read) < len(days):
        return list(range(len(days))), True
    return [round(day * _MINUTES_A_DAY) for day in read], False


def zoom_of(
    series: Sequence[Series], found: Sequence[Change], known: Chronicle, length: float
) -> Zoom:
    """What a chart of these series, in which these changes were found, says of itself."""
    ordinal = any(moments_of(one.points)[1] for one in series)
    marks = [moments_of(change.series.points)[0][change.step.at] for change in found]
    return Zoom(
        series=" ".join(anchor_of(one) for one in series),
        modes=" ".join(known.label(one).mode for one in series),
        length=length,
        marks=" ".join(map(str, marks)),
        is_ordinal=ordinal,
    )


def points_script(series: Iterable[Series]) -> str:
    """The points as a script, for nothing else loads from a file.

    Of each series `t` are minutes, each since the point before; `y`, `low` and `high`
    figures in the series' unit, null where there is none; `c` commits.
    """
    kept = {anchor_of(one): _columns(one.points) for one in series}
    return f"corebound.keep({json.dumps(kept, separators=(',', ':'))});\n"


def _columns(points: Sequence[Point]) -> dict[str, object]:
    moments, _ = moments_of(points)
    steps = [after - before for before, after in zip([0, *moments], moments, strict=False)]
    return {
        "t": steps,
        "y": [_short(point.figure) for point in points],
        "low": [_short(point.bounds and point.bounds[0]) for point in points],
        "high": [_short(point.bounds and point.bounds[1]) for point in points],
        "c": [point.commit.sha[:10] if point.commit else "" for point in points],
    }


def _short(figure: float | None) -> float | int | None:
    """A figure as short as its digits allow; null where JSON has no word for it."""
    if figure is None or not math.isfinite(figure):
        return None
    rounded = float(f"{figure:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
