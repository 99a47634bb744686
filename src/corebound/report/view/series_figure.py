"""A series' figures for the eye: in the unit that they read best in."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from corebound.model.series import Series
from corebound.units import significant, time_unit


def display_unit(series: Series, figures: Sequence[float]) -> tuple[float, str]:
    """What a figure is divided by for the eye, and the unit's name then."""
    if series.unit == "bytes":
        return _size_unit(statistics.median(figures))
    if series.unit != "ns":
        return 1.0, series.unit
    return time_unit(statistics.median(figures))


def _size_unit(size_bytes: float) -> tuple[float, str]:
    units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    return next(((float(size), name) for size, name in units if size_bytes >= size), (1.0, "bytes"))


def figure_text(series: Series, figure: float) -> str:
    """A series' figure with its unit."""
    length, unit = display_unit(series, [figure])
    return f"{significant(figure / length)} {unit}".strip()
