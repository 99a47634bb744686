"""Peak memory: launches are judged by it as by a value that a command reports."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound import load
from corebound.analysis.peak_memory import judged_by
from corebound.analysis.run_comparison import compare_runs
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.present.run import scenario_table
from corebound.records.launch_record import Launch
from corebound.scenario.matrix import expand
from corebound.stats.history.series import series_of_run
from support.build import a_launch, a_run, a_scenario, a_served, a_worker, write_records
from support.commands import corebound
from support.known import known

SCENARIO = a_scenario()
CELLS = expand(SCENARIO, "a-scenario.yaml", None)
MIB = 1 << 20


def launches(*peaks_mib: float, run: str = "r1", spread: float = 1e-3) -> list[Launch]:
    """Six launches of each cell with these peaks, all of the same time."""
    return [
        a_launch(
            cell=CELLS[cell],
            run=run,
            block=block,
            position=cell,
            workers=(
                replace(a_worker(), peak_rss_bytes=round(peak * (1 + spread * (block % 3)) * MIB)),
            ),
        )
        for block in range(6)
        for cell, peak in enumerate(peaks_mib)
    ]


def result_of(*made: Launch) -> ScenarioResult:
    run, judged = judged_by("memory", a_run(scenarios=(SCENARIO,)), made)
    return analyse_scenario(run, run.scenarios[0], judged)


def test_a_table_says_how_much_more_memory() -> None:
    _, (base, more) = scenario_table(result_of(*launches(100, 120))).in_words

    assert base[1].startswith("100 MiB")
    assert more[2].startswith("1.20× more memory")
    assert more[3].startswith("▼ more memory")


def changed(*peaks_mib: float, spread: float = 1e-3, **changes: Any) -> ScenarioResult:
    """The result of launches whose workers differ in this from usual ones."""
    made = [
        replace(launch, workers=tuple(replace(worker, **changes) for worker in launch.workers))
        for launch in launches(*peaks_mib, spread=spread)
    ]
    return result_of(*made)


def test_equal_peaks_are_equivalent_and_unknown_ones_no_values() -> None:
    _, other = changed(100, 100, spread=0).cells

    assert known(other.comparison).verdict == "equivalent"
    assert not any(cell.is_measured for cell in changed(100, 120, peak_rss_bytes=None).cells)


def test_workers_count_together_and_a_server_has_a_peak_as_well() -> None:
    worker = a_worker()  # 64 MiB each
    several = [
        replace(launch, workers=(worker, replace(worker, slot=1))) for launch in launches(1, 1)
    ]
    served = [
        replace(launch, served=a_served(), workers=(replace(launch.workers[0], wall_ns=()),))
        for launch in launches(100, 120)
    ]

    base, _ = result_of(*several).cells
    _, more = result_of(*served).cells

    assert base.summary.median_ns == pytest.approx(128e9)  # in the metric's own scale
    assert known(more.comparison).slowdown_ratio == pytest.approx(1.2, rel=0.01)


def test_the_margin_is_its_own() -> None:
    run, _ = judged_by("memory", a_run(scenarios=(a_scenario(measure={"margin": 0.2}),)), ())
    other, _ = judged_by("memory", run, (), margin=0.1)

    margins = [each.scenarios[0].document["measure"]["margin"] for each in (run, other)]
    assert margins[0] < 0.05
    assert margins[1] == 0.1


def test_its_series_is_beside_that_of_the_time() -> None:
    run, made = a_run(scenarios=(SCENARIO,)), launches(100)

    (time,) = series_of_run(run, made)
    (memory,) = series_of_run(*judged_by("memory", run, made))

    assert memory.id != time.id
    assert memory.id.startswith(time.id)
    assert (memory.unit, memory.more_is_better) == ("MiB", False)
    assert memory.points[0].value == pytest.approx(100, rel=0.01)


def test_two_runs_are_compared_by_memory() -> None:
    first = judged_by("memory", a_run(scenarios=(SCENARIO,)), launches(100, 100))
    later = replace(a_run(scenarios=(SCENARIO,), run_id="r2"), started_at="2026-01-03T03:04:05Z")
    second = judged_by("memory", later, launches(130, 100, run="r2"))

    row = next(each for each in compare_runs(first, second).cells if each.cell == CELLS[0].key)

    assert row.before == pytest.approx(100, rel=0.01)
    assert row.ratio_text == "1.30× more memory"


def test_python_judges_what_it_has_loaded_by_memory(tmp_path: Path) -> None:
    write_records(tmp_path, a_run(scenarios=(SCENARIO,)), *launches(100, 120))

    results = load(tmp_path).filter(metric="memory")

    assert [*results.comparisons().speedup_ratio] == [pytest.approx(1 / 1.2, rel=0.01)]
    assert {each.unit for each in results.series()} == {"MiB"}


def test_regressions_of_memory_alarm_while_those_of_time_do_not(tmp_path: Path) -> None:
    records = tmp_path / "reports/records"
    for day in range(1, 25):
        at = f"2026-01-{day:02}T02:00:00Z"
        run = a_run(scenarios=(SCENARIO,), run_id=f"night{day}", started_at=at)
        peak = (130 if day > 12 else 100) + day % 2 / 10
        write_records(records, run, *launches(peak, 100, run=run.id))

    time = corebound(tmp_path, "regressions", in_process=True)
    memory = corebound(tmp_path, "regressions", "--metric", "memory", "--json", in_process=True)

    assert time.code == 0
    assert memory.code == 1
    (commit,) = json.loads(memory.out)["commits"]
    assert "1.30× more memory" in commit["summary"]
    said = corebound(tmp_path, "regressions", "--metric", "memory", in_process=True)
    assert "more memory" in said.out
    shown = corebound(tmp_path, "show", "--metric", "memory", in_process=True)
    assert "MiB" in shown.out
    assert "scenario/a-scenario.html#memory" in said.out
