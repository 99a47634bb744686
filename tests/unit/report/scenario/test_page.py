"""A scenario's page from its records: verdict, sections, commands, findings."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.launch_facts import cpu_of
from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario, findings
from corebound.analysis.selection import latest_results
from corebound.analysis.suggested_commands import reproduce_command
from corebound.analysis.throughput import is_peak_plausible
from corebound.analysis.wording import (
    TOO_WIDE,
    bounds,
    compared_with,
    doing,
    full_name,
    plain,
    relative_speed,
    speed_bounds,
    speedup,
    time_text,
    within,
)
from corebound.records import jsonl
from corebound.records.launch_record import Launch, Status
from corebound.records.run_record import Run
from corebound.report.downloads import cells_csv, cells_json
from corebound.report.inputs import PageContext
from corebound.report.pages.overview import overview_page
from corebound.report.pages.whats_new import failed_rows, whats_new
from corebound.report.scenario.launches import log_tail
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.workflow.execute import RunResult
from support.build import (
    a_host,
    a_launch,
    a_machine,
    a_placement,
    a_run,
    a_scenario,
    a_series,
    a_thread,
    a_worker,
    timed,
    timed_blocks,
)
from support.findings import RECORDED
from support.report_sample import NOW, a_sample, page_of
from support.texts import in_order


def cells_of(scenario: Scenario) -> dict[str, Cell]:
    return {cell.key: cell for cell in expand(scenario, "a-scenario.yaml")}


def launches_of(cell: Cell, milliseconds: float) -> list[Launch]:
    """Six launches whose medians lie within 1 % of one another."""
    cpus = (0,) if cell.binding.mode == "one-cpu" else (0, 1)
    placement = a_placement(cpus=cpus, bound=cell.binding.mode != "none")
    return timed_blocks(cell, milliseconds, placement=placement)


def a_study(
    none_ms: float = 10.0,
    one_cpu_ms: float = 10.0,
    *,
    scenario: Scenario | None = None,
    more: tuple[Launch, ...] = (),
) -> ScenarioResult:
    scenario = scenario or a_scenario()
    cells = cells_of(scenario)
    launches = [
        *launches_of(cells["binding=none"], none_ms),
        *launches_of(cells["binding=one-cpu"], one_cpu_ms),
        *more,
    ]
    return latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])[0]


def verdict(result: ScenarioResult) -> str:
    return plain(page_of(result).hero.verdict)


@pytest.mark.parametrize(
    ("none_ms", "one_cpu_ms", "facts"),
    [
        (12.0, 10.0, ("one CPU", "1.20× faster", "unbound")),
        (10.0, 20.0, ("Unbound", "fastest")),
        (10.0, 10.0, ("as fast as", "unbound", "±2 %")),
    ],
)
def test_the_verdict_names_the_faster_one_or_that_none_is(
    none_ms: float, one_cpu_ms: float, facts: tuple[str, ...]
) -> None:
    assert in_order(verdict(a_study(none_ms, one_cpu_ms)), *facts)


def test_a_noisy_difference_is_not_called_a_winner() -> None:
    scenario_result = a_study()
    cell = cells_of(a_scenario())["binding=one-cpu"]
    noisy = [
        timed(ms, cell=cell, block=block, placement=a_placement(cpus=(3,)))
        for block, ms in enumerate((5, 20, 6, 15))
    ]
    steady = [launch for launch in scenario_result.launches if launch.cell.key == "binding=none"]

    result = latest_results([(a_run(), (*steady, *noisy))])[0]

    assert in_order(verdict(result), "No configuration", "faster", "unbound")
    assert in_order(plain(page_of(result).hero.support), "launches of each", "decide")


def test_a_duplicate_of_the_baseline_has_no_launches_needed() -> None:
    scenario_result = a_study()
    cell = cells_of(a_scenario())["binding=one-cpu"]
    alike = [timed(ms, cell=cell, block=block) for block, ms in enumerate((5, 20, 6, 15))]
    steady = [launch for launch in scenario_result.launches if launch.cell.key == "binding=none"]

    result = latest_results([(a_run(), (*steady, *alike))])[0]

    (compared,) = result.ranked
    assert compared.is_same_placement
    assert (compared.comparison.verdict, compared.comparison.launches_needed) == (
        "inconclusive",
        None,
    )


def many_equal_settings(others: int) -> ScenarioResult:
    """One setting looks 3 % faster, its blocks some 2 % apart: p = 0.02 by itself."""
    threads = [str(number) for number in range(1, others + 2)]
    scenario = a_scenario(
        matrix={"binding": ["none"], "threads": ["default", *map(int, threads)]},
        baseline={"threads": "default"},
    )
    cells = cells_of(scenario)
    launches = launches_of(cells["binding=none,threads=default"], 10.0)
    for number in threads:
        level = 10 / 1.03 if number == "1" else 10.0
        each = [level * (1 + percent / 100) for percent in WOBBLE]
        launches += [
            timed(
                milliseconds,
                cell=cells[f"binding=none,threads={number}"],
                block=block,
                placement=a_placement(threads=int(number), bound=False),
            )
            for block, milliseconds in enumerate(each)
        ]
    return latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])[0]


WOBBLE = (2.5, -2.1, 2.1, -2.6, 2.4, -2.1)


def test_a_headline_needs_significance_after_correction() -> None:
    result, among_many = many_equal_settings(0), many_equal_settings(40)

    assert result.ranked[0].comparison.verdict == "faster"
    assert among_many.ranked[0].comparison.verdict == "faster"
    assert "1.03× faster" in verdict(result)
    assert "looks 1.03× faster" in verdict(among_many)
    assert "after correction" in plain(page_of(among_many).hero.support)
    assert overview_page([among_many], PageContext(now=NOW)).rows[0].verdict.word == "inconclusive"


def test_a_scenario_without_a_valid_launch_says_why() -> None:
    failed = a_launch(
        cell=cells_of(a_scenario())["binding=none"], status="failed", reason="it crashed."
    )

    page = page_of(latest_results([(a_run(), (failed,))])[0])

    assert "Nothing could be" in plain(page.hero.verdict)
    assert "it crashed." in plain(page.hero.support)
    assert page.configurations.rows == ()


def test_a_run_that_ended_before_its_first_launch_still_has_a_page() -> None:
    page = page_of(latest_results([(a_run(), ())])[0])

    assert "Nothing has been" in plain(page.hero.verdict)


def test_a_baseline_without_a_valid_launch_leaves_nothing_to_compare_with() -> None:
    cells = cells_of(a_scenario(matrix={"binding": ["none", "one-cpu", "physical-cores"]}))
    scenario = a_scenario(matrix={"binding": ["none", "one-cpu", "physical-cores"]})
    launches = [
        *launches_of(cells["binding=one-cpu"], 10),
        *launches_of(cells["binding=physical-cores"], 10),
        a_launch(cell=cells["binding=none"], status="failed", reason="it crashed."),
    ]

    result = latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])[0]

    assert in_order(verdict(result), "No comparison", "baseline")


def test_the_latest_run_that_launched_a_scenario_is_shown() -> None:
    cell = cells_of(a_scenario())["binding=none"]
    old = (a_run(run_id="old", started_at="2026-01-01T00:00:00Z"), (a_launch(cell=cell),))
    new = (a_run(run_id="new", started_at="2026-01-02T00:00:00Z"), (a_launch(cell=cell),))
    empty: tuple[Run, tuple[Launch, ...]] = (
        a_run(run_id="empty", started_at="2026-01-03T00:00:00Z"),
        (),
    )

    assert [result.run.id for result in latest_results([new, empty, old])] == ["new"]


def test_a_partial_run_does_not_replace_a_complete_one() -> None:
    """As the command of a row measures them."""
    cell = cells_of(a_scenario())["binding=none"]

    def a_record(name: str, day: int, **changed: Any) -> tuple[Run, tuple[Launch, ...]]:
        run = a_run(run_id=name, started_at=f"2026-01-{day:02}T00:00:00Z")
        return replace(run, **changed), (a_launch(cell=cell),)

    def shown(*records: tuple[Run, tuple[Launch, ...]]) -> str:
        (result,) = latest_results(records)
        return result.run.id

    whole, some = a_record("whole", 2), a_record("some", 3, only=("binding=none",))
    other = replace(a_run().scenarios[0], sha256="f" * 64)

    assert shown(a_record("older", 1), whole, some) == "whole"
    assert shown(a_record("before", 1, only=("binding=none",)), some) == "some"
    # Of another file of the scenario, which has perhaps other cells.
    assert shown(whole, a_record("changed", 3, only=("a=b",), scenarios=(other,))) == "changed"


@pytest.mark.parametrize(("one_cpu_ms", "word"), [(8.0, "reproduces"), (10.0, "does not")])
def test_a_claim_reproduces_only_where_it_is_clearly_faster(one_cpu_ms: float, word: str) -> None:
    claims = [{"says": "pin it", "faster": {"binding": "one-cpu"}, "than": {"binding": "none"}}]

    result = a_study(10.0, one_cpu_ms, scenario=a_scenario(claims=claims))

    assert [claim.judgement for claim in page_of(result).claims] == [word]


@pytest.mark.parametrize(
    ("status", "kept"), [("ok", 400), ("invalid", 2_000), ("failed", 2_000), ("skipped", 0)]
)
def test_the_page_of_a_run_has_the_end_of_every_launchs_log(status: Status, kept: int) -> None:
    launch = a_launch(status=status, reason="it says so.", log="x" * 5_000)

    assert log_tail(launch, even_ok=True).count("x") == kept


def test_a_hostile_path_is_quoted_in_the_command() -> None:
    result = a_study()
    hostile = replace(result, source=replace(result.source, path="a; rm -rf b.yaml"))

    assert "'a; rm -rf b.yaml'" in reproduce_command(hostile, ()).line


def test_no_cause_is_named_without_a_winner() -> None:
    page = page_of(a_study(10.0, 10.0))

    assert page.thread_activity is not None
    assert page.thread_activity.lead.startswith("Where the threads ran")


def test_launches_without_thread_samples_have_no_strip() -> None:
    cell = cells_of(a_scenario())["binding=none"]
    launch = a_launch(cell=cell, workers=(a_worker(threads=()),))

    assert page_of(latest_results([(a_run(), (launch,))])[0]).thread_activity is None


def test_the_csv_and_the_json_hold_the_same_cells_unrounded() -> None:
    result = latest_results([a_sample()])[0]

    document = json.loads(cells_json(result, ()))
    lines = list(csv.DictReader(io.StringIO(cells_csv(result))))

    assert [cell["axes"]["binding"] for cell in document["cells"]] == [
        line["axis_binding"] for line in lines
    ]
    # The axis is what was asked for, the figure what ran.
    assert [cell["axes"]["threads"] for cell in document["cells"]] == [
        line["axis_threads"] for line in lines
    ]
    assert lines[0]["threads"] != lines[0]["axis_threads"]
    assert float(lines[0]["median_ns"]) == document["cells"][0]["median_ns"]
    assert document["cells"][-1]["median_ns"] is None
    assert lines[-1]["median_ns"] == ""


def test_csv_rows_have_join_keys_and_the_minimum_and_maximum_of_the_page() -> None:
    result = latest_results([a_sample()])[0]

    (first, *_) = csv.DictReader(io.StringIO(cells_csv(result)))

    names = ("scenario", "run", "started_at", "host")
    run = result.run
    parts = [result.scenario.name, run.id, run.started_at, run.host.id]
    assert [first[name] for name in names] == parts
    for least, middle, most in (
        ("cpu_least_ns", "cpu_median_ns", "cpu_most_ns"),
        ("whole_least_ns", "whole_ns", "whole_most_ns"),
    ):
        assert float(first[least]) <= float(first[middle]) <= float(first[most])
        assert first[least] != first[most]


def test_a_machine_is_described_with_its_allowed_cpus() -> None:
    host = a_machine(topology=a_host(cpus_per_core=2, allowed=frozenset({0, 1})))
    result = a_study()

    page = page_of(replace(result, run=replace(result.run, host=host)))

    facts = {fact.term: fact.value for fact in page.facts}
    facts_of = "1 socket", "2 cores", "4 CPUs", "1 node", "1 × 32 MiB", "SMT on", "CPUs 0-1"
    assert in_order(facts["Topology"], *facts_of)


def test_small_ratios_keep_their_significant_digits() -> None:
    assert (speedup(0.0213), speedup(1.4234)) == ("0.021×", "1.42×")
    assert bounds(0.0201, 0.0222) == "0.020–0.022"
    assert bounds(12_000.0, 15_000.4) == "12,000–15,000"


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, math.inf), (3.8e-05, math.inf), (0.001, 973_537.0), (1.0, 101.0)]
)
def test_an_unusable_interval_is_named_as_such(low: float, high: float) -> None:
    assert bounds(low, high) == speed_bounds(low, high) == TOO_WIDE


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.0001, 1.13, "1.0001–1.13"),
        (0.91, 0.9996, "1.0004–1.10"),
        (0.996, 1.004, "\N{MINUS SIGN}0.4 to +0.4 %"),
        (0.67, 1.18, "\N{MINUS SIGN}33 to +18 %"),
        (1.0, 1.2, "1.00–1.20"),
        (1.0049, 1.006, "1.005–1.01"),
    ],
)
def test_a_bound_close_to_1_keeps_the_digits_that_differ_from_1(
    low: float, high: float, text: str
) -> None:
    assert speed_bounds(low, high) == text


@pytest.mark.parametrize(
    ("speed", "text"),
    [
        (1.302, "1.30× faster"),
        (1 / 1.302, "1.30× slower"),
        (0.0205, "49× slower"),
        (1.004, "1.004× faster"),
        (1.0001, "1.00×"),
        (0.0, "values differ too much"),
    ],
)
def test_a_ratio_is_never_below_1_and_has_its_direction(speed: float, text: str) -> None:
    assert relative_speed(speed) == text


def test_a_page_with_an_infinite_interval_renders() -> None:
    cells = cells_of(a_scenario())
    launches = [
        timed(ms, cell=cell, block=block)
        for cell in cells.values()
        for block, ms in enumerate((1e-6, 1e9))
    ]

    page = page_of(latest_results([(a_run(), tuple(launches))])[0])

    interval = page.configurations.rows[0].cell.summary.interval
    assert interval is not None
    assert within(interval.low, interval.high, time_text) == TOO_WIDE


def test_a_page_of_durations_of_zero_renders() -> None:
    cell = cells_of(a_scenario())["binding=none"]
    launch = timed(0, cell=cell)

    page = page_of(latest_results([(a_run(), (launch,))])[0])

    assert page.traces


def test_threads_on_unknown_cpus_are_not_drawn() -> None:
    cell = cells_of(a_scenario())["binding=none"]
    launch = a_launch(
        cell=cell,
        placement=a_placement(cpus=(90,), bound=False),
        workers=(a_worker(threads=(a_thread(stays=((99, 0, 100),)),)),),
    )

    assert page_of(latest_results([(a_run(), (launch,))])[0]).thread_activity is None


def test_no_row_shows_a_share_of_the_peak_if_any_cell_exceeds_it() -> None:
    scenario = a_scenario(workload="gemm", environment="numpy")
    cells = cells_of(scenario)
    # Of 64·10⁶ to 100·10⁶ operations in a millisecond two cores of 128 GFLOP/s are able.
    within_peak, beyond = (
        tuple(
            a_launch(
                cell=cell,
                block=block,
                placement=a_placement(cpus=(0, 1)),
                workers=(replace(a_worker(), work={"flop": work}),),
            )
            for cell, work in zip(cells.values(), works, strict=True)
            for block in range(3)
        )
        for works in ((64e6, 100e6), (64e6, 900e6))
    )
    run = a_run(scenarios=(scenario,))

    results = [latest_results([(run, launches)])[0] for launches in (within_peak, beyond)]
    assert [is_peak_plausible(result) for result in results] == [True, False]


def test_cpu_time_never_exceeds_wall_time_times_cpus() -> None:
    cell = cells_of(a_scenario())["binding=none"]
    # Two CPUs busy all the time: each launch's CPU time is twice its wall time.
    walls_ns = (1_000_000, 1_100_000, 4_000_000)
    launches = [
        a_launch(
            cell=cell,
            block=block,
            workers=(a_worker(wall_ns=(wall_ns,) * 30, cpu_ns=(2 * wall_ns,) * 30),),
        )
        for block, wall_ns in enumerate((*walls_ns, 1_000_000))
    ]

    (one,) = latest_results([(a_run(), tuple(launches))])[0].cells

    assert one.summary.cpus_busy == pytest.approx(2.0)
    assert one.summary.cpu_median_ns == pytest.approx(2 * (one.summary.median_ns or 0))
    (figure,) = cpu_of(one)
    assert in_order(figure.says, "CPU time", "2 CPUs busy")


def test_a_retried_launch_has_not_failed_and_a_cell_counts_once() -> None:
    scenario = a_scenario()
    cell, other = cells_of(scenario).values()
    disturbed = a_launch(cell=cell, block=0, status="invalid", reason="disturbed")
    launches = (
        disturbed,
        replace(a_launch(cell=cell, block=0), attempt=1),
        a_launch(cell=other, block=0, status="failed", reason="no memory"),
        a_launch(cell=other, block=1, status="failed", reason="no disk"),
        a_launch(cell=other, block=2),
    )
    run = a_run(scenarios=(scenario,))

    rows = failed_rows(run, launches)
    tonight = whats_new(build_change_history((a_series([1e6, 1e6]),)), [(run, launches)])

    assert [(len(row.launches), row.launches[0].status, row.reason) for row in rows] == [
        (1, "failed", "no memory"),
        (1, "failed", "no disk"),
    ]
    assert tonight is not None
    assert in_order(plain(tonight.support), "1 configuration", "failed")
    # Nothing replaced it.
    assert len(failed_rows(run, (disturbed,))) == 1


def test_cores_per_worker_threads_are_named_as_written_in_the_scenario() -> None:
    scenario = a_scenario(matrix={"threads": ["default", "cores-per-worker"]}, workers=2)
    default, share = expand(scenario, "s.yaml")

    assert full_name(share) == "cores-per-worker threads"
    assert doing(share, default) == "Running with cores-per-worker threads"
    assert compared_with(default, share) == "cores-per-worker threads"


def _stored(name: str) -> jsonl.Stored:
    return jsonl.read(RECORDED / f"{name}.jsonl")


def _study(name: str) -> ScenarioResult:
    stored = _stored(name)
    return analyse_scenario(stored.run, stored.run.scenarios[0], stored.launches)


def _threads_on_one_cpu() -> ScenarioResult:
    """Four threads and two share one CPU: one rule, whose figures differ by cell."""
    scenario = a_scenario(matrix={"threads": [4, 2]}, baseline={"threads": 4})
    run = a_run(scenarios=(scenario,))
    launches = [
        a_launch(
            cell=cell,
            position=place,
            placement=a_placement(cpus=(0,), threads=threads),
            workers=(
                a_worker(
                    threads=tuple(
                        a_thread(tid=100 + index, allowed=(0,), wait_ns=900_000_000)
                        for index in range(threads)
                    ),
                    threads_asked=threads,
                    threads_used=threads,
                ),
            ),
        )
        for place, (cell, threads) in enumerate(
            zip(expand(scenario, "s.yaml"), (4, 2), strict=True)
        )
    ]
    return analyse_scenario(run, run.scenarios[0], launches)


def test_values_of_the_first_of_several_cells_are_attributed_to_it() -> None:
    (finding,) = findings(_threads_on_one_cpu())

    assert "4 threads" in finding.what
    assert [full_name(cell) for cell in finding.cells] == ["4 threads", "2 threads"]
    assert finding.of_first


def test_findings_are_strongest_first() -> None:
    found = findings(_study("mindspore-dispatch-threads"))

    assert [finding.tone for finding in found] == ["bad", "warn"]


def test_the_json_export_has_rules_and_cell_keys() -> None:
    known = _study("numpy-blas")

    (found,) = json.loads(cells_json(known, findings(known)))["findings"]

    assert found["rule"] == "slower-blas"
    assert found["cells"] == ["threads=1,dtype=float32,blas=mkl"]
    assert 2.2 < found["times_ratio"] < 2.4


def test_run_json_has_each_scenario_s_findings() -> None:
    stored = _stored("data-loaders")
    told = RunResult(
        run=stored.run, file=Path("run.jsonl"), launches=stored.launches, ending="complete"
    )

    (found,) = told.document["findings"]

    assert (found["scenario"], found["rule"]) == ("data-loaders", "loaders")
    assert found["fix"].startswith("Set `loaders: 2`")
