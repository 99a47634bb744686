"""The page of an imported benchmark: all of its cells on all machines."""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from corebound.analysis.change_history import (
    ChangeHistory,
    change_direction,
    change_size,
    has_history,
    latest_text,
)
from corebound.analysis.series_names import (
    Natural,
    axes,
    distinct_axes,
    environments,
    natural_sort_key,
    shared_axes,
    short_cell_names,
)
from corebound.analysis.series_wording import last_measured
from corebound.analysis.suggested_commands import NO_COMMAND
from corebound.analysis.triage import group_failures
from corebound.analysis.wording import Text, TextSpan, capital, count, day, rich, strong
from corebound.present.changes import group_changes
from corebound.present.sections import Fact
from corebound.records.history import Series, reason_kind
from corebound.report.elements import Content, Head, Hero, Page, occurrence_numbers
from corebound.report.history.panel import MOST_POINTS, MOST_ROWS, history_panel, latest_points
from corebound.report.history.timeline import Timeline
from corebound.report.pages.series_table import give_or_gives
from corebound.report.urls import series_anchor
from corebound.stats.history.regressions import Change

# A row has a twentieth of a chart's size. Unchanged series beyond this limit are only named.
_MOST_ROWS = 800


class ImportedBenchmark(Struct, frozen=True, kw_only=True):
    """A benchmark of a project: its series with values, and its series without any.

    Attributes:
        series: At least one.
        history: All histories with their changes, these among them.
    """

    project: str
    name: str
    series: tuple[Series, ...]
    history: ChangeHistory
    silent: tuple[Series, ...] = ()

    @property
    def title(self) -> str:
        """Its name on pages."""
        return self.series[0].title

    @property
    def active(self) -> tuple[Series, ...]:
        """The series that are not retired."""
        retired = self.history.retired_series
        return tuple(series for series in self.series if series.id not in retired)

    @property
    def code(self) -> str | None:
        """Its source, if known."""
        return next((series.code for series in self.series if series.code), None)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The clear changes of all series."""
        return tuple(change for series in self.series for change in self.history.changes_of(series))


def uncharted_rows(
    benchmark: ImportedBenchmark, uncharted: Sequence[Series]
) -> tuple[list[tuple[Series, str]], list[tuple[Series, str]]]:
    """The series without a chart with their names: those that get a row, and those only named.

    Args:
        uncharted: Its series with a value and no chart, in order.
    """
    # The machine has a column of its own.
    names = dict(
        zip(
            (series.id for series in benchmark.series),
            distinct_axes(benchmark.series),
            strict=True,
        )
    )
    # Changed series come first, clear or not and however old, because lists of changes link to
    # them.
    listed = sorted(uncharted, key=lambda series: not benchmark.history.all_changes_of(series))
    shown = {series.id for series in listed[:_MOST_ROWS]}
    rows = [(series, names[series.id]) for series in uncharted]
    return (
        [row for row in rows if row[0].id in shown],
        [row for row in rows if row[0].id not in shown],
    )


def _without_values(
    all_series: Sequence[Series],
) -> list[tuple[str, str, list[str]]]:
    """(machine, reason, cells) of series that never gave a value."""
    ordered = sorted(all_series, key=natural_sort_key)
    groups: dict[tuple[str, str], list[str]] = {}
    for each_series, name in zip(ordered, distinct_axes(ordered), strict=True):
        groups.setdefault((each_series.host_name, why_no_history(each_series)), []).append(name)
    return [(*key, cells) for key, cells in sorted(groups.items())]


def why_no_history(series: Series) -> str:
    """Why a series has no history to show."""
    reason = next(filter(None, reversed(series.points.missing)), None)
    return reason_kind(reason) if reason else "measured once so far"


# The environment value with the benchmark's version, which does not describe the machine.
_VERSION = "benchmark"


def machine_facts(benchmark: ImportedBenchmark) -> Iterator[Fact]:
    """Describe each machine of a benchmark from its latest results, active machines first.

    Then follows each environment whose name is too long to show beside every value.
    """
    all_series = (*benchmark.series, *benchmark.silent)
    machines: dict[str, list[Series]] = {}
    for each_series in all_series:
        machines.setdefault(each_series.host_name, []).append(each_series)
    short_names = environments(all_series)
    is_retired = {
        name: all(series.id in benchmark.history.retired_series for series in own)
        for name, own in machines.items()
    }
    for name in sorted(machines, key=lambda name: (is_retired[name], name)):
        latest = max(
            (series.points for series in machines[name]), key=lambda own: own.latest_moment.at
        )
        environment = latest.environment_keys[-1]
        parts = [f"{key} {value}" for key, value in environment if value and key != _VERSION]
        parts += [f"environment {short_names[whole]}" for whole in environments(machines[name])]
        parts.append(last_measured(latest.latest_moment))
        yield Fact(term=name, value=", ".join(parts))
    for whole, short in short_names.items():
        if short != whole:
            yield Fact(term=short, value=whole)


# Nobody reads more charts, and they are most of the cost of a site. Of the other series, and of
# those without a change, a row says as much.
_MOST_CHARTS, _MOST_UNCHANGED = 12, 2
# A history with less than this share of the longest one has hardly begun.
_LEAST_LENGTH_SHARE = 0.1
# The priority of a series, given by its most important change.
_NEW_AND_WORSE, _OPEN, _NEW_AND_BETTER, _CHANGED, _UNCHANGED = range(5)


def select_charts(benchmark: ImportedBenchmark) -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """Choose the series to chart, the same number for each machine unless one has fewer.

    Series that changed in different commits alternate. Hundreds of parameters with the same
    regression therefore do not push other changes off the page.

    Returns:
        The series with a chart, each with at least two values, and all others; by importance.
    """
    longest = max((len(series.points) for series in benchmark.series), default=0)
    priorities = {series.id: _priority(series, benchmark.history) for series in benchmark.series}

    def place(series: Series) -> tuple[bool, bool, int, str, tuple[tuple[str, Natural], ...]]:
        # Active series come first, then those with a longer history, then by priority.
        begun = len(series.points) >= _LEAST_LENGTH_SHARE * longest
        return (
            series.id in benchmark.history.retired_series,
            not begun,
            priorities[series.id],
            series.host,
            natural_sort_key(series),
        )

    ordered = sorted(benchmark.series, key=place)
    # A line needs two points.
    drawable = [series for series in ordered if series.points.value_count > 1]
    drawn = _charted_ids(drawable, priorities, benchmark.history)
    return (
        tuple(series for series in ordered if series.id in drawn),
        tuple(series for series in ordered if series.id not in drawn),
    )


def _priority(series: Series, history: ChangeHistory) -> int:
    return min(
        (_change_priority(change, history) for change in history.changes_of(series)),
        default=_UNCHANGED,
    )


def _change_priority(change: Change, history: ChangeHistory) -> int:
    if history.is_news(change):
        return _NEW_AND_WORSE if change.is_regression else _NEW_AND_BETTER
    is_open = history.assessed[change.id].is_undecided
    return _OPEN if is_open else _CHANGED


def _charted_ids(
    all_series: Sequence[Series], priorities: Mapping[str, int], history: ChangeHistory
) -> frozenset[str]:
    """The ids of the series to chart, alternating between machines; retired series come last."""
    events = _events_of_series(all_series, priorities, history)
    # Series without an important change form one more event, the last.
    important = [priorities[series.id] < _CHANGED for series in all_series]
    of_event = occurrence_numbers(
        (series.host, events.get(series.id) if is_important else None)
        for series, is_important in zip(all_series, important, strict=True)
    )
    in_turn = [
        ((series.id in history.retired_series, not is_important, turn), series)
        for series, is_important, turn in zip(all_series, important, of_event, strict=True)
    ]
    ordered = [series for _, series in sorted(in_turn, key=itemgetter(0))]
    of_host = occurrence_numbers(series.host for series in ordered)
    placed = [
        ((series.id in history.retired_series, turn), series.id)
        for series, turn in zip(ordered, of_host, strict=True)
    ]
    chosen = [name for _, name in sorted(placed)[:_MOST_CHARTS]]
    unchanged = [name for name in chosen if priorities[name] == _UNCHANGED]
    return frozenset(chosen).difference(unchanged[_MOST_UNCHANGED:])


def _events_of_series(
    all_series: Sequence[Series], priorities: Mapping[str, int], history: ChangeHistory
) -> dict[str, int]:
    """For each changed series the number of the event that gives it its priority."""
    changes = [change for series in all_series for change in history.changes_of(series)]
    return {
        change.series.id: event
        for event, group in enumerate(group_changes(changes, history))
        for change in group.changes
        if _change_priority(change, history) == priorities[change.series.id]
    }


# Further events are only visible in the charts below.
_MOST_EVENTS = 4
# Fewer cells may share a parameter by chance.
_LEAST_DISTINGUISHED = 5


def benchmark_hero(benchmark: ImportedBenchmark) -> Hero:
    """The verdict of a benchmark, and its basis."""
    changes = benchmark.changes
    news = [change for change in changes if benchmark.history.is_news(change)]
    # asv's `pretty_name` replaces the name.
    own_name = benchmark.name if benchmark.title != benchmark.name else ""
    context = (own_name, f"of {benchmark.project}", shared_axes(benchmark.series))
    silent = len(benchmark.silent)
    return Hero(
        title=benchmark.title,
        context=", ".join(part for part in context if part),
        verdict=_verdict(benchmark, news),
        support=rich(
            *_events(benchmark, news),
            f"{_series_counts(benchmark)}, {count(len(changes), 'change')} in all.",
            _failing(benchmark),
            _latest_difference(benchmark),
            f" {count(silent, 'series', 'series')} {'has' if silent == 1 else 'have'} no result."
            if silent
            else "",
        ),
    )


def _latest_difference(benchmark: ImportedBenchmark) -> str:
    """The latest value of a single series that is too short for changes."""
    short = [series for series in benchmark.active if series.id in benchmark.history.too_short]
    return f" {capital(latest_text(short[0]))}." if len(short) == len(benchmark.active) == 1 else ""


def _verdict(benchmark: ImportedBenchmark, news: Sequence[Change]) -> Text:
    """What is new, else what is still open, else whether a change could be detected."""
    active, history = benchmark.active, benchmark.history
    if len({change.series.id for change in news}) > 1:
        return _verdict_of_many(active, news)
    if news:
        largest = max(news, key=lambda change: abs(change.change_point.ratio - 1))
        since = largest.first_bad.at[:10]
        return rich(_tinted(change_size(largest).word, largest), f" since {since}.")
    old = sum(history.assessed[change.id].is_undecided for change in benchmark.changes)
    if old:
        are = "is" if old == 1 else "are"
        return rich(TextSpan(count(old, "older regression"), "bad"), f" {are} still open.")
    failing = sum(series.id in history.failing for series in active)
    if failing:
        which = f"{failing:,} of {len(active):,} series" if len(active) > 1 else "It"
        return rich(
            f"{which} {give_or_gives(failing)} ", TextSpan("no result", "bad"), " any more."
        )
    return _no_news(benchmark)


def _no_news(benchmark: ImportedBenchmark) -> Text:
    """The statement that nothing is new, or why that is unknown."""
    all_series, active, history = benchmark.series, benchmark.active, benchmark.history
    reasons = [
        history.not_analysed[series.id]
        for series in all_series
        if series.id in history.not_analysed
    ]
    if reasons:
        which = f"{len(reasons):,} of {len(all_series):,} series" if len(all_series) > 1 else "It"
        return rich(f"{which} ", TextSpan("could not be analysed", "bad"), f": {reasons[0]}")
    if active and all(series.id in history.too_short for series in active):
        return rich("Too little data to detect changes.")
    return rich("No change.")


def _failing(benchmark: ImportedBenchmark) -> str:
    """The series that no longer give values, by the date since when and the reason."""
    history = benchmark.history
    failing = [
        history.failing[series.id] for series in benchmark.series if series.id in history.failing
    ]
    groups = group_failures(failing)
    text = "; ".join(
        f"{count(len(group.failing), 'series', 'series')} since {group.since.at[:10]}"
        f"{f': {group.reason}' if group.reason else ''}"
        for group in groups[:_MOST_EVENTS]
    )
    more = "; …" if len(groups) > _MOST_EVENTS else ""
    return f" No recent results: {text}{more}." if groups else ""


def _verdict_of_many(all_series: Sequence[Series], changes: Sequence[Change]) -> Text:
    """How many series have new changes. The size of one change would be read as that of all."""
    parts: list[str | TextSpan] = []
    for is_regression in (True, False):
        alike = [change for change in changes if change.is_regression is is_regression]
        if alike:
            word = change_direction(alike[0])
            number = f"{len({change.series.id for change in alike}):,}"
            got = f", {number} " if parts else f"{number} of {len(all_series):,} series got "
            parts += [got, _tinted(word, alike[0])]
    return rich(*parts, ".")


def _tinted(word: str, change: Change) -> TextSpan:
    return TextSpan(word, "bad" if change.is_regression else "good")


def _events(benchmark: ImportedBenchmark, changes: Sequence[Change]) -> list[str | TextSpan]:
    """Changes that may come from one commit each, by number of series; empty if there is one."""
    if len(benchmark.series) == 1:
        return []
    groups = sorted(
        group_changes(changes, benchmark.history), key=lambda each: len(each.changes), reverse=True
    )
    parts: list[str | TextSpan] = []
    for group in groups[:_MOST_EVENTS]:
        changed = [change.series for change in group.changes]
        first = min(changed, key=natural_sort_key)
        on_host = [series for series in benchmark.active if series.host == first.host]
        # A link's text has to be unique, so it includes the size.
        name = f"{_cells_of_event(changed, first, on_host)} {group.size.word}"
        own = _distinguishing_parameters(changed, on_host)
        parts += [
            strong(name, f"#{series_anchor(first)}"),
            f", all {', '.join(own)}," if own else "",
        ]
        parts.append(f" since {group.change.since[:10]}")
        commits = group.commits
        parts += [" by ", strong(commits.name, commits.link)] if commits.name else []
        parts.append(". ")
    more = len(groups) - _MOST_EVENTS
    if more > 0:
        parts.append(f"{more:,} more {'change' if more == 1 else 'changes'} below. ")
    return parts


def _cells_of_event(changed: Sequence[Series], first: Series, all_series: Sequence[Series]) -> str:
    """The series of one event: a name, or their number out of all series of their machine."""
    if len(all_series) == 1:
        return f"On {first.host_name}"
    which = f"{len(changed):,} of {len(all_series):,} series"
    if len(changed) == 1:
        which = ", ".join(_own_parameters(first, all_series)) or "1 series"
    return f"{which} on {first.host_name}"


def _own_parameters(series: Series, all_series: Sequence[Series]) -> list[str]:
    """The parameters of a series that not all series of its machine share."""
    usual = _shared_parameters(all_series)
    return [axis for axis in axes(series.cell) if axis not in usual]


def _distinguishing_parameters(some: Sequence[Series], all_series: Sequence[Series]) -> list[str]:
    """The parameters that several series share but not every series has; empty for a few series."""
    if len(some) < _LEAST_DISTINGUISHED:
        return []
    shared = _shared_parameters(some)
    return [axis for axis in _own_parameters(some[0], all_series) if axis in shared]


def _shared_parameters(all_series: Sequence[Series]) -> frozenset[str]:
    return frozenset.intersection(*(frozenset(axes(series.cell)) for series in all_series))


def _series_counts(benchmark: ImportedBenchmark) -> str:
    all_series = benchmark.series
    hosts = len({series.host for series in all_series})
    ended = len(all_series) - len(benchmark.active)
    return (
        f"{count(len(all_series), 'series', 'series')} on {count(hosts, 'machine')}"
        f"{f', {ended:,} retired' if ended else ''}"
    )


def _basis(benchmark: ImportedBenchmark) -> str:
    """How much was measured until when, and whether it can be measured again."""
    points = max(series.points.value_count for series in benchmark.series)
    command = "" if any(series.reproduce for series in benchmark.series) else f" {NO_COMMAND}"
    latest = _latest(benchmark)[:10]
    return f"Up to {count(points, 'point')} per series, the last of {latest}.{command}"


def _latest(benchmark: ImportedBenchmark) -> str:
    """The latest moment of any series."""
    return max(series.points.latest_moment.at for series in benchmark.series)


_ALL_NIGHTS = 20
# Each of several charts is 300 to 400 pixels wide. A site with thousands of them is mostly charts.
_MOST_POINTS_OF_SEVERAL = 100
# More charts have their latest points in one table, because they share commits and commands.
_MOST_TABLES, _SHARED_NIGHTS = 6, 3


def benchmarks_of(history: ChangeHistory) -> Iterator[ImportedBenchmark]:
    """Every imported benchmark with a history, by project and name."""
    groups: dict[tuple[str, str], tuple[list[Series], list[Series]]] = {}
    for each_series in history.series:
        if each_series.project is not None:
            with_values, silent = groups.setdefault(
                (each_series.project, each_series.scenario), ([], [])
            )
            (with_values if has_history(each_series) else silent).append(each_series)
    for (project, name), (all_series, silent) in sorted(groups.items()):
        if all_series:
            yield ImportedBenchmark(
                project=project,
                name=name,
                series=tuple(all_series),
                silent=tuple(silent),
                history=history,
            )


def benchmark_page(benchmark: ImportedBenchmark) -> Page:
    """Build the page of one benchmark; it stays the same until the benchmark has another point."""
    title, project = benchmark.title, benchmark.project
    charted, others = select_charts(benchmark)
    rows, unshown = uncharted_rows(benchmark, others)
    return Page(
        benchmark=benchmark,
        head=Head(
            title=f"{title}: history",
            description=f"History of {title}, of {project}.",
            made=f"Imported from {project}; last result of {day(_latest(benchmark))}.",
        ),
        hero=benchmark_hero(benchmark),
        charts=_charts(benchmark, charted),
        latest=latest_points(charted, most=_SHARED_NIGHTS) if len(charted) > _MOST_TABLES else (),
        rows=rows,
        unshown=unshown,
        without_values=_without_values(benchmark.silent),
        machines=tuple(machine_facts(benchmark)),
        basis=_basis(benchmark),
    )


def _charts(benchmark: ImportedBenchmark, shown: Sequence[Series]) -> tuple[Content, ...]:
    all_series = benchmark.series
    if not shown:
        return ()
    names = dict(
        zip((series.id for series in all_series), short_cell_names(all_series), strict=True)
    )
    most = MOST_POINTS if len(shown) == 1 else _MOST_POINTS_OF_SEVERAL
    nights = min(_ALL_NIGHTS // len(shown), MOST_ROWS) if len(shown) <= _MOST_TABLES else 0
    # Most series share their timestamps.
    columns = {id(series.points.moments): series.points.moments for series in shown}.values()
    line = Timeline.over([moment.at for column in columns for moment in column])
    return tuple(
        history_panel(
            (series,),
            benchmark.history,
            title=names[series.id],
            most_points=most,
            most_nights=nights,
            bars=len(shown) == 1 or len(series.points) <= most,
            # Moments that cannot be parsed have no order across series.
            line=None if line.is_ordinal else line,
        )
        for series in shown
    )
