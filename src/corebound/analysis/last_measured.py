"""When series were last measured, as far as that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corebound.analysis.wording import day
from corebound.records.history import Moment, Series


def last_moment(series: Iterable[Series]) -> Moment:
    """That of the latest point of these series, at least one."""
    return max((one.points.moments[-1] for one in series), key=lambda moment: moment.at)


def last_measured(moment: Moment, write: Callable[[str], str] = day) -> str:
    """When its series was last measured; of which only commits' dates are known, that one's.

    Args:
        moment: Of the last point.
        write: Writes the moment, ISO 8601, for people.
    """
    what = "newest commit of" if moment.is_of_commit else "last measured"
    return f"{what} {write(moment.at)}"


def last_day(moment: Moment) -> str:
    """The same to the day."""
    return last_measured(moment, lambda at: at[:10])
