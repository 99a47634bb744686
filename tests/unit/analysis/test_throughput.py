"""Specifies a cell's throughput, and its share of what its cores can do."""

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


SIBLINGS = a_machine(topology=a_host(cpus_per_core=2))
FLOAT64: dict[str, Any] = {"parameters": (("dtype", "float64"),)}


@pytest.mark.parametrize(
    ("result", "facts"),
    [
        # 16 images a millisecond; the work of all workers is added.
        (a_cell_result({"images": 16}), ("16,000 images/s",)),
        (a_cell_result({"tokens": 1}, workers=4), ("4,000 tokens/s",)),
        # 128·10⁶ in a millisecond are 128·10⁹ a second, of 2 × 128; float64 has half the lanes.
        (a_cell_result({"flop": 128e6}), ("128 GFLOP/s", "50 %", "2 cores", "32-bit")),
        (a_cell_result({"flop": 64e6}, **FLOAT64), ("50 %", "2 cores", "64-bit")),
        # The peak is that of the cores that the cell was placed on.
        (a_cell_result({"flop": 64e6}, cpus=(0,)), ("50 %", "1 core's", "32-bit")),
        # A value above the peak is shown unchanged.
        (a_cell_result({"flop": 384e6}), ("384 GFLOP/s", "150 %")),
    ],
)
def test_throughput_is_shown_per_second_with_its_share_of_the_peak(
    result: CellResult, facts: tuple[str, ...]
) -> None:
    assert in_order(shown(result), *facts)
    assert ("%" in shown(result)) == ("FLOP" in shown(result))


def test_two_cpus_of_a_core_are_one_core_and_without_work_there_is_no_throughput() -> None:
    # CPUs 0 and 2 are siblings.
    assert "1 core's" in shown(a_cell_result({"flop": 1e6}, cpus=(0, 2)), host=SIBLINGS)
    assert shown(a_cell_result({})) == ""


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


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    # 1 ms, surely between 0.8 ms and 1.25 ms; or no bound.
    [(0.8e6, 1.25e6, "12,800–20,000"), (0.5e6, math.inf, TOO_WIDE)],
)
def test_a_throughput_has_the_bounds_of_its_median(low: float, high: float, ends: str) -> None:
    result = a_cell_result({"images": 16})
    interval = Interval(low=low, high=high, confidence=0.95)

    found = throughput(replace(result, summary=replace(result.summary, interval=interval)))

    assert (found.value, found.ends) == ("16,000 images/s", ends)
