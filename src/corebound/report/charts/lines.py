"""Line charts: latency percentiles, scaling over threads, traces, throughput against latency."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import img_attributes
from corebound.report.charts.axis import SIZE, Axis, horizontal_grid, vertical_grid, x_of, y_of

# The first share of a curve, and the smallest remaining share that it shows.
FIRST, LEAST_LEFT = 0.5, 0.0001


class PercentileCurve(Struct, frozen=True, kw_only=True):
    """The latencies of one configuration.

    Attributes:
        mode: CSS class of the colour.
        dash: The line style, counted from 0; it distinguishes configurations of one mode.
        points: (share of the requests, latency in the unit of the axis), rising.
    """

    mode: str
    dash: int
    points: tuple[tuple[float, float], ...]


def percentile_position(share: float) -> float:
    """The horizontal position of a share of the requests: 0 at p50, 1 at p99.99.

    Each reduction of the remaining requests by a factor of ten takes the same width.

    >>> [round(percentile_position(share), 3) for share in (0.5, 0.95, 0.9999)]
    [0.0, 0.27, 1.0]
    """
    left = max(1 - share, LEAST_LEFT)
    return math.log((1 - FIRST) / left) / math.log((1 - FIRST) / LEAST_LEFT)


def percentiles_svg(
    curves: Sequence[PercentileCurve], axis: Axis, shares: Sequence[float], says: str
) -> str:
    """Draw curves over one vertical axis, with a grid line at each of `shares`."""
    columns = "".join(f"M{percentile_position(share) * SIZE:.1f} 0V{SIZE}" for share in shares)
    lines = "".join(
        f'<path class="ln {curve.mode} dash-{curve.dash}" d="M{_percentile_path(curve, axis)}"/>'
        for curve in curves
        if len(curve.points) > 1
    )
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{img_attributes(says)}>'
        f'<path class="grid" d="{horizontal_grid(axis)}{columns}"/>{lines}</svg>'
    )


def _percentile_path(curve: PercentileCurve, axis: Axis) -> str:
    return "L".join(
        f"{percentile_position(share) * SIZE:.1f} {y_of(axis, latency)}"
        for share, latency in curve.points
    )


class ScalingPoint(Struct, frozen=True, kw_only=True):
    """A point of a curve.

    It has `threads`, the speed relative to the curve's first point, and its interval's ends.
    """

    threads: float
    speed: float
    low: float | None
    high: float | None


class ScalingCurve(Struct, frozen=True, kw_only=True):
    """One configuration; `dash` is its line style, so that colour is not the only difference."""

    mode: str
    dash: int
    points: tuple[ScalingPoint, ...]


def scaling_svg(curves: Sequence[ScalingCurve], across: Axis, up: Axis, says: str) -> str:
    """Draw curves with the ideal, on which the speed grows in proportion to the threads.

    Args:
        curves: Each begins at a speed of 1.
        across: The axis of threads; begins at the fewest.
        up: The axis of speed.
        says: Alternative text.
    """
    ideal = _ideal_speedup(across, up)
    drawn = "".join(_scaling_curve(curve, across, up) for curve in curves)
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{img_attributes(says)}>'
        f'<path class="grid" d="{horizontal_grid(up)}{vertical_grid(across)}"/>'
        f'<path class="rule" d="{ideal}"/>{drawn}</svg>'
    )


def _ideal_speedup(across: Axis, up: Axis) -> str:
    """The line from the fewest threads at 1 to the chart's edge, whatever the axes' scales."""
    fewest = across.low
    most = min(across.high, fewest * up.high)
    steps = 40
    places = [fewest * (most / fewest) ** (step / steps) for step in range(steps + 1)]
    return "M" + "L".join(f"{x_of(across, at)} {y_of(up, at / fewest)}" for at in places)


def _scaling_curve(curve: ScalingCurve, across: Axis, up: Axis) -> str:
    at = [(x_of(across, point.threads), point) for point in curve.points]
    line = "L".join(f"{x} {y_of(up, point.speed)}" for x, point in at)
    dots = "".join(f"M{x} {y_of(up, point.speed)}h0" for x, point in at)
    whiskers = "".join(
        f"M{x} {y_of(up, point.low)}V{y_of(up, point.high)}"
        for x, point in at
        if point.low is not None and point.high is not None
    )
    bounds = f'<path class="whisker {curve.mode}" d="{whiskers}"/>' if whiskers else ""
    return (
        f'{bounds}<path class="ln {curve.mode} dash-{curve.dash}" d="M{line}"/>'
        f'<path class="spot {curve.mode}" d="{dots}"/>'
    )


# More points than this are finer than a screen shows. The extremes of each column keep every peak.
MOST_TRACE_POINTS = 1_600


class Trace(Struct, frozen=True, kw_only=True):
    """The content of a trace.

    Attributes:
        mode: CSS class of the colour.
        values: One per iteration, in the unit of `axis`.
        cut: The number of iterations from the start that no statistic uses.
        axis: Vertical; the line leaves the drawing at its top for values beyond the axis.
        alt_text: Alternative text.
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
    line = "".join(f"M{'L'.join(piece)}" for piece in _visible_parts(points, last, trace.axis))
    # The cut lies between the last discarded iteration and the first used one.
    edge = min(max(trace.cut - 0.5, 0) / last, 1) * SIZE if trace.cut else 0
    wash = f'<path class="wash" d="M0 0H{edge:.1f}V{SIZE}H0z"/>' if edge else ""
    rule = f'<path class="rule" d="M{edge:.1f} 0V{SIZE}"/>' if 0 < edge < SIZE else ""
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"'
        f"{img_attributes(trace.alt_text)}>"
        f'{wash}<path class="grid" d="{horizontal_grid(trace.axis)}"/>{rule}'
        f'<path class="ln {trace.mode}" d="{line}"/></svg>'
    )


