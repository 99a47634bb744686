"""The history of everything: changes to look at, then every series."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.by_commit import CommitEvent, commit_events
from corebound.report.view.change_groups import ChangeGroup, change_group, grouped
from corebound.report.view.chronicle import Chronicle, size_word
from corebound.report.view.command import CommandLine, latest_command
from corebound.report.view.failing_rows import FailingRow, failing_rows, give_no_figure
from corebound.report.view.last_measured import last_day, last_measured, last_moment
from corebound.report.view.page import Bounded, Head, Hero, Piece, Text, VerdictWord
from corebound.report.view.series_figure import figures_span, interval_name, lack_of, latest_of
from corebound.report.view.series_names import Natural, natural_place, own_axes
from corebound.report.view.too_short import too_short_words
from corebound.report.view.without import Without, without
from corebound.report.view.words import count, day, rich, strong
from corebound.stats.regressions import Change

# The largest are what there is time for; all are in the CSV.
_MOST_GROUPS = 250
# More rows than this nobody reads from first to last: what is beyond is folded.
_MOST_OPEN = 50
_ORDER = {"open": 0, "accepted": 1, "fixed": 2, "recovered": 3, "kept": 4, "ended": 5}


class SeriesRow(Struct, frozen=True, kw_only=True):
    """The cells of one scenario on one host: that which changed last stands for all.

    Attributes:
        shown: Which of several cells that is; empty where there is no other.
        figures: Its points, for the spark.
        latest: Its last figure, with its interval; `cells` says how many there are.
        span: From its least figure to its most; `points` says how many there are.
        change: Its last change, or None; `since` is when.
        command: What measures it again; None where that is not known.
        ended: When its last point is of, where others of its host have later ones; else empty.
        lacking: Since when there has been no figure, where points came after the latest.
    """

    title: str
    address: str
    ended: str
    cells: str
    shown: str
    mode: str
    figures: Sequence[float]
    latest: Bounded
    lacking: str
    span: str
    points: str
    change: VerdictWord | None
    since: str
    command: CommandLine | None


class SeriesGroup(Struct, frozen=True, kw_only=True):
    """The scenarios of one host, or an imported project's on one machine; of many, a module's.

    `says` is how many there are, and in how many of them something changed; `interval` what
    stands in brackets.
    """

    title: str
    says: str
    interval: str
    rows: tuple[SeriesRow, ...]


class HistoryPage(Struct, frozen=True, kw_only=True):
    """history.html.

    Attributes:
        regressions, improvements, unclear: Changes, those together that one event can
            have made; those beyond what a page holds are counted in `hidden`.
        more: The regressions that come after so many.
        failing: What gives no figure any more.
        commits: What changed several benchmarks, the latest first.
        comparisons: (text, address) of pages that compare two runs.
        groups: Every series; `folded` where they are too many to be read.
        without: Those that have too few figures for a chart.
    """

    head: Head
    hero: Hero
    regressions: tuple[ChangeGroup, ...]
    more: tuple[ChangeGroup, ...]
    improvements: tuple[ChangeGroup, ...]
    unclear: tuple[ChangeGroup, ...]
    failing: tuple[FailingRow, ...]
    commits: tuple[CommitEvent, ...]
    hidden: str
    comparisons: tuple[tuple[str, str], ...]
    groups: tuple[SeriesGroup, ...]
    folded: bool
    without: tuple[Without, ...]

    @property
    def lacks_commands(self) -> bool:
        """Whether what was imported names no command for some of the series."""
        return any(row.command is None for group in self.groups for row in group.rows)


def triage_page(
    known: Chronicle, *, now: str, comparisons: Sequence[tuple[str, str]] = ()
) -> HistoryPage:
    """The page of all changes and all series.

    Args:
        known: What is known over time.
        now: ISO moment the page is made.
        comparisons: (text, address) of pages that compare two runs.
    """
    found = known.changes
    worse = sorted((one for one in found if one.is_regression), key=lambda one: _place(one, known))
    better = sorted(
        (one for one in found if not one.is_regression), key=lambda one: _place(one, known)
    )
    groups_of = [grouped(several, known) for several in (worse, better, known.unclear)]
    hidden = sum(len(group) for several in groups_of for group in several[_MOST_GROUPS:])
    events = commit_events(known)
    regressions, improvements, unclear = (
        tuple(
            replace(change_group(one, known, root=""), beside=_beside(one[0], events))
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
        regressions=regressions[:_MOST_OPEN],
        more=regressions[_MOST_OPEN:],
        improvements=improvements,
        unclear=unclear,
        failing=tuple(failing_rows(known.failing.values(), known)),
        commits=events,
        hidden=f"{count(hidden, 'smaller change')} more in the CSV." if hidden else "",
        comparisons=tuple(comparisons),
        groups=groups,
        folded=sum(len(group.rows) for group in groups) > _MOST_OPEN,
        without=without(known),
    )


def _beside(change: Change, events: Sequence[CommitEvent]) -> tuple[str, str] | None:
    """What else its commits did, in words, and where that stands."""
    for event in events:
        if change.id in event.changes:
            return f"with {count(event.benchmarks - 1, 'other benchmark')}", event.place
    return None


def _place(change: Change, known: Chronicle) -> tuple[int, bool, float, str]:
    """What is open first, of that what is new, then by size."""
    status = _ORDER.get(known.status(change), len(_ORDER))
    return status, change.step.status != "new", -abs(change.step.ratio - 1), change.id


def _verdict(worse: Sequence[Change], known: Chronicle) -> Text:
    unsettled = sum(known.status(one) == "open" for one in worse)
    if not unsettled:
        return rich("No regression is open.")
    words = count(unsettled, "regression")
    return rich(Piece(words, "bad"), f" {'is' if unsettled == 1 else 'are'} open.")


def _support(known: Chronicle) -> Text:
    points = sum(len(one.points.measured) for one in known.histories)
    going = [one for one in known.histories if one.id not in known.ended]
    return rich(
        f"{count(len(known.changes), 'change')} in "
        f"{count(len(known.histories), 'series', 'series')} of {count(points, 'point')}. "
        "A change is named when several detectors agree and it stands as one of the whole suite; "
        "of those, one in twenty may be false. ",
        *_lost(len(known.failing)),
        too_short_words(sum(one.id in known.too_short for one in going), len(going)),
    )


def _lost(failing: int) -> list[str | Piece]:
    return [strong(give_no_figure(failing), "#failing"), " any more. "] if failing else []


def series_groups(series: Iterable[Series], known: Chronicle) -> tuple[SeriesGroup, ...]:
    """Series by project and machine, or by host; of those with many benchmarks by module.

    Args:
        series: Those that there is something to look at of.
        known: What changed in them.
    """
    groups: dict[tuple[str, str], dict[str, list[Series]]] = {}
    for one in series:
        key = (one.project or "", one.host)
        groups.setdefault(key, {}).setdefault(one.scenario, []).append(one)
    return tuple(
        group
        for (project, _), scenarios in sorted(
            groups.items(), key=lambda item: (item[0][0], _is_over(item[1], known), item[0])
        )
        for group in _modules(project, scenarios, known)
    )


def _is_over(scenarios: Mapping[str, Sequence[Series]], known: Chronicle) -> bool:
    """Whether all of a host's series have ended."""
    return all(one.id in known.ended for several in scenarios.values() for one in several)


