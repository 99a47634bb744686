"""The history page: changes that need attention, then every series."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, has_grown
from corebound.analysis.series_names import natural_place, parameters
from corebound.analysis.wording import (
    Text,
    TextSpan,
    and_more,
    count,
    day,
    rich,
    strong,
    too_short_words,
)
from corebound.records.history import Series
from corebound.report.elements import Head, Hero
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

    where: str
    reason: str
    named: tuple[ScenarioWithoutHistory, ...]
    more: str


def series_without_history(known: ChangeHistory) -> tuple[SeriesWithoutHistory, ...]:
    """The series that have no history to show, grouped by reason."""
    found: dict[tuple[str, str], dict[str, list[Series]]] = {}
    shown = {series_page(one) for one in known.histories}
    for one in known.series:
        if not has_grown(one):
            reasons = found.setdefault((one.project or one.host_name, why_no_history(one)), {})
            reasons.setdefault(one.title, []).append(one)
    return tuple(
        SeriesWithoutHistory(
            where=where,
            reason=reason,
            named=tuple(
                ScenarioWithoutHistory(
                    title=title,
                    cells=_cells(several),
                    address=page if (page := series_page(several[0])) in shown else "",
                )
                for title, several in [*titles.items()][:_MOST_NAMED]
            ),
            more=and_more(len(titles) - _MOST_NAMED),
        )
        for (where, reason), titles in sorted(found.items())
    )


def _cells(series: Sequence[Series]) -> str:
    """The names of the cells, with machines for imported series; our own series are on one host."""
    cells = {one.cell for one in series}
    # asv has an environment in every cell.
    names = dict.fromkeys(parameters(one) for one in sorted(series, key=natural_place))
    told = "; ".join(filter(None, names))
    if len(names) > _MOST_CELLS or len(names) < len(cells):
        told = count(len(cells), "cell")
    hosts = sorted({one.host_name for one in series if one.project is not None})
    machines = f"on {', '.join(hosts)}" if hosts else ""
    return ", ".join(part for part in (told, machines) if part)


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
    known: ChangeHistory, *, now: str, comparisons: Sequence[tuple[str, str]] = ()
) -> HistoryPage:
    """Build the page of all changes and all series.

    Args:
        known: All histories with their changes.
        now: ISO timestamp of the page.
        comparisons: (text, address) of pages that compare two runs.
    """
    found = known.changes
    worse = sorted(
        (one for one in found if one.is_regression), key=lambda one: _sort_key(one, known)
    )
    better = sorted(
        (one for one in found if not one.is_regression), key=lambda one: _sort_key(one, known)
    )
    groups_of = [group_changes(several, known) for several in (worse, better, known.unclear)]
    hidden = sum(len(group) for several in groups_of for group in several[_MOST_GROUPS:])
    events = commit_events(known)
    regressions, improvements, unclear = (
        tuple(
            replace(change_group(one, known), beside=_changed_together(one[0], events))
            for one in several[:_MOST_GROUPS]
        )
        for several in groups_of
    )
    groups = series_groups(known.histories, known)
    return HistoryPage(
        head=Head(
            title="Corebound: history",
            description="Every lasting change, and every series.",
            root="",
            here="History",
            made=f"Page made {day(now)}.",
        ),
        hero=Hero(
            title="History",
            question="What changed, and when?",
            context="",
            verdict=_verdict(worse, known),
            support=_support(known),
            flags=(),
        ),
        regressions=regressions[:MOST_OPEN],
        more=regressions[MOST_OPEN:],
        improvements=improvements,
        unclear=unclear,
        failing=tuple(failing_notices(known.failing.values(), known)),
        not_analysed=tuple(
            series_notice((one,), known, known.not_analysed[one.id])
            for one in known.series
            if one.id in known.not_analysed
        ),
        commits=events,
        hidden=f"{count(hidden, 'smaller change')} more in the CSV." if hidden else "",
        comparisons=tuple(comparisons),
        groups=groups,
        folded=sum(len(group.rows) for group in groups) > MOST_OPEN,
        without=series_without_history(known),
    )


def _changed_together(change: Change, events: Sequence[CommitEvent]) -> tuple[str, str] | None:
    """The number of other benchmarks that changed in the same commits, and the event's fragment."""
    for event in events:
        if change.id in event.changes:
            return f"with {count(event.benchmarks - 1, 'other benchmark')}", event.place
    return None


def _sort_key(change: Change, known: ChangeHistory) -> tuple[int, bool, float, str]:
    """The sort key: open changes first, among them new ones, then by size."""
    status = _ORDER.get(known.status(change), len(_ORDER))
    return status, change.step.status != "new", -abs(change.step.ratio - 1), change.id


def _verdict(worse: Sequence[Change], known: ChangeHistory) -> Text:
    unsettled = sum(known.status(one) == "open" for one in worse)
    if not unsettled:
        return rich("No regression is open.")
    words = count(unsettled, "regression")
    return rich(TextSpan(words, "bad"), f" {'is' if unsettled == 1 else 'are'} open.")


def _support(known: ChangeHistory) -> Text:
    points = sum(len(one.points.measured) for one in known.histories)
    going = [one for one in known.histories if one.id not in known.ended]
    return rich(
        f"{count(len(known.changes), 'change')} in "
        f"{count(len(known.histories), 'series', 'series')} of {count(points, 'point')}. "
        "A change is named when several detectors agree and it stands as one of the whole suite; "
        "of those, one in twenty may be false. ",
        *_failing_words(len(known.failing)),
        *not_analysed_words(len(known.not_analysed), "#not-analysed"),
        too_short_words(sum(one.id in known.too_short for one in going), len(going)),
    )


def not_analysed_words(number: int, link: str) -> list[str | TextSpan]:
    """The number of series that could not be analysed, with a link; empty if there are none."""
    said = f"{count(number, 'series', 'series')} could not be analysed"
    return [strong(said, link), ". "] if number else []


def _failing_words(failing: int) -> list[str | TextSpan]:
    said = f"{count(failing, 'cell')} {give_or_gives(failing)} no figure"
    return [strong(said, "#failing"), " any more. "] if failing else []
