"""What one commit did: the benchmarks that changed in one range of commits, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.model.points import Point
from corebound.report.view.addresses import series_place
from corebound.report.view.change_groups import overlapping
from corebound.report.view.changes import commit_range, range_link
from corebound.report.view.chronicle import Chronicle, sizes_word
from corebound.report.view.page import VerdictWord
from corebound.report.view.words import and_more, day
from corebound.stats.regressions import Change

# Whoever wants more of them wants the CSV.
_MOST_EVENTS = 50
_MOST_NAMED = 12


class CommitEvent(Struct, frozen=True, kw_only=True):
    """Several benchmarks that can have changed in one commit.

    Attributes:
        place: Its fragment, by the last commit of the range.
        commits, subject, link: The range that all their ranges share, as in a `ChangeRow`.
        since: The day of the first point that is surely after it.
        where: The project, or the host of our own.
        benchmarks: How many there are.
        says: How many got worse, and better.
        named: (title, address, sizes of its cells) of benchmarks, what got worse first, then by
            size; `more` says how many there are beyond.
        changes: The ids of the changes.
    """

    place: str
    commits: str
    subject: str
    link: str
    since: str
    where: str
    benchmarks: int
    says: str
    named: tuple[tuple[str, str, VerdictWord], ...]
    more: str
    changes: frozenset[str]


def commit_events(known: Chronicle) -> tuple[CommitEvent, ...]:
    """Each range of commits in which more than one benchmark changed clearly, the latest first.

    Of an imported project all machines together, for its points are commits; of our own a host's.
    """
    told = [event for one in by_commits(known.changes) if (event := _event(one)) is not None]
    latest = sorted(told, key=lambda one: one.since, reverse=True)[:_MOST_EVENTS]
    # A commit may be measured night by night, on several hosts.
    seen: Counter[str] = Counter()
    events = []
    for one in latest:
        seen[one.place] += 1
        times = seen[one.place]
        events.append(one if times == 1 else replace(one, place=f"{one.place}-{times}"))
    return tuple(events)


def by_commits(found: Iterable[Change]) -> list[list[Change]]:
    """Put together what can have changed in one commit, whichever way, as `commit_events` does."""
    alike: dict[tuple[str | None, str], list[Change]] = {}
    for change in found:
        series = change.series
        alike.setdefault(
            (series.project, series.host if series.project is None else ""), []
        ).append(change)
    return [group for several in alike.values() for group in overlapping(several)]


def _event(found: Sequence[Change]) -> CommitEvent | None:
    good = max((one.last_good for one in found), key=_moment)
    bad = min((one.first_bad for one in found), key=_moment)
    by_benchmark: dict[tuple[bool, str, str], list[Change]] = {}
    for change in found:
        series = change.series
        key = (not change.is_regression, series.scenario, series.unit)
        by_benchmark.setdefault(key, []).append(change)
    benchmarks = len({scenario for _, scenario, _ in by_benchmark})
    if benchmarks < 2 or bad.commit is None:
        return None
    ordered = sorted(by_benchmark.items(), key=lambda item: (item[0][0], -_largest(item[1])))
    worse = sum(not is_better for is_better, _, _ in by_benchmark)
    parts = ((worse, "worse"), (len(by_benchmark) - worse, "better"))
    return CommitEvent(
        place=f"commit-{bad.commit.sha[:10]}",
        commits=commit_range(good, bad),
        subject=bad.commit.subject,
        link=range_link(found[0].series, good, bad),
        since=day(bad.at),
        where=found[0].series.project or found[0].series.host_name,
        benchmarks=benchmarks,
        says=", ".join(f"{number} {way}" for number, way in parts if number),
        named=tuple(_named(several) for _, several in ordered[:_MOST_NAMED]),
        more=and_more(len(ordered) - _MOST_NAMED),
        changes=frozenset(one.id for one in found),
    )


def _named(found: Sequence[Change]) -> tuple[str, str, VerdictWord]:
    largest = max(found, key=_size)
    return largest.series.title, series_place(largest.series), sizes_word(found)


def _largest(found: Sequence[Change]) -> float:
    return max(map(_size, found))


def _size(change: Change) -> float:
    return abs(change.step.ratio - 1)


def _moment(point: Point) -> str:
    return point.at
