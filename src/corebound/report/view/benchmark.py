"""The page of an imported benchmark: every cell of it on every machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corebound.model.points import Circumstances, Moment
from corebound.model.series import Series
from corebound.report.view.addresses import anchor_of, benchmark_slug
from corebound.report.view.chronicle import Chronicle, size_word
from corebound.report.view.command import NO_COMMAND
from corebound.report.view.history import HistoryPanel, history_panel
from corebound.report.view.page import Head, Hero, Piece
from corebound.report.view.provenance import Fact
from corebound.report.view.series_names import shared_axes, short_cells
from corebound.report.view.words import count, day, rich

# Charts of a page, and the points that all of them draw together: a benchmark with
# hundreds of parameters stays a page that a phone can load.
_MOST_CHARTS = 60
_ALL_POINTS = 6_000
_LEAST_POINTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPage:
    """An imported benchmark.

    Attributes:
        panels: (the place on the page, a chart), those that changed first.
        unshown: Names of cells beyond what one page holds.
        data: Address of all points as CSV, packed; `zoom` of those in charts, as a script.
        machines: Each machine, as its latest results describe it.
        code: The source of the benchmark, where that is known.
    """

    head: Head
    hero: Hero
    panels: tuple[tuple[str, HistoryPanel], ...]
    unshown: tuple[str, ...]
    data: str
    zoom: str
    machines: tuple[Fact, ...]
    code: str | None


def benchmarks_of(known: Chronicle) -> Iterator[tuple[str, str, tuple[Series, ...]]]:
    """Every imported benchmark with a history: project, benchmark, its series."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in known.histories:
        if one.project is not None:
            groups.setdefault((one.project, one.scenario), []).append(one)
    for (project, benchmark), series in sorted(groups.items()):
        yield project, benchmark, tuple(series)


def benchmark_page(
    project: str, series: tuple[Series, ...], known: Chronicle, *, now: str
) -> BenchmarkPage:
    """The page of one benchmark.

    Args:
        project: Whose it is.
        series: Its series, at least one, each with two figures.
        known: What changed in them.
        now: ISO moment the page is made.
    """
    title = series[0].title
    shown, names = charted(series, known), short_cells(_ordered(series, known))
    most = max(_ALL_POINTS // len(shown), _LEAST_POINTS)
    slug = benchmark_slug(project, series[0].scenario)
    return BenchmarkPage(
        head=Head(
            title=f"{title}: history",
            description=f"History of {title}, of {project}.",
            root="../",
            here=title,
            above=(("Scenarios", "index.html"), ("History", "history.html")),
            made=f"Imported from {project}; page made {day(now)}.",
        ),
        hero=_hero(project, series, known),
        panels=tuple(
            (
                anchor_of(one),
                history_panel(
                    (one,), known, title=name, root="../", most_points=min(most, 500),
                    with_nights=len(shown) == 1,
                ),
            )
            for one, name in zip(shown, names, strict=False)  # beyond those that are shown
        ),
        unshown=names[len(shown):],
        data=f"../data/history/{slug}.csv.gz",
        zoom=f"../data/history/{slug}.js",
        machines=tuple(_machines(series)),
        code=next((one.code for one in series if one.code), None),
    )  # fmt: skip


def charted(series: Sequence[Series], known: Chronicle) -> tuple[Series, ...]:
    """The series of a benchmark that its page has a chart of, those that changed first."""
    return _ordered(series, known)[:_MOST_CHARTS]


def _ordered(series: Sequence[Series], known: Chronicle) -> tuple[Series, ...]:
    return tuple(sorted(series, key=lambda one: (-len(known.of(one)), one.host, one.cell)))


def _machines(series: Sequence[Series]) -> Iterator[Fact]:
    latest: dict[str, tuple[Moment, Circumstances]] = {}
    for one in series:
        last = one.points.moments[-1], one.points.circumstances[-1]
        latest[one.host_name] = max(latest.get(one.host_name, last), last, key=_when)
    for name, (_, circumstances) in sorted(latest.items()):
        told = ", ".join(f"{of} {value}" for of, value in circumstances if value)
        yield Fact(term=name, value=told or "nothing is told of it")


def _when(described: tuple[Moment, Circumstances]) -> str:
    return described[0].at


def _hero(project: str, series: tuple[Series, ...], known: Chronicle) -> Hero:
    found = [change for one in series for change in known.of(one)]
    news = [change for change in found if change.step.status == "new"]
    largest = max(news, key=lambda change: abs(change.step.ratio - 1), default=None)
    if largest is None:
        verdict = rich("Nothing new.")
    else:
        word = size_word(largest)
        piece = Piece(word.word, "bad" if largest.is_regression else "good")
        verdict = rich(piece, f" since {largest.first_bad.at[:10]}.")
    # asv's `pretty_name` stands in its place.
    own_name = series[0].scenario if series[0].title != series[0].scenario else ""
    hosts = len({one.host for one in series})
    points = max(len(one.points) for one in series)
    return Hero(
        title=series[0].title,
        question="",
        context=", ".join(
            part for part in (own_name, f"of {project}", shared_axes(series)) if part
        ),
        verdict=verdict,
        support=rich(
            f"{count(len(series), 'series', 'series')} on {count(hosts, 'machine')}, "
            f"up to {count(points, 'point')} each; {count(len(found), 'change')} in all.",
            "" if any(one.reproduce for one in series) else f" {NO_COMMAND}",
        ),
        flags=(),
    )
