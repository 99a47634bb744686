"""The page of an imported benchmark: all of its cells on all machines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from corebound.analysis.change_history import (
    PLAIN_MODE,
    ChangeHistory,
    has_grown,
    size_word,
    way_word,
)
from corebound.analysis.commands import NO_COMMAND
from corebound.analysis.series_names import (
    Natural,
    axes,
    environments,
    natural_place,
    own_axes,
    shared_axes,
    short_cells,
)
from corebound.analysis.wording import (
    Text,
    TextSpan,
    ValueWithBounds,
    VerdictWord,
    and_more,
    count,
    day,
    interval_name,
    last_measured,
    latest_of,
    rich,
    strong,
)
from corebound.records.history import EnvironmentKey, Moment, Series, kind_of
from corebound.report.elements import Head, Hero, occurrence_numbers
from corebound.report.history.panel import MOST_ROWS, HistoryPanel, history_panel
from corebound.report.history.timeline import Timeline
from corebound.report.pages.changes import change_group, group_changes
from corebound.report.pages.series_table import failing_notices, give_or_gives, no_change
from corebound.report.scenario.provenance import Fact
from corebound.report.urls import benchmark_slug, series_anchor
from corebound.stats.history.regressions import Change

# A row has a twentieth of a chart's size. Unchanged series beyond this limit are only named.
_MOST_ROWS = 800
# A longer list of names is cut.
_MOST_NAMED = 100


class UnchartedRow(Struct, frozen=True, kw_only=True):
    """A series without a chart: `place` is its fragment on the page, `figures` its history."""

    place: str
    cell: str
    machine: str
    mode: str
    figures: Sequence[float]
    latest: ValueWithBounds
    when: str
    points: str
    change: VerdictWord | None
    unchanged: str
    since: str


class SeriesWithoutValues(Struct, frozen=True, kw_only=True):
    """Cells of one machine that never gave a value, for one reason; `says` has their number."""

    says: str
    machine: str
    reason: str
    cells: tuple[str, ...]
    more: str


class UnchartedSeries(Struct, frozen=True, kw_only=True):
    """All series without a chart.

    Attributes:
        rows: Those with a value, as many as a page holds.
        interval: What the brackets below their values contain.
        unshown: Names of the series beyond that limit.
        silent: Series without any value.
        says: The numbers of rows and of series beyond the limit, in words.
        silent_says: The number of series without a value, in words.
    """

    rows: tuple[UnchartedRow, ...]
    interval: str
    unshown: tuple[str, ...]
    silent: tuple[SeriesWithoutValues, ...]
    says: str
    silent_says: str


def uncharted_series(
    others: Sequence[Series], names: Sequence[str], silent: Sequence[Series], known: ChangeHistory
) -> UnchartedSeries:
    """The tables and lists at the end of a benchmark's page.

    Args:
        others: Series with a value and no chart, in order.
        names: The name of each of them, without its machine.
        silent: Series without a value.
        known: All histories with their changes.
    """
    # Changed series come first, clear or not and however old, because lists of changes link to
    # them.
    first = sorted(others, key=lambda one: not known.every(one))[:_MOST_ROWS]
    shown = {one.id for one in first}
    rows, unshown = [], []
    for one, name in zip(others, names, strict=True):
        if one.id in shown:
            rows.append(_uncharted_row(one, name, known))
        else:
            unshown.append(f"{name}, on {one.host_name}" if name else f"on {one.host_name}")
    return UnchartedSeries(
        rows=tuple(rows),
        interval=interval_name(others),
        unshown=tuple(unshown),
        silent=_without_values(silent),
        says=f"{count(len(others), 'cell')} without a chart",
        silent_says=f"{count(len(silent), 'cell')} without a figure",
    )


def _uncharted_row(one: Series, name: str, known: ChangeHistory) -> UnchartedRow:
    changes = known.of(one)
    last = changes[-1] if changes else None
    return UnchartedRow(
        place=series_anchor(one),
        cell=name or "the only one",
        machine=one.host_name,
        mode=PLAIN_MODE,
        figures=one.points.values,
        latest=latest_of(one),
        when=one.points.moments[-1].at[:10],
        points=count(len(one.points.measured), "point"),
        change=size_word(last) if last else None,
        unchanged=no_change([one], known),
        since=last.since[:10] if last else "",
    )


def _without_values(series: Sequence[Series]) -> tuple[SeriesWithoutValues, ...]:
    ordered = sorted(series, key=natural_place)
    found: dict[tuple[str, str], list[str]] = {}
    for one, name in zip(ordered, own_axes(ordered), strict=True):
        found.setdefault((one.host_name, why_no_history(one)), []).append(name)
    return tuple(
        SeriesWithoutValues(
            says=count(len(cells), "cell"),
            machine=machine,
            reason=reason,
            cells=tuple(filter(None, cells[:_MOST_NAMED])),
            more=and_more(len(cells) - _MOST_NAMED),
        )
        for (machine, reason), cells in sorted(found.items())
    )


def why_no_history(series: Series) -> str:
    """Why a series has no history to show."""
    reason = next(filter(None, reversed(series.points.missing)), None)
    return kind_of(reason) if reason else "measured once so far"


# The environment value with the benchmark's version, which does not describe the machine.
_VERSION = "benchmark"


def machine_facts(series: Sequence[Series], known: ChangeHistory) -> Iterator[Fact]:
    """Describe each machine from its latest results, active machines first.

    Then follows each environment whose name is too long to show beside every value.

    Args:
        series: The series of one benchmark, at least one.
        known: All histories; shows which series are retired.
    """
    latest: dict[str, tuple[Moment, EnvironmentKey]] = {}
    machines: dict[str, list[Series]] = {}
    for one in series:
        last = one.points.moments[-1], one.points.environment_keys[-1]
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


def _when(told: tuple[Moment, EnvironmentKey]) -> str:
    return told[0].at


# A page with more charts would be too large to load on a phone.
_MOST_CHARTS = 60
# With more series than this, half of the charts make room for table rows, so that links from
# changes have a target.
MANY_SERIES = 310
# A history with less than this share of the longest one has hardly begun.
_LEAST_LENGTH_SHARE = 0.1
# The priority of a series, given by its most important change.
_NEW_AND_WORSE, _OPEN, _NEW_AND_BETTER, _CHANGED, _UNCHANGED = range(5)


class ChartSelection(Struct, frozen=True, kw_only=True):
    """The series of a benchmark, divided into those with a chart and the others; by importance.

    Attributes:
        charted: Series with a chart on the page; each has at least two values.
        others: All others: those with one value, or beyond what a page can hold.
    """

    charted: tuple[Series, ...]
    others: tuple[Series, ...]


def select_charts(series: Sequence[Series], known: ChangeHistory) -> ChartSelection:
    """Choose the series to chart, the same number for each machine unless one has fewer.

    Series that changed in different commits alternate. Hundreds of parameters with the same
    regression therefore do not push other changes off the page.

    Args:
        series: The series of one benchmark, each with a value.
        known: All histories with their changes and retired series.
    """
    longest = max((len(one.points) for one in series), default=0)
    asks = {one.id: _priority(one, known) for one in series}

    def place(one: Series) -> tuple[bool, bool, int, str, tuple[tuple[str, Natural], ...]]:
        # Active series come first, then those with a longer history, then by priority.
        begun = len(one.points) >= _LEAST_LENGTH_SHARE * longest
        return (one.id in known.ended, not begun, asks[one.id], one.host, natural_place(one))

    ordered = sorted(series, key=place)
    drawn = _charted_ids([one for one in ordered if _is_drawable(one)], asks, known)
    return ChartSelection(
        charted=tuple(one for one in ordered if one.id in drawn),
        others=tuple(one for one in ordered if one.id not in drawn),
    )


def _priority(series: Series, known: ChangeHistory) -> int:
    return min((_change_priority(change, known) for change in known.of(series)), default=_UNCHANGED)


def _change_priority(change: Change, known: ChangeHistory) -> int:
    if known.is_news(change):
        return _NEW_AND_WORSE if change.is_regression else _NEW_AND_BETTER
    is_open = change.is_regression and known.status(change) == "open"
    return _OPEN if is_open else _CHANGED


def _is_drawable(series: Series) -> bool:
    """Whether there are at least two points to draw."""
    figures = itertools.filterfalse(math.isnan, series.points.values)
    return len(tuple(itertools.islice(figures, 2))) == 2


def _charted_ids(
    series: Sequence[Series], asks: Mapping[str, int], known: ChangeHistory
) -> frozenset[str]:
    """The ids of the series to chart, alternating between machines; retired series come last."""
    events = _events_of_series(series, asks, known)
    # Series without an important change form one more event, the last.
    calls = [asks[one.id] < _CHANGED for one in series]
    of_event = occurrence_numbers(
        (one.host, events.get(one.id) if is_called else None)
        for one, is_called in zip(series, calls, strict=True)
    )
    in_turn = [
        ((one.id in known.ended, not is_called, turn), one)
        for one, is_called, turn in zip(series, calls, of_event, strict=True)
    ]
    ordered = [one for _, one in sorted(in_turn, key=itemgetter(0))]
    of_host = occurrence_numbers(one.host for one in ordered)
    placed = [
        ((one.id in known.ended, turn), one.id) for one, turn in zip(ordered, of_host, strict=True)
    ]
    most = _MOST_CHARTS if len(asks) <= MANY_SERIES else _MOST_CHARTS // 2
    return frozenset(name for _, name in sorted(placed)[:most])


def _events_of_series(
    series: Sequence[Series], asks: Mapping[str, int], known: ChangeHistory
) -> dict[str, int]:
    """For each changed series the number of the event that gives it its priority."""
    found = [change for one in series for change in known.of(one)]
    return {
        change.series.id: event
        for event, group in enumerate(group_changes(found, known))
        for change in group
        if _change_priority(change, known) == asks[change.series.id]
    }


# Further events are only visible in the charts below.
_MOST_EVENTS = 4
# Fewer cells may share a parameter by chance.
_LEAST_DISTINGUISHED = 5


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
            _series_counts(series, known),
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
        return rich(_tinted(size_word(largest).word, largest), f" since {since}.")
    old = sum(one.is_regression and known.status(one) == "open" for one in found)
    if old:
        are = "is" if old == 1 else "are"
        return rich(TextSpan(count(old, "older regression"), "bad"), f" {are} still open.")
    failing = sum(one.id in known.failing for one in going)
    if failing:
        which = f"{failing:,} of {len(going):,} cells" if len(going) > 1 else "It"
        return rich(
            f"{which} {give_or_gives(failing)} ", TextSpan("no figure", "bad"), " any more."
        )
    return _no_news(series, going, known)


def _no_news(series: Sequence[Series], going: Sequence[Series], known: ChangeHistory) -> Text:
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
    rows = failing_notices(found, known)
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
            parts += [got, _tinted(word, alike[0])]
    return rich(*parts, ".")


def _tinted(word: str, change: Change) -> TextSpan:
    return TextSpan(word, "bad" if change.is_regression else "good")


def _events(
    series: Sequence[Series], news: Sequence[Change], known: ChangeHistory
) -> list[str | TextSpan]:
    """Changes that may come from one commit each, by number of cells; empty for a single series."""
    if len(series) == 1:
        return []
    groups = sorted(group_changes(news, known), key=len, reverse=True)
    said: list[str | TextSpan] = []
    for group in groups[:_MOST_EVENTS]:
        first = min((change.series for change in group), key=natural_place)
        there = [one for one in series if one.host == first.host and one.id not in known.ended]
        row = change_group(group, known).head
        # A link's text has to be unique, so it includes the size.
        name = f"{_cells_of_event(group, first, there)} {row.size.word}"
        own = _distinguishing_parameters([change.series for change in group], there)
        said += [
            strong(name, f"#{series_anchor(first)}"),
            f", all {', '.join(own)}," if own else "",
        ]
        said.append(f" since {row.since[:10]}")
        said += [" by ", strong(row.commits, row.link)] if row.commits else []
        said.append(". ")
    more = len(groups) - _MOST_EVENTS
    return [*said, f"{count(more, 'change')} more below. "] if more > 0 else said


def _cells_of_event(group: Sequence[Change], first: Series, there: Sequence[Series]) -> str:
    """The cells of one event: a name, or their number out of all cells of their machine."""
    if len(there) == 1:
        return f"On {first.host_name}"
    which = f"{len(group):,} of {len(there):,} cells"
    if len(group) == 1:
        which = ", ".join(_own_parameters(first, there)) or "1 cell"
    return f"{which} on {first.host_name}"


def _own_parameters(one: Series, every: Sequence[Series]) -> list[str]:
    """The parameters of a series that not all series of its machine share."""
    usual = _shared_parameters(every)
    return [axis for axis in axes(one.cell) if axis not in usual]


def _distinguishing_parameters(some: Sequence[Series], every: Sequence[Series]) -> list[str]:
    """The parameters that several series share but not every series has; empty for a few series."""
    if len(some) < _LEAST_DISTINGUISHED:
        return []
    shared = _shared_parameters(some)
    return [axis for axis in _own_parameters(some[0], every) if axis in shared]


def _shared_parameters(series: Sequence[Series]) -> frozenset[str]:
    return frozenset.intersection(*(frozenset(axes(one.cell)) for one in series))


def _series_counts(series: Sequence[Series], known: ChangeHistory) -> str:
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
    rest: UnchartedSeries
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
    choice = select_charts(series, known)
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
        rest=uncharted_series(
            choice.others, [cells[one.id] for one in choice.others], silent, known
        ),
        data=f"../data/history/{slug}.csv.gz",
        zoom=f"../data/history/{slug}.js",
        machines=tuple(machine_facts((*series, *silent), known)),
        code=next((one.code for one in series if one.code), None),
    )


def charted(series: Sequence[Series], known: ChangeHistory) -> tuple[Series, ...]:
    """The series with a chart on a benchmark's page, in their order there."""
    return select_charts(series, known).charted


def _charts(
    series: Sequence[Series], shown: Sequence[Series], known: ChangeHistory
) -> tuple[BenchmarkChart, ...]:
    if not shown:
        return ()
    names = dict(zip((one.id for one in series), short_cells(series), strict=True))
    points = _ALL_POINTS if len(series) <= MANY_SERIES else _ALL_POINTS // 2
    most = min(max(points // len(shown), _LEAST_POINTS), 500)
    nights = min(max(_ALL_NIGHTS // len(shown), _LEAST_NIGHTS), MOST_ROWS)
    # Most series share their timestamps.
    columns = {id(one.points.moments): one.points.moments for one in shown}.values()
    line = Timeline.over([moment.at for column in columns for moment in column])
    return tuple(
        BenchmarkChart(
            place=series_anchor(one),
            panel=history_panel(
                (one,),
                known,
                title=names[one.id],
                most_points=most,
                most_nights=nights,
                # Moments that cannot be parsed have no order across series.
                line=None if line.is_ordinal else line,
            ),
            ended=last_measured(one.points.moments[-1]) if one.id in known.ended else "",
        )
        for one in shown
    )
