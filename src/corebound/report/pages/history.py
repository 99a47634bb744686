"""The history page: changes that need attention, then every series."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import (
    CommandLine,
    TriageCommands,
    latest_command,
    series_command,
    triage_commands,
)
from corebound.analysis.host_evidence import evidence_lines, host_evidence
from corebound.analysis.series_names import natural_sort_key, parameters
from corebound.analysis.triage import (
    STATUSES,
    CommitEntry,
    FailureGroup,
    Status,
    change_factor,
    change_status,
    commit_entries,
    count_causes,
    group_failures,
    triage,
)
from corebound.analysis.wording import Text, TextSpan, and_more, count, rich, times, too_short_note
from corebound.present.changes import (
    ChangeGroup,
    CommitRange,
    RecoveryNote,
    group_changes,
    recovery_note,
)
from corebound.records.history import Series
from corebound.report.charts.commits import presence_svg, step_svg
from corebound.report.elements import Head, Hero, linked_count
from corebound.report.history.commit_timeline import CommitTimeline, commit_timelines
from corebound.report.inputs import PageContext
from corebound.report.pages.benchmark import why_no_history
from corebound.report.pages.series_table import (
    MOST_OPEN,
    Notice,
    SeriesGroup,
    series_groups,
    series_notice,
)
from corebound.report.urls import entry_anchor, series_page
from corebound.scenario.cell import PROJECT, Importance
from corebound.stats.history.regressions import Change

# The number of cells to name if no benchmark page names them.
_MOST_CELLS = 3


class SeriesWithoutHistory(Struct, frozen=True, kw_only=True):
    """The series that have no history for one reason.

    Attributes:
        location: Their project or host.
        named: (title, affected cells and machines, address) of their scenarios or benchmarks; the
            address is that of other cells, else empty.
    """

    location: str
    reason: str
    named: tuple[tuple[str, str, str], ...]


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
                (title, _cells(own), page if (page := series_page(own[0])) in pages else "")
                for title, own in titles.items()
            ),
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
        text = count(len(cells), "series", "series")
    hosts = sorted({series.host_name for series in all_series if series.project is not None})
    machines = f"on {', '.join(hosts)}" if hosts else ""
    return ", ".join(part for part in (text, machines) if part)


# The groups of a commit's changes.
_MOST_GROUPS = 6
# The hosts of a commit that are named.
_MOST_NAMED_HOSTS = 6
# The points of a drawn series, and the least number of them before the change.
_POINTS, _LEAST_BEFORE = 60, 20


class EntryRow(Struct, frozen=True, kw_only=True):
    """A commit with changes.

    Attributes:
        entry: The changes.
        history: All histories and decisions.
        evidence: Which hosts show them, in sentences; empty for one host.
        commands: What to do.
        groups: The first changes, by benchmark; empty if the commit is shown in short.
        more: How many further groups there are.
    """

    entry: CommitEntry
    history: ChangeHistory
    evidence: tuple[str, ...]
    commands: TriageCommands
    groups: tuple[ChangeGroup, ...]
    more: int

    @property
    def _leading(self) -> list[Change]:
        return [each.change for each in self.entry.leading.changes]

    @property
    def commits(self) -> CommitRange:
        """The range that they may come from; its name is empty if it is unknown."""
        entry = self.entry
        return CommitRange.of(self._leading[0].series, entry.last_good, entry.first_bad)

    @property
    def location(self) -> str:
        """The project or the hosts."""
        hosts, project = self.entry.hosts, self.entry.project
        more = and_more(len(hosts) - _MOST_NAMED_HOSTS)
        machines = " ".join(filter(None, (", ".join(hosts[:_MOST_NAMED_HOSTS]), more)))
        return f"{project} on {machines}" if project else machines

    @property
    def statuses(self) -> str:
        """The number of series in each status; empty if they have the same."""
        numbers = Counter(map(change_status, self.entry.leading.changes))
        each = (f"{numbers[status]} {status}" for status in STATUSES if numbers[status])
        return ", ".join(each) if len(numbers) > 1 else ""

    @property
    def because(self) -> str:
        """The reason of a decision about all of them; else empty."""
        reasons = {self.history.because(change) for change in self._leading}
        return reasons.pop() if len(reasons) == 1 else ""

    @property
    def recovery(self) -> RecoveryNote | None:
        """What reverted all of them."""
        return recovery_note(self._leading)


def entry_rows(
    entries: Sequence[CommitEntry], history: ChangeHistory, *, detailed: Container[str] = ()
) -> tuple[EntryRow, ...]:
    """Commits as rows, in their order; those with these ids in detail, the others in short."""
    built = frozenset(
        series.id
        for series in history.series
        if series.project is None
        and (cell := history.cells.get((series.scenario, series.cell))) is not None
        and cell.environment == PROJECT
        and cell.commit is None
    )
    evidence = host_evidence([entry for entry in entries if entry.id in detailed], history.series)
    rows = []
    for entry in entries:
        changes = [each.change for each in entry.changes] if entry.id in detailed else []
        groups = group_changes(changes, history)
        rows.append(
            EntryRow(
                entry=entry,
                history=history,
                evidence=tuple(evidence_lines(evidence.get(entry.id, ()))),
                commands=triage_commands(entry, built),
                groups=tuple(ChangeGroup.of(group, history) for group in groups[:_MOST_GROUPS]),
                more=len(groups) - _MOST_GROUPS,
            )
        )
    return tuple(rows)


def change_step_svg(change: Change) -> str:
    """A drawing of a series' latest points, or of those around its change if that is older."""
    series, step = change.series, change.change_point
    end = min(len(series.points), max(step.at - _LEAST_BEFORE, 0) + _POINTS)
    begin = max(end - _POINTS, 0)
    size = f"{times(change_factor(change))} {'worse' if change.is_regression else 'better'}"
    return step_svg(
        series.points.values[begin:end],
        step.at - begin,
        (step.before, step.before * step.ratio),
        tone="bad" if change.is_regression else "good",
        says=f"{series.title}: {size} at the marked place, {count(end - begin, 'point')}",
    )


