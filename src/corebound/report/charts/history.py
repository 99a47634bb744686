"""History charts: points with intervals, levels between changes, and numbered change marks."""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from corebound.report.charts.axis import LEAST, MOST, Axis, limited, linear_axis, log_axis
from corebound.report.charts.svg import describe_series, path, svg

FloatArray = npt.NDArray[np.float64]

# The view box of a chart: half a unit is less than a pixel. Its paths are relative, because
# distances from one point to the next have fewer digits than places.
_WIDTH, _HEIGHT = 1000, 300
# The view box of a sparkline; small whole numbers keep a table of 500 small.
_SPARK_WIDTH, _SPARK_HEIGHT = 96, 20
SPARK_POINTS = 32
# A small diamond around the last point, in the same path because tables have many sparklines.
_SPARK_END = "m-1 0 1-2 1 2-1 2z"
# Values that differ by less than this fill only a part of a sparkline, so that noise looks flat.
_SPARK_LEAST_SPAN = 1.08
# Arrowheads for an interval that leaves the chart, at the edge where it does.
_HEAD_DOWN, _HEAD_UP = "l-5-12m5 12 5-12", "l-5 12m5-12 5 12"
# A shorter axis would be below the precision of a double.
_LEAST_MARGIN = 1e-6
# A history that varies by more than this gets a logarithmic axis.
_LINEAR_SPAN = 4.0


class SeriesTrack(Struct, frozen=True, kw_only=True):
    """One series; each point has a share of the width, a value, and the ends of its interval.

    Attributes:
        mode: CSS class of the colour.
        dash: The line style of the levels, so that colour is not the only difference.
        shares, values: Of the points.
        lows, highs: Of the points; NaN without an interval.
        starts: The points that come first or after a gap, by index.
        missing: Where a point has no value.
        levels: (begin, end, value) of each segment between changes; begin and end are shares of
            the width.
    """

    mode: str
    dash: int
    shares: Sequence[float]
    values: FloatArray
    lows: FloatArray
    highs: FloatArray
    starts: frozenset[int]
    missing: tuple[float, ...]
    levels: tuple[tuple[float, float, float], ...]


class HistoryChart(Struct, frozen=True, kw_only=True):
    """The content of a history chart.

    Attributes:
        tracks: The series; the most important is last, so that it is drawn on top.
        axis: Vertical.
        marks: (median estimate, surely after, no later than) of each change, as shares of the
            width.
        borders: Where the environment changed: host, kernel, environment or scenario.
        margin: The least change that counts; 0.02 is a ratio of 1.02 or its reciprocal.
        flips: Where the environment changed too often for lines: ticks at the top.
        compared: The positions of the runs that the page compares.
    """

    tracks: tuple[SeriesTrack, ...]
    axis: Axis
    marks: tuple[tuple[float, float, float], ...]
    borders: tuple[float, ...]
    margin: float
    alt_text: str
    flips: tuple[float, ...] = ()
    compared: tuple[float, ...] = ()


def history_svg(chart: HistoryChart) -> str:
    """Draw a history; values beyond the axis are drawn at its edge, intervals with an arrowhead."""
    grid = "".join(f"M0 {_y(chart.axis, tick)}H{_WIDTH}" for tick in chart.axis.ticks)
    bands = "".join(
        f"M{_x(begin)} 0H{_x(end)}V{_HEIGHT}H{_x(begin)}z" for _, begin, end in chart.marks
    )
    return svg(
        _WIDTH,
        _HEIGHT,
        chart.alt_text,
        path("wash", bands),
        path("grid", grid),
        *(_threshold(track, chart) for track in chart.tracks),
        path("node", "".join(f"M{_x(border)} 0V{_HEIGHT}" for border in chart.borders)),
        path("flip", "".join(f"M{x} 0v12" for x in dict.fromkeys(map(_x, chart.flips)))),
        path("rule", "".join(f"M{_x(at)} 0V{_HEIGHT}" for at, _, _ in chart.marks)),
        path("one", "".join(f"M{_x(at)} 0V{_HEIGHT}" for at in chart.compared)),
        *(_track(track, chart.axis) for track in chart.tracks),
    )


