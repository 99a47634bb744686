"""Tables of changes, single or by commit, and of series without values; the words they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis import change_history, series_wording, triage, wording
from corebound.analysis.suggested_commands import (
    CommandLine,
    between_command,
    series_command,
    triage_commands,
)
from corebound.groups import grouped
from corebound.present.sections import (
    Column,
    Commands,
    Commits,
    Item,
    Items,
    Marked,
    Named,
    Presence,
    Table,
    Value,
)
from corebound.records.history import HistoryPoint, Series, is_primary
from corebound.stats.history.alerts import STATUSES, HistoryChange, Status
from corebound.stats.history.regressions import Change
from corebound.stats.intervals import geometric_mean
from corebound.text import web_address
from corebound.units import significant

Address = Callable[[Series | triage.CommitEntry], str]
"""The address of the page of a series, or of the place of a commit on the history page."""

# The address part of a commit at forges that can also compare commits.
_COMMIT = "/commit/"
# The members of a row that are listed; the CSV has all of them.
_MOST_LISTED = 20
# The benchmarks of a commit, and those of a group of failing series, that are named.
_MOST_BENCHMARKS, _MOST_FAILING = 3, 4
# The latest points of a failing series that are drawn.
_PRESENCE = 30


def commit_link(series: Series, point: HistoryPoint) -> str:
    """The address of a point's commit; empty if unknown."""
    url = _commit_url(series)
    return f"{url}{point.commit.sha}" if url and point.commit else ""


def _commit_url(series: Series) -> str:
    """The prefix of addresses of commits; empty if unknown. An import may be from anybody."""
    return web_address(series.commit_url) or ""


def _range_link(series: Series, last_good: HistoryPoint, first_bad: HistoryPoint) -> str:
    """The address of all commits after one point up to another, if the forge has such a page.

    GitHub, GitLab and Forgejo have comparison pages beside their commit pages. For other forges the
    result is the address of the last commit. Empty if no address is known.
    """
    end, good, bad = commit_link(series, first_bad), last_good.commit, first_bad.commit
    url = _commit_url(series)
    if good is None or bad is None or not url.endswith(_COMMIT):
        return end
    return f"{url.removesuffix(_COMMIT)}/compare/{good.sha}...{bad.sha}"


def commits_between(
    series: Series,
    last_good: HistoryPoint,
    first_bad: HistoryPoint,
    when: str,
    after: Iterable[Commits | str] = (),
) -> Commits:
    """The commits after one point of a series up to another, with the subject of the last."""
    return Commits(
        when=when,
        name=change_history.commit_range(last_good, first_bad),
        subject=first_bad.commit.subject if first_bad.commit else "",
        link=_range_link(series, last_good, first_bad),
        after=tuple(after),
    )


def recovery(changes: Sequence[Change]) -> tuple[Commits, ...]:
    """What reverted several changes, if one change point may have reverted all of them.

    Args:
        changes: At least one, the largest first.

    Returns:
        The commits of the last change point of the recovery, with how much was recovered and the
        level since then relative to before the change; nothing if they were not reverted as one.
    """
    between = [
        change.recovered_between for change in changes if change.recovered_between is not None
    ]
    first, series = changes[0].change_point.recovery, changes[0].series
    amounts = {change_history.recovered_amount(change) for change in changes}
    if first is None or len(between) < len(changes) or len(amounts) > 1:
        return ()
    good = max((good for good, _ in between), key=_moment)
    bad = min((bad for _, bad in between), key=_moment)
    if good.at >= bad.at:
        return ()
    when = f"{amounts.pop()} {wording.day(series.points.moments[first.at].at)}"
    remaining = filter(None, (change_history.remaining_change(changes),))
    return (commits_between(series, good, bad, when, remaining),)


def levels_text(change: Change) -> str:
    """The levels before and after a change, in one unit."""
    before, after = (
        change.change_point.before,
        change.change_point.before * change.change_point.ratio,
    )
    length, unit = series_wording.display_unit(change.series, [before, after])
    return f"{significant(before / length)} to {significant(after / length)} {unit}".strip()


def machines_text(change: Change) -> str:
    """The CPU models that alone show a change; empty if all do, or nothing says so."""
    return f"only on {', '.join(change.only_on)}" if change.only_on else ""


_DOUBTS: dict[Status, str] = {
    "not significant": "after correction for all series",
    "early warning": "in the last two runs, too few yet",
}


# Of the changes that a row sums up: the most reasons that are shown, and results of re-runs.
_MOST_NOTES = 3


