"""The page of an imported benchmark: every cell of it on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.addresses import anchor_of, benchmark_slug
from corebound.report.view.benchmark_choice import MANY, chosen
from corebound.report.view.benchmark_hero import benchmark_hero
from corebound.report.view.benchmark_rest import Rest, rest_of
from corebound.report.view.chronicle import Chronicle, has_grown
from corebound.report.view.history import HistoryPanel, history_panel
from corebound.report.view.history_nights import MOST_NIGHTS
from corebound.report.view.last_measured import last_measured
from corebound.report.view.machines import described
from corebound.report.view.page import Head, Hero
from corebound.report.view.provenance import Fact
from corebound.report.view.series_names import own_axes, short_cells
from corebound.report.view.timeline import Timeline
from corebound.report.view.words import day

# Points that all charts of a page draw together, and the latest that are told in tables behind
# them: a benchmark with hundreds of parameters stays a page that a phone can load.
_ALL_POINTS, _LEAST_POINTS = 6_000, 60
_ALL_NIGHTS, _LEAST_NIGHTS = 300, 5


class BenchmarkChart(Struct, frozen=True, kw_only=True):
    """A chart: its place on the page, and when a series that has ended was last measured."""

    place: str
    panel: HistoryPanel
    ended: str


class BenchmarkPage(Struct, frozen=True, kw_only=True):
    """An imported benchmark.

    Attributes:
        charts: Those first that go on and that changed; all along one axis of time.
        rest: What has no chart.
        data: Address of all points as CSV, packed; `zoom` of those in charts, as a script.
        machines: Each machine, as its latest results describe it.
        code: The source of the benchmark, where that is known.
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
    """A benchmark of a project: its series with a figure, and those without any."""

    project: str
    name: str
    series: tuple[Series, ...]
    silent: tuple[Series, ...]


def benchmarks_of(known: Chronicle) -> Iterator[ImportedBenchmark]:
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
    known: Chronicle,
    *,
    now: str,
    silent: tuple[Series, ...] = (),
) -> BenchmarkPage:
    """The page of one benchmark.

    Args:
        project: Whose it is.
        series: Its series, at least one, each with a figure.
        known: What changed in them.
        now: ISO moment the page is made.
        silent: Its series without any figure.
    """
    title = series[0].title
    slug = benchmark_slug(project, series[0].scenario)
    choice = chosen(series, known)
    # Of what has no chart the machine stands in a column of its own.
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


def charted(series: Sequence[Series], known: Chronicle) -> tuple[Series, ...]:
    """The series of a benchmark that its page has a chart of, in their order there."""
    return chosen(series, known).charted


def _charts(
    series: Sequence[Series], shown: Sequence[Series], known: Chronicle
) -> tuple[BenchmarkChart, ...]:
    if not shown:
        return ()
    names = dict(zip((one.id for one in series), short_cells(series), strict=True))
    points = _ALL_POINTS if len(series) <= MANY else _ALL_POINTS // 2
    most = min(max(points // len(shown), _LEAST_POINTS), 500)
    nights = min(max(_ALL_NIGHTS // len(shown), _LEAST_NIGHTS), MOST_NIGHTS)
    # Most series share their moments.
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
                # Moments that cannot be read have no order but their own.
                line=None if line.is_ordinal else line,
            ),
            ended=last_measured(one.points.moments[-1]) if one.id in known.ended else "",
        )
        for one in shown
    )
