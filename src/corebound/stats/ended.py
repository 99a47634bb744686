"""Which series no night will add to any more."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from corebound.model.series import Series
from corebound.stats.change_points import RECENT_NIGHTS

# Times its longest pause: a machine that is quiet for longer is not expected back.
_QUIET = 2
# Letters of a moment that are its day.
_OF_DAY = 10


def ended(suite: Iterable[Series]) -> frozenset[str]:
    """The ids of series that no night will add to, so that nothing in them is news.

    Their benchmark or environment was retired: the last point lies before the last 30 moments
    of its host or machine. Or that was: others of the project have 30 moments since its last,
    and it has been quiet for twice as long as ever before.
    """
    by_host: dict[tuple[str | None, str], list[Series]] = {}
    for one in suite:
        by_host.setdefault((one.project, one.host), []).append(one)
    moments = {host: _moments(several) for host, several in by_host.items()}
    found: set[str] = set()
    for (project, host), several in by_host.items():
        own = moments[project, host]
        others = [each for (of, name), each in moments.items() if of == project and name != host]
        since = own[-RECENT_NIGHTS:][0]
        gone = _is_gone(own, {at for each in others for at in each[bisect_right(each, own[-1]) :]})
        found |= {one.id for one in several if gone or one.points.moments[-1].at < since}
    return frozenset(found)


def _moments(several: Iterable[Series]) -> list[str]:
    """When a host or machine measured, in order."""
    # Most series share their moments.
    columns = {id(one.points.moments): one.points.moments for one in several}.values()
    return sorted({moment.at for column in columns for moment in column})


def _is_gone(own: Sequence[str], later: Collection[str]) -> bool:
    """Whether a machine is no longer used, by its own moments and those of others since."""
    if len(later) < RECENT_NIGHTS:
        return False
    try:
        days = np.array([at[:_OF_DAY] for at in (*own, max(later))], dtype="datetime64[D]")
    except ValueError:  # what another tool takes for a moment may be none
        return False
    *before, quiet = np.diff(days).astype(int).tolist()
    return bool(quiet > _QUIET * max(before, default=0))
