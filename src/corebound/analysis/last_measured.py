"""When series were last measured, as far as that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corebound.analysis.wording import day
from corebound.records.history import Moment, Series


def last_moment(series: Iterable[Series]) -> Moment:
    """The moment of the latest point of these series, at least one."""
    return max((one.points.moments[-1] for one in series), key=lambda moment: moment.at)


def last_measured(moment: Moment, write: Callable[[str], str] = day) -> str:
    """When a series was last measured, or the date of its newest commit if only that is known.

    Args:
        moment: The moment of the last point.
        write: Formats an ISO 8601 timestamp for people.
    """
    what = "newest commit of" if moment.is_of_commit else "last measured"
    return f"{what} {write(moment.at)}"


def last_day(moment: Moment) -> str:
    """The same, with the date only."""
    return last_measured(moment, lambda at: at[:10])
