"""A history: points with their intervals, the level between changes, changes as numbered marks."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from corebound.report.charts.alt_text import course_words, image
from corebound.report.charts.axis import Axis, linear_axis, log_axis

_SIZE = 1000
# A spark's own view box; small whole numbers keep a table of 500 light.
_SPARK_WIDTH, _SPARK_HEIGHT = 96, 20
SPARK_POINTS = 32
# A small diamond about the last point, of the same path: tables have many sparks.
_SPARK_END = "m-1 0 1-2 1 2-1 2z"
# Figures that differ by less than this fill no more than a part of a spark: noise stays flat.
_SPARK_LEAST_SPAN = 1.08
# Of what an interval is beyond the chart: an arrowhead at the edge that it leaves by.
_HEAD_DOWN, _HEAD_UP = "l-5-40m5 40 5-40", "l-5 40m5-40 5 40"
# Below this an axis is no longer than what a double tells apart.
_LEAST_MARGIN = 1e-6
# A history that varies by more than this is drawn on a logarithmic axis.
_LINEAR_SPAN = 4.0
# Beyond these no time, size or rate lies; within them no sum or ratio overflows.
_LEAST, _MOST = 1e-100, 1e100


class Dot(Struct, frozen=True, kw_only=True):
    """A point: `x` is its share of the width; `low` and `high` bound the value, or are None."""

    x: float
    value: float
    low: float | None
    high: float | None


class Level(Struct, frozen=True, kw_only=True):
    """The level of a stretch between two changes; `begin` and `end` are shares of the width."""

    begin: float
    end: float
    value: float


class Track(Struct, frozen=True, kw_only=True):
    """One series.

    Attributes:
        mode: Class of the colour.
        dash: Which of the line styles the levels have, so that colour is not alone.
        runs: Points that follow one another; between two runs is a gap.
        missing: Where a night gave no figure.
        levels: One a stretch between changes.
    """

    mode: str
    dash: int
    runs: tuple[tuple[Dot, ...], ...]
    missing: tuple[float, ...]
    levels: tuple[Level, ...]


class Mark(Struct, frozen=True, kw_only=True):
    """A change: by an even bet at `x`; surely after `begin` and no later than `end`."""

    x: float
    begin: float
    end: float


class HistoryChart(Struct, frozen=True, kw_only=True):
    """What a history draws.

    Attributes:
        tracks: The series, the most important last: it is drawn on top.
        axis: Vertical.
        marks: The changes.
        borders: Where host, kernel, environment or scenario changed.
        says: What the drawing shows, for those who do not see it.
        compared: Where the runs are that the page compares.
    """

    tracks: tuple[Track, ...]
    axis: Axis
    marks: tuple[Mark, ...]
    borders: tuple[float, ...]
    says: str
    compared: tuple[float, ...] = ()


def history_svg(chart: HistoryChart) -> str:
    """Draw a history; what lies beyond the axis is drawn at its edge, a bar with an arrowhead."""
    grid = "".join(f"M0 {_y(chart.axis, tick)}H{_SIZE}" for tick in chart.axis.ticks)
    bands = "".join(
        f"M{_x(mark.begin)} 0H{_x(mark.end)}V{_SIZE}H{_x(mark.begin)}z" for mark in chart.marks
    )
    parts = [
        _path("wash", bands),
        _path("grid", grid),
        _path("node", "".join(f"M{_x(border)} 0V{_SIZE}" for border in chart.borders)),
        _path("rule", "".join(f"M{_x(mark.x)} 0V{_SIZE}" for mark in chart.marks)),
        _path("one", "".join(f"M{_x(at)} 0V{_SIZE}" for at in chart.compared)),
        *(_track(track, chart.axis) for track in chart.tracks),
    ]
    return (
        f'<svg viewBox="0 0 {_SIZE} {_SIZE}" preserveAspectRatio="none"{image(chart.says)}>'
        f"{''.join(parts)}</svg>"
    )


def _track(track: Track, axis: Axis) -> str:
    dots = [dot for run in track.runs for dot in run]
    across = [_x(dot.x) for dot in dots]
    places = [
        f"{x} {y}" for x, y in zip(across, _ys(axis, [dot.value for dot in dots]), strict=True)
    ]
    bounded = [
        (x, dot.low, dot.high)
        for x, dot in zip(across, dots, strict=True)
        if dot.low is not None and dot.high is not None
    ]
    lows = _ys(axis, [low for _, low, _ in bounded])
    highs = _ys(axis, [high for _, _, high in bounded])
    whiskers = "".join(
        f"M{x} {low}V{high}" for (x, _, _), low, high in zip(bounded, lows, highs, strict=True)
    )
    heads = "".join(
        (f"M{x} {_SIZE}{_HEAD_DOWN}" if low < axis.low else "")
        + (f"M{x} 0{_HEAD_UP}" if high > axis.high else "")
        for x, low, high in bounded
    )
    ends = [0, *itertools.accumulate(map(len, track.runs))]
    lines = "".join(
        "M" + "L".join(places[begin:end])
        for begin, end in itertools.pairwise(ends)
        if end - begin > 1
    )
    levels = "".join(
        f"M{_x(level.begin)} {_y(axis, level.value)}H{_x(level.end)}" for level in track.levels
    )
    return "".join(
        (
            _path(f"whisker {track.mode}", whiskers),
            _path(f"open {track.mode}", heads),
            _path(f"thin {track.mode}", lines),
            _path(f"run {track.mode}", "".join(f"M{place}h0" for place in places)),
            _path(f"level {track.mode} dash-{track.dash}", levels),
            _path("lost", "".join(f"M{_x(x)} {_SIZE}v-40" for x in track.missing)),
        )
    )


def leaves(tracks: Iterable[Track], axis: Axis) -> bool:
    """Whether an interval reaches beyond the axis."""
    return any(
        dot.low is not None
        and dot.high is not None
        and (dot.low < axis.low or dot.high > axis.high)
        for track in tracks
        for run in track.runs
        for dot in run
    )


def _path(kind: str, drawn: str) -> str:
    return f'<path class="{kind}" d="{drawn}"/>' if drawn else ""


def spark_line_svg(figures: Sequence[float], mode: str) -> str:
    """Draw a series small enough for a line of a table: its course, and where it is now.

    Args:
        figures: Above 0, in order; NaN where there is none.
        mode: Class of the colour.
    """
    columns = _columns(figures)
    seen = [figure for figure in columns if figure is not None]
    if not seen:
        return ""
    low, high = math.log(_held(min(seen))), math.log(_held(max(seen)))
    spare = math.log(_SPARK_LEAST_SPAN) - (high - low)
    if spare > 0:
        low, high = low - spare / 2, high + spare / 2
    room = _SPARK_HEIGHT - 4
    pace = (_SPARK_WIDTH - 2) / max(len(columns) - 1, 1)
    # All steps are from the point before: after an `m` a pair is a line, and needs no letter.
    path: list[str] = []
    at, step = (0, 0), "m"
    for index, figure in enumerate(columns):
        if figure is None:
            # A line of one point only is none.
            if step != "m" and path[-1].startswith("m"):
                path.append(" 2 0")
                at = at[0] + 2, at[1]
            step = "m"
            continue
        share = (math.log(_held(figure)) - low) / (high - low)
        to = 1 + round(index * pace), 2 + round((1 - share) * room)
        path.append(f"{step}{to[0] - at[0]}{to[1] - at[1]: }")
        at, step = to, " "
    return (
        f'<svg class="spark" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}"'
        f' preserveAspectRatio="none"{image(course_words(figures))}>'
        f'<path class="ln {mode}" d="{"".join(path)}{_SPARK_END}"/></svg>'
    )


def _columns(figures: Sequence[float]) -> list[float | None]:
    """At most `SPARK_POINTS`: the median of each of as many equal stretches."""
    count = min(len(figures), SPARK_POINTS)
    columns: list[float | None] = []
    for column in range(count):
        stretch = figures[column * len(figures) // count : (column + 1) * len(figures) // count]
        seen = [figure for figure in stretch if not math.isnan(figure)]
        columns.append(statistics.median_low(seen) if seen else None)
    return columns


def figure_axis(values: Iterable[float], *, margin: float, ends: Iterable[float] = ()) -> Axis:
    """A vertical axis on which all values lie, and a change of `margin` is not all there is.

    Args:
        values: At least one, above 0 and finite.
        margin: Least change that matters; the axis spans at least twice as much either way.
        ends: Of the values' intervals, any number but NaN: the axis takes them in as far as the
            values keep half of it, for it is they that are looked at.
    """
    known = [*values]
    low, high = _held(min(known)), _held(max(known))
    # Of equal values an axis needs some length, however small the margin is.
    least = 1 + 2 * max(margin, _LEAST_MARGIN)
    low, high = min(low, high / least), max(high, low * least)
    reached = [*ends]
    # On either side of them as much as half of theirs makes theirs half of the whole.
    if high / low > _LINEAR_SPAN:
        pad = (high / low) ** 0.06
        low, high = low / pad, high * pad
        room = math.sqrt(high / low)
        limits = max(low / room, min(low, _LEAST)), min(high * room, max(high, _MOST))
        least, most = _reaching((low, high), reached, limits)
        return log_axis(least, most, most_ticks=5)
    pad = (high - low) * 0.08
    low, high = low - pad, high + pad
    room = (high - low) / 2
    return linear_axis(*_reaching((low, high), reached, (low - room, high + room)), most_ticks=5)


def _reaching(
    within: tuple[float, float], ends: Sequence[float], limits: tuple[float, float]
) -> tuple[float, float]:
    """From the least end to the most, but no less than `within` and no more than to the limits."""
    low, high = min(ends, default=math.inf), max(ends, default=-math.inf)
    return max(min(low, within[0]), limits[0]), min(max(high, within[1]), limits[1])


def _held(value: float) -> float:
    return min(max(value, _LEAST), _MOST)


def _x(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * _SIZE)


def _y(axis: Axis, value: float) -> int:
    return round((1 - axis.clipped(min(max(value, -_MOST), _MOST))) * _SIZE)


def _ys(axis: Axis, values: Sequence[float]) -> list[int]:
    """`_y` of many values at once."""
    held = np.clip(np.asarray(values, dtype=np.float64), -_MOST, _MOST)
    if axis.scale == "linear":
        shares = (held - axis.low) / (axis.high - axis.low)
    else:
        # What is not above 0 lies at the lower edge.
        above = np.where(held > 0, held, axis.low)
        shares = np.log(above / axis.low) / math.log(axis.high / axis.low)
    return [*map(int, np.rint((1 - np.clip(shares, 0.0, 1.0)) * _SIZE).tolist())]
