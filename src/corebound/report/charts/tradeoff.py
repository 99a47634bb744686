"""Throughput against latency of server configurations, both with intervals."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import image
from corebound.report.charts.axis import Axis
from corebound.report.charts.viewbox import SIZE, columns, levels, x_of, y_of


class Spot(Struct, frozen=True, kw_only=True):
    """One load: throughput and latency in the units of their axes, with their intervals' ends."""

    per_s: float
    latency: float
    per_s_ends: tuple[float, float] | None
    latency_ends: tuple[float, float] | None


class TradeCurve(Struct, frozen=True, kw_only=True):
    """One configuration under its loads, by throughput; a single load is a dot without a line."""

    mode: str
    dash: int
    spots: tuple[Spot, ...]


def trade_svg(curves: Sequence[TradeCurve], across: Axis, up: Axis, says: str) -> str:
    """Draw configurations, with throughput growing to the right and latency upwards.

    Args:
        curves: The curves; values beyond an axis are drawn at its end.
        across: The axis of throughput.
        up: The axis of latency.
        says: Alternative text.
    """
    drawn = "".join(_curve(curve, across, up) for curve in curves)
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{image(says)}>'
        f'<path class="grid" d="{levels(up)}{columns(across)}"/>{drawn}</svg>'
    )


def _curve(curve: TradeCurve, across: Axis, up: Axis) -> str:
    places = [(x_of(across, spot.per_s), y_of(up, spot.latency), spot) for spot in curve.spots]
    crosses = "".join(_cross(x, y, spot, across, up) for x, y, spot in places)
    bounds = f'<path class="whisker {curve.mode}" d="{crosses}"/>' if crosses else ""
    line = "L".join(f"{x} {y}" for x, y, _ in places)
    joined = (
        f'<path class="ln {curve.mode} dash-{curve.dash}" d="M{line}"/>' if len(places) > 1 else ""
    )
    dots = "".join(f"M{x} {y}h0" for x, y, _ in places)
    return f'{bounds}{joined}<path class="spot {curve.mode}" d="{dots}"/>'


def _cross(x: str, y: str, spot: Spot, across: Axis, up: Axis) -> str:
    drawn = ""
    if spot.per_s_ends:
        low, high = spot.per_s_ends
        drawn += f"M{x_of(across, low)} {y}H{x_of(across, high)}"
    if spot.latency_ends:
        low, high = spot.latency_ends
        drawn += f"M{x} {y_of(up, low)}V{y_of(up, high)}"
    return drawn