def status_of(
    changes: Sequence[HistoryChange],
    history: change_history.ChangeHistory,
    notes: Sequence[str] = (),
    *,
    code: str = "",
) -> Marked:
    """The most urgent status of changes in one direction, and what is said of them."""
    numbers = Counter(each.status for each in changes)
    words = [status for status in STATUSES if numbers[status]]
    reasons = {history.because(each.change) for each in changes} - {""}
    answers = {history.answer(each.change) for each in changes} - {""}
    tone: wording.Tone = "good" if words[0] == "fixed" else "plain"
    if changes[0].is_undecided and words[0] in {"new", "open"}:
        tone = "bad"
    every = (
        _DOUBTS.get(words[0], ""),
        ", ".join(f"{numbers[word]} {word}" for word in words) if len(words) > 1 else "",
        *(f"because {reason}" for reason in sorted(reasons)[:_MOST_NOTES]),
        *notes,
        *sorted(answers)[:_MOST_NOTES],
    )
    return Marked(
        word=wording.VerdictWord(tone=tone, sign="", word=words[0]),
        notes=tuple(filter(None, every)),
        code=code,
    )


class ChangeGroup(Struct, frozen=True, kw_only=True):
    """Changes of one scenario on one host, in one direction, that may come from one commit.

    Attributes:
        changes: At least one, the largest first.
        number: Its mark in the chart above; 0 if it has none.
    """

    changes: tuple[Change, ...]
    history: change_history.ChangeHistory
    number: int = 0

    @property
    def change(self) -> Change:
        """The largest of them."""
        return self.changes[0]

    @property
    def cells(self) -> str:
        """Their number, in words; empty if there is only one."""
        return f"{len(self.changes):,} series" if len(self.changes) > 1 else ""

    @property
    def name(self) -> str:
        """The configuration of the only one, or their number."""
        return self.cells or self.history.label(self.change.series).whole

    @property
    def label(self) -> wording.Label | None:
        """The configuration of the largest; None if its scenario or benchmark has no other."""
        series = self.change.series
        return None if series.cell in {"", "default"} else self.history.label(series)

    @property
    def size(self) -> wording.VerdictWord:
        """Size and direction, from the smallest to the largest."""
        return change_history.change_sizes(self.changes)

    @property
    def location(self) -> str:
        """The host, and the project if it was imported."""
        series = self.change.series
        return f"{series.project}, {series.host_name}" if series.project else series.host_name

    @property
    def change_cell(self) -> Marked:
        """The size, for a single one with its interval and both levels."""
        if self.cells:
            return Marked(word=self.size)
        return Marked(
            word=self.size,
            bounds=change_history.size_interval(self.change),
            notes=tuple(filter(None, (levels_text(self.change), machines_text(self.change)))),
        )

    @property
    def status_cell(self) -> Marked:
        """The status, the reason of a decision, the result of a re-run, and the id of one."""
        each = self.history.assessed[self.change.id]
        decided = each.decision.at[:10] if each.decision else ""
        notes = (
            f"marked as fixed on {decided}, but still present" if each.is_back else "",
            series_wording.last_day(self.change.series.points.latest_moment)
            if each.status == "retired"
            else "",
        )
        return status_of([each], self.history, notes, code="" if self.cells else each.id)

    @property
    def commits(self) -> Commits:
        """Those that all may have come in, and what reverted all of them."""
        when, recovered = wording.day(self.change.since), recovery(self.changes)
        return commits_between(self.change.series, *self._between, when, recovered)

    @property
    def command(self) -> CommandLine | None:
        """The command that reproduces them, if asv measured both commits; None if unknown."""
        return between_command([change.series for change in self.changes], *self._between)

    @property
    def _between(self) -> tuple[HistoryPoint, HistoryPoint]:
        """The points before and after all of them."""
        return (
            max((change.last_good for change in self.changes), key=_moment),
            min((change.first_bad for change in self.changes), key=_moment),
        )

    def members(self, address: Address, *, anchors: bool) -> Items | None:
        """Each of the largest, with what is not that of all; None if there is only one."""
        if not self.cells:
            return None
        items = []
        for change in self.changes:
            own = ChangeGroup(changes=(change,), history=self.history)
            differs = own.commits if own.commits != self.commits else None
            aside = (own.change_cell.bounds, own.status_cell.code, differs.text if differs else "")
            items.append(
                Item(
                    own.name,
                    own.size.word,
                    ", ".join(filter(None, aside)),
                    link=address(change.series),
                    anchor=_anchor(change) if anchors else "",
                )
            )
        return Items(tuple(items), most=_MOST_LISTED)


def _anchor(change: Change) -> str:
    return f"change-{change.id}"


def _moment(point: HistoryPoint) -> str:
    return point.at


