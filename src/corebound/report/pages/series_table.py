"""Table rows of series: one per scenario or benchmark, grouped by host or machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import CommandLine, latest_command, series_command
from corebound.analysis.series_names import Natural, distinct_axes, natural_sort_key
from corebound.analysis.wording import (
    Label,
    capital,
    count,
    interval_name,
    last_day,
    last_moment,
)
from corebound.records.history import Series, is_primary, reason_kind
from corebound.stats.history.detection import RECENT_POINTS
from corebound.stats.history.pooled import is_pooled
from corebound.stats.history.regressions import Change, Failing


class Notice(Struct, frozen=True, kw_only=True):
    """Cells of one scenario that share a notice.

    Attributes:
        all_series: Their histories, at least one.
        label: Of the first cell.
        text: What applies to all of them.
        command: Measures them again; None if unknown.
    """

    all_series: tuple[Series, ...]
    label: Label
    text: str
    command: CommandLine | None


def series_notice(all_series: Sequence[Series], history: ChangeHistory, text: str) -> Notice:
    """A row for these series, at least one; those of several scenarios have no common command."""
    places = {(series.project, series.host, series.scenario) for series in all_series}
    return Notice(
        all_series=tuple(all_series),
        label=history.label(all_series[0]),
        text=text,
        command=series_command(all_series) if len(places) == 1 else None,
    )


def failing_notices(failing: Iterable[Failing], history: ChangeHistory) -> list[Notice]:
    """Failing series, grouped by scenario, date and reason; the latest first."""
    groups: dict[tuple[str, ...], list[Series]] = {}
    for failing_series in sorted(failing, key=lambda failing_series: failing_series.series.id):
        series, reason = failing_series.series, reason_kind(failing_series.since.missing or "")
        key = (
            failing_series.since.at[:10],
            series.project or "",
            series.host,
            series.scenario,
            reason,
        )
        groups.setdefault(key, []).append(series)
    # Within a day sorted by name.
    latest_first = sorted(sorted(groups), key=itemgetter(0), reverse=True)
    return [series_notice(groups[key], history, _since(key[0], key[-1])) for key in latest_first]


def _since(day: str, reason: str) -> str:
    return f"since {day}: {reason}" if reason else f"since {day}"


def is_recent(failing_series: Failing) -> bool:
    """Whether it is as recent as a change that counts as new."""
    return failing_series.points <= RECENT_POINTS


def give_or_gives(number: int) -> str:
    """The verb for this number of series that no longer give values."""
    return "gives" if number == 1 else "give"


# Rows beyond this number are folded.
MOST_OPEN = 50


class SeriesRow(Struct, frozen=True, kw_only=True):
    """The cells of one scenario on one host, represented by the one that changed last.

    Attributes:
        series: The history of that cell.
        all_series: The histories of all cells.
        cells: The number of cells, in words.
        shown: Which of several cells that is; empty if there is only one.
        mode: CSS class of its colour.
        change: The last change of any; None if there is none.
        unchanged: The text in place of a change if there is none.
        command: The command that measures it again; None if unknown.
        is_retired: Whether others of its host have later points.
    """

    series: Series
    all_series: tuple[Series, ...]
    cells: str
    shown: str
    mode: str
    change: Change | None
    unchanged: str
    command: CommandLine | None
    is_retired: bool


class SeriesGroup(Struct, frozen=True, kw_only=True):
    """The scenarios of one host, or a project's benchmarks on one machine, split by module if many.

    Secondary ones come last.

    `summary` has their number, and how many changed; `interval` is what the brackets contain.
    """

    title: str
    summary: str
    interval: str
    rows: tuple[SeriesRow, ...]


def series_groups(all_series: Iterable[Series], history: ChangeHistory) -> tuple[SeriesGroup, ...]:
    """Group series by project and machine, or by host; large groups are split by module.

    Args:
        all_series: Series with a history to show.
        history: All histories with their changes.
    """
    groups: dict[tuple[str, str], dict[str, list[Series]]] = {}
    for each_series in all_series:
        key = (each_series.project or "", each_series.host)
        groups.setdefault(key, {}).setdefault(each_series.scenario, []).append(each_series)
    hosts = [
        (
            project,
            all(
                series.id in history.retired_series for own in scenarios.values() for series in own
            ),
            # Several hosts together come first.
            "" if any(map(is_pooled, itertools.chain(*scenarios.values()))) else host,
            [_row(own, history) for _, own in sorted(scenarios.items())],
        )
        for (project, host), scenarios in groups.items()
    ]
    return tuple(
        group
        for project, is_retired, _, rows in sorted(hosts, key=itemgetter(0, 1, 2))
        for group in _modules(project, rows, is_retired=is_retired)
    )


def _modules(project: str, rows: Sequence[SeriesRow], *, is_retired: bool) -> Iterator[SeriesGroup]:
    """One group, or for many scenarios one per module, which is how asv's names begin."""
    title = f"on {rows[0].series.host_name}"
    title = f"{project}, {title}" if project else capital(title)
    if is_retired:
        title += f", {last_day(last_moment(series for row in rows for series in row.all_series))}"
    if len(rows) <= MOST_OPEN:
        yield _group(title, rows)
        return
    for module, members in itertools.groupby(
        rows, key=lambda row: row.series.scenario.partition(".")[0]
    ):
        yield _group(f"{title}: {module}", tuple(members))


