"""Coordinates in a square drawing of 1000 units, which the page stretches to fit."""

from __future__ import annotations

from corebound.report.charts.axis import Axis

SIZE = 1000


def x_of(across: Axis, value: float) -> str:
    """The horizontal coordinate of a value; a value beyond the axis is placed at its end."""
    return f"{across.clipped(value) * SIZE:.1f}"


def y_of(up: Axis, value: float) -> str:
    """The vertical coordinate of a value on an upward axis; one beyond it is placed at its end."""
    return f"{(1 - up.clipped(value)) * SIZE:.1f}"


def levels(up: Axis) -> str:
    """The path of the horizontal grid lines, one at each tick of the vertical axis."""
    return "".join(f"M0 {y_of(up, tick)}H{SIZE}" for tick in up.ticks)


def columns(across: Axis) -> str:
    """The path of the vertical grid lines, one at each tick of the horizontal axis."""
    return "".join(f"M{x_of(across, tick)} 0V{SIZE}" for tick in across.ticks)