def summary_table(changes: Sequence[Change]) -> Table:
    """How many series changed and by how much: a row for each direction and importance.

    The mean is the geometric one of the sizes of all changes of a row.

    Args:
        changes: Of any series, in any order.
    """
    has_secondary = not all(is_primary(change.series) for change in changes)
    rows: list[tuple[Value, ...]] = []
    directions: tuple[tuple[bool, wording.Tone, str, str], ...] = (
        (True, "bad", "▼", "regressions"),
        (False, "good", "▲", "improvements"),
    )
    for is_worse, tone, sign, name in directions:
        for importance in (True, False):
            own = [
                change
                for change in changes
                if (change.is_regression, is_primary(change.series)) == (is_worse, importance)
            ]
            if not own:
                continue
            factors = sorted(map(triage.change_factor, own))
            least, most = wording.times(factors[0]), wording.times(factors[-1])
            kind = f", {'primary' if importance else 'secondary'}" if has_secondary else ""
            rows.append(
                (
                    Marked(word=wording.VerdictWord(tone=tone, sign=sign, word=f"{name}{kind}")),
                    f"{len({change.series.id for change in own}):,}",
                    wording.times(geometric_mean(factors)),
                    f"{least.removesuffix('×')} to {most}" if own[1:] else "",
                )
            )
    return Table(
        title="Regressions and improvements",
        columns=(
            Column("changes"),
            Column("series", "number"),
            Column("mean", "number"),
            Column("range", "number"),
        ),
        rows=tuple(rows),
    )


def group_changes(
    changes: Sequence[Change], history: change_history.ChangeHistory
) -> tuple[ChangeGroup, ...]:
    """Group changes that may come from one commit.

    Changes of one scenario, host, direction and status are grouped if their ranges share a moment.
    The range that ends first defines a group, which includes all changes that began before its end.

    Args:
        changes: Changes; groups keep this order.
    """
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        series = change.series
        key = (
            series.project, series.host, series.scenario, series.unit,
            change.is_regression, change.change_point.status, history.assessed[change.id].status,
            history.because(change), history.answer(change).partition(":")[0],
        )  # fmt: skip
        alike.setdefault(key, []).append(change)
    order = {change.id: index for index, change in enumerate(changes)}
    groups = [group for own in alike.values() for group in triage.group_overlapping(own)]
    groups.sort(key=lambda group: min(order[change.id] for change in group))
    for group in groups:
        group.sort(key=lambda change: (-abs(change.change_point.ratio - 1), change.id))
    return tuple(ChangeGroup(changes=tuple(group), history=history) for group in groups)


