"""What gave figures once and gives none any more: which series, since when, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from corebound.model.missing import kind_of
from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.command import CommandLine, series_command
from corebound.report.view.page import Label
from corebound.report.view.words import count
from corebound.stats.change_points import RECENT_NIGHTS
from corebound.stats.regressions import Failing


class FailingRow(Struct, frozen=True, kw_only=True):
    """Cells of one scenario that have had no figure since one day, for one reason.

    `label` is of the first of so many `cells`; `command` measures them again, where one can.
    """

    title: str
    address: str
    label: Label
    cells: int
    says: str
    command: CommandLine | None


def failing_rows(found: Iterable[Failing], known: Chronicle) -> list[FailingRow]:
    """Series that fail, those of one scenario, day and reason together; the latest first."""
    groups: dict[tuple[str, ...], list[Series]] = {}
    for one in sorted(found, key=lambda one: one.series.id):
        series, reason = one.series, kind_of(one.since.missing or "")
        key = (one.since.at[:10], series.project or "", series.host, series.scenario, reason)
        groups.setdefault(key, []).append(series)
    days = sorted({day for day, *_ in groups}, reverse=True)
    return [
        _row(day, key[-1], groups[key], known)
        for day in days
        for key in sorted(groups)
        if key[0] == day
    ]


def _row(day: str, reason: str, series: Sequence[Series], known: Chronicle) -> FailingRow:
    first = series[0]
    return FailingRow(
        title=first.title,
        address=series_place(first),
        label=known.label(first),
        cells=len(series),
        says=f"since {day}{f': {reason}' if reason else ''}",
        command=series_command(series),
    )


def is_recent(one: Failing) -> bool:
    """Whether it is news, as a change of so many points ago would be."""
    return one.points <= RECENT_NIGHTS


def give_no_figure(number: int) -> str:
    """In words: `3 cells give no figure`."""
    return f"{count(number, 'cell')} {'gives' if number == 1 else 'give'} no figure"