# The benchmarks and the latest points of a group of failing series.
_MOST_NAMED = 4
_PRESENCE = 30


class FailureRow(Struct, frozen=True, kw_only=True):
    """The series that stopped giving values for one reason.

    Attributes:
        group: The series.
        named: The series of each of the first benchmarks; `more` is the number of further ones.
        link: The fragment of the commit with changes since which values are missing; may be empty.
    """

    group: FailureGroup
    named: tuple[list[Series], ...]
    more: int
    link: str

    @property
    def svg(self) -> str:
        """Which of the latest points of the first series have a value."""
        values = self.group.failing[0].series.points.values[-_PRESENCE:]
        return presence_svg([not math.isnan(value) for value in values])

    @property
    def commands(self) -> list[CommandLine]:
        """They measure the named benchmarks again; may be empty."""
        return [command for own in self.named if (command := series_command(own))]


def failure_rows(
    groups: Sequence[FailureGroup], links: Mapping[str, str]
) -> tuple[FailureRow, ...]:
    """Groups of failing series as rows.

    Args:
        groups: The groups.
        links: The fragment of each commit on the page, by its hash.
    """
    rows = []
    for group in groups:
        by_benchmark: dict[tuple[str, str], list[Series]] = {}
        for each in group.failing:
            key = each.series.scenario, each.series.host
            by_benchmark.setdefault(key, []).append(each.series)
        commit = group.since.commit
        rows.append(
            FailureRow(
                group=group,
                named=tuple(by_benchmark.values())[:_MOST_NAMED],
                more=len(by_benchmark) - _MOST_NAMED,
                link=links.get(commit.sha, "") if commit else "",
            )
        )
    return tuple(rows)


