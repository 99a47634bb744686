"""Table rows of series: one per scenario or benchmark, grouped by host or machine."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.series_names import Natural, distinct_axes, natural_sort_key
from corebound.analysis.series_wording import interval_name, last_day, last_moment
from corebound.analysis.wording import capital
from corebound.records.history import Series, is_primary
from corebound.report.elements import Content
from corebound.stats.history.pooled import is_pooled
from corebound.stats.history.regressions import Change


def give_or_gives(number: int) -> str:
    """The verb for this number of series that no longer give values."""
    return "gives" if number == 1 else "give"


# Rows beyond this number are folded.
MOST_OPEN = 50


def series_groups(all_series: Iterable[Series], history: ChangeHistory) -> tuple[Content, ...]:
    """Group series by project and machine, or by host; large groups are split by module.

    Secondary benchmarks come last.

    Args:
        all_series: Series with a history to show.
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


def _modules(project: str, rows: Sequence[Content], *, is_retired: bool) -> Iterator[Content]:
    """One group, or for many scenarios one per module, which is how asv's names begin."""
    title = f"on {rows[0].series.host_name}"
    title = f"{project}, {title}" if project else capital(title)
    if is_retired:
        title += f", {last_day(last_moment(series for row in rows for series in row.all_series))}"
    is_split = len(rows) > MOST_OPEN
    for module, members in itertools.groupby(
        rows, key=lambda row: row.series.scenario.partition(".")[0] if is_split else ""
    ):
        own = sorted(members, key=lambda row: not is_primary(row.series))
        yield Content(
            title=f"{title}: {module}" if is_split else title,
            rows=tuple(own),
            changed=sum(row.change is not None for row in own),
            # What the brackets below the values contain.
            interval=interval_name(series for row in own for series in row.all_series),
        )


def _row(all_series: Sequence[Series], history: ChangeHistory) -> Content:
    last = last_change(all_series, history)
    active = [series for series in all_series if series.id not in history.retired_series]
    # A retired series cannot represent active ones, nor one that has hardly begun the others.
    chosen = last.series if last else min(active or all_series, key=_longest_first)
    return Content(
        series=chosen,
        all_series=tuple(all_series),
        shown=_representative_name(chosen, all_series, history),
        change=last,
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
