"""Chart axes: map numbers to a share of the width, with ticks at round values and dates."""

import math
from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal

from msgspec import Struct

from corebound.records.history import EPOCH
from corebound.units import significant

# No time, size or rate is beyond these limits. Within them no sum or ratio overflows.
LEAST, MOST = 1e-100, 1e100


def limited(value: float) -> float:
    """A value within the limits of what charts compute with."""
    return min(max(value, LEAST), MOST)


class Axis(Struct, frozen=True, kw_only=True):
    """A scale from `low` to `high`; both are above 0 if it is logarithmic."""

    low: float
    high: float
    scale: Literal["linear", "log"]
    ticks: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError("an axis has a length")
        if self.scale == "log" and self.low <= 0:
            raise ValueError("a logarithmic axis starts above 0")

    def share(self, value: float) -> float:
        """The position of a value along the axis: 0 at its start, 1 at its end.

        Values beyond either end, including infinity, are outside 0 to 1.
        """
        if self.scale == "linear":
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return -math.inf
        return math.log(value / self.low) / math.log(self.high / self.low)

    def holds(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return 0 <= self.share(value) <= 1

    def clipped(self, value: float) -> float:
        """The position, limited to 0 to 1."""
        return min(1.0, max(0.0, self.share(value)))


def linear_axis(low: float, high: float, *, most_ticks: int = 7) -> Axis:
    """An axis over exactly these values, with ticks at multiples of 1, 2 or 5.

    >>> linear_axis(0.85, 1.5).ticks
    (0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
    """
    power = 10.0 ** math.floor(math.log10((high - low) / most_ticks))
    step = next(s * power for s in (1, 2, 5, 10, 20) if (high - low) / (s * power) <= most_ticks)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(float(f"{index * step:.12g}") for index in range(first, last + 1))
    return Axis(low=low, high=high, scale="linear", ticks=ticks)


def log_axis(low: float, high: float, *, most_ticks: int = 8) -> Axis:
    """A logarithmic axis over exactly these values, with as many round ticks as fit.

    >>> log_axis(0.02, 2).ticks
    (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: tuple[float, ...] = ()
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
        rounds = (float(f"{digit * 10.0**power:.12g}") for power in powers for digit in digits)
        ticks = tuple(tick for tick in rounds if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9))
        if len(ticks) <= most_ticks:
            break
    return Axis(low=low, high=high, scale="log", ticks=ticks[:: -(-len(ticks) // most_ticks) or 1])


# A logarithmic axis over less may have no round value. An axis of ratios over more has the same
# room on both sides as factors.
_LINEAR_SPAN = 3.0


def linear_or_log_axis(low: float, high: float) -> Axis:
    """An axis with at most five ticks over exactly these values, which suits their ratio."""
    axis = linear_axis if high / low < _LINEAR_SPAN else log_axis
    return axis(low, high, most_ticks=5)


# Ratios this far from 1 are drawn as arrows at the edge, unless most rows have such ratios.
_FAR_RATIO = 4.0
_MOST_FAR = 1 / 3
# An interval is drawn whole if it reaches no further than this beyond all estimates.
_LEAST_REACH = 1.5
# The pairs behind a ratio show its noise. To fit them all, the ratios may shrink to a quarter of
# the axis. At that size an interval of a few per cent is still distinguishable from its dot.
_MOST_DOTS_SPAN = 4.0


def ratio_axis(
    estimates: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    *,
    margin: float,
    dots: Sequence[Sequence[float]] = (),
) -> Axis:
    """An axis for ratios around 1 that keeps the important rows distinguishable.

    A few ratios far from 1 do not compress the others. They lie beyond the axis, and the caller
    marks them at its edge. The same applies to the ends of intervals much wider than the range of
    all estimates, and to dots that would leave less than a quarter of the axis to the rest.

    Args:
        estimates: Ratios above 0.
        intervals: Low and high ends; a high end may be infinite.
        margin: The share on either side of 1 that must be on the axis.
        dots: Ratios above 0 behind each of the estimates. If an estimate lies beyond the axis, its
            dots do too.
    """
    near = [ratio for ratio in estimates if 1 / _FAR_RATIO <= ratio <= _FAR_RATIO]
    if len(estimates) - len(near) > len(estimates) * _MOST_FAR:
        near = list(estimates)
    low, high = min([1 - margin, *near]), max([1 + margin, *near])
    reach = max(_LEAST_REACH, high / low)
    ends = [
        min(max(end, low / reach), high * reach)
        for pair in intervals
        if pair[0] <= high and pair[1] >= low
        for end in pair
    ]
    low, high = min([low, *ends]), max([high, *ends])
    behind = [
        ratio
        for estimate, own in zip(estimates, dots, strict=False)
        if low <= estimate <= high
        for ratio in own
    ]
    if behind:
        room = (high / low) ** ((_MOST_DOTS_SPAN - 1) / 2)
        low = min(low, max(min(behind), low / room))
        high = max(high, min(max(behind), high * room))
    if high / low > _LINEAR_SPAN:
        pad = (high / low) ** 0.04
        return effects_between(low / pad, high * pad)
    pad = (high - low) * 0.06
    return effects_between(low - pad, high + pad)


# Speed-ups and slow-downs at which an axis of effects has a tick, as many as fit.
_EFFECT_STEPS = (1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
# Where nothing on the axis reaches the first of them.
_SMALL_EFFECT_STEPS = (1.01, 1.02, 1.05)
_MOST_EFFECT_TICKS = 3
# An effect beyond this is drawn as an arrow at the edge.
_MOST_EFFECT = 1000.0


def effect_scale(
    estimates: Sequence[float], intervals: Sequence[tuple[float, float]], *, margin: float
) -> Axis:
    """A logarithmic axis around 1 for effects, with the same ticks on both sides.

    Args:
        estimates: Ratios above 0; they are on the axis up to 1000 times faster or slower.
        intervals: Low and high ends; those that reach much further than the estimates are cut.
        margin: The share on either side of 1 that must be on the axis.
    """
    low, high = min([1 - margin, *estimates]), max([1 + margin, *estimates])
    reach = max(_LEAST_REACH, high / low)
    ends = [min(max(end, low / reach), high * reach) for pair in intervals for end in pair]
    low = max(min([low, *ends]), 1 / _MOST_EFFECT)
    high = min(max([high, *ends]), _MOST_EFFECT)
    pad = (high / low) ** 0.04
    return effects_between(low / pad, high * pad)


def effects_between(low: float, high: float) -> Axis:
    """A logarithmic axis over exactly these ratios, with the same ticks on both sides of 1."""
    low = max(low, 1e-3)
    is_small = max(1 / low, high) < _EFFECT_STEPS[0]
    sides = []
    for reach in (1 / low, high):
        steps = [
            step for step in (_SMALL_EFFECT_STEPS if is_small else _EFFECT_STEPS) if step <= reach
        ]
        # The furthest tick is always one of them.
        spacing = -(-len(steps) // _MOST_EFFECT_TICKS) or 1
        sides.append(steps[::-1][::spacing])
    slower, faster = sides
    ticks = (*(1 / step for step in slower), 1.0, *reversed(faster))
    return Axis(low=low, high=high, scale="log", ticks=ticks)


def effect_tick(value: float) -> str:
    """Format a tick of an axis of effects in the direction that it has.

    >>> effect_tick(0.5), effect_tick(1.0), effect_tick(1.5)
    ('2× slower', '1×', '1.5× faster')
    """
    if value == 1:
        return "1×"
    return f"{1 / value:.4g}× slower" if value < 1 else f"{value:.4g}× faster"


def ratio_tick(value: float) -> str:
    """Format a tick of a ratio axis: `1.0×`, `0.02×`.

    >>> ratio_tick(1.0), ratio_tick(0.05), ratio_tick(1.25)
    ('1.0×', '0.05×', '1.25×')
    """
    text = f"{value:.4g}"
    return f"{text if '.' in text or value >= 10 else text + '.0'}×"


def plain_tick(value: float) -> str:
    """Format a tick of any other axis.

    >>> plain_tick(0.5), plain_tick(1500)
    ('0.5', '1,500')
    """
    return f"{value:,.4g}" if abs(value) < 1000 else significant(value, 1)


SIZE = 1000


def x_of(across: Axis, value: float) -> str:
    """The horizontal coordinate of a value; a value beyond the axis is placed at its end."""
    return f"{across.clipped(value) * SIZE:.0f}"


def y_of(up: Axis, value: float) -> str:
    """The vertical coordinate of a value on an upward axis; one beyond it is placed at its end."""
    return f"{(1 - up.clipped(value)) * SIZE:.0f}"


def horizontal_grid(up: Axis) -> str:
    """The path of the horizontal grid lines, one at each tick of the vertical axis."""
    return "".join(f"M0 {y_of(up, tick)}H{SIZE}" for tick in up.ticks)


def vertical_grid(across: Axis) -> str:
    """The path of the vertical grid lines, one at each tick of the horizontal axis."""
    return "".join(f"M{x_of(across, tick)} 0V{SIZE}" for tick in across.ticks)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Ticks are minutes apart where the axis spans at most two days. There are few, because the first
# label also contains the date.
_MINUTE_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_HOURS_SPAN = 2.0
_MOST_HOURS = 4
_MOST_DATES = 6
# Steps between dates: days within a month on an axis of at most so many days, months within a
# year, and years.
_DAYS_SPAN = 120
_DATE_STEPS: dict[Literal["day", "month", "year"], tuple[int, ...]] = {
    "day": (1, 2, 5, 10),
    "month": (1, 2, 3, 6),
    "year": (1, 2, 5, 10, 20, 50, 100, 1000),
}


def date_ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """At most six round dates between two moments, as (days since 1970, label).

    The result is never empty: if no round date lies between the two, it has the first moment. At
    least one label includes the year.

    >>> [text for _, text in date_ticks(16_149, 16_315)]
    ['Apr 2014', 'May', 'Jun', 'Jul', 'Aug', 'Sep']
    >>> [text for _, text in date_ticks(20_412, 20_514)]
    ['Dec', '2026', 'Feb', 'Mar']
    >>> [text for _, text in date_ticks(0.25, 0.5)]
    ['06:00 UTC, 1 Jan 1970', '08:00', '10:00', '12:00']
    """
    if high - low < _HOURS_SPAN and (hours := _hours(low, high)):
        return hours
    has_days = high - low <= _DAYS_SPAN
    if has_days:
        dates = [_date_of(day) for day in range(math.floor(low), int(high) + 1)]
    else:
        years = range(_date_of(low).year, _date_of(high).year + 1)
        dates = [date(year, month, 1) for year in years for month in range(1, 13)]
    known = [(at, date_) for date_ in dates if low <= (at := _days_of(date_)) <= high]
    for unit, steps in _DATE_STEPS.items():
        for step in steps if has_days or unit != "day" else ():
            ticks = [(at, date_) for at, date_ in known if _is_round(date_, unit, step)]
            if 0 < len(ticks) <= _MOST_DATES:
                return _with_year(tuple((at, _date_text(date_, unit)) for at, date_ in ticks))
    return ((low, _full_date(low)),)


def has_year(text: str) -> bool:
    """Whether a tick label includes the year.

    >>> has_year("2026"), has_year("5 Mar"), has_year("5 Mar 2026")
    (True, False, True)
    """
    return text[-4:].isdecimal()


def _with_year(ticks: tuple[tuple[float, str], ...]) -> tuple[tuple[float, str], ...]:
    if any(has_year(text) for _, text in ticks):
        return ticks
    (at, text), *rest = ticks
    return ((at, f"{text} {_date_of(at).year}"), *rest)


def _hours(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Round times between two moments, the first with its date; empty if they are too close."""
    for step in _MINUTE_STEPS:
        if (high - low) * 1440 / step > _MOST_HOURS:
            continue
        steps = range(math.floor(low * 1440 / step), math.ceil(high * 1440 / step) + 1)
        minutes = [index * step for index in steps if low <= index * step / 1440 <= high]
        if 1 < len(minutes) <= _MOST_HOURS:
            texts = [f"{minute // 60 % 24:02}:{minute % 60:02}" for minute in minutes]
            texts[0] += f" UTC, {_full_date(minutes[0] / 1440)}"
            return tuple((minute / 1440, text) for minute, text in zip(minutes, texts, strict=True))
    return ()


def _is_round(at: date, unit: str, step: int) -> bool:
    """Whether a date is one of those that are so many days, months or years apart."""
    if unit == "day":
        return (at.day - 1) % step == 0 and (step == 1 or at.day < 30)
    if unit == "month":
        return at.day == 1 and (at.month - 1) % step == 0
    return at.day == at.month == 1 and at.year % step == 0


def _date_text(at: date, unit: str) -> str:
    month = _MONTHS[at.month - 1]
    if unit == "day":
        return f"{at.day} {month}"
    return str(at.year) if at.month == 1 else month


def _days_of(at: date) -> float:
    """A date in days since 1970."""
    return float(at.toordinal() - EPOCH)


def _date_of(days: float) -> date:
    """The date of a number of days since 1970, limited to the years 1 to 9999."""
    ordinal = math.floor(days) + EPOCH
    return date.fromordinal(min(max(ordinal, date.min.toordinal()), date.max.toordinal()))


def _full_date(days: float) -> str:
    date_ = _date_of(days)
    return f"{date_.day} {_MONTHS[date_.month - 1]} {date_.year}"


class Tick(Struct, frozen=True, kw_only=True):
    """A label at a position in per cent; `minor` ones are hidden if there is no room."""

    at: float
    text: str
    minor: bool = False


def vertical_ticks(up: Axis, text: Callable[[float], str] = plain_tick) -> tuple[Tick, ...]:
    """The labels of a vertical axis: positions are from the top."""
    return tuple(Tick(at=round((1 - up.share(at)) * 100, 2), text=text(at)) for at in up.ticks)


def horizontal_ticks(across: Axis, text: Callable[[float], str] = plain_tick) -> tuple[Tick, ...]:
    """The labels of a horizontal axis: positions are from the left."""
    return tuple(Tick(at=round(across.share(at) * 100, 2), text=text(at)) for at in across.ticks)
