"""Line charts: curves over two axes, and the trace of every iteration of a launch."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct

from corebound.analysis.wording import Label
from corebound.report.charts.axis import (
    SIZE,
    Axis,
    Tick,
    horizontal_grid,
    horizontal_ticks,
    plain_tick,
    vertical_grid,
    vertical_ticks,
    x_of,
    y_of,
)
from corebound.report.charts.svg import path, svg


class CurvePoint(Struct, frozen=True, kw_only=True):
    """A point in the units of its axes, with its intervals' ends."""

    x: float
    y: float
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None


class Curve(Struct, frozen=True, kw_only=True):
    """One configuration; a single point is a dot without a line.

    Attributes:
        label: Its name, in its colour.
        dash: The line style, counted from 0, so that colour is not the only difference.
        has_dots: Whether its points are marked.
    """

    label: Label
    dash: int
    points: tuple[CurvePoint, ...]
    has_dots: bool = True


class CurveChart(Struct, frozen=True, kw_only=True):
    """The content of a chart of curves.

    Attributes:
        across, up: Its axes; values beyond them are drawn at their ends.
        texts: What the ticks of each axis say.
        unit: Of the vertical axis; empty without one.
        has_ideal: Whether to draw the line on which `y` grows in proportion to `x`, from 1 at the
            start of the horizontal axis.
    """

    curves: tuple[Curve, ...]
    across: Axis
    up: Axis
    alt_text: str
    texts: tuple[Callable[[float], str], Callable[[float], str]] = (plain_tick, plain_tick)
    unit: str = ""
    has_ideal: bool = False

    @property
    def along(self) -> tuple[Tick, ...]:
        return horizontal_ticks(self.across, self.texts[0])

    @property
    def levels(self) -> tuple[Tick, ...]:
        return vertical_ticks(self.up, self.texts[1])


def curves_svg(chart: CurveChart) -> str:
    """Draw curves over a grid with a line at each tick."""
    across, up = chart.across, chart.up
    return svg(
        SIZE,
        SIZE,
        chart.alt_text,
        path("grid", horizontal_grid(up) + vertical_grid(across)),
        path("rule", _ideal(across, up)) if chart.has_ideal else "",
        *(_curve(curve, across, up) for curve in chart.curves),
    )


def _ideal(across: Axis, up: Axis) -> str:
    """The line from the start at 1 to the chart's edge, whatever the axes' scales."""
    fewest = across.low
    most = min(across.high, fewest * up.high)
    steps = 40
    places = [fewest * (most / fewest) ** (step / steps) for step in range(steps + 1)]
    return "M" + "L".join(f"{x_of(across, at)} {y_of(up, at / fewest)}" for at in places)


def _curve(curve: Curve, across: Axis, up: Axis) -> str:
    mode = curve.label.mode
    places = [(x_of(across, point.x), y_of(up, point.y), point) for point in curve.points]
    bars = "".join(_error_bars(x, y, point, across, up) for x, y, point in places)
    line = "L".join(f"{x} {y}" for x, y, _ in places)
    dots = "".join(f"M{x} {y}h0" for x, y, _ in places)
    return (
        path(f"whisker {mode}", bars)
        + (path(f"ln {mode} dash-{curve.dash}", f"M{line}") if len(places) > 1 else "")
        + (path(f"spot {mode}", dots) if curve.has_dots else "")
    )


def _error_bars(x: str, y: str, point: CurvePoint, across: Axis, up: Axis) -> str:
    drawn = ""
    if point.x_ends:
        low, high = point.x_ends
        drawn += f"M{x_of(across, low)} {y}H{x_of(across, high)}"
    if point.y_ends:
        low, high = point.y_ends
        drawn += f"M{x} {y_of(up, low)}V{y_of(up, high)}"
    return drawn


# More points than this are finer than a column of a desk shows. The extremes keep every peak.
MOST_TRACE_POINTS = 600


class Trace(Struct, frozen=True, kw_only=True):
    """The content of a trace.

    Attributes:
        mode: CSS class of the colour.
        values: One per iteration, in the unit of `axis`.
        cut: The number of iterations from the start that no statistic uses.
        axis: Vertical; the line leaves the drawing at its top for values beyond the axis.
    """

    mode: str
    values: tuple[float, ...]
    cut: int
    axis: Axis
    alt_text: str


def trace_svg(trace: Trace) -> str:
    """Draw a trace with its cut; the horizontal axis spans all iterations."""
    points = envelope(trace.values, most=MOST_TRACE_POINTS)
    last = max(len(trace.values) - 1, 1)
    line = "".join(map(_steps, _visible_parts(points, last, trace.axis)))
    # The cut lies between the last discarded iteration and the first used one.
    edge = min(max(trace.cut - 0.5, 0) / last, 1) * SIZE if trace.cut else 0
    return svg(
        SIZE,
        SIZE,
        trace.alt_text,
        path("wash", f"M0 0H{edge:.1f}V{SIZE}H0z") if edge else "",
        path("grid", horizontal_grid(trace.axis)),
        path("rule", f"M{edge:.1f} 0V{SIZE}") if 0 < edge < SIZE else "",
        path(f"ln {trace.mode}", line),
    )


def _steps(points: Sequence[tuple[int, int]]) -> str:
    """A line as steps from point to point, which have fewer digits than places."""
    x, y = points[0]
    steps = [f"{to[0] - at[0]}{to[1] - at[1]: }" for at, to in pairwise(points)]
    return f"M{x} {y}" + (f"l{' '.join(steps)}" if steps else "")


def _visible_parts(
    points: Sequence[tuple[int, float]], last: int, axis: Axis
) -> list[list[tuple[int, int]]]:
    """The coordinates of the visible parts of the line.

    A part ends where the line leaves the chart.
    """
    pieces: list[list[tuple[int, int]]] = []
    before: tuple[float, float] | None = None
    for index, value in points:
        across, up = index / last, axis.share(value)
        if before is not None and (before[1] > 1) != (up > 1):
            part = (1 - before[1]) / (up - before[1])
            edge = _coordinates(before[0] + (across - before[0]) * part, 1.0)
            if up > 1:
                pieces[-1].append(edge)
            else:
                pieces.append([edge])
        elif before is None and up <= 1:
            pieces.append([])
        if up <= 1:
            pieces[-1].append(_coordinates(across, up))
        before = across, up
    return pieces


def _coordinates(across: float, up: float) -> tuple[int, int]:
    return round(across * SIZE), round((1 - max(0.0, up)) * SIZE)


def envelope(values: Sequence[float], *, most: int) -> tuple[tuple[int, float], ...]:
    """Thin a series to its extremes: each point is (index, value), in order.

    All points are kept if there are at most `most`. Otherwise the minimum and maximum of each of
    `most / 2` equal segments are kept.

    >>> envelope([1, 5, 2, 9, 3, 4], most=4)
    ((0, 1), (1, 5), (3, 9), (4, 3))
    """
    if len(values) <= most:
        return tuple(enumerate(values))
    columns = most // 2
    kept: list[tuple[int, float]] = []
    for column in range(columns):
        begin = column * len(values) // columns
        stretch = values[begin : (column + 1) * len(values) // columns]
        least = begin + stretch.index(min(stretch))
        greatest = begin + stretch.index(max(stretch))
        kept.extend((index, values[index]) for index in sorted({least, greatest}))
    return tuple(kept)
