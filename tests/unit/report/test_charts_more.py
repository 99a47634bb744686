"""Charts of a scenario's page: scaling and its ideal, launches as dots, a placement drawn."""

from __future__ import annotations

import math
import re

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_studies
from corebound.analysis.wording import full_name
from corebound.report.charts.axis import linear_axis
from corebound.report.charts.lines import ScalingCurve, ScalingPoint, scaling_svg
from corebound.report.charts.strips import dots_svg
from corebound.report.charts.topology import topology_boxes, topology_html
from corebound.report.scenario.launches import launch_variation
from corebound.report.scenario.scaling import scaling
from corebound.report.scenario.threads import cpu_affinities
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, a_worker
from support.report_sample import a_sample


def a_study(times_ms: dict[str, float]) -> ScenarioResult:
    scenario = a_scenario(
        matrix={"binding": ["none"], "threads": [int(number) for number in times_ms]},
        baseline={"binding": "none", "threads": int(next(iter(times_ms)))},
    )
    launches = []
    for block in range(3):
        for position, cell in enumerate(expand(scenario, "a.yaml")):
            wall_ns = (round(times_ms[dict(cell.axes)["threads"]] * 1e6),) * 40
            worker = replace(a_worker(), wall_ns=wall_ns, cpu_ns=wall_ns)
            launches.append(a_launch(cell=cell, block=block, position=position, workers=(worker,)))
    (study,) = latest_studies([(a_run(scenarios=(scenario,)), tuple(launches))])
    return study


def test_a_setting_that_halves_its_time_with_twice_the_threads_is_ideal() -> None:
    found = scaling(a_study({"1": 8.0, "2": 4.0, "4": 4.0}))

    assert found is not None
    assert [row.point.threads for row in found.rows] == [1, 2, 4]
    assert [row.efficiency for row in found.rows] == pytest.approx([1.0, 1.0, 0.5])
    # The one with the fewest threads is measured beside each.
    assert [row.command.line.count("--only") for row in found.rows] == [1, 2, 2]
    assert all(row.interval is not None for row in found.rows)
    assert [point.speed for point in found.curves[0].points] == pytest.approx([1.0, 2.0, 2.0])


def test_two_numbers_of_threads_are_no_curve() -> None:
    assert scaling(a_study({"1": 8.0, "2": 4.0})) is None


def test_the_ideal_begins_at_the_fewest_threads_and_leaves_at_the_top() -> None:
    curve = ScalingCurve(
        mode="m-none", dash=0, points=(ScalingPoint(threads=1, speed=1, low=None, high=None),)
    )

    svg = scaling_svg([curve], linear_axis(1, 4), linear_axis(0, 2), "<says>")

    (ideal,) = re.findall(r'class="rule" d="M([^"]*)"', svg)
    assert ideal.split("L")[0] == "0.0 500.0"
    # At twice the threads, a third of the way from 1 to 4, it is at twice the speed.
    assert ideal.split("L")[-1] == "333.3 0.0"
    assert "&lt;says&gt;" in svg


def test_every_launch_is_a_dot_within_the_row() -> None:
    svg = dots_svg([1.0, 2.0, 99.0], 1.5, linear_axis(1, 2), "m-none")

    (dots,) = re.findall(r'class="spot m-none" d="([^"]*)"', svg)
    assert re.findall(r"M(\d+) ", dots) == ["0", "1000", "1000"]


def test_the_dots_are_of_the_launches_that_count_and_the_fastest_setting_is_first() -> None:
    (study,) = latest_studies([a_sample()])

    found = launch_variation(study)

    assert found is not None
    by_name = {full_name(row.cell.cell): row for row in found.rows}
    # One of its six launches is invalid.
    assert len(by_name["one node, one thread a core"].ratios) == 5
    # The geometric mean of the ratios to the geometric mean is 1.
    assert math.prod(by_name["one node, 2 threads"].ratios) == pytest.approx(1.0)
    assert full_name(found.rows[-1].cell.cell).startswith("one CPU")
    # As numbers are set: with a minus, not a hyphen.
    assert {tick.text[0] for tick in found.ticks} == {"\N{MINUS SIGN}", "0", "+"}


def test_the_cpus_of_the_best_setting_are_marked_on_the_machine() -> None:
    (study,) = latest_studies([a_sample()])

    best, *_ = cpu_affinities(study)

    cell = study.winner.cell if study.winner else None
    assert cell is not None
    assert cell.placement is not None
    drawn = topology_html(best.boxes)
    wanted = sorted(int(cpu) for slot in cell.placement.slots for cpu in slot.cpus)
    assert sorted(map(int, re.findall(r'"cpu taken"><span>(\d+)', drawn))) == wanted


def test_a_machine_alone_has_no_cpu_marked() -> None:
    run, _ = a_sample()

    assert "taken" not in topology_html(topology_boxes(run.host.topology))
