"""The history page: changes that need attention, then every series."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.series_names import natural_sort_key, parameters
from corebound.analysis.wording import (
    Text,
    TextSpan,
    and_more,
    count,
    day,
    rich,
    strong,
    too_short_note,
)
from corebound.records.history import Series
from corebound.report.elements import Head, Hero
from corebound.report.inputs import PageContext
from corebound.report.pages.benchmark import why_no_history
from corebound.report.pages.changes import (
    ChangeGroup,
    CommitEvent,
    change_group,
    commit_events,
    group_changes,
)
from corebound.report.pages.series_table import (
    MOST_OPEN,
    Notice,
    SeriesGroup,
    failing_notices,
    give_or_gives,
    series_groups,
    series_notice,
)
from corebound.report.urls import series_page
from corebound.stats.history.regressions import Change

# The longest folded list that is still useful to read.
_MOST_NAMED = 500
# The number of cells to name if no benchmark page names them.
_MOST_CELLS = 3


class ScenarioWithoutHistory(Struct, frozen=True, kw_only=True):
    """A scenario or benchmark without history.

    Attributes:
        title: Its name.
        cells: The affected cells and machines; may be empty.
        address: Its page if other cells of it have one; else empty.
    """

    title: str
    cells: str
    address: str


class SeriesWithoutHistory(Struct, frozen=True, kw_only=True):
    """The series that have no history for one reason, and the number of further ones."""

    location: str
    reason: str
    named: tuple[ScenarioWithoutHistory, ...]
    more: str


def series_without_history(history: ChangeHistory) -> tuple[SeriesWithoutHistory, ...]:
    """The series that have no history to show, grouped by reason."""
    groups: dict[tuple[str, str], dict[str, list[Series]]] = {}
    with_history = history.histories
    ids = {series.id for series in with_history}
    pages = {series_page(series) for series in with_history}
    for series in history.series:
        if series.id not in ids:
            titles = groups.setdefault(
                (series.project or series.host_name, why_no_history(series)), {}
            )
            titles.setdefault(series.title, []).append(series)
    return tuple(
        SeriesWithoutHistory(
            location=location,
            reason=reason,
            named=tuple(
                ScenarioWithoutHistory(
                    title=title,
                    cells=_cells(all_series),
                    address=page if (page := series_page(all_series[0])) in pages else "",
                )
                for title, all_series in [*titles.items()][:_MOST_NAMED]
            ),
            more=and_more(len(titles) - _MOST_NAMED),
        )
        for (location, reason), titles in sorted(groups.items())
    )


def _cells(all_series: Sequence[Series]) -> str:
    """The names of the cells, with machines for imported series; our own series are on one host."""
    cells = {series.cell for series in all_series}
    # asv has an environment in every cell.
    names = dict.fromkeys(parameters(series) for series in sorted(all_series, key=natural_sort_key))
    text = "; ".join(filter(None, names))
    if len(names) > _MOST_CELLS or len(names) < len(cells):
        text = count(len(cells), "cell")
    hosts = sorted({series.host_name for series in all_series if series.project is not None})
    machines = f"on {', '.join(hosts)}" if hosts else ""
    return ", ".join(part for part in (text, machines) if part)


# The largest groups; the CSV has all of them.
_MOST_GROUPS = 250
_ORDER = {"open": 0, "accepted": 1, "fixed": 2, "recovered": 3, "kept": 4, "ended": 5}


class HistoryPage(Struct, frozen=True, kw_only=True):
    """The content of history.html.

    Attributes:
        regressions, improvements, unclear: Changes, grouped if one event may have caused them;
            `hidden` counts those beyond what a page can hold.
        more: Further regressions after the first ones.
        failing: Series that no longer give values.
        not_analysed: Series whose analysis failed, so that no change in them is known.
        commits: Commits in which several benchmarks changed, the latest first.
        comparisons: (text, address) of pages that compare two runs.
        groups: Every series; `folded` if there are too many to read.
        without: Series with too few values for a chart.
    """

    head: Head
    hero: Hero
    regressions: tuple[ChangeGroup, ...]
    more: tuple[ChangeGroup, ...]
    improvements: tuple[ChangeGroup, ...]
    unclear: tuple[ChangeGroup, ...]
    failing: tuple[Notice, ...]
    not_analysed: tuple[Notice, ...]
    commits: tuple[CommitEvent, ...]
    hidden: str
    comparisons: tuple[tuple[str, str], ...]
    groups: tuple[SeriesGroup, ...]
    folded: bool
    without: tuple[SeriesWithoutHistory, ...]

    @property
    def lacks_commands(self) -> bool:
        """Whether imported data lacks the command for some of the series."""
        return any(row.command is None for group in self.groups for row in group.rows)


def history_page(
    context: PageContext, *, comparisons: Sequence[tuple[str, str]] = ()
) -> HistoryPage:
    """Build the page of all changes and all series.

    Args:
        context: What the pages share.
        comparisons: (text, address) of pages that compare two runs.
    """
    history = context.history
    changes = history.changes
    worse = sorted(
        (change for change in changes if change.is_regression),
        key=lambda change: _sort_key(change, history),
    )
    better = sorted(
        (change for change in changes if not change.is_regression),
        key=lambda change: _sort_key(change, history),
    )
    groups_of = [group_changes(several, history) for several in (worse, better, history.unclear)]
    hidden = sum(len(group) for groups in groups_of for group in groups[_MOST_GROUPS:])
    events = commit_events(history)
    regressions, improvements, unclear = (
        tuple(
            replace(
                change_group(changes, history),
                changed_together=_changed_together(changes[0], events),
            )
            for changes in groups[:_MOST_GROUPS]
        )
        for groups in groups_of
    )
    groups = series_groups(history.histories, history)
    return HistoryPage(
        head=Head(
            title="Corebound: history",
            description="Every lasting change, and every series.",
            root="",
            breadcrumb="History",
            made=f"Page made {day(context.now)}.",
        ),
        hero=Hero(
            title="History",
            question="What changed, and when?",
            context="",
            verdict=_verdict(worse, history),
            support=_support(history),
            flags=(),
        ),
        regressions=regressions[:MOST_OPEN],
        more=regressions[MOST_OPEN:],
        improvements=improvements,
        unclear=unclear,
        failing=tuple(failing_notices(history.failing.values(), history)),
        not_analysed=tuple(
            series_notice((series,), history, history.not_analysed[series.id])
            for series in history.series
            if series.id in history.not_analysed
        ),
        commits=events,
        hidden=f"{count(hidden, 'smaller change')} more in the CSV." if hidden else "",
        comparisons=tuple(comparisons),
        groups=groups,
        folded=sum(len(group.rows) for group in groups) > MOST_OPEN,
        without=series_without_history(history),
    )


def _changed_together(change: Change, events: Sequence[CommitEvent]) -> tuple[str, str] | None:
    """The number of other benchmarks that changed in the same commits, and the event's fragment."""
    for event in events:
        if change.id in event.changes:
            return f"with {count(event.benchmarks - 1, 'other benchmark')}", event.anchor
    return None