# The latest commits; the CSV has all of their changes.
_MOST_COMMITS = 150
# Commits of which nothing is left to decide.
_SETTLED = frozenset[Status]({"kept", "reverted", "retired"})
# The commits that are not folded.
_MOST_UNFOLDED = 25
_MOST_UNCLEAR = 50


class HistoryPage(Struct, frozen=True, kw_only=True):
    """The content of history.html.

    Attributes:
        timelines: The latest commits of each project.
        commits: Those with changes that need attention or did, the latest first.
        more: How many more of these there are.
        older: Further ones, and improvements that are not new, in short.
        hidden: How many further commits are only in the CSV.
        unclear: Commits with changes that are not significant, or that a re-run did not confirm.
        more_unclear: How many further ones are only in the CSV.
        failures: Series that stopped giving values, by reason.
        not_analysed: Series whose analysis failed, so that no change in them is known.
        groups: Every series.
        unlisted: How many hosts without a change are not in `groups`.
        without: Series with too few values for a chart.
    """

    head: Head
    hero: Hero
    history: ChangeHistory
    timelines: tuple[CommitTimeline, ...]
    commits: tuple[EntryRow, ...]
    more: int
    older: tuple[EntryRow, ...]
    hidden: int
    unclear: tuple[EntryRow, ...]
    more_unclear: int
    failures: tuple[FailureRow, ...]
    not_analysed: tuple[Notice, ...]
    groups: tuple[SeriesGroup, ...]
    unlisted: int
    without: tuple[SeriesWithoutHistory, ...]

    @property
    def folded(self) -> bool:
        """Whether the groups are too long to read; each is then in short."""
        return sum(len(group.rows) for group in self.groups) > MOST_OPEN

    @property
    def lacks_commands(self) -> bool:
        """Whether imported data lacks the command for some of the series."""
        return any(
            latest_command(row.series) is None for group in self.groups for row in group.rows
        )

    @property
    def statuses(self) -> tuple[tuple[str, int], ...]:
        """The statuses of the commits that are not folded, with their numbers."""
        numbers = Counter(row.entry.status for row in self.commits)
        return tuple((status, numbers[status]) for status in STATUSES if numbers[status])

    @property
    def rows_by_anchor(self) -> dict[str, EntryRow]:
        """The commits of the page, by their fragments."""
        return {entry_anchor(row.entry): row for row in (*self.commits, *self.older)}

    @property
    def has_secondary(self) -> bool:
        """Whether a change is of a secondary benchmark."""
        return any(
            each.is_secondary
            for row in (*self.commits, *self.older)
            for impact in (row.entry.leading, row.entry.other)
            for each in impact.benchmarks
        )


def history_page(context: PageContext) -> HistoryPage:
    """Build the page of all changes and all series."""
    history = context.history
    entries = triage(history.assessed.values())
    on_page = _most_urgent(entries, _MOST_COMMITS)
    needed = [entry for entry in on_page if entry.status not in _SETTLED]
    unfolded = {entry.id for entry in _most_urgent(needed, _MOST_UNFOLDED)}
    rows = entry_rows(on_page, history, detailed=unfolded)
    links = {
        entry.first_bad.commit.sha: entry_anchor(entry)
        for entry in reversed(on_page)
        if entry.first_bad.commit is not None and entry.is_of_commits
    }
    refuted = [change for change in history.changes if history.assessed[change.id].is_inconclusive]
    unclear = commit_entries(history.assessed[change.id] for change in (*refuted, *history.unclear))
    listed, unlisted = _listed_series(history)
    return HistoryPage(
        head=Head(
            title="Corebound: history",
            description="What each commit changed, and every series.",
        ),
        hero=Hero(
            title="History",
            question="What changed, and when?",
            verdict=_verdict(entries),
            support=_support(entries, history),
        ),
        history=history,
        timelines=commit_timelines(on_page, history),
        commits=tuple(row for row in rows if row.entry.id in unfolded),
        older=tuple(row for row in rows if row.entry.id not in unfolded),
        more=sum(entry.status not in _SETTLED for entry in entries) - len(unfolded),
        hidden=len(entries) - len(rows),
        unclear=entry_rows(unclear[:_MOST_UNCLEAR], history),
        more_unclear=len(unclear) - _MOST_UNCLEAR,
        failures=failure_rows(group_failures(history.failing.values()), links),
        not_analysed=tuple(
            series_notice((series,), history.not_analysed[series.id])
            for series in history.series
            if series.id in history.not_analysed
        ),
        groups=series_groups(listed, history),
        unlisted=unlisted,
        without=series_without_history(history),
    )