def _threshold(track: SeriesTrack, chart: HistoryChart) -> str:
    """Around each level the band of values that do not count as a change from it."""
    span = 1 + chart.margin
    bands = (
        f"M{_x(begin)} {_y(chart.axis, value * span)}H{_x(end)}"
        f"V{_y(chart.axis, value / span)}H{_x(begin)}z"
        for begin, end, value in track.levels
    )
    return path(f"threshold {track.mode}", "".join(bands))


def _track(track: SeriesTrack, axis: Axis) -> str:
    across, values = _xs(track.shares), _ys(axis, track.values)
    bounded = np.flatnonzero(~np.isnan(track.lows)).tolist()
    whiskers, heads, at = [], [], (0, 0)
    for index, low, high in zip(
        bounded, _ys(axis, track.lows[bounded]), _ys(axis, track.highs[bounded]), strict=True
    ):
        x = across[index]
        whiskers.append(f"m{x - at[0]}{low - at[1]: }v{high - low}")
        at = x, high
        heads += [f"M{x} {_HEIGHT}{_HEAD_DOWN}"] if track.lows[index] < axis.low else []
        heads += [f"M{x} 0{_HEAD_UP}"] if track.highs[index] > axis.high else []
    levels = "".join(
        f"M{_x(begin)} {_y(axis, value)}H{_x(end)}" for begin, end, value in track.levels
    )
    steps = [
        f"{x - before_x}{y - before_y: }"
        for (before_x, before_y), (x, y) in itertools.pairwise(
            ((0, 0), *zip(across, values, strict=True))
        )
    ]
    return "".join(
        (
            path(f"whisker {track.mode}", "".join(whiskers)),
            path(f"open {track.mode}", "".join(heads)),
            path(f"thin {track.mode}", _lines(steps, track.starts)),
            path(f"run {track.mode}", "".join(f"m{step}h0" for step in steps)),
            path(f"level {track.mode} dash-{track.dash}", levels),
            path("lost", "".join(f"M{_x(x)} {_HEIGHT}v-12" for x in track.missing)),
        )
    )


def _lines(steps: Sequence[str], starts: frozenset[int]) -> str:
    """A line through the points from each start to the next, from the steps between all points."""
    if len(starts) == len(steps):
        return ""
    # After an `m`, a pair is a line and needs no letter.
    return "".join(
        f"m{step}" if index in starts else step if step[0] == "-" else f" {step}"
        for index, step in enumerate(steps)
    )


def exceeds_axis(tracks: Iterable[SeriesTrack], axis: Axis) -> bool:
    """Whether an interval reaches beyond the axis."""
    return any(((track.lows < axis.low) | (track.highs > axis.high)).any() for track in tracks)


def sparkline_svg(values: Sequence[float], mode: str) -> str:
    """Draw a sparkline of a series with its last point, small enough for a table row.

    Args:
        values: Values above 0, in order; NaN for a missing value.
        mode: CSS class of the colour.
    """
    columns = _columns(values)
    finite_values = [value for value in columns if value is not None]
    if not finite_values:
        return ""
    low, high = math.log(limited(min(finite_values))), math.log(limited(max(finite_values)))
    spare = math.log(_SPARK_LEAST_SPAN) - (high - low)
    if spare > 0:
        low, high = low - spare / 2, high + spare / 2
    room = _SPARK_HEIGHT - 4
    pace = (_SPARK_WIDTH - 2) / max(len(columns) - 1, 1)
    # All coordinates are relative to the point before. After an `m`, a pair is a line and needs no
    # letter.
    line: list[str] = []
    at, step = (0, 0), "m"
    for index, value in enumerate(columns):
        if value is None:
            # A line of a single point is not drawn.
            if step != "m" and line[-1].startswith("m"):
                line.append(" 2 0")
                at = at[0] + 2, at[1]
            step = "m"
            continue
        share = (math.log(limited(value)) - low) / (high - low)
        to = 1 + round(index * pace), 2 + round((1 - share) * room)
        line.append(f"{step}{to[0] - at[0]}{to[1] - at[1]: }")
        at, step = to, " "
    return svg(
        _SPARK_WIDTH,
        _SPARK_HEIGHT,
        describe_series(values),
        path(f"ln {mode}", f"{''.join(line)}{_SPARK_END}"),
        kind="spark",
    )


