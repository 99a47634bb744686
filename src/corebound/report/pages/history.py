"""The history page: changes that need attention, then every series."""

from collections import Counter
from collections.abc import Container, Sequence

from corebound.analysis import triage
from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.host_evidence import evidence_lines, host_evidence
from corebound.analysis.series_names import natural_sort_key, parameters
from corebound.analysis.series_wording import too_short_note
from corebound.analysis.suggested_commands import (
    latest_command,
    triage_commands,
)
from corebound.analysis.wording import Text, TextSpan, and_more, count, listed, rich, times
from corebound.present.changes import (
    change_table,
    entry_table,
    failure_table,
    group_changes,
)
from corebound.present.regressions import not_analysed_table
from corebound.present.sections import Table
from corebound.records.history import Series
from corebound.report.charts.commits import step_svg
from corebound.report.elements import Head, Hero, Page, linked_count
from corebound.report.history.commit_timeline import commit_timelines
from corebound.report.inputs import PageContext
from corebound.report.pages.benchmark import why_no_history
from corebound.report.pages.series_table import (
    MOST_OPEN,
    series_groups,
)
from corebound.report.urls import entry_anchor, series_address, series_page
from corebound.scenario.cell import Importance
from corebound.stats.history.alerts import STATUSES, Status
from corebound.stats.history.regressions import Change

# The number of cells to name if no benchmark page names them.
_MOST_CELLS = 3


