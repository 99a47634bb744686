"""`benchmarks.peers` reads verdicts of other tools correctly and treats all tools alike."""

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.peers.__main__ import Result, next_budget_s, noise_floors, table, trials
from benchmarks.peers.calibration import Planted
from benchmarks.peers.runtime import STEPS, Runtime
from benchmarks.peers.steps.calibrate import find_size, measure_ratios, share_of
from benchmarks.peers.tools import (
    Verdict,
    asv_verdict,
    compare_verdict,
    corebound_judgement,
    hyperfine_verdict,
    pyperf_verdict,
    quartiles_verdict,
    tools_for,
    welch_verdict,
)
from benchmarks.peers.workload import create_pair, create_repository

ASV = """
All benchmarks:

| Change   | Before [905ec02f] <main~1>   | After [640eaffd] <main>   | Ratio   | Benchmark |
|----------|------------------------------|---------------------------|---------|-----------|
| {mark:<8} | 1.19±0.1ms                   | 1.41±0.1ms                | 1.18    | work      |
"""


@pytest.mark.parametrize(("mark", "verdict"), [("+", "slower"), ("-", "faster"), ("", "same")])
def test_the_first_column_of_asv_is_its_verdict(mark: str, verdict: str) -> None:
    assert asv_verdict(ASV.format(mark=mark)) == verdict


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        ("Mean +- std dev: [before] 1.2 ms +- 0.1 ms -> [after] 1.3 ms +- 0.1 ms: 1.05x slower",
         "slower"),
        ("Mean +- std dev: [before] 1.2 ms +- 0.1 ms -> [after] 1.1 ms +- 0.1 ms: 1.05x faster",
         "faster"),
        ("Benchmark hidden because not significant (1): work", "same"),
    ],
)  # fmt: skip
def test_pyperfs_verdict_is_slower_faster_or_same(output: str, verdict: str) -> None:
    assert pyperf_verdict(output) == verdict


def test_output_without_a_verdict_is_an_error() -> None:
    with pytest.raises(ValueError, match="output of asv"):
        asv_verdict("no table")
    with pytest.raises(ValueError, match="output of pyperf"):
        pyperf_verdict("what?")


@pytest.mark.parametrize(
    ("verdict", "equal", "slower"),
    [
        # Means 1 and 1.1; standard deviations 0.1 and 0.02: the ratio is 1.1 +- 0.11.
        (
            hyperfine_verdict,
            ([0.9, 1.0, 1.1], [1.08, 1.1, 1.12]),
            ([0.99, 1.0, 1.01], [1.08, 1.1, 1.12]),
        ),
        # A level of 5 %.
        (
            welch_verdict,
            ([1.0, 1.1, 0.9], [1.0, 1.11, 0.91]),
            ([1.0, 1.01, 0.99], [1.1, 1.11, 1.09]),
        ),
        # Interquartile ranges that overlap, or not.
        (quartiles_verdict, ([1, 2, 3, 4], [3, 4, 5, 6]), ([1, 2, 3, 4], [5, 6, 7, 8])),
    ],
)
def test_a_rule_finds_what_is_clearly_slower_or_faster(
    verdict: Callable[[list[float], list[float]], Verdict],
    equal: tuple[list[float], list[float]],
    slower: tuple[list[float], list[float]],
) -> None:
    assert verdict(*equal) == "same"
    assert verdict(*slower) == "slower"
    assert verdict(*slower[::-1]) == "faster"


@pytest.mark.parametrize(("finding", "verdict"), [(True, "slower"), (False, "same")])
def test_only_a_finding_of_corebound_counts(finding: bool, verdict: str) -> None:
    baseline = {"verdict": None, "is_significant": False}
    cell = {"verdict": "slower", "is_significant": finding, "speedup_interval": [0.95, 0.98]}

    judgement = corebound_judgement({"cells": [baseline, cell]})
    alone = corebound_judgement({"cells": [{"verdict": None}, {"verdict": None}]})

    assert judgement.verdict == verdict
    assert judgement.half_width == pytest.approx(0.015)
    assert (alone.verdict, alone.half_width) == ("same", None)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [("6.10", "6.2 (! 12%)", "slower"), ("6.2 (! 12%)", "6.10", "faster"), ("6.1", "6.10", "same")],
)
def test_pytorchs_compare_differs_where_its_printed_medians_do(
    before: str, after: str, verdict: str
) -> None:
    table = (
        f"[---- step() ----]\n    |  before  |  after\n2 threads: ---\n"
        f"      step  |  {before}  |  {after}\n\nTimes are in milliseconds (ms)."
    )

    assert compare_verdict(table) == verdict


def test_tools_suit_the_step() -> None:
    assert "hyperfine" in tools_for(STEPS["python"])
    assert "hyperfine" not in tools_for(STEPS["numpy"])
    assert [name for name, step in STEPS.items() if "torch" in tools_for(step)] == [
        "convolutions",
        "resnet50",
    ]


