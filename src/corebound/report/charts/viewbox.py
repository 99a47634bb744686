"""Places in a drawing that is a square of 1000, which the page stretches to what room there is."""

from __future__ import annotations

from corebound.report.charts.axis import Axis

SIZE = 1000


def x_of(across: Axis, value: float) -> str:
    """How far to the right a value lies; one beyond the axis lies at its end."""
    return f"{across.clipped(value) * SIZE:.1f}"


def y_of(up: Axis, value: float) -> str:
    """How far down a value lies on an axis that goes upwards; one beyond it lies at its end."""
    return f"{(1 - up.clipped(value)) * SIZE:.1f}"


def levels(up: Axis) -> str:
    """The path of a line across at each tick of an axis that goes upwards."""
    return "".join(f"M0 {y_of(up, tick)}H{SIZE}" for tick in up.ticks)


def columns(across: Axis) -> str:
    """The path of a line from top to bottom at each tick of an axis that goes to the right."""
    return "".join(f"M{x_of(across, tick)} 0V{SIZE}" for tick in across.ticks)