# Of more hosts, those are listed on which something changed.
_MOST_LISTED_HOSTS = 60


def _listed_series(history: ChangeHistory) -> tuple[list[Series], int]:
    """The series to list, and the number of hosts that are left out."""
    every = history.histories
    hosts = {series.host for series in every if series.project is None}
    if len(hosts) <= _MOST_LISTED_HOSTS:
        return [*every], 0
    changes = Counter(
        change.series.host for change in history.changes if change.series.project is None
    )
    changes.update(entry.series.host for entry in history.failing.values())
    listed = {host for host, _ in changes.most_common(_MOST_LISTED_HOSTS) if host in hosts}
    return [series for series in every if series.project is not None or series.host in listed], len(
        hosts
    ) - len(listed)


def _most_urgent(entries: Sequence[CommitEntry], most: int) -> list[CommitEntry]:
    """At most this many entries, the new ones before others, in their order."""
    chosen = {entry.id for entry in sorted(entries, key=lambda each: each.status != "new")[:most]}
    return [entry for entry in entries if entry.id in chosen]


def _verdict(entries: Sequence[CommitEntry]) -> Text:
    """The new regressions of primary benchmarks, which alone set the headline."""
    series, causes = _regressed(entries, "new", ("primary",))
    if not series:
        return rich("No new regression.")
    text = f"{count(series, 'series', 'series')} regressed"
    return rich(TextSpan(text, "bad"), f", from {count_causes(causes)}.")


def _regressed(
    entries: Sequence[CommitEntry], status: Status, importances: Container[Importance]
) -> tuple[int, list[CommitEntry]]:
    """How many series have a regression of this status, and the commits with one."""
    regressed: set[str] = set()
    causes = []
    for entry in entries:
        found = {
            series.id
            for each in entry.regressions.changes
            if change_status(each) == status
            and (series := each.change.series).importance in importances
        }
        regressed |= found
        causes += [entry] if found else []
    return len(regressed), causes


def _support(entries: Sequence[CommitEntry], history: ChangeHistory) -> Text:
    all_series = history.histories
    points = sum(series.points.value_count for series in all_series)
    active = [series for series in all_series if series.id not in history.retired_series]
    return rich(
        *_open_words(entries),
        f"{count(len(history.changes), 'change')} in "
        f"{count(len(all_series), 'series', 'series')} of {count(points, 'point')}. ",
        *linked_count(len(history.failing), "stopped giving values", "#failing"),
        *linked_count(len(history.not_analysed), "could not be analysed", "#not-analysed"),
        too_short_note(sum(series.id in history.too_short for series in active), len(active)),
    )


def _open_words(entries: Sequence[CommitEntry]) -> list[str | TextSpan]:
    """Regressions that do not set the headline: those of secondary benchmarks, and older ones."""
    words: list[str | TextSpan] = []
    secondary, _ = _regressed(entries, "new", ("secondary",))
    if secondary:
        words += [f"{count(secondary, 'series', 'series')} of secondary benchmarks regressed. "]
    series, _ = _regressed(entries, "open", ("primary", "secondary"))
    return words + linked_count(series, "with an older regression {are} open", "#triage")
