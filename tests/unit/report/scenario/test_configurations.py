"""The table of configurations: axis, rows, notes, and what is folded below a row."""

from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.fairness import checks
from corebound.analysis.run_comparison import RunComparison, compare_runs
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import full_name, plain
from corebound.present.compare import compare_table
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from corebound.report.charts.axis import ratio_axis
from corebound.report.inputs import PageContext
from corebound.report.pages.overview import overview_page
from corebound.report.scenario.configurations import configurations, within
from corebound.report.scenario.launches import typical_launches
from corebound.report.scenario.threads import thread_activity
from corebound.report.scenario.verdict import verdict_of
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from support.build import (
    a_launch,
    a_placement,
    a_run,
    a_scenario,
    a_thread,
    a_worker,
    timed,
    timed_blocks,
)
from support.report_sample import NOW, a_sample, pages_of
from support.tables import column


def noisy(*ratios: float) -> ScenarioResult:
    """One CPU beside unbound, in one block each of these ratios."""
    cells = {cell.key: cell for cell in expand(a_scenario(), "a-scenario.yaml")}
    launches = [
        timed(ms, cell=cells[key], block=block, placement=a_placement(cpus=cpus, bound=bound))
        for block, ratio in enumerate(ratios)
        for key, cpus, bound, ms in (
            ("binding=none", (0, 1), False, 10.0),
            ("binding=one-cpu", (0,), True, 10.0 / ratio),
        )
    ]
    return latest_results([(a_run(), tuple(launches))])[0]


def test_the_axis_includes_the_pairs_behind_each_row() -> None:
    # Thirty pairs of ±8 % leave an interval of some 3 % about 1.
    table = configurations(noisy(*[0.92, 1.08, 0.95, 1.05, 1.0] * 6))

    comparisons = [row.cell.comparison for row in table.rows if row.cell.comparison]
    pairs = [ratio for comparison in comparisons for _, ratio in comparison.per_block]
    assert len(pairs) == 30
    assert all(map(table.axis.holds, pairs))
    assert {row.notes for row in table.rows} == {()}


def test_pairs_beyond_the_axis_are_counted_below_the_configuration() -> None:
    table = configurations(noisy(*[0.99, 1.01, 1.0, 0.98, 1.02] * 6, 3.0, 0.3))

    (row,) = (row for row in table.rows if row.cell.comparison)
    assert row.notes == ("2 of 32 pairs off the axis; all pairs: 3.33× slower to 3.00× faster",)


def test_a_launch_that_the_budget_ended_says_how_much_slower_it_is_at_least() -> None:
    baseline, other = expand(a_scenario(), "a-scenario.yaml")[:2]
    ended = replace(
        a_launch(cell=other, status="dropped", reason="too slow for this budget."),
        share_s=5.0,
        least_iteration_ns=4_000_000_000,
    )
    measured = timed(10.0, cell=baseline)
    (result,) = latest_results([(a_run(), (measured, ended))])

    (row,) = configurations(result).unmeasured
    bound = "at least 400× slower than the baseline"
    assert row.reason == f"{bound}; too slow for this budget."
    assert bound in plain(verdict_of(result)[1])


def test_ids_that_would_be_the_same_differ() -> None:
    scenario = a_scenario(
        matrix={"binding": ["none"], "parameters": {"name": ["a.b", "a-b"]}},
        parameters={"name": "a.b"},
    )
    launches = [a_launch(cell=cell) for cell in expand(scenario, "s.yaml")]
    (result,) = latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])

    assert len(set(configurations(result).anchors.values())) == 2