class FakeClock:
    """A clock that only work advances."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def work(self, duration_s: float) -> Callable[[], None]:
        def advance() -> None:
            self.now_s += duration_s

        return advance


def test_the_share_of_extra_work_is_relative_to_the_plain_step() -> None:
    clock = FakeClock()

    assert share_of(clock.work(0.010), clock.work(0.0002), clock) == pytest.approx(0.02)


def test_the_size_of_extra_work_is_that_with_the_closest_share() -> None:
    # Calling it takes 0.1 % of a step, and each unit of its size 0.03 %.
    assert find_size(lambda size: 0.001 + 0.0003 * size, 0.01) == 30
    assert find_size(lambda size: 0.0004 * size, 0.01) == 25


def test_ratios_of_slower_steps_end_early_when_steps_do_not_vary() -> None:
    clock = FakeClock()
    slower = [clock.work(0.0101), clock.work(0.0103)]

    ratios = measure_ratios(clock.work(0.010), slower, clock, limit_s=100)

    assert ratios == pytest.approx([1.01, 1.03])
    assert clock.now_s < 2


def test_ratios_of_slower_steps_end_at_the_time_limit() -> None:
    clock = FakeClock()
    slower = itertools.cycle([clock.work(0.010), clock.work(0.030)])

    def step() -> None:
        next(slower)()

    measure_ratios(clock.work(0.010), [step], clock, limit_s=5)

    assert 5 < clock.now_s < 6


def test_every_share_has_equal_trials_with_every_tool() -> None:
    order = trials([0.0, 0.03], 5, ("a", "b", "c"), seed=1)

    assert Counter(share for share, _ in order) == {0.0: 5, 0.03: 5}
    assert all(sorted(tools) == ["a", "b", "c"] for _, tools in order)
    # Both shares and tools are in random order.
    assert len({tools for _, tools in order}) > 1
    assert [share for share, _ in order] != sorted(share for share, _ in order)
    assert order == trials([0.0, 0.03], 5, ("a", "b", "c"), seed=1)


def test_a_tool_that_takes_too_long_gets_less_time() -> None:
    budget_s = 8.0
    for _ in range(20):
        # It takes three seconds more than its budget.
        budget_s = next_budget_s(budget_s, took_s=budget_s + 3, intended_s=8.0)

    assert budget_s == pytest.approx(5.0, abs=0.01)


@pytest.mark.parametrize(("ratio", "is_exact"), [(1.0285, True), (1.0275, False)])
def test_a_slowdown_is_exact_within_two_tenths_of_a_per_cent(ratio: float, is_exact: bool) -> None:
    assert Planted(share=0.03, size=1, ratio=ratio).is_exact == is_exact


def test_only_the_second_step_has_extra_work(tmp_path: Path) -> None:
    runtime = Runtime(step=STEPS["python"], python=Path(sys.executable), packages=None)

    pair = create_pair(tmp_path / "pair", runtime, size=400, seconds=1, startup_s=0.1)

    assert pair.sides == (("before", 0), ("after", 400))
    assert json.loads((pair.folder / "sides.json").read_text()) == {"before": 0, "after": 400}
    assert len(set(create_repository(pair.folder))) == 2


def test_programs_get_the_number_of_threads_of_the_step(tmp_path: Path) -> None:
    runtime = Runtime(step=STEPS["numpy"], python=Path("python"), packages=Path("tools"))

    variables = runtime.variables(tmp_path)

    assert variables["OPENBLAS_NUM_THREADS"] == "2"
    assert "tools" in variables["PYTHONPATH"].split(os.pathsep)


def test_the_table_counts_false_alarms_and_detections() -> None:
    verdicts: list[tuple[float, Verdict]] = [(0.0, "faster"), (0.0, "same"), (0.03, "slower")]
    results = [
        Result(rule="tool", share=share, verdict=verdict, took_s=2) for share, verdict in verdicts
    ]
    results.append(Result(rule="tool", share=0.03, verdict="faster", took_s=4))

    head, row = table(results)

    assert "alarms, A/A" in head
    assert "3% slower" in head
    assert row.split()[:2] == ["tool", "50.0%"]
    # One of two detected, one called faster, 2.5 s on average.
    assert row.split()[-2:] == ["1", "2.5"]


def test_the_noise_floor_is_the_median_half_width_of_equal_pairs() -> None:
    results = [
        Result(rule="corebound", share=share, verdict="same", took_s=1, half_width=half_width)
        for share, half_width in [(0.0, 0.01), (0.0, 0.02), (0.0, 0.04), (0.03, 0.5), (0.0, None)]
    ]
    results.append(Result(rule="tool", share=0.0, verdict="same", took_s=1))

    (line,) = noise_floors(results)

    assert line.startswith("corebound")
    assert line.endswith("±2.00%")
