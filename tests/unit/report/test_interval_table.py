"""The interval table: what it draws, what it says of what it does not, and who is named."""

from __future__ import annotations

import pytest

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_studies
from corebound.analysis.wording import plain
from corebound.report.charts.axis import ratio_axis
from corebound.report.pages.overview import overview_page
from corebound.report.scenario.cells import ComparisonTable, comparison_table
from corebound.report.scenario.verdict import verdict_of
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from support.build import a_launch, a_placement, a_run, a_scenario, a_worker
from support.report_sample import NOW


def noisy(*ratios: float) -> ScenarioResult:
    """One CPU beside unbound, in one block each of these ratios."""
    cells = {cell.key: cell for cell in expand(a_scenario(), "a-scenario.yaml")}
    launches = [
        a_launch(
            cell=cells[key],
            block=block,
            workers=(a_worker(wall_ns=(wall_ns,) * 30),),
            placement=a_placement(cpus=cpus, bound=len(cpus) == 1),
        )
        for block, ratio in enumerate(ratios)
        for key, cpus, wall_ns in (
            ("binding=none", (0, 1), 10_000_000),
            ("binding=one-cpu", (0,), round(10_000_000 / ratio)),
        )
    ]
    return latest_studies([(a_run(), tuple(launches))])[0]


def table_of(study: ScenarioResult) -> ComparisonTable:
    table = comparison_table(study)
    assert table is not None
    return table


def test_the_axis_of_a_table_takes_in_the_pairs_behind_its_rows() -> None:
    # Thirty pairs of ±8 % leave an interval of some 3 % about 1.
    table = table_of(noisy(*[0.92, 1.08, 0.95, 1.05, 1.0] * 6))

    assert all(0 <= table.axis.share(dot) <= 1 for row in table.rows for dot in row.plot.dots)
    assert "beyond the axis" not in table.lead
    assert {row.note for row in table.rows} == {""}


def test_pairs_too_far_off_to_draw_are_counted_beside_their_setting() -> None:
    table = table_of(noisy(*[0.99, 1.01, 1.0, 0.98, 1.02] * 6, 3.0, 0.3))

    (row,) = (row for row in table.rows if row.plot.dots)
    assert row.note == "2 of 32 pairs beyond the axis: 0.30× to 3.00×"
    assert "How many pairs lie beyond the axis stands under a setting's name." in table.lead


def test_dots_leave_a_quarter_of_the_axis_to_what_they_are_behind() -> None:
    alone = ratio_axis([1.0], [(0.96, 1.04)], margin=0.02)
    axis = ratio_axis([1.0], [(0.96, 1.04)], margin=0.02, dots=[[0.5, 2.0]])

    assert axis.share(1.04) - axis.share(0.96) == pytest.approx(0.22, abs=0.03)
    assert axis.low < alone.low < alone.high < axis.high


def test_dots_of_a_ratio_too_far_off_to_draw_are_no_reason_to_press_the_others_together() -> None:
    estimates, intervals = [1.1, 1.2, 1.3, 0.02], [(1.08, 1.12), (1.18, 1.22), (1.28, 1.32)]

    axis = ratio_axis(estimates, intervals, margin=0.02, dots=[[1.1], [1.2], [1.3], [0.01, 0.03]])

    assert axis == ratio_axis(estimates, intervals, margin=0.02)


def measured(scenario: Scenario, *rows: tuple[str, tuple[int, ...], float]) -> ScenarioResult:
    """Eight launches each of (cell, its CPUs, milliseconds), half a per cent about them."""
    cells = {cell.key: cell for cell in expand(scenario, "a-scenario.yaml")}
    launches = [
        a_launch(
            cell=cells[key],
            block=block,
            workers=(a_worker(wall_ns=(round(ms * 1e6 * (1 + 0.005 * (-1) ** block)),) * 30),),
            placement=a_placement(cpus=cpus, bound="none" not in key),
        )
        for block in range(8)
        for key, cpus, ms in rows
    ]
    return latest_studies([(a_run(scenarios=(scenario,)), tuple(launches))])[0]


def test_the_nearest_named_is_none_that_came_to_the_baseline_itself() -> None:
    bindings = a_scenario(matrix={"binding": ["none", "one-cpu", "physical-cores"]})
    result = measured(
        bindings,
        ("binding=none", (0, 1), 10.0),
        ("binding=one-cpu", (0,), 10.1),
        ("binding=physical-cores", (0, 1), 10.0),
    )

    assert "Nearest of those that differ from it is one CPU at 0.99×" in plain(
        verdict_of(result)[1]
    )
    (row,) = overview_page([result], now=NOW).rows
    assert row.best is not None
    assert row.best.name == "one CPU"


def test_what_is_as_the_baseline_itself_does_not_keep_the_others_from_all_being_slower() -> None:
    bindings = a_scenario(matrix={"binding": ["none", "one-cpu", "physical-cores"]})
    rows = (
        ("binding=none", (0, 1), 10.0),
        ("binding=one-cpu", (0,), 17.0),
        ("binding=physical-cores", (0, 1), 10.0),
    )

    assert plain(verdict_of(measured(bindings, *rows))[0]) == (
        "No setting beats unbound here: each that differs from it is slower."
    )
    assert plain(verdict_of(measured(bindings, *rows[:2]))[0]) == (
        "No setting beats unbound here: every other one is slower."
    )


def test_the_baseline_once_more_is_named_where_nothing_else_was_compared() -> None:
    bindings = a_scenario(matrix={"binding": ["none", "physical-cores"]})
    result = measured(
        bindings, ("binding=none", (0, 1), 10.0), ("binding=physical-cores", (0, 1), 10.0)
    )

    assert "Nearest is physical cores at 1.00×" in plain(verdict_of(result)[1])


def test_the_baseline_once_more_wins_no_headline_and_its_row_says_what_it_can_be() -> None:
    threads = a_scenario(
        matrix={"binding": ["none"], "threads": ["default", "per-core"]},
        baseline={"threads": "default"},
    )
    result = measured(
        threads,
        ("binding=none,threads=default", (0, 1), 10.6),
        ("binding=none,threads=per-core", (0, 1), 10.0),
    )

    assert result.winner is None
    assert plain(verdict_of(result)[0]).startswith("No setting is clearly faster")
    assert "taken alone" not in plain(verdict_of(result)[1])
    (row,) = (row for row in table_of(result).rows if row.cell.baseline)
    assert (row.verdict.word, row.verdict.tone) == ("faster", "plain")
    assert "the difference is noise, or the variable itself" in row.note
