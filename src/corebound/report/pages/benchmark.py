"""The page of an imported benchmark: all of its cells on all machines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory, has_grown, size_word, way_word
from corebound.analysis.commands import NO_COMMAND
from corebound.analysis.last_measured import last_measured
from corebound.analysis.series_names import (
    Natural,
    axes,
    environments,
    natural_place,
    own_axes,
    shared_axes,
    short_cells,
)
from corebound.analysis.wording import Text, TextSpan, count, day, rich, strong
from corebound.records.history import Circumstances, Moment, Series
from corebound.report.elements import Head, Hero, turns
from corebound.report.history.panel import MOST_NIGHTS, HistoryPanel, history_panel
from corebound.report.history.timeline import Timeline
from corebound.report.pages.benchmark_table import Rest, rest_of
from corebound.report.pages.changes import change_group, grouped
from corebound.report.pages.series_table import failing_rows, gives
from corebound.report.scenario.provenance import Fact
from corebound.report.urls import anchor_of, benchmark_slug
from corebound.stats.history.regressions import Change

# The environment value with the benchmark's version, which does not describe the machine.
_VERSION = "benchmark"


def described(series: Sequence[Series], known: ChangeHistory) -> Iterator[Fact]:
    """Describe each machine from its latest results, active machines first.

    Then follows each environment whose name is too long to show beside every value.

    Args:
        series: The series of one benchmark, at least one.
        known: All histories; shows which series are retired.
    """
    latest: dict[str, tuple[Moment, Circumstances]] = {}
    machines: dict[str, list[Series]] = {}
    for one in series:
        last = one.points.moments[-1], one.points.circumstances[-1]
        latest[one.host_name] = max(latest.get(one.host_name, last), last, key=_when)
        machines.setdefault(one.host_name, []).append(one)
    called = environments(series)
    over = {name: all(one.id in known.ended for one in own) for name, own in machines.items()}
    for name in sorted(machines, key=lambda name: (over[name], name)):
        moment, circumstances = latest[name]
        told = [f"{of} {value}" for of, value in circumstances if value and of != _VERSION]
        told += [f"environment {called[whole]}" for whole in environments(machines[name])]
        told.append(last_measured(moment))
        yield Fact(term=name, value=", ".join(told))
    for whole, short in called.items():
        if short != whole:
            yield Fact(term=short, value=whole)


def _when(told: tuple[Moment, Circumstances]) -> str:
    return told[0].at


# A page with more charts would be too large to load on a phone.
_MOST_CHARTS = 60
# With more series than this, half of the charts make room for table rows, so that links from
# changes have a target.
MANY = 310
# A history with less than this share of the longest one has hardly begun.
_BEGUN = 0.1
# The priority of a series, given by its most important change.
_NEW_AND_WORSE, _OPEN, _NEW_AND_BETTER, _CHANGED, _UNCHANGED = range(5)


class Choice(Struct, frozen=True, kw_only=True):
    """The series of a benchmark, divided into those with a chart and the others; by importance.

    Attributes:
        charted: Series with a chart on the page; each has at least two values.
        others: All others: those with one value, or beyond what a page can hold.
    """

    charted: tuple[Series, ...]
    others: tuple[Series, ...]


def chosen(series: Sequence[Series], known: ChangeHistory) -> Choice:
    """Choose the series to chart, the same number for each machine unless one has fewer.

    Series that changed in different commits alternate. Hundreds of parameters with the same
    regression therefore do not push other changes off the page.

    Args:
        series: The series of one benchmark, each with a value.
        known: All histories with their changes and retired series.
    """
    longest = max((len(one.points) for one in series), default=0)
    asks = {one.id: _asks(one, known) for one in series}

    def place(one: Series) -> tuple[bool, bool, int, str, tuple[tuple[str, Natural], ...]]:
        # Active series come first, then those with a longer history, then by priority.
        begun = len(one.points) >= _BEGUN * longest
        return (one.id in known.ended, not begun, asks[one.id], one.host, natural_place(one))

    ordered = sorted(series, key=place)
    drawn = _shared_out([one for one in ordered if _is_drawn(one)], asks, known)
    return Choice(
        charted=tuple(one for one in ordered if one.id in drawn),
        others=tuple(one for one in ordered if one.id not in drawn),
    )


def _asks(series: Series, known: ChangeHistory) -> int:
    return min((_asks_for(change, known) for change in known.of(series)), default=_UNCHANGED)


def _asks_for(change: Change, known: ChangeHistory) -> int:
    if known.is_news(change):
        return _NEW_AND_WORSE if change.is_regression else _NEW_AND_BETTER
    is_open = change.is_regression and known.status(change) == "open"
    return _OPEN if is_open else _CHANGED


def _is_drawn(series: Series) -> bool:
    """Whether there are at least two points to draw."""
    figures = itertools.filterfalse(math.isnan, series.points.figures)
    return len(tuple(itertools.islice(figures, 2))) == 2


def _shared_out(
    series: Sequence[Series], asks: Mapping[str, int], known: ChangeHistory
) -> frozenset[str]:
    """The ids of the series to chart, alternating between machines; retired series come last."""
    events = _events_of_series(series, asks, known)
    # Series without an important change form one more event, the last.
    calls = [asks[one.id] < _CHANGED for one in series]
    of_event = turns(
        (one.host, events.get(one.id) if is_called else None)
        for one, is_called in zip(series, calls, strict=True)
    )
    in_turn = [
        ((one.id in known.ended, not is_called, turn), one)
        for one, is_called, turn in zip(series, calls, of_event, strict=True)
    ]
    ordered = [one for _, one in sorted(in_turn, key=itemgetter(0))]
    of_host = turns(one.host for one in ordered)
    placed = [
        ((one.id in known.ended, turn), one.id) for one, turn in zip(ordered, of_host, strict=True)
    ]
    most = _MOST_CHARTS if len(asks) <= MANY else _MOST_CHARTS // 2
    return frozenset(name for _, name in sorted(placed)[:most])


def _events_of_series(
    series: Sequence[Series], asks: Mapping[str, int], known: ChangeHistory
) -> dict[str, int]:
    """For each changed series the number of the event that gives it its priority."""
    found = [change for one in series for change in known.of(one)]
    return {
        change.series.id: event
        for event, group in enumerate(grouped(found, known))
        for change in group
        if _asks_for(change, known) == asks[change.series.id]
    }


# Further events are only visible in the charts below.
_MOST_EVENTS = 4
# Fewer cells may share a parameter by chance.
_TOLD_APART = 5


def benchmark_hero(
    project: str, series: Sequence[Series], silent: Sequence[Series], known: ChangeHistory
) -> Hero:
    """The verdict of a benchmark, and its basis.

    Args:
        project: The project's name.
        series: Its series, at least one, each with a value.
        silent: Its series without any value.
        known: All histories with their changes.
    """
    found = [change for one in series for change in known.of(one)]
    news = [change for change in found if known.is_news(change)]
    # asv's `pretty_name` replaces the name.
    own_name = series[0].scenario if series[0].title != series[0].scenario else ""
    return Hero(
        title=series[0].title,
        question="",
        context=", ".join(
            part for part in (own_name, f"of {project}", shared_axes(series)) if part
        ),
        verdict=_verdict(series, found, news, known),
        support=rich(
            *_events(series, news, known),
            _counted(series, known),
            f"{count(len(found), 'change')} in all.",
            _failing(series, known),
            f" {count(len(silent), 'cell')} never gave a figure." if silent else "",
            "" if any(one.reproduce for one in series) else f" {NO_COMMAND}",
        ),
        flags=(),
    )


def _verdict(
    series: Sequence[Series], found: Sequence[Change], news: Sequence[Change], known: ChangeHistory
) -> Text:
    """What is new, else what is still open, else whether a change could be detected."""
    going = [one for one in series if one.id not in known.ended]
    if len({change.series.id for change in news}) > 1:
        return _verdict_of_many(going, news)
    if news:
        largest = max(news, key=lambda change: abs(change.step.ratio - 1))
        since = largest.first_bad.at[:10]
        return rich(_toned(size_word(largest).word, largest), f" since {since}.")
    old = sum(one.is_regression and known.status(one) == "open" for one in found)
    if old:
        are = "is" if old == 1 else "are"
        return rich(TextSpan(count(old, "older regression"), "bad"), f" {are} still open.")
    failing = sum(one.id in known.failing for one in going)
    if failing:
        which = f"{failing:,} of {len(going):,} cells" if len(going) > 1 else "It"
        return rich(f"{which} {gives(failing)} ", TextSpan("no figure", "bad"), " any more.")
    return _nothing(series, going, known)


def _nothing(series: Sequence[Series], going: Sequence[Series], known: ChangeHistory) -> Text:
    """The statement that nothing is new, or why that is unknown."""
    reasons = [known.not_analysed[one.id] for one in series if one.id in known.not_analysed]
    if reasons:
        which = f"{len(reasons):,} of {len(series):,} cells" if len(series) > 1 else "It"
        return rich(f"{which} ", TextSpan("could not be analysed", "bad"), f": {reasons[0]}")
    if going and all(one.id in known.too_short for one in going):
        return rich("Too early to tell what changed.")
    return rich("Nothing new.")


def _failing(series: Sequence[Series], known: ChangeHistory) -> str:
    """The series that no longer give values, by the date since when and the reason."""
    found = [known.failing[one.id] for one in series if one.id in known.failing]
    rows = failing_rows(found, known)
    told = "; ".join(f"{count(row.cells, 'cell')} {row.says}" for row in rows[:_MOST_EVENTS])
    more = "; …" if len(rows) > _MOST_EVENTS else ""
    return f" No figure any more: {told}{more}." if rows else ""


def _verdict_of_many(going: Sequence[Series], news: Sequence[Change]) -> Text:
    """The number of cells with new changes. The size of one change would be read as that of all."""
    parts: list[str | TextSpan] = []
    for is_regression in (True, False):
        alike = [one for one in news if one.is_regression is is_regression]
        if alike:
            word = way_word(alike[0])
            number = f"{len({one.series.id for one in alike}):,}"
            got = f", {number} " if parts else f"{number} of {len(going):,} cells got "
            parts += [got, _toned(word, alike[0])]
    return rich(*parts, ".")


def _toned(word: str, change: Change) -> TextSpan:
    return TextSpan(word, "bad" if change.is_regression else "good")


def _events(
    series: Sequence[Series], news: Sequence[Change], known: ChangeHistory
) -> list[str | TextSpan]:
    """Changes that may come from one commit each, by number of cells; empty for a single series."""
    if len(series) == 1:
        return []
    groups = sorted(grouped(news, known), key=len, reverse=True)
    said: list[str | TextSpan] = []
    for group in groups[:_MOST_EVENTS]:
        first = min((change.series for change in group), key=natural_place)
        there = [one for one in series if one.host == first.host and one.id not in known.ended]
        row = change_group(group, known, root="../").head
        # A link's text has to be unique, so it includes the size.
        name = f"{_which(group, first, there)} {row.size.word}"
        own = _in_common([change.series for change in group], there)
        said += [strong(name, f"#{anchor_of(first)}"), f", all {', '.join(own)}," if own else ""]
        said.append(f" since {row.since[:10]}")
        said += [" by ", strong(row.commits, row.link)] if row.commits else []
        said.append(". ")
    more = len(groups) - _MOST_EVENTS
    return [*said, f"{count(more, 'change')} more below. "] if more > 0 else said


def _which(group: Sequence[Change], first: Series, there: Sequence[Series]) -> str:
    """The cells of one event: a name, or their number out of all cells of their machine."""
    if len(there) == 1:
        return f"On {first.host_name}"
    which = f"{len(group):,} of {len(there):,} cells"
    if len(group) == 1:
        which = ", ".join(_not_shared(first, there)) or "1 cell"
    return f"{which} on {first.host_name}"


def _not_shared(one: Series, every: Sequence[Series]) -> list[str]:
    """The parameters of a series that not all series of its machine share."""
    usual = _shared(every)
    return [axis for axis in axes(one.cell) if axis not in usual]


def _in_common(some: Sequence[Series], every: Sequence[Series]) -> list[str]:
    """The parameters that several series share but not every series has; empty for a few series."""
    if len(some) < _TOLD_APART:
        return []
    shared = _shared(some)
    return [axis for axis in _not_shared(some[0], every) if axis in shared]


def _shared(series: Sequence[Series]) -> frozenset[str]:
    return frozenset.intersection(*(frozenset(axes(one.cell)) for one in series))


def _counted(series: Sequence[Series], known: ChangeHistory) -> str:
    hosts = len({one.host for one in series})
    points = max(len(one.points.measured) for one in series)
    latest = max(one.points.moments[-1].at for one in series)
    ended = sum(one.id in known.ended for one in series)
    return (
        f"{count(len(series), 'series', 'series')} on {count(hosts, 'machine')}, "
        f"up to {count(points, 'point')} each, the last of {latest[:10]}; "
        f"{f'{ended:,} measured no longer; ' if ended else ''}"
    )


# The number of points in all charts of a page together, and the least number per chart. The page of
# a benchmark with hundreds of parameters then still loads on a phone.
_ALL_POINTS, _LEAST_POINTS = 6_000, 60
_ALL_NIGHTS, _LEAST_NIGHTS = 300, 5


class BenchmarkChart(Struct, frozen=True, kw_only=True):
    """A chart, its fragment on the page, and, for a retired series, when it was last measured."""

    place: str
    panel: HistoryPanel
    ended: str


class BenchmarkPage(Struct, frozen=True, kw_only=True):
    """The page of an imported benchmark.

    Attributes:
        charts: Active and changed series first; all share one time axis.
        rest: The series without a chart.
        data: Address of all points as compressed CSV; `zoom` of those in charts, as a script.
        machines: Each machine, as its latest results describe it.
        code: The source of the benchmark, if known.
    """

    head: Head
    hero: Hero
    charts: tuple[BenchmarkChart, ...]
    rest: Rest
    data: str
    zoom: str
    machines: tuple[Fact, ...]
    code: str | None


class ImportedBenchmark(NamedTuple):
    """A benchmark of a project: its series with values, and its series without any."""

    project: str
    name: str
    series: tuple[Series, ...]
    silent: tuple[Series, ...]


def benchmarks_of(known: ChangeHistory) -> Iterator[ImportedBenchmark]:
    """Every imported benchmark with a history, by project and name."""
    groups: dict[tuple[str, str], tuple[list[Series], list[Series]]] = {}
    for one in known.series:
        if one.project is not None:
            found = groups.setdefault((one.project, one.scenario), ([], []))
            found[0 if has_grown(one) else 1].append(one)
    for (project, benchmark), (series, silent) in sorted(groups.items()):
        if series:
            yield ImportedBenchmark(project, benchmark, tuple(series), tuple(silent))


def benchmark_page(
    project: str,
    series: tuple[Series, ...],
    known: ChangeHistory,
    *,
    now: str,
    silent: tuple[Series, ...] = (),
) -> BenchmarkPage:
    """Build the page of one benchmark.

    Args:
        project: The project's name.
        series: Its series, at least one, each with a value.
        known: All histories with their changes.
        now: ISO timestamp of the page.
        silent: Its series without any value.
    """
    title = series[0].title
    slug = benchmark_slug(project, series[0].scenario)
    choice = chosen(series, known)
    # Rows without a chart show the machine in a column of its own.
    cells = dict(zip((one.id for one in series), own_axes(series), strict=True))
    return BenchmarkPage(
        head=Head(
            title=f"{title}: history",
            description=f"History of {title}, of {project}.",
            root="../",
            here=title,
            above=(("Scenarios", "index.html"), ("History", "history.html")),
            made=f"Imported from {project}; page made {day(now)}.",
        ),
        hero=benchmark_hero(project, series, silent, known),
        charts=_charts(series, choice.charted, known),
        rest=rest_of(choice.others, [cells[one.id] for one in choice.others], silent, known),
        data=f"../data/history/{slug}.csv.gz",
        zoom=f"../data/history/{slug}.js",
        machines=tuple(described((*series, *silent), known)),
        code=next((one.code for one in series if one.code), None),
    )


def charted(series: Sequence[Series], known: ChangeHistory) -> tuple[Series, ...]:
    """The series with a chart on a benchmark's page, in their order there."""
    return chosen(series, known).charted


def _charts(
    series: Sequence[Series], shown: Sequence[Series], known: ChangeHistory
) -> tuple[BenchmarkChart, ...]:
    if not shown:
        return ()
    names = dict(zip((one.id for one in series), short_cells(series), strict=True))
    points = _ALL_POINTS if len(series) <= MANY else _ALL_POINTS // 2
    most = min(max(points // len(shown), _LEAST_POINTS), 500)
    nights = min(max(_ALL_NIGHTS // len(shown), _LEAST_NIGHTS), MOST_NIGHTS)
    # Most series share their timestamps.
    columns = {id(one.points.moments): one.points.moments for one in shown}.values()
    line = Timeline.over([moment.at for column in columns for moment in column])
    return tuple(
        BenchmarkChart(
            place=anchor_of(one),
            panel=history_panel(
                (one,),
                known,
                title=names[one.id],
                root="../",
                most_points=most,
                most_nights=nights,
                # Moments that cannot be parsed have no order across series.
                line=None if line.is_ordinal else line,
            ),
            ended=last_measured(one.points.moments[-1]) if one.id in known.ended else "",
        )
        for one in shown
    )
