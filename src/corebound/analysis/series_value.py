"""Formats the values of a series in the unit that is easiest to read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from corebound.analysis.wording import ValueWithBounds, within
from corebound.records.history import Series
from corebound.units import percent, significant, time_unit


def display_unit(series: Series, figures: Sequence[float]) -> tuple[float, str]:
    """The divisor that converts a value for display, and the display unit."""
    if series.unit == "bytes":
        return _size_unit(statistics.median(figures))
    if series.unit != "ns":
        return 1.0, series.unit
    return time_unit(statistics.median(figures))


def _size_unit(size_bytes: float) -> tuple[float, str]:
    units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    return next(((float(size), name) for size, name in units if size_bytes >= size), (1.0, "bytes"))


def figure_text(series: Series, figure: float) -> str:
    """A value of a series with its unit."""
    length, unit = display_unit(series, [figure])
    return f"{significant(figure / length)} {unit}".strip()


def latest_of(series: Series) -> ValueWithBounds:
    """The last value of a series, with its interval."""
    last = next((one for one in reversed(series.points) if one.figure is not None), None)
    if last is None or last.figure is None:
        return ValueWithBounds(value="–")
    value = figure_text(series, last.figure)
    if last.bounds is None:
        return ValueWithBounds(value=value)
    length, unit = display_unit(series, [last.figure])
    ends = within(*last.bounds, lambda end: f"{significant(end / length)} {unit}".strip())
    return ValueWithBounds(value=value, ends=ends)


def lack_of(series: Series) -> str:
    """The date since which a series has points but no values; else empty."""
    points = series.points
    at = len(points)
    while at and math.isnan(points.figures[at - 1]):
        at -= 1
    return f"none since {points.moments[at].at[:10]}" if at < len(points) else ""


def interval_name(series: Iterable[Series]) -> str:
    """What the brackets below the values of these series contain."""
    shares = {one.confidence for one in series}
    return f"{percent(shares.pop(), 0)} interval" if len(shares) == 1 else "interval"


def figures_span(series: Series) -> str:
    """The range of a series' values; empty if it has none."""
    figures = series.points.measured
    if not figures:
        return ""
    low, high = min(figures), max(figures)
    length, unit = display_unit(series, [high])
    least, most = significant(low / length), significant(high / length)
    return f"{least if least == most else f'{least} to {most}'} {unit}".strip()
