"""Groups what happened in a history by its cause: changes by commit, missing values by reason."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.wording import count, times
from corebound.groups import grouped
from corebound.records.history import HistoryPoint, is_primary, reason_kind
from corebound.scenario.metrics import LESS_MEMORY
from corebound.stats.history.alerts import STATUSES, HistoryChange, Status
from corebound.stats.history.pooled import pooling
from corebound.stats.history.regressions import Change, Failing
from corebound.stats.intervals import geometric_mean

_SHORT_SHA = 10
_NOT_IN_IDS = re.compile(r"[^0-9A-Za-z]+")


def change_factor(change: Change) -> float:
    """The size of a change as a ratio of at least 1, whatever its direction."""
    ratio = change.change_point.ratio
    return max(ratio, 1 / ratio)


class BenchmarkChanges(Struct, frozen=True, kw_only=True):
    """The changes of one benchmark in one direction, at least one, the largest first."""

    changes: tuple[HistoryChange, ...]

    @property
    def largest(self) -> Change:
        """The largest of its changes."""
        return self.changes[0].change

    @property
    def is_secondary(self) -> bool:
        """Whether the benchmark is secondary."""
        return not is_primary(self.largest.series)


class Impact(Struct, frozen=True, kw_only=True):
    """The benchmarks that changed in one direction: primary ones first, then by size.

    Attributes:
        benchmarks: Each of them; may be empty.
    """

    benchmarks: tuple[BenchmarkChanges, ...]

    @property
    def changes(self) -> tuple[HistoryChange, ...]:
        """All changes, in the order of their benchmarks."""
        return tuple(change for each in self.benchmarks for change in each.changes)

    @property
    def counted(self) -> tuple[BenchmarkChanges, ...]:
        """The benchmarks that numbers are of: the primary ones, else the secondary ones."""
        return tuple(each for each in self.benchmarks if not each.is_secondary) or self.benchmarks

    @property
    def is_secondary(self) -> bool:
        """Whether it has no primary benchmark."""
        return all(each.is_secondary for each in self.benchmarks)

    @property
    def series(self) -> int:
        """The number of counted series."""
        return sum(len(each.changes) for each in self.counted)

    @property
    def geometric_mean(self) -> float:
        """The geometric mean of the sizes of all counted series, at least 1.

        Raises:
            ValueError: There is no benchmark.
        """
        changes = [change.change for each in self.counted for change in each.changes]
        return geometric_mean([*map(change_factor, changes)])

    @property
    def is_of_speed(self) -> bool:
        """Whether all counted benchmarks are times or rates, which get slower or faster."""
        all_series = (each.largest.series for each in self.counted)
        return all(series.is_of_time or series.more_is_better for series in all_series)

    @property
    def is_of_memory(self) -> bool:
        """Whether all counted benchmarks are of peak memory."""
        return all(each.largest.series.metric for each in self.counted)


def impact_word(impact: Impact) -> str:
    """What a commit did to benchmarks: slower or faster; worse or better if some are no times."""
    is_worse = impact.benchmarks[0].largest.is_regression
    if impact.is_of_speed:
        return "slower" if is_worse else "faster"
    if impact.is_of_memory:
        return LESS_MEMORY[is_worse]
    return "worse" if is_worse else "better"


def impact_size(impact: Impact) -> str:
    """The size of an impact with at least one benchmark: the mean and the largest.

    The only change of an impact has no mean: `1.31× slower`.
    """
    largest = times(change_factor(impact.counted[0].largest))
    if impact.series == 1:
        return f"{largest} {impact_word(impact)}"
    mean = f"{times(impact.geometric_mean)} {impact_word(impact)}"
    return f"{mean} (geometric mean), largest {largest}"


def impact_extent(impact: Impact) -> str:
    """How many series and benchmarks an impact has: `61 series of 4 benchmarks`."""
    benchmarks = count(len(impact.counted), "benchmark")
    text = f"{count(impact.series, 'series', 'series')} of {benchmarks}"
    if impact.is_secondary:
        return f"{text}, secondary"
    secondary = len(impact.benchmarks) - len(impact.counted)
    return f"{text} (and {secondary} secondary)" if secondary else text


class CommitEntry(Struct, frozen=True, kw_only=True):
    """The changes that may come from one commit, or from one range of commits.

    Attributes:
        id: Unique in a history: the start of the last commit's hash, or a date if the commit is
            unknown or did not change.
        last_good: The latest of the points that are certainly before the changes.
        first_bad: The earliest of the points that are certainly after them.
        regressions, improvements: The changes by direction; at least one is not empty.
    """

    id: str
    last_good: HistoryPoint
    first_bad: HistoryPoint
    regressions: Impact
    improvements: Impact

    @property
    def leading(self) -> Impact:
        """The direction that the entry is about.

        A direction with a primary benchmark comes before one without, then regressions come first.
        """
        impacts = [each for each in (self.regressions, self.improvements) if each.benchmarks]
        return min(impacts, key=lambda impact: impact.is_secondary)

    @property
    def other(self) -> Impact:
        """The other direction; may be empty."""
        return self.improvements if self.leading is self.regressions else self.regressions

    @property
    def is_regression(self) -> bool:
        """Whether the entry is about regressions."""
        return self.leading is self.regressions

    @property
    def is_secondary(self) -> bool:
        """Whether no primary benchmark changed."""
        return self.leading.is_secondary

    @property
    def changes(self) -> tuple[HistoryChange, ...]:
        """All changes: of the leading direction first."""
        return self.leading.changes + self.other.changes

    @property
    def status(self) -> Status:
        """The most urgent status of the changes in the leading direction."""
        statuses = {change.status for change in self.leading.changes}
        return next(status for status in STATUSES if status in statuses)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts on which something changed; those of a class if no single one."""
        all_series = [each.change.series for each in self.changes]
        single = [series for series in all_series if not pooling(series)]
        return tuple(sorted({series.host_name for series in single or all_series}))

    @property
    def project(self) -> str | None:
        """The project of imported benchmarks; None for our own scenarios."""
        return self.leading.benchmarks[0].largest.series.project

    @property
    def is_of_commits(self) -> bool:
        """Whether the commits before and after are known and differ."""
        good, bad = self.last_good.commit, self.first_bad.commit
        return bad is not None and (good is None or good.sha != bad.sha)


