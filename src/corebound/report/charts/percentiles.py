"""Latency by percentile: what most requests take, and what the unlucky ones do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import image
from corebound.report.charts.axis import Axis
from corebound.report.charts.viewbox import SIZE, levels, y_of

# Where a curve begins, and the least share left over that it shows.
FIRST, LEAST_LEFT = 0.5, 0.0001


class Curve(Struct, frozen=True, kw_only=True):
    """One setting's latencies.

    Attributes:
        mode: Class of the colour.
        dash: Which of the line styles, counted from 0: settings of one mode differ by it.
        points: (share of the requests, latency in the unit of the axis), rising.
    """

    mode: str
    dash: int
    points: tuple[tuple[float, float], ...]


def across(share: float) -> float:
    """How far along the chart a share of the requests stands: 0 at p50, 1 at p99.99.

    Each ten times fewer requests left over take the same room.

    >>> round(across(0.5), 3), round(across(0.95), 3), round(across(0.9999), 3)
    (0.0, 0.27, 1.0)
    """
    left = max(1 - share, LEAST_LEFT)
    return math.log((1 - FIRST) / left) / math.log((1 - FIRST) / LEAST_LEFT)


def percentiles_svg(curves: Sequence[Curve], axis: Axis, shares: Sequence[float], says: str) -> str:
    """Draw curves over one vertical axis; `shares` get a line of the grid each."""
    columns = "".join(f"M{across(share) * SIZE:.1f} 0V{SIZE}" for share in shares)
    lines = "".join(
        f'<path class="ln {curve.mode} dash-{curve.dash}" d="M{_line(curve, axis)}"/>'
        for curve in curves
        if len(curve.points) > 1
    )
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{image(says)}>'
        f'<path class="grid" d="{levels(axis)}{columns}"/>{lines}</svg>'
    )


def _line(curve: Curve, axis: Axis) -> str:
    return "L".join(
        f"{across(share) * SIZE:.1f} {y_of(axis, latency)}" for share, latency in curve.points
    )
