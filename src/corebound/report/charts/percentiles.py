"""Latency by percentile: typical requests and the slow tail."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import image
from corebound.report.charts.axis import Axis
from corebound.report.charts.viewbox import SIZE, levels, y_of

# The first share of a curve, and the smallest remaining share that it shows.
FIRST, LEAST_LEFT = 0.5, 0.0001


class Curve(Struct, frozen=True, kw_only=True):
    """The latencies of one configuration.

    Attributes:
        mode: CSS class of the colour.
        dash: The line style, counted from 0; it distinguishes configurations of one mode.
        points: (share of the requests, latency in the unit of the axis), rising.
    """

    mode: str
    dash: int
    points: tuple[tuple[float, float], ...]


def across(share: float) -> float:
    """The horizontal position of a share of the requests: 0 at p50, 1 at p99.99.

    Each reduction of the remaining requests by a factor of ten takes the same width.

    >>> round(across(0.5), 3), round(across(0.95), 3), round(across(0.9999), 3)
    (0.0, 0.27, 1.0)
    """
    left = max(1 - share, LEAST_LEFT)
    return math.log((1 - FIRST) / left) / math.log((1 - FIRST) / LEAST_LEFT)


def percentiles_svg(curves: Sequence[Curve], axis: Axis, shares: Sequence[float], says: str) -> str:
    """Draw curves over one vertical axis, with a grid line at each of `shares`."""
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
