"""When series were last measured, as far as that is known."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.model.points import Moment
from corebound.model.series import Series


def last_moment(series: Iterable[Series]) -> Moment:
    """That of the latest point of these series, at least one."""
    return max((one.points.moments[-1] for one in series), key=lambda moment: moment.at)


def last_measured(moment: Moment, when: str) -> str:
    """When its series was last measured; of which only commits' dates are known, that one's.

    Args:
        moment: Of the last point.
        when: The moment, as the page says moments.
    """
    return f"newest commit of {when}" if moment.is_of_commit else f"last measured {when}"
