"""Metrics of commands in histories, documents and exports: their own unit and direction."""

import csv
import io
import json

import pytest
from msgspec.structs import replace
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from corebound.analysis.json_documents import cell_document
from corebound.analysis.scenario_result import analyse_scenario
from corebound.analysis.tuning import objective_summary
from corebound.exchange import run_export
from corebound.exchange.openmetrics import openmetrics
from corebound.exchange.run_export import ExportedCell, exported_cells
from corebound.present.run import scenario_table
from corebound.records.launch_record import Launch
from corebound.scenario.matrix import expand
from corebound.scenario.objectives import Objective
from corebound.stats.history.series import joined, series_of_run
from corebound.stats.launch_summary import summarise_launch
from support.build import a_launch, a_run, a_scenario, a_worker
from support.known import known

RATE = {"name": "generation", "unit": "tokens/s", "better": "higher", "json": "rate"}
MEMORY = {"name": "memory", "unit": "MB", "better": "lower", "json": "memory"}
SCENARIO = a_scenario(metric=[RATE, MEMORY])
CELLS = expand(SCENARIO, "a-scenario.yaml", None)


def launches(*rates: float) -> list[Launch]:
    """Eight launches of each cell, of iterations of a millisecond that report these rates."""
    return [
        a_launch(
            cell=CELLS[cell],
            block=block,
            position=cell,
            workers=(
                replace(
                    a_worker(wall_ns=(1_000_000,) * 5),
                    metrics=(((rate * (1 + block / 1000),), (512.0,)),) * 5,
                ),
            ),
        )
        for block in range(8)
        for cell, rate in enumerate(rates)
    ]


def exported(*rates: float) -> list[ExportedCell]:
    return [*exported_cells(a_run(scenarios=(SCENARIO,)), launches(*rates))]


def test_a_table_says_how_much_more_in_the_unit_of_the_metric() -> None:
    run = a_run(scenarios=(SCENARIO,))
    result = analyse_scenario(run, run.scenarios[0], launches(10.0, 13.1))

    _, (slow, fast) = scenario_table(result).in_words

    assert slow[1:3] == ("10.0 tokens/s", "512 MB (512–512)")
    assert fast[1] == "13.1 tokens/s"
    assert fast[3].startswith("1.31× more")
    assert fast[4].startswith("▲ more")


def test_a_document_has_every_metric_and_the_time_of_an_iteration() -> None:
    run = a_run(scenarios=(SCENARIO,))
    _, fast = analyse_scenario(run, run.scenarios[0], launches(10.0, 13.1)).cells

    document = cell_document(fast, run.host, is_finding=True, noise=None)

    rate, memory = document["metrics"]
    assert (rate["name"], rate["unit"], rate["better"]) == ("generation", "tokens/s", "higher")
    assert rate["interval"][0] < rate["value"] < rate["interval"][1]
    assert memory["value"] == pytest.approx(512)
    assert document["median_ns"] == pytest.approx(1_000_000)
    assert document["speedup_ratio"] == pytest.approx(1.31)


def test_exports_have_the_value_with_its_unit() -> None:
    rows = [*csv.DictReader(io.StringIO(run_export.as_csv(exported(10.0, 13.1))))]

    assert {row["unit"] for row in rows} == {"tokens/s"}
    assert float(rows[0]["value"]) == pytest.approx(10)
    assert float(rows[0]["median_ns"]) == 1_000_000
    measures = json.loads(run_export.bencher(exported(10.0, 13.1)))
    assert [*measures["a-scenario[binding=none]"]] == ["generation"]


def test_github_action_benchmark_has_the_metric_with_its_unit() -> None:
    _, fast = json.loads(run_export.github_action(exported(10.0, 13.1)))

    assert (fast["name"], fast["unit"]) == ("a-scenario[binding=one-cpu] generation", "tokens/s")
    assert fast["value"] == pytest.approx(13.1, rel=0.01)
    low, high = map(float, fast["range"].split(" to "))
    assert low < fast["value"] < high


def test_openmetrics_has_the_metric_with_its_unit_and_direction_beside_the_time() -> None:
    families = {
        family.name: family.samples
        for family in text_string_to_metric_families(openmetrics(exported(10.0, 13.1)))
    }

    value, low, high = families["corebound_metric"][:3]
    assert (value.labels["metric"], value.labels["metric_unit"]) == ("generation", "tokens/s")
    assert value.labels["better"] == "higher"
    assert low.value < value.value < high.value
    assert families["corebound_iteration_seconds"][0].value == pytest.approx(0.001)


def test_a_history_is_in_the_metrics_unit_and_knows_its_direction() -> None:
    run = a_run(scenarios=(SCENARIO,))

    series, _ = series_of_run(run, launches(10.0, 13.1))

    assert (series.unit, series.more_is_better) == ("tokens/s", True)
    assert series.points[0].value == pytest.approx(10, rel=0.01)
    low, high = series.points[0].bounds or (0, 0)
    assert low < high


def test_points_of_a_metric_that_a_scenario_no_longer_has_lose_their_values() -> None:
    old = replace(a_run(scenarios=(SCENARIO,), run_id="r0"), started_at="2026-01-01T03:04:05Z")
    plain = a_scenario()
    timed = [replace(launch, cell=replace(launch.cell, metrics=())) for launch in launches(10.0)]
    new = a_run(scenarios=(plain,), run_id="r1")

    (series,) = joined([*series_of_run(old, launches(10.0)), *series_of_run(new, timed)])

    assert series.unit == "ns"
    before, after = series.points
    assert before.value is None
    assert "tokens/s" in (before.missing or "")
    assert after.value == pytest.approx(1_000_000)


@pytest.mark.parametrize(
    ("objective", "median_ns"),
    [("metric", 1e9 / 10), ("throughput", 1e9 / 10 / 2), ("latency", 1e6)],
)
def test_an_objective_judges_a_launch_by_its_metric_or_by_its_time(
    objective: Objective, median_ns: float
) -> None:
    (launch, *_) = launches(10.0)
    cell = replace(launch.cell, workers=2)

    judged = known(objective_summary(summarise_launch(launch, "auto"), cell, objective))

    assert judged.median_ns == pytest.approx(median_ns)