def _columns(values: Sequence[float]) -> list[float | None]:
    """At most `SPARK_POINTS` values: the medians of that many equal segments."""
    count = min(len(values), SPARK_POINTS)
    columns: list[float | None] = []
    for column in range(count):
        stretch = values[column * len(values) // count : (column + 1) * len(values) // count]
        finite_values = [value for value in stretch if not math.isnan(value)]
        columns.append(statistics.median_low(finite_values) if finite_values else None)
    return columns


def value_axis(values: Iterable[float], *, margin: float, ends: Iterable[float] = ()) -> Axis:
    """A vertical axis that holds all values and is longer than a change of `margin`.

    Args:
        values: At least one, above 0 and finite.
        margin: The smallest change that matters; the axis spans at least twice as much either way.
        ends: Ends of the values' intervals; may be empty, without NaN. The axis includes them only
            as long as the values keep half of its length, because the values matter most.
    """
    known = [*values]
    low, high = limited(min(known)), limited(max(known))
    # Equal values need an axis of some length, however small the margin is.
    least = 1 + 2 * max(margin, _LEAST_MARGIN)
    low, high = min(low, high / least), max(high, low * least)
    reached = [*ends]
    # Padding by half of the values' span on each side leaves them half of the axis.
    if high / low > _LINEAR_SPAN:
        pad = (high / low) ** 0.06
        low, high = low / pad, high * pad
        room = math.sqrt(high / low)
        limits = max(low / room, min(low, LEAST)), min(high * room, max(high, MOST))
        least, most = _extended((low, high), reached, limits)
        return log_axis(least, most, most_ticks=5)
    pad = (high - low) * 0.08
    low, high = low - pad, high + pad
    room = (high - low) / 2
    return linear_axis(*_extended((low, high), reached, (low - room, high + room)), most_ticks=5)


def _extended(
    within: tuple[float, float], ends: Sequence[float], limits: tuple[float, float]
) -> tuple[float, float]:
    """The range of the ends, at least as wide as `within` and at most as wide as `limits`."""
    low, high = min(ends, default=math.inf), max(ends, default=-math.inf)
    return max(min(low, within[0]), limits[0]), min(max(high, within[1]), limits[1])


def _x(share: float) -> int:
    return _xs([share])[0]


def _xs(shares: Sequence[float]) -> list[int]:
    """The horizontal places of shares of the width."""
    limited = np.clip(np.asarray(shares, dtype=np.float64), 0.0, 1.0)
    return [*map(int, np.rint(limited * _WIDTH).tolist())]


def _y(axis: Axis, value: float) -> int:
    return _ys(axis, np.array([value]))[0]


def _ys(axis: Axis, values: FloatArray) -> list[int]:
    """The vertical places of values; one beyond the axis is at its edge."""
    limited = np.clip(values, -MOST, MOST)
    if axis.scale == "linear":
        shares = (limited - axis.low) / (axis.high - axis.low)
    else:
        # Values that are not above 0 are drawn at the lower edge.
        above = np.where(limited > 0, limited, axis.low)
        shares = np.log(above / axis.low) / math.log(axis.high / axis.low)
    return [*map(int, np.rint((1 - np.clip(shares, 0.0, 1.0)) * _HEIGHT).tolist())]
