"""Specifies a cell's throughput, and its share of what its cores can do."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import CellResult
from corebound.analysis.throughput import peak_share_text, throughput
from corebound.analysis.wording import TOO_WIDE
from corebound.machine.identity import Host
from corebound.scenario.models import Scenario
from corebound.stats.intervals import Interval
from corebound.stats.launch_summary import summarise
from support.build import (
    a_cell,
    a_host,
    a_launch,
    a_machine,
    a_peak,
    a_placement,
    a_scenario,
    a_worker,
)
from support.texts import in_order

GEMM = a_scenario(workload="gemm", environment="numpy", matrix={})


def a_cell_result(
    work: dict[str, float], *, workers: int = 1, cpus: tuple[int, ...] = (0, 1), **cell_: Any
) -> CellResult:
    """One cell, three launches, every iteration of a millisecond."""
    cell = replace(a_cell(), workers=workers, **cell_)
    launches = tuple(
        a_launch(
            cell=cell,
            block=block,
            placement=a_placement(cpus=cpus),
            workers=tuple(replace(a_worker(slot=slot), work=work) for slot in range(workers)),
        )
        for block in range(3)
    )
    return CellResult(
        cell=cell,
        launches=launches,
        summary=summarise(cell, launches, "auto"),
        baseline=None,
        comparison=None,
        equivalent_cell=None,
    )


def shown(result: CellResult, scenario: Scenario = GEMM, host: Host | None = None) -> str:
    """The throughput, and its share of the peak where one is known."""
    of_peak = peak_share_text(result, scenario, host or a_machine())
    return ", ".join(filter(None, (throughput(result).value, of_peak)))


def test_throughput_is_shown_per_second_in_the_counted_unit() -> None:
    # 16 images a millisecond.
    assert shown(a_cell_result({"images": 16})) == "16,000 images/s"


def test_floating_point_operations_are_shown_in_billions_with_the_share_of_the_peak() -> None:
    # 128·10⁶ in a millisecond are 128·10⁹ a second, of 2 × 128.
    said = shown(a_cell_result({"flop": 128e6}))
    assert in_order(said, "128 GFLOP/s", "50 %", "2 cores", "32-bit")


def test_the_peak_is_that_of_the_cores_the_cell_was_placed_on() -> None:
    assert in_order(shown(a_cell_result({"flop": 64e6}, cpus=(0,))), "50 %", "1 core's", "32-bit")


def test_two_cpus_of_a_core_are_one_core() -> None:
    # CPUs 0 and 2 are siblings.
    host = a_machine(topology=a_host(cpus_per_core=2))

    assert "1 core's" in shown(a_cell_result({"flop": 1e6}, cpus=(0, 2)), host=host)


def test_float64_has_half_the_lanes() -> None:
    result = a_cell_result({"flop": 64e6}, parameters=(("dtype", "float64"),))

    assert in_order(shown(result), "50 %", "2 cores", "64-bit")


def test_a_value_above_the_peak_is_shown_unchanged() -> None:
    assert in_order(shown(a_cell_result({"flop": 384e6})), "384 GFLOP/s", "150 %")


@pytest.mark.parametrize(
    ("result", "scenario", "host"),
    [
        (a_cell_result({"flop": 2e6}), GEMM, replace(a_machine(), peak=None)),
        (a_cell_result({"flop": 2e6}), GEMM, replace(a_machine(), peak=a_peak(clock_hz=None))),
        # The CPUs' peak says nothing of a GPU.
        (a_cell_result({"flop": 2e6}, gpus=1), GEMM, a_machine()),
        (a_cell_result({"flop": 2e6}, parameters=(("dtype", "bfloat16"),)), GEMM, a_machine()),
        # A function of the user's may compute with any type.
        (a_cell_result({"flop": 2e6}), a_scenario(workload="m:f", matrix={}), a_machine()),
    ],
)
def test_without_a_peak_for_that_work_no_share_is_shown(
    result: CellResult, scenario: Scenario, host: Host
) -> None:
    assert shown(result, scenario, host) == "2.00 GFLOP/s"


def test_a_throughput_has_the_bounds_of_its_median() -> None:
    result = a_cell_result({"images": 16})
    summary = result.summary
    # 1 ms, surely between 0.8 ms and 1.25 ms.
    bounded = replace(summary, interval=Interval(low=0.8e6, high=1.25e6, confidence=0.95))

    found = throughput(replace(result, summary=bounded))

    assert (found.value, found.ends) == ("16,000 images/s", "12,800–20,000")


def test_an_infinite_bound_of_a_median_gives_no_throughput_interval() -> None:
    result = a_cell_result({"flop": 128e6})
    bounded = replace(result.summary, interval=Interval(low=0.5e6, high=math.inf, confidence=0.95))

    found = throughput(replace(result, summary=bounded))

    assert found.ends == TOO_WIDE


def test_the_work_of_all_workers_is_added() -> None:
    assert shown(a_cell_result({"tokens": 1}, workers=4)) == "4,000 tokens/s"


def test_a_workload_that_does_not_count_work_has_no_throughput() -> None:
    assert shown(a_cell_result({})) == ""
