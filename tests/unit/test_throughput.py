"""How much a cell gets done in a second."""

from __future__ import annotations

from dataclasses import replace

from build import a_cell, a_launch, a_worker
from corebound.report.view.study import CellStudy
from corebound.report.view.throughput import throughput
from corebound.stats.summary import summarise


def a_study(work: dict[str, float], *, workers: int = 1) -> CellStudy:
    """One cell, three launches, every iteration of a millisecond."""
    cell = replace(a_cell(), workers=workers)
    launches = tuple(
        a_launch(
            cell=cell,
            block=block,
            workers=tuple(replace(a_worker(slot=slot), work=work) for slot in range(workers)),
        )
        for block in range(3)
    )
    return CellStudy(
        cell=cell,
        launches=launches,
        summary=summarise(cell, launches, "auto"),
        baseline=None,
        comparison=None,
        twin=None,
    )


def test_work_is_shown_a_second_in_the_unit_it_was_counted_in() -> None:
    # 16 images a millisecond.
    assert throughput(a_study({"images": 16})) == "16,000 images/s"


def test_floating_point_operations_are_shown_in_billions() -> None:
    # 2·100³ in a millisecond are 2·10⁹ a second.
    assert throughput(a_study({"flop": 2e6})) == "2.00 GFLOP/s"


def test_all_workers_count() -> None:
    assert throughput(a_study({"tokens": 1}, workers=4)) == "4,000 tokens/s"


def test_a_workload_that_does_not_count_has_none() -> None:
    assert throughput(a_study({})) == ""