def _group(title: str, rows: Sequence[SeriesRow]) -> SeriesGroup:
    changed = sum(row.change is not None for row in rows)
    changes = f", {changed} changed" if changed else ""
    return SeriesGroup(
        title=title,
        summary=f"{len(rows)}{changes}",
        interval=interval_name(series for row in rows for series in row.all_series),
        rows=tuple(sorted(rows, key=lambda row: not is_primary(row.series))),
    )


def _row(all_series: Sequence[Series], history: ChangeHistory) -> SeriesRow:
    last = last_change(all_series, history)
    active = [series for series in all_series if series.id not in history.retired_series]
    # A retired series cannot represent active ones, nor one that has hardly begun the others.
    chosen = last.series if last else min(active or all_series, key=_longest_first)
    over = (
        f", {len(all_series) - len(active):,} retired" if 0 < len(active) < len(all_series) else ""
    )
    return SeriesRow(
        series=chosen,
        all_series=tuple(all_series),
        cells=f"{count(len(all_series), 'series', 'series')}{over}",
        shown=_representative_name(chosen, all_series, history),
        mode=history.label(chosen).mode,
        change=last,
        unchanged=no_change(all_series, history),
        command=latest_command(chosen),
        is_retired=chosen.id in history.retired_series,
    )


def _representative_name(
    chosen: Series, all_series: Sequence[Series], history: ChangeHistory
) -> str:
    """What distinguishes the series from the others; empty if there are none."""
    if len(all_series) == 1:
        return ""
    if chosen.project is None:
        return history.label(chosen).whole
    return distinct_axes(all_series)[all_series.index(chosen)]


def _longest_first(series: Series) -> tuple[int, tuple[tuple[str, Natural], ...]]:
    return -len(series.points), natural_sort_key(series)


def no_change(all_series: Iterable[Series], history: ChangeHistory) -> str:
    """The text for series without a change: none was found, or none could be detected."""
    return (
        "too little data"
        if all(series.id in history.too_short for series in all_series)
        else "none"
    )


def last_change(all_series: Iterable[Series], history: ChangeHistory) -> Change | None:
    """The latest clear change in any of these series; of equals the largest."""
    changes = (change for series in all_series for change in history.changes_of(series))
    return max(
        changes,
        key=lambda change: (change.since, abs(change.change_point.ratio - 1), change.id),
        default=None,
    )
