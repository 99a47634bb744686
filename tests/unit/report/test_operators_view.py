"""Operators on the page: side by side, adding up, and who stands out."""

from __future__ import annotations

import csv
import io
import json

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_studies
from corebound.analysis.wording import plain
from corebound.records.launch_record import Launch
from corebound.records.telemetry import Disturbance
from corebound.report.downloads import cells_json, operators_csv
from corebound.report.scenario.operators import Operators, operators
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.stats.launch_summary import summarise_launch
from support.build import a_launch, a_profiled_launch, a_run, a_scenario, a_worker, an_operator

NONE, ONE_CPU = "binding=none", "binding=one-cpu"


def a_study(*profiles: Launch, scenario: Scenario | None = None) -> ScenarioResult:
    scenario = scenario or a_scenario()
    measured = [
        a_launch(cell=cell, block=block, position=place, workers=(a_worker(),))
        for place, cell in enumerate(expand(scenario, "a.yaml"))
        for block in range(2)
    ]
    return latest_studies([(a_run(scenarios=(scenario,)), (*measured, *profiles))])[0]


def profiles(*, add_ns: int = 300_000, conv_ns: int = 600_000) -> tuple[Launch, Launch]:
    none, one_cpu = expand(a_scenario(), "a.yaml")
    return (
        a_profiled_launch(an_operator(), an_operator("add", 300_000), cell=none),
        a_profiled_launch(
            an_operator("conv", conv_ns), an_operator("add", add_ns), cell=one_cpu, position=1
        ),
    )


def section(study: ScenarioResult, **traces: str) -> Operators:
    made = operators(study, traces={name.replace("_", "-"): one for name, one in traces.items()})
    assert made is not None
    return made


def test_without_a_profile_there_is_no_section() -> None:
    assert operators(a_study(), traces={}) is None


def test_a_profile_enters_no_figure() -> None:
    study = a_study(*profiles())

    assert [launch.kind for launch in study.launches] == ["measure"] * 4
    assert [cell.summary.attempts for cell in study.cells] == [2, 2]
    with pytest.raises(ValueError, match="was profiled"):
        summarise_launch(study.profiles[0], "auto")


def test_cells_stand_side_by_side_the_baseline_first() -> None:
    (table,) = section(a_study(*profiles(add_ns=900_000))).tables

    assert [column.name for column in table.columns] == ["unbound", "one CPU"]
    rows = {row.name: [one.time for one in row.times] for row in table.rows}
    # The one that takes most in either cell comes first.
    assert list(rows) == ["add", "conv", "outside operators"]
    assert rows["add"] == ["0.30", "0.90"]
    assert rows["outside operators"] == ["0.10", "0.10"]


def test_a_column_adds_up_to_its_step() -> None:
    (table,) = section(a_study(*profiles())).tables

    step = table.sums[0].times[0]
    assert (step.time, step.share) == ("1.00", "100 %")
    assert sum(float(row.times[0].time) for row in table.rows) == pytest.approx(1.0)


def test_more_than_twelve_types_are_summed_up() -> None:
    many = [an_operator(f"type{index:02}", 1_000_000 - index) for index in range(20)]
    cell = expand(a_scenario(), "a.yaml")[0]

    (table,) = section(a_study(a_profiled_launch(*many, cell=cell))).tables

    assert [row.name for row in table.rows[11:]] == [
        "type11",
        "8 other types",
        "outside operators",
    ]


def test_an_operator_that_takes_more_than_half_is_named() -> None:
    made = section(a_study(profiles()[0]))

    assert made.title == "Where the time goes: 60 % into conv"
    assert plain(made.tables[0].notes[0]) == "conv alone takes 60 % of the step."


def test_the_operator_that_makes_the_difference_is_named() -> None:
    made = section(a_study(*profiles(add_ns=2_300_000, conv_ns=700_000)))

    assert plain(made.tables[0].notes[-1]) == (
        "A step with one CPU takes 2.10 ms more; 2.00 ms of that is add."
    )


def of_disturbed(launch: Launch, share: float = 0.45) -> Launch:
    found = Disturbance(share=share, by=("foreign load",), evidence=("so it was",))
    return replace(launch, disturbance=found)


def test_a_disturbed_profile_is_marked_and_no_sentence_rests_on_it() -> None:
    none, one_cpu = profiles(add_ns=900_000)
    (table,) = section(a_study(none, of_disturbed(one_cpu))).tables

    assert [column.whole for column in table.columns] == ["unbound", "one CPU, disturbed"]
    parts = [plain(note) for note in table.notes]
    assert parts[0] == "The profile of one CPU was disturbed from outside and is not interpreted."
    assert not [note for note in parts[1:] if "one CPU" in note]
    (slightly,) = section(a_study(none, of_disturbed(one_cpu, 0.05))).tables
    assert [column.whole for column in slightly.columns] == ["unbound", "one CPU"]


def test_a_disturbed_baseline_s_profile_heads_nothing() -> None:
    none, one_cpu = profiles()

    assert section(a_study(none, one_cpu)).title != "Where the time goes"
    made = section(a_study(of_disturbed(none), one_cpu))
    assert made.title == "Where the time goes"
    assert [plain(note) for note in made.tables[0].notes][1:] == [
        "conv alone takes 60 % of the step with one CPU."
    ]


