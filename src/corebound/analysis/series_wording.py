"""The wording of series: their values and units, and when they were last measured."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from corebound.analysis.wording import ValueWithBounds, day, within
from corebound.records.history import HistoryPoint, Moment, Series
from corebound.stats.history.regressions import min_values_to_detect
from corebound.units import percent, significant, time_unit


def too_short_note(short: int, total: int) -> str:
    """A sentence with the number of series that are too short; empty if all are long enough.

    >>> too_short_note(1, 2)[:40]
    '1 of 2 series has too little data: a cha'
    """
    if not short:
        return ""
    of = f"All {short:,}" if 1 < short == total else f"{short:,} of {total:,}"
    have = "has" if short == 1 else "have"
    needed = f"a change takes {min_values_to_detect()} values in the same environment"
    return f"{of} series {have} too little data: {needed}."


def last_moment(all_series: Iterable[Series]) -> Moment:
    """The moment of the latest point of these series, at least one."""
    return max((series.points.latest_moment for series in all_series), key=lambda moment: moment.at)


def last_measured(moment: Moment, write: Callable[[str], str] = day) -> str:
    """When a series was last measured, or the date of its newest commit if only that is known.

    Args:
        write: Formats an ISO 8601 timestamp for people.
    """
    what = "newest commit of" if moment.is_of_commit else "last measured"
    return f"{what} {write(moment.at)}"


def last_day(moment: Moment) -> str:
    """The same, with the date only."""
    return last_measured(moment, lambda at: at[:10])


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


def latest_value(series: Series) -> ValueWithBounds:
    """The last value of a series, with its interval."""
    last = next((point for point in reversed(series.points) if point.value is not None), None)
    return ValueWithBounds(value="–") if last is None else point_value(series, last)


def point_value(series: Series, point: HistoryPoint) -> ValueWithBounds:
    """The value of a point of a series, with its interval; why there is none instead."""
    if point.value is None:
        return ValueWithBounds(value=point.missing or "–")
    length, unit = display_unit(series, [point.value])

    def text(value: float) -> str:
        return f"{significant(value / length)} {unit}".strip()

    ends = within(*point.bounds, text, beside=point.value) if point.bounds else ""
    return ValueWithBounds(value=text(point.value), ends=ends)


def missing_since(series: Series) -> str:
    """The date since which a series has points but no values; else empty."""
    points = series.points
    at = len(points)
    while at and math.isnan(points.values[at - 1]):
        at -= 1
    return f"none since {points.moments[at].at[:10]}" if at < len(points) else ""


def interval_name(all_series: Iterable[Series]) -> str:
    """What the brackets below the values of these series contain."""
    shares = {series.confidence for series in all_series}
    return f"{percent(shares.pop(), 0)} interval" if len(shares) == 1 else "interval"


def value_range(series: Series) -> str:
    """The range of a series' values; empty if it has none."""
    figures = series.points.measured
    if not figures:
        return ""
    low, high = min(figures), max(figures)
    length, unit = display_unit(series, [high])
    least, most = significant(low / length), significant(high / length)
    return f"{least if least == most else f'{least} to {most}'} {unit}".strip()