def count_causes(entries: Sequence[CommitEntry]) -> str:
    """The number of entries in words: of commits, or of nightly runs if commits are unknown."""
    known = sum(entry.is_of_commits for entry in entries)
    noun = "commit" if known == len(entries) else "event" if known else "nightly run"
    return count(len(entries), noun)


def triage(assessed: Iterable[HistoryChange]) -> tuple[CommitEntry, ...]:
    """Group changes by the commits that they may come from, the latest first.

    Only changes that are significant or confirmed are included. A change that a re-run did not
    confirm is left out.

    Args:
        assessed: Changes and early warnings of any series, in any order.
    """
    return commit_entries(
        each
        for each in assessed
        if (each.is_significant or each.is_alarm) and not each.is_inconclusive
    )


def commit_entries(assessed: Iterable[HistoryChange]) -> tuple[CommitEntry, ...]:
    """Group any changes by the commits that they may come from, the latest first."""
    by_id = {each.change.id: each for each in assessed}
    groups = group_by_commits(each.change for each in by_id.values())
    entries = sorted(
        (_entry([by_id[change.id] for change in group]) for group in groups),
        key=lambda entry: (entry.first_bad.at, not entry.is_secondary, entry.id),
        reverse=True,
    )
    times: Counter[str] = Counter()
    unique = []
    for entry in entries:
        times[entry.id] += 1
        number = times[entry.id]
        unique.append(entry if number == 1 else replace(entry, id=f"{entry.id}-{number}"))
    return tuple(unique)


def _entry(changes: Sequence[HistoryChange]) -> CommitEntry:
    bad = min((each.change.first_bad for each in changes), key=attrgetter("at"))
    goods = [each.change.last_good for each in changes]
    # Hosts measure a commit at different times, and one may find a change a commit late: then the
    # first bad commit is still good there.
    earlier = [
        good
        for good in goods
        if good.commit is None or bad.commit is None or good.commit.sha != bad.commit.sha
    ]
    entry = CommitEntry(
        id="",
        last_good=max(earlier or goods, key=attrgetter("at")),
        first_bad=bad,
        regressions=_impact([each for each in changes if each.change.is_regression]),
        improvements=_impact([each for each in changes if not each.change.is_regression]),
    )
    name = bad.commit.sha[:_SHORT_SHA] if bad.commit and entry.is_of_commits else bad.at[:10]
    return replace(entry, id=_NOT_IN_IDS.sub("-", name).strip("-") or "unknown")


