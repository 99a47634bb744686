"""What gave figures once and gives none any more: which series, since when, and why."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from corebound.model.missing import kind_of
from corebound.model.series import Series
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.told_row import ToldRow, told_row
from corebound.stats.change_points import RECENT_NIGHTS
from corebound.stats.regressions import Failing


def failing_rows(found: Iterable[Failing], known: Chronicle) -> list[ToldRow]:
    """Series that fail, those of one scenario, day and reason together; the latest first."""
    groups: dict[tuple[str, ...], list[Series]] = {}
    for one in sorted(found, key=lambda one: one.series.id):
        series, reason = one.series, kind_of(one.since.missing or "")
        key = (one.since.at[:10], series.project or "", series.host, series.scenario, reason)
        groups.setdefault(key, []).append(series)
    # Within a day by name, as people look for them.
    latest_first = sorted(sorted(groups), key=itemgetter(0), reverse=True)
    return [told_row(groups[key], known, _since(key[0], key[-1])) for key in latest_first]


def _since(day: str, reason: str) -> str:
    return f"since {day}: {reason}" if reason else f"since {day}"


def is_recent(one: Failing) -> bool:
    """Whether it is news, as a change of so many points ago would be."""
    return one.points <= RECENT_NIGHTS


def gives(number: int) -> str:
    """The verb for so many that give no figure any more."""
    return "gives" if number == 1 else "give"