def test_a_profile_that_was_made_again_is_not_missing() -> None:
    none, one_cpu = profiles()
    found = Disturbance(share=0.45, by=("steal",), evidence=("so it was",), refused=True)
    refused = replace(none, id="a", status="invalid", reason="it was.", disturbance=found)
    launch = replace(none, id="b", attempt=1)

    assert section(a_study(refused, one_cpu, launch)).unprofiled == ()
    (missing,) = section(a_study(replace(refused, fix="It is launched again."), one_cpu)).unprofiled
    assert missing.fix == "The run ended before it was launched again."


def test_phases_are_shown_where_the_framework_tells_them() -> None:
    cell = expand(a_scenario(), "a.yaml")[0]
    launch = a_profiled_launch(cell=cell, phases={"forward": 500_000, "backward": 400_000})

    (table,) = section(a_study(launch)).tables

    assert [(row.name, row.times[0].share) for row in table.phases] == [
        ("of it forward", "50 %"),
        ("of it backward", "40 %"),
    ]


def test_each_baseline_has_a_table_named_by_what_sets_it_apart() -> None:
    scenario = a_scenario(
        workload="gemm",
        matrix={"environment": ["numpy", "pytorch"], "binding": ["none", "one-cpu"]},
        baseline={"binding": "none"},
    )
    cells = expand(scenario, "a.yaml")
    launches = [a_profiled_launch(cell=cells[place], position=place) for place in (0, 2)]

    made = section(a_study(*launches, scenario=scenario))

    assert [table.title for table in made.tables] == ["environment numpy", "environment pytorch"]


def test_what_could_not_be_profiled_says_why() -> None:
    skipped = replace(
        a_launch(status="skipped", reason="NumPy has no profiler.", fix="Its figures stand."),
        kind="profile",
    )

    made = section(a_study(skipped))

    assert made.tables == ()
    assert [one.reason for one in made.unprofiled] == ["NumPy has no profiler."]


def test_only_traces_that_are_in_the_site_are_linked() -> None:
    study = a_study(*profiles())

    (table,) = section(study, a_scenario_profile_1="../traces/one.json.gz").tables

    assert table.traces == (("one CPU", "../traces/one.json.gz"),)


def test_a_profile_in_which_nothing_ran_is_all_outside() -> None:
    launch = profiles()[0]
    worker = launch.workers[0]
    assert worker.profile is not None
    empty = replace(worker.profile, operators=(), outside_ns=worker.profile.step_ns)
    study = a_study(replace(launch, workers=(replace(worker, profile=empty),)))

    (table,) = section(study).tables

    assert [(row.name, row.times[0].share) for row in table.rows] == [
        ("outside operators", "100 %")
    ]
    assert "none,outside operators,,1000000,,,1.0,,,," in operators_csv(study)


def test_the_exports_hold_every_operator_and_what_is_left() -> None:
    study = a_study(*profiles())

    lines = list(csv.DictReader(io.StringIO(operators_csv(study))))
    document = json.loads(cells_json(study, ()))

    assert [(line["axis_binding"], line["operator"]) for line in lines[:3]] == [
        ("none", "conv"),
        ("none", "add"),
        ("none", "outside operators"),
    ]
    assert lines[0]["call_mean_ns"] == "300000.0"
    assert sum(int(line["total_ns"]) for line in lines[:3]) == document["profiles"][0]["step_ns"]
    assert operators_csv(a_study()) == ""


def test_steps_are_drawn_as_piles_of_their_operators_that_fill_the_longest() -> None:
    (table,) = section(a_study(*profiles(conv_ns=1_600_000))).tables

    (by_operator,) = table.stacked_bars
    one, two = by_operator.rows
    assert by_operator.key == (
        ("h0", "conv"), ("h1", "add"), ("gap", "outside operators")
    )  # fmt: skip
    assert sum(length for _, length in two.pieces) == pytest.approx(100, abs=0.1)
    assert sum(length for _, length in one.pieces) == pytest.approx(50, abs=0.1)
    assert one.pieces[0] == ("h0", 30.0)


def test_phases_are_a_pile_of_their_own_for_those_that_tell_them() -> None:
    none, one_cpu = expand(a_scenario(), "a.yaml")
    trained = a_profiled_launch(cell=none, phases={"forward": 600_000, "backward": 300_000})

    (table,) = section(a_study(trained, a_profiled_launch(cell=one_cpu, position=1))).tables

    _, by_phase = table.stacked_bars
    (row,) = by_phase.rows
    assert row.pieces == (("h0", 60.0), ("h1", 30.0), ("gap", 10.0))


def test_a_call_has_its_mean_and_its_ends() -> None:
    (table,) = section(a_study(*profiles())).tables

    name, (operator, *_) = table.calls[0]
    assert name == "conv"
    assert operator is not None
    assert (operator.mean_ns, operator.min_ns, operator.max_ns) == (300_000, 270_000, 330_000)
