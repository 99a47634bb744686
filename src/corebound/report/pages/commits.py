"""The history page's list of commits: what each changed, the worst series, and what to do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import (
    CommandLine,
    TriageCommands,
    series_command,
    triage_commands,
)
from corebound.analysis.host_evidence import evidence_lines, host_evidence
from corebound.analysis.triage import (
    STATUSES,
    CommitEntry,
    FailureGroup,
    change_factor,
    change_status,
)
from corebound.analysis.wording import and_more, count, times
from corebound.records.history import Series
from corebound.report.charts.commits import presence_svg, step_svg
from corebound.report.pages.changes import (
    ChangeGroup,
    CommitRange,
    RecoveryNote,
    group_changes,
    recovery_note,
)
from corebound.scenario.cell import PROJECT
from corebound.stats.history.regressions import Change

# The groups of a commit's changes.
_MOST_GROUPS = 6
# The hosts of a commit that are named.
_MOST_HOSTS = 6
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
        more = and_more(len(hosts) - _MOST_HOSTS)
        machines = " ".join(filter(None, (", ".join(hosts[:_MOST_HOSTS]), more)))
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
