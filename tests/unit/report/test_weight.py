"""What a reader has to load: large suites and long histories stay light pages."""

import gzip
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.selection import latest_results
from corebound.records.history import HistoryPoints, Series
from corebound.report.inputs import PageContext
from corebound.report.pages.benchmark import benchmark_page
from corebound.report.pages.overview import overview_page
from corebound.report.scenario.page import scenario_page
from corebound.scenario.matrix import expand
from support.build import a_launch, a_point, a_run, a_scenario, a_series
from support.markup import Element, by_id, parse_html
from support.report_sample import (
    NOW,
    a_benchmark,
    a_sample,
    first_site,
    rendered,
    sample_history,
    site_over_time,
)

NIGHTS = 40
SCENARIO = "scenario/resnet50-inference.html"


def weight(text: str) -> int:
    return len(gzip.compress(text.encode()))


KIB = 1_024


@pytest.mark.parametrize(
    ("made", "name", "kib"),
    [
        (site_over_time, "index.html", 4),
        (site_over_time, SCENARIO, 20),
        (site_over_time, "history.html", 100),
        (first_site, "index.html", 4),
        (first_site, SCENARIO, 16),
    ],
)
def test_pages_are_light(made: Callable[[], dict[str, str]], name: str, kib: int) -> None:
    assert weight(made()[name]) <= kib * KIB


def noisy(nights: int, seed: int, **changes: Any) -> Series:
    noise = random.Random(seed)
    values = [1e6 * noise.lognormvariate(0, 0.02) for _ in range(nights)]
    points = HistoryPoints.of(
        a_point(value, day=day, bounds=(value * 0.98, value * 1.02))
        for day, value in enumerate(values)
    )
    return replace(a_series([]), points=points, **changes)


def unchanged(all_series: Sequence[Series]) -> ChangeHistory:
    """A history in which nothing is looked for, as that takes its time."""
    return ChangeHistory(series=tuple(all_series), cells={})


@pytest.fixture(scope="module")
def suite_of_500() -> str:
    scenarios = tuple(
        a_scenario(name=f"scenario-{number}", title=f"Scenario number {number}")
        for number in range(500)
    )
    launches = tuple(
        replace(a_launch(cell=cell, position=position), id=f"{scenario.name}-{position}")
        for scenario in scenarios
        for position, cell in enumerate(expand(scenario, "a.yaml"))
    )
    run = a_run(scenarios=scenarios)
    all_series = [
        noisy(NIGHTS, seed, scenario=scenario.name, host=run.host.id, cell="binding=none")
        for seed, scenario in enumerate(scenarios)
    ]
    results = latest_results([(run, launches)])
    history = build_change_history((), results)
    context = PageContext(now=NOW, history=replace(history, series=tuple(all_series)))
    return rendered("overview", overview_page(results, context))


def scenario_rows(overview: str) -> list[Element]:
    section = by_id(parse_html(overview), "scenarios")
    assert section is not None
    return [row for body in section.all("tbody") for row in body.all("tr")]


def test_an_overview_of_500_scenarios_is_under_60_kb(suite_of_500: str) -> None:
    # In each row the trend and the effect.
    assert suite_of_500.count('class="spark"') == 2 * 500
    assert weight(suite_of_500) < 60_000


def test_rows_out_of_sight_are_left_for_later_only_where_there_are_many(suite_of_500: str) -> None:
    tables = [
        scenario_rows(page)[0].within("table")
        for page in (suite_of_500, first_site()["index.html"])
    ]

    assert ["many" in table.classes for table in tables if table is not None] == [True, False]


@pytest.fixture
def every_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Series without a change have charts too: to look for changes takes its time."""
    monkeypatch.setattr("corebound.report.pages.benchmark._MOST_UNCHANGED", 12)


@pytest.mark.usefixtures("every_chart")
def test_a_benchmark_of_12_charts_of_1400_points_is_under_30_kb_with_all_its_tables() -> None:
    all_series = tuple(
        noisy(
            1_400,
            seed,
            project="p",
            cell=f"n={seed}",
            scenario="bench",
            reproduce=("asv", "run", "--bench", "^bench\\b"),
            commit_url="https://example.org/owner/project/commit/",
        )
        for seed in range(12)
    )

    text = rendered("benchmark", benchmark_page(a_benchmark(all_series, unchanged(all_series))))

    assert text.count("<figure") == 12
    assert 'id="latest"' in text
    assert weight(text) < 30_000


def test_a_benchmark_of_300_cells_and_300_nights_is_under_120_kb() -> None:
    all_series = tuple(
        noisy(300, seed, project="p", cell=f"n={seed}", scenario="bench") for seed in range(300)
    )

    text = rendered("benchmark", benchmark_page(a_benchmark(all_series, unchanged(all_series))))

    assert text.count("<figure") + text.count('class="spark"') == 300
    assert weight(text) < 120_000


def test_a_scenario_page_with_a_long_history_is_under_120_kb() -> None:
    past = tuple(
        replace(noisy(1_000, seed), **{name: getattr(series, name) for name in _NAMED})
        for seed, series in enumerate(sample_history())
        if series.project is None
    )
    (result,) = latest_results([a_sample()])
    history = replace(build_change_history((), (result,)), series=past)
    context = PageContext(now=NOW, history=history)

    page = rendered("scenario", scenario_page(result, context, findings=(), records_file="r.jsonl"))

    assert 'id="history"' in page
    assert weight(page) < 120_000


_NAMED = ("host", "host_name", "scenario", "title", "cell")
