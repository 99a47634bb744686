"""Operator profiles of cells side by side."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import plain
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.records.telemetry import Disturbance
from corebound.report.downloads import cells_json, operators_csv
from corebound.report.elements import Content
from corebound.report.scenario.operators import operators
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.stats.launch_summary import summarise_launch
from corebound.worker.operator_table import Operator
from support.build import a_launch, a_profiled_launch, a_run, a_scenario, a_worker, an_operator
from support.texts import in_order

NONE, ONE_CPU = "binding=none", "binding=one-cpu"


def a_study(*profiles: Launch, scenario: Scenario | None = None) -> ScenarioResult:
    scenario = scenario or a_scenario()
    measured = [
        a_launch(cell=cell, block=block, position=place, workers=(a_worker(),))
        for place, cell in enumerate(expand(scenario, "a.yaml"))
        for block in range(2)
    ]
    return latest_results([(a_run(scenarios=(scenario,)), (*measured, *profiles))])[0]


def profiles(*, add_ns: int = 300_000, conv_ns: int = 600_000) -> tuple[Launch, Launch]:
    none, one_cpu = expand(a_scenario(), "a.yaml")
    return (
        a_profiled_launch(an_operator(), an_operator("add", 300_000), cell=none),
        a_profiled_launch(
            an_operator("conv", conv_ns), an_operator("add", add_ns), cell=one_cpu, position=1
        ),
    )


def section(result: ScenarioResult, **traces: str) -> Content:
    made = operators(result, traces={name.replace("_", "-"): one for name, one in traces.items()})
    assert made is not None
    return made


def test_a_scenario_without_profiles_has_no_section() -> None:
    assert operators(a_study(), traces={}) is None


def test_profiling_launches_do_not_affect_values() -> None:
    result = a_study(*profiles())

    assert [launch.kind for launch in result.launches] == ["measure"] * 4
    assert [cell.summary.attempts for cell in result.cells] == [2, 2]
    with pytest.raises(ValueError, match="was profiled"):
        summarise_launch(result.profiles[0], "auto")


def test_the_operator_that_makes_the_difference_is_named() -> None:
    made = section(a_study(*profiles(add_ns=2_300_000, conv_ns=700_000)))

    note = plain(made.tables[0].notes[-1])
    assert in_order(note, "one CPU", "2.10 ms more", "2.00 ms", "add")


def of_disturbed(launch: Launch, share: float = 0.45) -> Launch:
    found = Disturbance(share=share, by=("foreign load",), evidence=("so it was",))
    return replace(launch, disturbance=found)


def test_a_disturbed_profile_is_marked_and_not_interpreted() -> None:
    none, one_cpu = profiles(add_ns=900_000)
    (table,) = section(a_study(none, of_disturbed(one_cpu))).tables

    assert [column.label.whole for column in table.columns] == ["unbound", "one CPU, disturbed"]
    parts = [plain(note) for note in table.notes]
    assert in_order(parts[0], "one CPU", "disturbed", "not interpreted")
    assert not [note for note in parts[1:] if "one CPU" in note]
    (slightly,) = section(a_study(none, of_disturbed(one_cpu, 0.05))).tables
    assert [column.label.whole for column in slightly.columns] == ["unbound", "one CPU"]


def test_a_disturbed_profile_of_the_baseline_is_not_in_the_lead() -> None:
    none, one_cpu = profiles()

    assert in_order(section(a_study(none, one_cpu)).lead, "60 %", "conv")
    made = section(a_study(of_disturbed(none), one_cpu))
    assert "conv" not in made.lead
    (note,) = [plain(note) for note in made.tables[0].notes][1:]
    assert in_order(note, "conv", "60 %", "one CPU")


def test_a_successful_second_attempt_at_a_profile_counts() -> None:
    none, one_cpu = profiles()
    found = Disturbance(share=0.45, by=("steal",), evidence=("so it was",), refused=True)
    refused = replace(none, id="a", status="invalid", reason="it was.", disturbance=found)
    launch = replace(none, id="b", attempt=1)

    assert section(a_study(refused, one_cpu, launch)).unprofiled == ()
    (missing,) = section(a_study(replace(refused, fix="It is launched again."), one_cpu)).unprofiled
    assert "another attempt" in missing.fix


def test_each_baseline_has_a_table_named_by_its_differing_axes() -> None:
    scenario = a_scenario(
        workload="gemm",
        matrix={"environment": ["numpy", "pytorch"], "binding": ["none", "one-cpu"]},
        baseline={"binding": "none"},
    )
    cells = expand(scenario, "a.yaml")
    launches = [a_profiled_launch(cell=cells[place], position=place) for place in (0, 2)]

    made = section(a_study(*launches, scenario=scenario))

    assert [table.title for table in made.tables] == ["environment numpy", "environment pytorch"]


def test_cells_without_a_profile_are_listed_with_the_reason() -> None:
    skipped = replace(
        a_launch(status="skipped", reason="NumPy has no profiler.", fix="Its figures stand."),
        kind="profile",
    )

    made = section(a_study(skipped))

    assert made.tables == ()
    assert [one.reason for one in made.unprofiled] == [skipped.reason]


def test_only_traces_that_are_in_the_site_are_linked() -> None:
    result = a_study(*profiles())

    (table,) = section(result, a_scenario_profile_1="../traces/one.json.gz").tables

    assert table.traces == (("one CPU", "../traces/one.json.gz"),)


def test_a_profile_without_operators_is_all_outside_operators() -> None:
    launch = profiles()[0]
    worker = launch.workers[0]
    assert worker.profile is not None
    empty = replace(worker.profile, operators=(), outside_ns=worker.profile.step_ns)
    result = a_study(replace(launch, workers=(replace(worker, profile=empty),)))

    (table,) = section(result).tables

    assert [(row.name, row.times[0].share) for row in table.rows] == [
        ("outside operators", "100 %")
    ]
    assert "none,outside operators,,1000000,,,1.0,,,," in operators_csv(result)


def test_the_exports_contain_all_operators_and_the_rest() -> None:
    result = a_study(*profiles())

    lines = list(csv.DictReader(io.StringIO(operators_csv(result))))
    document = json.loads(cells_json(result, ()))

    assert [(line["axis_binding"], line["operator"]) for line in lines[:3]] == [
        ("none", "conv"),
        ("none", "add"),
        ("none", "outside operators"),
    ]
    assert lines[0]["call_mean_ns"] == "300000.0"
    assert sum(int(line["total_ns"]) for line in lines[:3]) == document["profiles"][0]["step_ns"]
    assert operators_csv(a_study()) == ""


SCENARIO = a_scenario()
UNBOUND_CELL, ONE_CPU_CELL = expand(SCENARIO, "a.yaml")


def a_night(name: str, conv_ns: int, day: int = 1, **changed: Any) -> tuple[Run, list[Launch]]:
    """A run that measured both cells and profiled the first of them."""
    run = replace(
        a_run(scenarios=(SCENARIO,), run_id=name, started_at=f"2026-01-{day:02}T00:00:00Z"),
        **changed,
    )
    return run, [
        a_launch(cell=UNBOUND_CELL, run=name),
        a_launch(cell=ONE_CPU_CELL, run=name, position=1),
        a_profiled_launch(an_operator("conv", conv_ns), cell=UNBOUND_CELL, position=2),
    ]


def latest(records: Sequence[tuple[Run, Sequence[Launch]]]) -> ScenarioResult:
    (result,) = latest_results(records)
    return result


def section_of(records: Sequence[tuple[Run, Sequence[Launch]]]) -> Content:
    made = operators(latest(records), traces={})
    assert made is not None
    return made


def rows_of(made: Content) -> dict[str, tuple[str, str]]:
    (table,) = made.tables
    return {
        row.name: (row.times[0].time, row.times[0].ends)
        for row in (*table.rows, *table.phases, *table.sums)
    }


def test_a_single_profile_has_no_range_and_its_table_says_one_launch() -> None:
    rows = rows_of(section_of([a_night("r1", 600_000)]))

    assert rows["conv"] == ("600", "")
    assert rows["one step, profiled in one launch"] == ("700", "")


def test_a_measured_step_has_its_interval() -> None:
    run, launches = a_night("r1", 600_000)
    second = a_launch(cell=UNBOUND_CELL, run="r1", block=1)

    rows = rows_of(section_of([(run, [*launches, second])]))

    assert rows["median step, measured"] == ("1,000", "1,000–1,000")


def with_workers(name: str, *steps: Sequence[Operator]) -> tuple[Run, list[Launch]]:
    """A run whose profiled launch has a worker with each of these profiles."""
    run, (*measured, _) = a_night(name, 600_000)
    launches = [a_profiled_launch(*step, cell=UNBOUND_CELL, position=2) for step in steps]
    workers = (replace(launch.workers[0], slot=slot) for slot, launch in enumerate(launches))
    return run, [*measured, replace(launches[0], workers=tuple(workers))]


def test_workers_of_one_launch_give_the_minimum_and_maximum() -> None:
    steps = [[an_operator("conv", conv_ns)] for conv_ns in (600_000, 500_000, 650_000)]

    rows = rows_of(section_of([with_workers("r1", *steps)]))

    # The figure is the first worker's, so that the column adds up.
    assert rows["conv"] == ("600", "500 … 650")
    assert rows["outside operators"] == ("100", "")
    assert rows["one step, profiled in one launch"] == ("700", "600 … 750")


def test_an_operator_that_a_worker_lacks_counts_as_zero_there() -> None:
    conv, add = an_operator("conv", 600_000), an_operator("add", 300_000)

    rows = rows_of(section_of([with_workers("r1", [conv, add], [conv])]))

    assert rows["add"] == ("0.30", "0.00 … 0.30")


def test_the_exports_contain_the_minimum_and_maximum() -> None:
    steps = [[an_operator("conv", conv_ns)] for conv_ns in (600_000, 500_000, 650_000)]
    result = latest([with_workers("r1", *steps)])

    conv, outside = csv.DictReader(io.StringIO(operators_csv(result)))
    (profile,) = json.loads(cells_json(result, ()))["profiles"]

    ends = ("total_ns", "total_low_ns", "total_high_ns")
    assert [conv[name] for name in ends] == ["600000", "500000", "650000"]
    # Where all say the same there are no ends.
    assert [outside[name] for name in ends] == ["100000", "", ""]
    assert [profile["operators"][0][name] for name in ends] == [600_000, 500_000, 650_000]
    assert profile["others_like_it"] == 2