def test_the_launches_of_a_row_are_drawn_beside_those_of_its_baseline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # So that the sample's slower rows have a chart, too.
    monkeypatch.setattr("corebound.report.scenario.configurations._MOST_POINTS", 180)
    rows = configurations(latest_results([a_sample()])[0]).rows
    by_name = {full_name(row.cell.cell): row.launches for row in rows}

    drawn, alone = by_name["one node, one thread per core"], by_name["unbound, default threads"]

    assert drawn is not None
    assert alone is not None
    # One of its six launches is invalid, and no pair has it.
    assert (len(drawn.own), len(drawn.baseline), len(drawn.paired)) == (5, 6, 5)
    assert drawn.baseline == alone.own
    assert all(drawn.across.holds(point.value) for point in (*drawn.own, *drawn.baseline))


def test_of_many_configurations_the_first_have_charts_of_their_launches() -> None:
    rows = configurations(latest_results([a_sample()])[0]).rows

    kept = [row.launches is not None for row in within(50, rows)]

    # Of the first four, each with six launches and six of its baseline, and of the baseline.
    assert kept == [at < 4 or row.cell.baseline is None for at, row in enumerate(rows)]


def test_dots_leave_a_quarter_of_the_axis_to_the_intervals() -> None:
    alone = ratio_axis([1.0], [(0.96, 1.04)], margin=0.02)
    axis = ratio_axis([1.0], [(0.96, 1.04)], margin=0.02, dots=[[0.5, 2.0]])

    assert axis.share(1.04) - axis.share(0.96) == pytest.approx(0.22, abs=0.03)
    assert axis.low < alone.low < alone.high < axis.high


def test_dots_of_a_ratio_beyond_the_axis_do_not_widen_the_axis() -> None:
    estimates, intervals = [1.1, 1.2, 1.3, 0.02], [(1.08, 1.12), (1.18, 1.22), (1.28, 1.32)]

    axis = ratio_axis(estimates, intervals, margin=0.02, dots=[[1.1], [1.2], [1.3], [0.01, 0.03]])

    assert axis == ratio_axis(estimates, intervals, margin=0.02)


def measured(scenario: Scenario, *rows: tuple[str, tuple[int, ...], float]) -> ScenarioResult:
    """Eight launches each of (cell, its CPUs, milliseconds), half a per cent about them."""
    cells = {cell.key: cell for cell in expand(scenario, "a-scenario.yaml")}
    launches = [
        launch
        for key, cpus, ms in rows
        for launch in timed_blocks(
            cells[key], ms, 8, placement=a_placement(cpus=cpus, bound="none" not in key)
        )
    ]
    return latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])[0]


def test_the_closest_configuration_is_not_a_duplicate_of_the_baseline() -> None:
    bindings = a_scenario(matrix={"binding": ["none", "one-cpu", "physical-cores"]})
    result = measured(
        bindings,
        ("binding=none", (0, 1), 10.0),
        ("binding=one-cpu", (0,), 10.1),
        ("binding=physical-cores", (0, 1), 10.0),
    )

    assert "Fastest alternative: one CPU, 1.01× slower." in plain(verdict_of(result)[1])
    (row,) = overview_page([result], PageContext(now=NOW)).rows
    assert row.advice.best is not None
    assert row.advice.best.name == "one CPU"


def test_a_duplicate_of_the_baseline_is_ignored_when_all_others_are_slower() -> None:
    bindings = a_scenario(matrix={"binding": ["none", "one-cpu", "physical-cores"]})
    rows = (
        ("binding=none", (0, 1), 10.0),
        ("binding=one-cpu", (0,), 17.0),
        ("binding=physical-cores", (0, 1), 10.0),
    )

    for measured_rows in (rows, rows[:2]):
        assert plain(verdict_of(measured(bindings, *measured_rows))[0]) == "Unbound is the fastest."


def test_a_duplicate_of_the_baseline_is_named_if_nothing_else_was_compared() -> None:
    bindings = a_scenario(matrix={"binding": ["none", "physical-cores"]})
    result = measured(
        bindings, ("binding=none", (0, 1), 10.0), ("binding=physical-cores", (0, 1), 10.0)
    )

    assert "Fastest alternative: physical cores, 1.00×." in plain(verdict_of(result)[1])