def _visible_parts(points: Sequence[tuple[int, float]], last: int, axis: Axis) -> list[list[str]]:
    """The coordinates of the visible parts of the line.

    A part ends where the line leaves the chart.
    """
    pieces: list[list[str]] = []
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


def _coordinates(across: float, up: float) -> str:
    return f"{across * SIZE:.1f} {(1 - max(0.0, up)) * SIZE:.1f}"


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


class LoadPoint(Struct, frozen=True, kw_only=True):
    """One load: throughput and latency in the units of their axes, with their intervals' ends."""

    per_s: float
    latency: float
    per_s_ends: tuple[float, float] | None
    latency_ends: tuple[float, float] | None


class TradeoffCurve(Struct, frozen=True, kw_only=True):
    """One configuration under its loads, by throughput; a single load is a dot without a line."""

    mode: str
    dash: int
    spots: tuple[LoadPoint, ...]


def tradeoff_svg(curves: Sequence[TradeoffCurve], across: Axis, up: Axis, says: str) -> str:
    """Draw configurations, with throughput growing to the right and latency upwards.

    Args:
        curves: The curves; values beyond an axis are drawn at its end.
        across: The axis of throughput.
        up: The axis of latency.
        says: Alternative text.
    """
    drawn = "".join(_tradeoff_curve(curve, across, up) for curve in curves)
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{img_attributes(says)}>'
        f'<path class="grid" d="{horizontal_grid(up)}{vertical_grid(across)}"/>{drawn}</svg>'
    )


def _tradeoff_curve(curve: TradeoffCurve, across: Axis, up: Axis) -> str:
    places = [(x_of(across, spot.per_s), y_of(up, spot.latency), spot) for spot in curve.spots]
    crosses = "".join(_error_bars(x, y, spot, across, up) for x, y, spot in places)
    bounds = f'<path class="whisker {curve.mode}" d="{crosses}"/>' if crosses else ""
    line = "L".join(f"{x} {y}" for x, y, _ in places)
    joined = (
        f'<path class="ln {curve.mode} dash-{curve.dash}" d="M{line}"/>' if len(places) > 1 else ""
    )
    dots = "".join(f"M{x} {y}h0" for x, y, _ in places)
    return f'{bounds}{joined}<path class="spot {curve.mode}" d="{dots}"/>'


def _error_bars(x: str, y: str, spot: LoadPoint, across: Axis, up: Axis) -> str:
    drawn = ""
    if spot.per_s_ends:
        low, high = spot.per_s_ends
        drawn += f"M{x_of(across, low)} {y}H{x_of(across, high)}"
    if spot.latency_ends:
        low, high = spot.latency_ends
        drawn += f"M{x} {y_of(up, low)}V{y_of(up, high)}"
    return drawn
