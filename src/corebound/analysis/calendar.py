"""Dates as numbers for time axes: days since 1970, and round dates for tick labels."""

from __future__ import annotations

import math
import re
from functools import lru_cache

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?"
    r"(?:Z|([+-])(\d\d):?(\d\d))?"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Steps between ticks: days within a month, months within a year, and years.
_DAY_STEPS = (1, 2, 5, 10)
# Ticks are minutes apart where the axis spans at most two days. There are few, because the first
# label also contains the date.
_MINUTE_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_HOURS_SPAN = 2.0
_MOST_HOURS = 4
_MONTH_STEPS = (1, 2, 3, 6)
_YEAR_STEPS = (1, 2, 5, 10, 20, 50, 100, 1000)


# Thousands of series share the same timestamps.
@lru_cache(maxsize=65_536)
def days_of(moment: str) -> float | None:
    """Convert an ISO 8601 timestamp to days since 1970 in UTC; None if it is not a timestamp.

    >>> days_of("1970-01-02"), days_of("2000-01-01T12:00:00Z"), days_of("tonight")
    (1.0, 10957.5, None)
    """
    match = _MOMENT.fullmatch(moment.strip())
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    seconds = int(match[4] or 0) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    if match[7]:
        ahead = int(match[8]) * 3600 + int(match[9]) * 60
        seconds -= ahead if match[7] == "+" else -ahead
    return civil_days(year, month, day) + seconds / 86_400


def civil_days(year: int, month: int, day: int) -> int:
    """Days from 1 January 1970 to a date of the Gregorian calendar.

    Source: Howard Hinnant, "chrono-compatible low-level date algorithms" (days_from_civil).

    >>> civil_days(1970, 1, 1), civil_days(2024, 2, 29)
    (0, 19782)
    """
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_of(days: float) -> tuple[int, int, int]:
    """The (year, month, day) of a number of days since 1970: the inverse of `civil_days`.

    >>> civil_of(19782), civil_of(-1)
    ((2024, 2, 29), (1969, 12, 31))
    """
    era, day_of_era = divmod(int(days // 1) + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    index = (5 * day_of_year + 2) // 153
    month = (index + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * index + 2) // 5 + 1


def date_ticks(low: float, high: float, *, most: int = 6) -> tuple[tuple[float, str], ...]:
    """At most `most` round dates between two moments, as (days since 1970, label).

    The result is never empty: if no round date lies between the two, it has the first moment. At
    least one label includes the year.

    >>> [text for _, text in date_ticks(civil_days(2014, 3, 20), civil_days(2014, 9, 2))]
    ['Apr 2014', 'May', 'Jun', 'Jul', 'Aug', 'Sep']
    >>> [text for _, text in date_ticks(civil_days(2025, 11, 20), civil_days(2026, 3, 2))]
    ['Dec', '2026', 'Feb', 'Mar']
    >>> [text for _, text in date_ticks(0.25, 0.5)]
    ['06:00 UTC, 1 Jan 1970', '08:00', '10:00', '12:00']
    """
    if high - low < _HOURS_SPAN and (hours := _hours(low, high)):
        return hours
    for marks in (*_days(low, high), *_months(low, high), *_years(low, high)):
        inside = tuple((at, text) for at, text in marks if low <= at <= high)
        if 0 < len(inside) <= most:
            return _of_a_year(inside)
    year, month, day = civil_of(low)
    return ((low, f"{day} {_MONTHS[month - 1]} {year}"),)


def says_year(text: str) -> bool:
    """Whether a tick label includes the year.

    >>> says_year("2026"), says_year("5 Mar"), says_year("5 Mar 2026")
    (True, False, True)
    """
    return text[-4:].isdecimal()


def _of_a_year(marks: tuple[tuple[float, str], ...]) -> tuple[tuple[float, str], ...]:
    if any(says_year(text) for _, text in marks):
        return marks
    (at, text), *rest = marks
    return ((at, f"{text} {civil_of(at)[0]}"), *rest)


def _hours(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Round times between two moments, the first with its date; empty if they are too close."""
    for step in _MINUTE_STEPS:
        if (high - low) * 1440 / step > _MOST_HOURS:
            continue
        every = range(math.floor(low * 1440 / step), math.ceil(high * 1440 / step) + 1)
        at = [index * step for index in every if low <= index * step / 1440 <= high]
        if 1 < len(at) <= _MOST_HOURS:
            year, month, day = civil_of(at[0] / 1440)
            texts = [f"{minute // 60 % 24:02}:{minute % 60:02}" for minute in at]
            texts[0] += f" UTC, {day} {_MONTHS[month - 1]} {year}"
            return tuple((minute / 1440, text) for minute, text in zip(at, texts, strict=True))
    return ()


def _days(low: float, high: float) -> list[list[tuple[float, str]]]:
    if high - low > 120:
        return []
    first = int(low // 1)
    every = [(at, *civil_of(at)) for at in range(first, int(high) + 1)]
    return [
        [
            (float(at), f"{day} {_MONTHS[month - 1]}")
            for at, _, month, day in every
            if (day - 1) % step == 0 and (step == 1 or day < 30)
        ]
        for step in _DAY_STEPS
    ]


def _months(low: float, high: float) -> list[list[tuple[float, str]]]:
    if high - low > 366 * 12:
        return []
    years = range(civil_of(low)[0], civil_of(high)[0] + 1)
    return [
        [
            (
                float(civil_days(year, month, 1)),
                str(year) if month == 1 else _MONTHS[month - 1],
            )
            for year in years
            for month in range(1, 13, step)
        ]
        for step in _MONTH_STEPS
    ]


def _years(low: float, high: float) -> list[list[tuple[float, str]]]:
    first, last = civil_of(low)[0], civil_of(high)[0]
    return [
        [(float(civil_days(year, 1, 1)), str(year)) for year in range(first, last + 1)
         if year % step == 0]
        for step in _YEAR_STEPS
    ]  # fmt: skip
