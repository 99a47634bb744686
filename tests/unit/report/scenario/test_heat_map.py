"""The heat map: which axes it has, and the state of each of its cells."""

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.records.launch_record import Launch
from corebound.report.elements import Content
from corebound.report.scenario.heat_map import HeatCell, heat_map
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from support.build import a_launch, a_placement, a_run, a_scenario, timed_blocks
from support.duplicates import result_with_duplicates

SCENARIO = a_scenario(
    matrix={"binding": ["none", "one-cpu", "smt-siblings"], "threads": [1, 2]},
    baseline={"binding": "none", "threads": 2},
)
TIMES_MS = {
    "binding=none,threads=1": 16.0,
    "binding=none,threads=2": 10.0,
    "binding=one-cpu,threads=1": 8.0,
    "binding=one-cpu,threads=2": 10.0,
}


def launches_of(cell: Cell, milliseconds: float) -> list[Launch]:
    """Six launches on one CPU, in which each cell has threads of its own."""
    threads = sum(map(ord, cell.key))
    return timed_blocks(
        cell, milliseconds, placement=a_placement(cpus=(0,), threads=threads, bound=False)
    )


def a_result(*, but: str = "") -> ScenarioResult:
    cells = expand(SCENARIO, "s.yaml")
    launches = [
        launch
        for cell in cells
        if cell.key in TIMES_MS and cell.key != but
        for launch in launches_of(cell, TIMES_MS[cell.key])
    ]
    launches += [
        a_launch(cell=cell, status="skipped", reason="no core of this host has two CPUs.")
        for cell in cells
        if cell.binding.mode == "smt-siblings"
    ]
    return latest_results([(a_run(scenarios=(SCENARIO,)), tuple(launches))])[0]


def map_of(result: ScenarioResult) -> Content:
    found = heat_map(result)
    assert found is not None
    return found


def cells_of(found: Content) -> dict[tuple[str, str], HeatCell]:
    return {
        (row, column): cell
        for row, cells in found.rows
        for column, cell in zip(found.columns, cells, strict=True)
    }


def test_bindings_are_rows_and_threads_columns_in_the_order_of_the_file() -> None:
    found = map_of(a_result())

    assert found.title == "Binding × threads"
    assert [row for row, _ in found.rows] == ["unbound", "one CPU", "SMT siblings"]
    assert found.columns == ("1", "2")
    assert found.lead == "Speed against unbound, 2 threads."


def test_each_cell_shows_its_verdict_and_the_skipped_ones_their_reason() -> None:
    cells = cells_of(map_of(a_result()))

    assert {place: (cell.state, cell.text, cell.note) for place, cell in cells.items()} == {
        ("unbound", "1"): ("slower", "1.60×", ""),
        ("unbound", "2"): ("baseline", "1×", "baseline"),
        ("one CPU", "1"): ("faster", "1.25×", "best"),
        ("one CPU", "2"): ("equivalent", "1.00×", ""),
        ("SMT siblings", "1"): ("skipped", "skipped", "no core of this host has two CPUs"),
        ("SMT siblings", "2"): ("skipped", "skipped", "no core of this host has two CPUs"),
    }
    assert cells["unbound", "1"].name == "unbound, 1 thread: 1.60× slower"
    assert cells["one CPU", "1"].is_best


def test_an_inconclusive_ratio_is_called_so_and_not_nearly_equal() -> None:
    cells = expand(SCENARIO, "s.yaml")
    # One launch each: 27 times as fast, without an interval.
    launches = [
        launches_of(cell, 270.0 if cell.key == "binding=none,threads=2" else 10.0)[0]
        for cell in cells
        if cell.key in TIMES_MS
    ]
    (result,) = latest_results([(a_run(scenarios=(SCENARIO,)), tuple(launches))])

    cell = cells_of(map_of(result))["one CPU", "1"]

    assert (cell.state, cell.sign, cell.text) == ("inconclusive", "?", "inconclusive")
    assert cell.note == "27× faster so far"
    assert cell.name == "one CPU, 1 thread: inconclusive, 27× faster so far"


def test_the_tint_grows_with_the_logarithm_of_the_ratio_in_both_directions() -> None:
    cells = cells_of(map_of(a_result()))

    # 8 + 60·ln 1.6 and 8 + 60·ln 1.25, a per cent each.
    assert (cells["unbound", "1"].tint, cells["one CPU", "1"].tint) == (36, 21)


def test_what_the_run_did_not_launch_is_not_run() -> None:
    cell = cells_of(map_of(a_result(but="binding=one-cpu,threads=2")))["one CPU", "2"]

    assert (cell.state, cell.text, cell.cell) == ("absent", "not run", None)


def test_a_duplicate_names_the_configuration_that_was_measured_for_it() -> None:
    cells = cells_of(map_of(result_with_duplicates(baseline={"binding": "none"})))

    assert (cells["one node", "2"].state, cells["one node", "2"].text) == ("duplicate", "= unbound")
    assert cells["unbound", "per-core"].text == "= 2 threads"
    assert cells["one node", "2"].cell == cells["unbound", "2"].cell


def test_one_axis_needs_no_map() -> None:
    result = result_with_duplicates(
        matrix={"binding": ["none", "one-cpu"]}, baseline={"binding": "none"}, duplicates={}
    )

    assert heat_map(result) is None


def test_a_cell_of_a_map_without_an_axis_is_the_fastest_of_its_configurations() -> None:
    scenario = a_scenario(
        matrix={"binding": ["none", "one-cpu"], "threads": [1, 2], "parameters": {"depth": [1, 2]}},
        parameters={"depth": 1},
        baseline={"binding": "none", "threads": 1, "parameters": {"depth": 1}},
    )
    factors = {"none": 1.0, "one-cpu": 2.0}
    launches = [
        launch
        for cell in expand(scenario, "s.yaml")
        for launch in launches_of(
            cell,
            10.0
            * factors[cell.binding.mode]
            * {"1": 1.0, "2": 3.0}[dict(cell.axes)["threads"]]
            * {"1": 1.0, "2": 0.9}[dict(cell.axes)["depth"]],
        )
    ]
    (result,) = latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])

    found = map_of(result)

    assert found.axes == ("binding", "threads")
    assert found.lead.endswith("for the fastest depth.")
    # 1/(2·3·0.9) of the speed with a depth of 2, less with 1.
    assert cells_of(found)["one CPU", "2"].text == "5.40×"
