"""Specifies the results of cells that were not launched because another one is the same."""

from corebound.analysis.change_history import build_change_history
from corebound.analysis.claims import judge_claims
from corebound.analysis.duplicate_names import long_names, short_names
from corebound.analysis.run_comparison import compare_runs
from corebound.scenario.cell import Binding, BindingMode
from corebound.stats.history.series import joined, series_of_run
from support.build import a_cell
from support.duplicates import DUPLICATES, result_with_duplicates
from support.known import known
from support.texts import in_order


def test_a_measured_cell_has_the_names_of_its_duplicates() -> None:
    result = result_with_duplicates()

    assert {cell.cell.label: [one.label for one in cell.duplicates] for cell in result.cells} == {
        "none, 2": ["none, per-core", "node, 2", "node, per-core"],
        "one-cpu, 2": [],
        "one-cpu, per-core": [],
    }


def test_a_duplicate_has_the_result_of_the_measured_cell() -> None:
    result = result_with_duplicates()

    found = {cell.label: result.find(cell) for cell in result.planned}

    assert found["node, per-core"] is found["none, 2"] is result.cells[0]


def test_a_cell_whose_baseline_is_a_duplicate_is_compared_with_the_measured_cell() -> None:
    result = result_with_duplicates(baseline={"binding": "none"})

    assert [
        (pair.cell.cell.label, pair.baseline.cell.label, pair.comparison.verdict)
        for pair in result.ranked
    ] == [("one-cpu, 2", "none, 2", "slower"), ("one-cpu, per-core", "none, 2", "slower")]


def test_duplicates_are_not_missing_from_a_run() -> None:
    assert result_with_duplicates().incomplete is None

    unfinished = known(result_with_duplicates(launches=0).incomplete)

    assert (unfinished.never, unfinished.of) == (3, 3)


def test_claims_about_duplicates_are_judged_by_the_measured_cell() -> None:
    claims = judge_claims(
        result_with_duplicates(
            claims=[
                {
                    "says": "A node is faster than a CPU.",
                    "faster": {"binding": "node"},
                    "than": {"binding": "one-cpu"},
                },
                {
                    "says": "A node is faster than no binding.",
                    "faster": {"binding": "node", "threads": 2},
                    "than": {"binding": "none"},
                },
            ]
        )
    )

    assert [claim.judgement for claim in claims] == ["reproduces", "reproduces", "not measured"]
    assert ["same" in claim.detail for claim in claims] == [False, False, True]


def test_a_duplicate_that_an_earlier_run_measured_is_not_missing_from_the_later_run() -> None:
    before = result_with_duplicates(duplicates={}, run_id="r0")
    after = result_with_duplicates()

    compared = compare_runs((before.run, before.launches), (after.run, after.launches))

    assert [cell.cell for cell in compared.cells] == [cell.cell.key for cell in after.cells]
    assert compared.only_in_one == ()


def test_a_series_that_ends_because_its_cell_is_now_a_duplicate_is_no_failure() -> None:
    results = [
        result_with_duplicates(
            duplicates={} if day < 8 else DUPLICATES,
            run_id=f"r{day}",
            started_at=f"2026-01-{day:02}T03:04:05Z",
        )
        for day in range(1, 15)
    ]
    series = joined(one for result in results for one in series_of_run(result.run, result.launches))

    history = build_change_history(series, results[-1:])

    assert {len(one.points) for one in history.series} == {7, 14}
    assert (history.failing, history.news, history.early_warnings) == ({}, (), ())


MODES: tuple[BindingMode, ...] = ("none", "physical-cores", "node")


def test_names_that_share_values_are_joined() -> None:
    cells = [
        a_cell(axes=(("binding", mode), ("threads", threads)), binding=Binding(mode=mode))
        for mode in MODES
        for threads in ("2", "per-core")
    ]

    assert short_names(cells).split(", ") == ["none | physical-cores | node", "2 | per-core"]
    assert short_names(cells[:3]).split("; ") == ["none | physical-cores, 2", "none, per-core"]
    assert in_order(
        long_names(cells), "unbound", "physical cores", "one node", "2 threads", "per core"
    )