def _modules(
    project: str, scenarios: Mapping[str, Sequence[Series]], known: Chronicle
) -> Iterator[SeriesGroup]:
    """One group; of many scenarios one a module, which is what asv's names begin with."""
    ordered = sorted(scenarios.items())
    where = _group_title(project, ordered[0][1][0])
    if _is_over(scenarios, known):
        last = last_moment(one for _, several in ordered for one in several)
        where = f"{where}, {last_day(last)}"
    if len(ordered) <= _MOST_OPEN:
        yield _group(where, [several for _, several in ordered], known)
        return
    for module, members in itertools.groupby(ordered, key=lambda item: item[0].partition(".")[0]):
        yield _group(f"{where}: {module}", [several for _, several in members], known)


def _group(title: str, scenarios: Sequence[Sequence[Series]], known: Chronicle) -> SeriesGroup:
    rows = tuple(_row(several, known) for several in scenarios)
    changed = sum(row.change is not None for row in rows)
    changes = f", {changed} changed" if changed else ""
    return SeriesGroup(
        title=title,
        says=f"{len(rows)}{changes}",
        interval=interval_name(one for several in scenarios for one in several),
        rows=rows,
    )


def _group_title(project: str, series: Series) -> str:
    return f"{project}, on {series.host_name}" if project else f"On {series.host_name}"


def _row(series: Sequence[Series], known: Chronicle) -> SeriesRow:
    last = last_change(series, known)
    going = [one for one in series if one.id not in known.ended]
    # What is retired stands for nothing that goes on, nor what has hardly begun for all.
    chosen = last.series if last else min(going or series, key=_longest_first)
    over = f", {len(series) - len(going):,} ended" if 0 < len(going) < len(series) else ""
    figures = chosen.points.figures
    return SeriesRow(
        title=chosen.title,
        address=series_place(chosen),
        ended=last_measured(chosen.points.moments[-1]) if chosen.id in known.ended else "",
        cells=f"{count(len(series), 'cell')}{over}",
        shown=_apart(chosen, series, known),
        mode=known.label(chosen).mode,
        figures=figures,
        latest=latest_of(chosen),
        lacking=lack_of(chosen),
        span=figures_span(chosen),
        points=count(len(chosen.points.measured), "point"),
        change=size_word(last) if last else None,
        since=last.since[:10] if last else "",
        command=latest_command(chosen),
    )


def _apart(chosen: Series, series: Sequence[Series], known: Chronicle) -> str:
    """What tells a series from the others; empty where there are none."""
    if len(series) == 1:
        return ""
    if chosen.project is None:
        return known.label(chosen).whole
    return own_axes(series)[series.index(chosen)]


def _longest_first(series: Series) -> tuple[int, tuple[tuple[str, Natural], ...]]:
    return -len(series.points), natural_place(series)


def last_change(series: Iterable[Series], known: Chronicle) -> Change | None:
    """The latest clear change in any of these series, of equals the largest."""
    found = (change for one in series for change in known.of(one))
    return max(
        found,
        key=lambda one: (one.since, abs(one.step.ratio - 1), one.id),
        default=None,
    )