def _sort_key(change: Change, history: ChangeHistory) -> tuple[int, bool, float, str]:
    """The sort key: open changes first, among them new ones, then by size."""
    status = _ORDER.get(history.status(change), len(_ORDER))
    return (
        status,
        change.change_point.status != "new",
        -abs(change.change_point.ratio - 1),
        change.id,
    )


def _verdict(worse: Sequence[Change], history: ChangeHistory) -> Text:
    unsettled = sum(history.status(change) == "open" for change in worse)
    if not unsettled:
        return rich("No regression is open.")
    text = count(unsettled, "regression")
    return rich(TextSpan(text, "bad"), f" {'is' if unsettled == 1 else 'are'} open.")


def _support(history: ChangeHistory) -> Text:
    all_series = history.histories
    points = sum(len(series.points.measured) for series in all_series)
    active = [series for series in all_series if series.id not in history.retired_series]
    return rich(
        f"{count(len(history.changes), 'change')} in "
        f"{count(len(all_series), 'series', 'series')} of {count(points, 'point')}. "
        "A change is reported when several detectors agree and it is significant after correction "
        "for the whole suite (5 % false discovery rate). ",
        *_failing_words(len(history.failing)),
        *not_analysed_words(len(history.not_analysed), "#not-analysed"),
        too_short_note(sum(series.id in history.too_short for series in active), len(active)),
    )


def not_analysed_words(number: int, link: str) -> list[str | TextSpan]:
    """The number of series that could not be analysed, with a link; empty if there are none."""
    text = f"{count(number, 'series', 'series')} could not be analysed"
    return [strong(text, link), ". "] if number else []


def _failing_words(failing: int) -> list[str | TextSpan]:
    text = f"{count(failing, 'cell')} {give_or_gives(failing)} no figure"
    return [strong(text, "#failing"), " any more. "] if failing else []
