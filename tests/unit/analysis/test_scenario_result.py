"""Specifies the comparison of two cells of a scenario, whichever of them is the baseline."""

import pytest

from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario, compare_cells
from support.known import known
from support.report_sample import a_sample


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    run, launches = a_sample()
    return analyse_scenario(run, run.scenarios[0], launches)


def test_a_cell_and_its_baseline_compare_as_in_the_table(result: ScenarioResult) -> None:
    for row in result.ranked:
        assert compare_cells(result, row.cell.cell, row.baseline.cell) is row.comparison


def test_swapping_a_cell_and_its_baseline_gives_the_reciprocal(result: ScenarioResult) -> None:
    opposite = {"faster": "slower", "slower": "faster"}
    for row in result.ranked:
        swapped = known(compare_cells(result, row.baseline.cell, row.cell.cell))

        assert swapped.speedup_ratio == pytest.approx(1 / row.comparison.speedup_ratio)
        verdict = row.comparison.verdict
        assert swapped.verdict == opposite.get(verdict, verdict)
        if row.comparison.interval is not None:
            # Both are found by iteration.
            assert known(swapped.interval).low == pytest.approx(
                1 / row.comparison.interval.high, 1e-4
            )
            assert known(swapped.interval).high == pytest.approx(
                1 / row.comparison.interval.low, 1e-4
            )


def test_a_cell_is_not_compared_with_itself(result: ScenarioResult) -> None:
    cell = result.cells[0].cell

    assert compare_cells(result, cell, cell) is None