def test_a_duplicate_of_the_baseline_never_wins_and_its_row_says_why() -> None:
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
    assert plain(verdict_of(result)[0]).startswith("No configuration is clearly faster")
    assert "taken alone" not in plain(verdict_of(result)[1])
    (row,) = (row for row in configurations(result).rows if row.cell.baseline)
    assert (row.verdict.word, row.verdict.tone) == ("1.06× faster", "plain")
    assert "the difference is noise, or the variable itself" in row.notes


def a_record(
    name: str, *, one_cpu_ms: float = 10.0, commit: Commit | None = None, keys: int = 2, **run: Any
) -> tuple[Run, tuple[Launch, ...]]:
    """A run of six launches each of unbound, 10 ms, and of one CPU."""
    cells = {cell.key: cell for cell in expand(a_scenario(), "a-scenario.yaml")}
    rows = (("binding=none", 10.0), ("binding=one-cpu", one_cpu_ms))[-keys:]
    launches = tuple(launch for key, ms in rows for launch in timed_blocks(cells[key], ms))
    return replace(a_run(**run), id=name, commit=commit), launches


def compared(before: Commit | None, after: Commit | None) -> RunComparison:
    return compare_runs(
        a_record("one", one_cpu_ms=10.0, commit=before),
        a_record("two", one_cpu_ms=8.0, commit=after),
    )


def a_commit(sha: str, *, dirty: bool = False) -> Commit:
    return Commit(sha=sha * 40, subject="A subject", committed_at="2026-01-01", dirty=dirty)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, None, "commit unknown: host or noise"),
        (a_commit("a"), None, "commit unknown: host or noise"),
        (a_commit("a"), a_commit("a"), "same commit: host or noise"),
        (a_commit("a"), a_commit("a", dirty=True), ""),
        (a_commit("a"), a_commit("b"), ""),
    ],
)
def test_a_difference_of_no_known_commit_says_so_and_is_not_coloured(
    before: Commit | None, after: Commit | None, said: str
) -> None:
    table = compare_table(compared(before, after), shows=lambda row: row.is_finding)

    (judged,) = column(table, "verdict")
    assert judged.notes == ((said,) if said else ())
    assert judged.word.tone == ("plain" if said else "good")


def test_a_page_without_a_comparison_has_no_axis_and_says_that_the_baseline_is_missing() -> None:
    (result,) = latest_results([a_record("one", keys=1)])
    table = configurations(result)
    html = pages_of([a_record("one", keys=1)])

    assert table.axis is None
    assert 'class="one"' not in html["scenario/a-scenario.html"]
    assert "1 configuration of the scenario had no launch" in html["scenario/a-scenario.html"]
    assert "baseline not measured" in html["scenario/a-scenario.html"]
    assert "baseline not measured" in html["index.html"]


@pytest.mark.parametrize(
    ("looks", "said"), [(1, "1 sample: too short to detect migrations"), (60, "60 samples")]
)
def test_a_strip_shows_the_number_of_samples(looks: int, said: str) -> None:
    run, launches = a_record("one")
    (result,) = latest_results([(run, tuple(replace(one, looks=looks) for one in launches))])

    shown = thread_activity(result, typical_launches(result))

    assert shown is not None
    assert all(f", {said}" in panel.caption for panel in shown.panels)


def test_the_binding_check_counts_the_samples_of_the_launch_with_fewest() -> None:
    cell = next(one for one in expand(a_scenario(), "s.yaml") if one.key == "binding=one-cpu")
    launches = tuple(
        a_launch(
            cell=cell,
            block=block,
            placement=a_placement(cpus=(0,), bound=True),
            workers=(a_worker(threads=(a_thread(stays=((0, 0, 100),)),)),),
        )
        for block in range(3)
    )
    seen = tuple(replace(one, looks=looks) for one, looks in zip(launches, (7, 2, 9), strict=True))
    (result,) = latest_results([(a_run(), seen)])

    assert checks(result)[0].evidence == (
        "binding verified in 3 of 3 launches; at least 2 samples each"
    )