def change_table(
    groups: Iterable[ChangeGroup],
    title: str,
    address: Address,
    *,
    anchors: bool = False,
    notes: Iterable[str] = (),
) -> Table:
    """A row for each group of changes: what changed, by how much, its status, and since when.

    Args:
        anchors: Whether this is the table that links to a change lead to.
        notes: What is said below it.
    """
    rows: list[tuple[Value, ...]] = []
    for group in groups:
        series = group.change.series
        rows.append(
            (
                Named(
                    series.title,
                    label=None if group.cells else group.label,
                    note=", ".join(filter(None, (group.cells, group.location))),
                    link=address(series),
                    anchor=_anchor(group.change) if anchors and not group.cells else "",
                ),
                group.change_cell,
                group.status_cell,
                group.commits,
                _commands(
                    group,
                    f"{series.title}, {group.name}, {group.location}, {group.size.word}",
                    group.members(address, anchors=anchors),
                ),
            )
        )
    return Table(
        title=title,
        columns=(
            Column("series", "long"),
            Column("change"),
            Column("status"),
            Column("since, commits", "long"),
            Column("reproduce", "commands"),
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def numbered_table(groups: Sequence[ChangeGroup], title: str, *, several: bool) -> Table:
    """The changes that are numbered in a chart; their configurations if it shows `several`.

    A chart may be a third of a page wide: the status is below the size, the command below the
    commits.
    """
    rows: list[tuple[Value, ...]] = []
    for group in groups:
        label = group.history.label(group.change.series)
        size, status = group.change_cell, group.status_cell
        of = f"change {group.number or group.change.id}, {label.whole}"
        rows.append(
            (
                str(group.number or "?"),
                replace(
                    size, notes=(*size.notes, status.word.word, *status.notes), code=status.code
                ),
                *((Named("", label=label),) if several else ()),
                replace(group.commits, command=_commands(group, of) if group.command else None),
            )
        )
    return Table(
        title=title,
        columns=(
            Column("mark", "number"),
            Column("change"),
            *((Column("configuration", "long"),) if several else ()),
            Column("since, commits", "long"),
        ),
        rows=tuple(rows),
    )


def _commands(group: ChangeGroup, of: str, members: Items | None = None) -> Commands:
    return Commands(lines=(group.command,) if group.command else (), of=of, members=members)


def entry_commits(entry: triage.CommitEntry) -> Commits:
    """The commits that the changes of an entry may come from, and what reverted all of them."""
    changes = [each.change for each in entry.leading.changes]
    when = f"{wording.day(entry.last_good.at)} to {wording.day(entry.first_bad.at)}"
    return commits_between(
        changes[0].series, entry.last_good, entry.first_bad, when, recovery(changes)
    )


def entry_subject(entry: triage.CommitEntry) -> str:
    """The subject of an entry's commit, or why it has none."""
    commit = entry.first_bad.commit
    if not entry.is_of_commits:
        return "the same commit before and after" if commit else "unknown commit"
    return commit.subject if commit else ""


def entry_table(
    entries: Iterable[tuple[triage.CommitEntry, triage.Impact]],
    history: change_history.ChangeHistory,
    title: str,
    address: Address,
    *,
    anchors: Callable[[triage.CommitEntry], str] = lambda _: "",
    evidence: Mapping[str, Sequence[str]] = {},
    notes: Iterable[str] = (),
) -> Table:
    """A row for each commit with what it changed in one direction.

    Args:
        entries: The commits, each with one of its directions.
        anchors: The id by which others link a commit's row.
        evidence: What the hosts show of a commit's changes, in sentences, by the id of the entry.
        notes: What is said below it.
    """
    rows: list[tuple[Value, ...]] = []
    for entry, impact in entries:
        worse = impact is entry.regressions
        other = entry.improvements if worse else entry.regressions
        also = (
            f"also {triage.impact_extent(other)}: {triage.impact_size(other)}"
            if other.benchmarks
            else ""
        )
        commits = entry_commits(entry)
        rows.append(
            (
                Named(
                    entry.id,
                    tags=("secondary",) if impact.is_secondary else (),
                    note=entry_subject(entry),
                    link=address(entry),
                    anchor=anchors(entry),
                ),
                Marked(
                    word=wording.VerdictWord(
                        tone="bad" if worse else "good",
                        sign="▼" if worse else "▲",
                        word=triage.impact_size(impact),
                    ),
                    notes=tuple(
                        filter(
                            None, (triage.impact_extent(impact), also, *evidence.get(entry.id, ()))
                        )
                    ),
                ),
                Items(
                    tuple(
                        Item(each.largest.series.title, link=address(each.largest.series))
                        for each in impact.benchmarks
                    ),
                    most=_MOST_BENCHMARKS,
                ),
                status_of(impact.changes, history),
                # The subject is below the name of the row.
                replace(commits, name=commits.name if entry.is_of_commits else "", subject=""),
                Commands(
                    lines=tuple(triage_commands(entry, history.built).values()),
                    of=entry.id,
                ),
            )
        )
    return Table(
        title=title,
        columns=(
            Column("commit", "long"),
            Column("change", "long"),
            Column("benchmarks", "long"),
            Column("status"),
            Column("since", "long"),
            Column("commands", "commands"),
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def failure_table(
    groups: Iterable[triage.FailureGroup], address: Address, links: Mapping[str, str] = {}
) -> Table:
    """A row for each reason for which series stopped giving values.

    Args:
        links: The address of the entry of each commit with changes, by its hash.
    """
    rows: list[tuple[Value, ...]] = []
    for group in groups:
        all_series = [each.series for each in group.failing]
        named = [*grouped(all_series, lambda each: (each.scenario, each.host)).values()]
        first = all_series[0]
        commit, longest = group.since.commit, max(each.points for each in group.failing)
        link = links.get(commit.sha, "") if commit else ""
        commands = [series_command(own) for own in named[:_MOST_FAILING]]
        values = first.points.values[-_PRESENCE:]
        rows.append(
            (
                Named(
                    group.reason or "reason unknown",
                    tags=("secondary",) if group.is_secondary else (),
                    note=first.project or first.host_name,
                ),
                f"{len(group.failing):,}",
                Items(
                    tuple(Item(own[0].title, link=address(own[0])) for own in named),
                    most=_MOST_FAILING,
                ),
                Presence(tuple(not math.isnan(value) for value in values)),
                Commits(
                    when=f"{wording.day(group.since.at)}, {wording.count(longest, 'run')}",
                    subject="at the same commit as changes" if link else "",
                    link=link,
                ),
                Commands(lines=tuple(filter(None, commands)), of=group.reason or "reason unknown"),
            )
        )
    return Table(
        title="Without values",
        columns=(
            Column("reason", "long"),
            Column("series", "number"),
            Column("benchmarks", "long"),
            Column("latest runs", "drawing"),
            Column("no result since", "long"),
            Column("reproduce", "commands"),
        ),
        rows=tuple(rows),
    )


def series_name(series: Series) -> str:
    """A series with its configuration and its host."""
    where = series.host_name if series.project is None else f"{series.project}, {series.host_name}"
    cell = f" [{series.cell}]" if series.cell not in {"", "default"} else ""
    return f"{series.title}{cell} on {where}"
