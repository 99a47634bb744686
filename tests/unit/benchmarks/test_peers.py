"""`benchmarks.peers` reads verdicts of other tools correctly and treats all tools alike."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from benchmarks.peers.__main__ import Result, noise_floors, table, trials
from benchmarks.peers.calibration import Planted
from benchmarks.peers.runtime import STEPS
from benchmarks.peers.steps.calibrate import find_size, measure_ratios
from benchmarks.peers.tools import (
    Verdict,
    compare_verdict,
    corebound_judgement,
    hyperfine_verdict,
    pyperf_verdict,
    tools_for,
)


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


def test_hyperfine_differs_where_1_is_outside_its_interval() -> None:
    # Means 1 and 1.1; standard deviations 0.1 and 0.02: the ratio is 1.1 +- 0.11.
    noisy, slower = [0.9, 1.0, 1.1], [1.08, 1.1, 1.12]

    assert hyperfine_verdict(noisy, slower) == "same"
    assert hyperfine_verdict([0.99, 1.0, 1.01], slower) == "slower"
    assert hyperfine_verdict(slower, [0.99, 1.0, 1.01]) == "faster"


@pytest.mark.parametrize(("finding", "verdict"), [(True, "slower"), (False, "same")])
def test_only_a_finding_of_corebound_counts(finding: bool, verdict: str) -> None:
    baseline = {"verdict": None, "is_significant": False}
    cell = {"verdict": "slower", "is_significant": finding, "speedup_interval": [0.95, 0.98]}

    judgement = corebound_judgement({"cells": [baseline, cell]})

    assert judgement.verdict == verdict
    assert judgement.half_width == pytest.approx(0.015)


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


@pytest.mark.parametrize(("ratio", "is_exact"), [(1.0285, True), (1.0275, False)])
def test_a_slowdown_is_exact_within_two_tenths_of_a_per_cent(ratio: float, is_exact: bool) -> None:
    assert Planted(share=0.03, size=1, ratio=ratio).is_exact == is_exact


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