def series_without_history(
    history: ChangeHistory,
) -> tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...]:
    """The series that have no history to show, grouped by reason.

    Returns:
        Their project or host, the reason, and (title, affected cells and machines, address) of
        their scenarios or benchmarks; the address is that of other cells, else empty.
    """
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
        (
            location,
            reason,
            tuple(
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
_POINTS, _LEAST_BEFORE = 40, 15


def entry_location(entry: triage.CommitEntry) -> str:
    """The project or the hosts of a commit's changes."""
    hosts, project = entry.hosts, entry.project
    machines = listed(hosts, _MOST_NAMED_HOSTS)
    return f"{project} on {machines}" if project else machines


def entry_changes(entry: triage.CommitEntry, history: ChangeHistory) -> Table:
    """The first changes of a commit, by benchmark."""
    groups = group_changes([each.change for each in entry.changes], history)
    more = and_more(len(groups) - _MOST_GROUPS)
    return change_table(
        groups[:_MOST_GROUPS],
        f"Changes of {entry.id}",
        series_address,
        anchors=True,
        notes=(f"{more}: see the pages of the benchmarks, or the CSV.",) if more else (),
    )


def change_step_svg(change: Change) -> str:
    """A drawing of a series' latest points, or of those around its change if that is older."""
    series, step = change.series, change.change_point
    end = min(len(series.points), max(step.at - _LEAST_BEFORE, 0) + _POINTS)
    begin = max(end - _POINTS, 0)
    size = f"{times(triage.change_factor(change))} {'worse' if change.is_regression else 'better'}"
    return step_svg(
        series.points.values[begin:end],
        step.at - begin,
        (step.before, step.before * step.ratio),
        tone="bad" if change.is_regression else "good",
        says=f"{series.title}: {size} at the marked place, {count(end - begin, 'point')}",
    )


# The latest commits; the CSV has all of their changes.
_MOST_COMMITS = 100
# Commits of which nothing is left to decide.
_SETTLED = frozenset[Status]({"kept", "reverted", "retired"})
# The commits that are not folded.
_MOST_UNFOLDED = 20
_MOST_UNCLEAR = 50


def history_page(context: PageContext) -> Page:
    """Build the page of all changes and all series."""
    history = context.history
    entries = history.entries
    on_page = _most_urgent(entries, _MOST_COMMITS)
    return Page(
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
        **_by_commit(on_page, history),
        hidden=len(entries) - len(on_page),
        unclear=_unclear(history),
        not_analysed=not_analysed_table(history, series_address),
        **_all_series(history),
        without=series_without_history(history),
    )


def _by_commit(entries: Sequence[triage.CommitEntry], history: ChangeHistory) -> dict[str, object]:
    """The commits on the page, of which those that need attention are not folded."""
    needed = [entry for entry in entries if entry.status not in _SETTLED]
    unfolded = {entry.id for entry in _most_urgent(needed, _MOST_UNFOLDED)}
    commits = tuple(entry for entry in entries if entry.id in unfolded)
    numbers = Counter(entry.status for entry in commits)
    links = {
        entry.first_bad.commit.sha: f"#{entry_anchor(entry)}"
        for entry in reversed(entries)
        if entry.first_bad.commit is not None and entry.is_of_commits
    }
    return {
        # What compares each commit of the page with the one before.
        "comparisons": {
            entry_anchor(entry): triage_commands(entry, history.built).get("Compare")
            for entry in entries
        },
        "has_secondary": any(
            each.is_secondary
            for entry in entries
            for impact in (entry.leading, entry.other)
            for each in impact.benchmarks
        ),
        "commits": commits,
        # Which hosts show them, in sentences.
        "evidence": {
            name: tuple(evidence_lines(own))
            for name, own in host_evidence(commits, history.series).items()
        },
        "statuses": tuple((status, numbers[status]) for status in STATUSES if numbers[status]),
        "older": entry_table(
            [(entry, entry.leading) for entry in entries if entry.id not in unfolded],
            history,
            "Older commits",
            series_address,
            anchors=entry_anchor,
        ),
        "more": sum(entry.status not in _SETTLED for entry in history.entries) - len(unfolded),
        "failures": failure_table(
            triage.group_failures(history.failing_histories.values()), series_address, links
        ),
    }


def _unclear(history: ChangeHistory) -> Table:
    """The commits with changes that are not significant, or that a re-run did not confirm."""
    refuted = [change for change in history.changes if history.assessed[change.id].is_inconclusive]
    entries = triage.commit_entries(
        history.assessed[change.id] for change in (*refuted, *history.unclear)
    )
    more = and_more(len(entries) - _MOST_UNCLEAR)
    return entry_table(
        [(entry, entry.leading) for entry in entries[:_MOST_UNCLEAR]],
        history,
        "Commits with changes that are not significant",
        series_address,
        notes=(f"{more} in the CSV.",) if more else (),
    )


def _all_series(history: ChangeHistory) -> dict[str, object]:
    shown, unlisted = _listed_series(history)
    groups = series_groups(shown, history)
    rows = [row for group in groups for row in group.rows]
    return {
        "groups": groups,
        # Whether the groups are too long to read; each is then in short.
        "folded": len(rows) > MOST_OPEN,
        "lacks_commands": any(latest_command(row.series) is None for row in rows),
        "unlisted": unlisted,
    }


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
    changes.update(entry.series.host for entry in history.failing_histories.values())
    listed = {host for host, _ in changes.most_common(_MOST_LISTED_HOSTS) if host in hosts}
    return [series for series in every if series.project is not None or series.host in listed], len(
        hosts
    ) - len(listed)


def _most_urgent(entries: Sequence[triage.CommitEntry], most: int) -> list[triage.CommitEntry]:
    """At most this many entries, the new ones before others, in their order."""
    chosen = {entry.id for entry in sorted(entries, key=lambda each: each.status != "new")[:most]}
    return [entry for entry in entries if entry.id in chosen]


def _verdict(entries: Sequence[triage.CommitEntry]) -> Text:
    """The new regressions of primary benchmarks, which alone set the headline."""
    series, causes = _regressed(entries, "new", ("primary",))
    if not series:
        return rich("No new regression.")
    text = f"{count(series, 'series', 'series')} regressed"
    return rich(TextSpan(text, "bad"), f", from {triage.count_causes(causes)}.")


def _regressed(
    entries: Sequence[triage.CommitEntry], status: Status, importances: Container[Importance]
) -> tuple[int, list[triage.CommitEntry]]:
    """How many series have a regression of this status, and the commits with one."""
    regressed: set[str] = set()
    causes = []
    for entry in entries:
        found = {
            series.id
            for each in entry.regressions.changes
            if each.status == status and (series := each.change.series).importance in importances
        }
        regressed |= found
        causes += [entry] if found else []
    return len(regressed), causes


def _support(entries: Sequence[triage.CommitEntry], history: ChangeHistory) -> Text:
    all_series = history.histories
    points = sum(series.points.value_count for series in all_series)
    active = [series for series in all_series if series.id not in history.retired_series]
    # Regressions that do not set the headline: those of secondary benchmarks, and older ones.
    secondary, _ = _regressed(entries, "new", ("secondary",))
    older, _ = _regressed(entries, "open", ("primary", "secondary"))
    of_secondary = f"{count(secondary, 'series', 'series')} of secondary benchmarks regressed. "
    return rich(
        *([of_secondary] if secondary else []),
        *linked_count(older, "with an older regression {are} open", "#triage"),
        f"{count(len(history.changes), 'change')} in "
        f"{count(len(all_series), 'series', 'series')} of {count(points, 'point')}. ",
        *linked_count(len(history.failing_histories), "stopped giving values", "#failing"),
        *linked_count(len(history.not_analysed), "could not be analysed", "#not-analysed"),
        too_short_note(sum(series.id in history.too_short for series in active), len(active)),
    )