def _impact(changes: Sequence[HistoryChange]) -> Impact:
    by_benchmark = grouped(changes, attrgetter("change.series.scenario", "change.series.unit"))
    benchmarks = (
        BenchmarkChanges(changes=tuple(sorted(group, key=_largest_first)))
        for group in by_benchmark.values()
    )
    return Impact(
        benchmarks=tuple(
            sorted(
                benchmarks, key=lambda each: (each.is_secondary, _largest_first(each.changes[0]))
            )
        )
    )


def _largest_first(each: HistoryChange) -> tuple[float, str]:
    return -change_factor(each.change), each.change.series.id


def group_by_commits(changes: Iterable[Change]) -> list[list[Change]]:
    """Group changes in either direction that may come from one commit.

    Changes of an imported project are grouped across machines, because its points are commits. Our
    own scenarios are grouped by host, because hosts measure at different times; groups of several
    hosts are one if their ranges end with the same commit. A change that more hosts together show
    as well belongs to theirs, which says better when it was.
    """
    every = [*changes]
    pools = [change for change in every if pooling(change.series)]
    shared = {change.id: wider for change in every if (wider := _of_more_hosts(change, pools))}
    alike: dict[tuple[str | None, str], list[Change]] = {}
    for change in every:
        if change.id in shared:
            continue
        series = change.series
        host = series.host if series.project is None else ""
        alike.setdefault((series.project, host), []).append(change)
    merged: dict[tuple[object, ...], list[Change]] = {}
    for (project, host), several in alike.items():
        for number, group in enumerate(group_overlapping(several)):
            key: tuple[object, ...] = (project, host, number)
            first_bad = min((change.first_bad for change in group), key=attrgetter("at"))
            if project is None and first_bad.commit is not None:
                last_good = max((change.last_good for change in group), key=attrgetter("at"))
                before = last_good.commit.sha if last_good.commit else ""
                # Without a new commit, what happened on one host says nothing about another.
                if before != first_bad.commit.sha:
                    key = (None, first_bad.commit.sha)
            merged.setdefault(key, []).extend(group)
    groups = [*merged.values()]
    place = {change.id: group for group in groups for change in group}
    for change in every:
        wider = change
        while wider.id in shared:
            wider = shared[wider.id]
        if wider is not change:
            place[wider.id].append(change)
    return groups


def _of_more_hosts(change: Change, pools: Sequence[Change]) -> Change | None:
    """The change of most hosts together that this one may be part of; None if there is none."""
    wider = [
        other
        for other in pools
        if pooling(other.series) > pooling(change.series)
        and (other.series.scenario, other.series.cell, other.is_up)
        == (change.series.scenario, change.series.cell, change.is_up)
        and other.last_good.at < change.first_bad.at
        and change.last_good.at < other.first_bad.at
    ]
    return max(wider, key=lambda other: pooling(other.series), default=None)


def group_overlapping(changes: Iterable[Change]) -> list[list[Change]]:
    """Group changes whose ranges share a moment, in the least number of groups.

    The range that ends first defines a group, which includes all changes that began before its end.
    """
    groups: list[list[Change]] = []
    end = ""
    for change in sorted(changes, key=lambda change: (change.first_bad.at, change.last_good.at)):
        if not groups or change.last_good.at >= end:
            groups.append([])
            end = change.first_bad.at
        groups[-1].append(change)
    return groups


class FailureGroup(Struct, frozen=True, kw_only=True):
    """The series of one project that stopped giving values for one reason.

    Attributes:
        reason: Why the latest points have no value; empty if unknown.
        failing: Each of them, primary ones first, then the latest first.
    """

    reason: str
    failing: tuple[Failing, ...]

    @property
    def since(self) -> HistoryPoint:
        """The earliest of the points without a value."""
        return min((each.since for each in self.failing), key=attrgetter("at"))

    @property
    def is_secondary(self) -> bool:
        """Whether no primary benchmark is affected."""
        return not any(is_primary(each.series) for each in self.failing)


def group_failures(failing: Iterable[Failing]) -> tuple[FailureGroup, ...]:
    """Group series that stopped giving values by project and reason.

    Groups with primary benchmarks come first, then those with most series.
    """
    by_reason = grouped(
        failing, lambda each: (each.series.project or "", reason_kind(each.since.missing or ""))
    )
    groups = [
        FailureGroup(reason=reason, failing=tuple(sorted(several, key=_latest_first)))
        for (_, reason), several in sorted(by_reason.items())
    ]
    return tuple(sorted(groups, key=lambda group: (group.is_secondary, -len(group.failing))))


def _latest_first(failing: Failing) -> tuple[bool, int, str]:
    return not is_primary(failing.series), failing.points, failing.series.id
