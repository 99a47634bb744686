"""Specifies how the spread between runs of one cell is estimated, and how it widens comparisons."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.telemetry import HostOverTime, HostWindow
from corebound.stats.between_runs import (
    DEFAULT_SPREAD,
    LEAST_FREEDOM,
    BetweenRuns,
    EarlierRun,
    between_runs,
)
from corebound.stats.comparison import Comparison, compare
from corebound.stats.interference import delay
from corebound.stats.launch_summary import CellSummary, summarise
from support.build import a_cell, a_launch, a_worker
from support.known import known

DEFAULT = BetweenRuns(
    variance=DEFAULT_SPREAD**2, freedom=LEAST_FREEDOM, runs=0, whole=DEFAULT_SPREAD**2
)


def runs_at(*levels: float, commits: str = "") -> list[EarlierRun]:
    """Runs whose launches agree, at these logarithms; of one commit, or of one letter each."""
    return [
        EarlierRun(logs=(level,) * 3, commit=commit)
        for level, commit in zip(levels, commits or "a" * len(levels), strict=True)
    ]


def a_side(*logs: float, delay: float = 0.0) -> CellSummary:
    launches = [
        a_launch(block=block, workers=(a_worker(wall_ns=(round(1e9 * math.exp(log)),)),))
        for block, log in enumerate(logs)
    ]
    found = summarise(a_cell(), launches, "auto")
    return replace(found, launches=tuple(replace(one, delay=delay) for one in found.launches))


def compared(cell: CellSummary, baseline: CellSummary, between: BetweenRuns) -> Comparison:
    return known(compare(cell, baseline, margin=0.02, between=between))


def test_half_of_all_pairs_of_runs_differ_by_less_than_the_median() -> None:
    # Ten differences of 0.01, 0.02, 0.02, 0.03, … : 0.01 × (1 1 1 1 2 2 2 3 3 4), median 2.
    found = between_runs(runs_at(0.00, 0.01, 0.02, 0.03, 0.04))

    assert found.variance == pytest.approx((1.4826 * 0.02) ** 2 / 2)
    assert (found.freedom, found.runs) == (4, 5)


def test_one_outlying_run_hardly_matters() -> None:
    quiet = between_runs(runs_at(*(0.001 * (k % 4) for k in range(12))))
    odd = between_runs(runs_at(*(0.001 * (k % 4) for k in range(11)), 1.0))

    assert odd.spread_ratio < 2 * quiet.spread_ratio


def test_the_spread_of_launches_within_a_run_is_subtracted() -> None:
    # Runs whose means differ because launches do: 200 runs of four launches that vary by 4 %.
    rng = np.random.default_rng(3)
    earlier = [EarlierRun(logs=tuple(rng.normal(0, 0.04, 4)), commit="a") for _ in range(200)]

    assert between_runs(earlier).variance < 0.3 * 0.04**2 / 4


def test_delays_by_other_programs_are_subtracted() -> None:
    delayed = [
        replace(run, delay=run.logs[0]) for run in runs_at(0.0, 0.7, 0.1, 1.1, 0.0, 0.5, 0.02)
    ]

    assert between_runs(delayed).variance == pytest.approx(0.0)


def test_a_change_by_a_commit_is_not_noise() -> None:
    levels = [0.0, 0.01, 0.0, 0.01, 0.5, 0.51, 0.5, 0.51]

    of_two = between_runs(runs_at(*levels, commits="aaaabbbb"))

    assert of_two.freedom == 6
    assert of_two.spread_ratio < 0.02


def test_runs_of_different_commits_are_compared_with_their_successors() -> None:
    # Thirteen nights, a commit each, of which one made it half as slow again.
    levels = [0.01 * (k % 2) + (0.4 if k >= 6 else 0.0) for k in range(13)]

    found = between_runs(runs_at(*levels, commits="abcdefghijklm"))

    assert found.variance == pytest.approx((1.4826 * 0.01) ** 2 / 2)
    assert (found.freedom, found.runs) == (6, 13)


def test_few_runs_keep_the_default_unless_they_differ_by_more() -> None:
    found = between_runs(runs_at(0.0, 0.3, 0.1))

    assert all(between_runs(runs_at(*[0.0] * count)) == DEFAULT for count in (0, 1, 2, 4))
    # Runs with one launch give no spread.
    assert between_runs([EarlierRun(logs=(float(k),), commit="a") for k in range(9)]) == DEFAULT
    assert found.variance == pytest.approx((1.4826 * 0.2) ** 2 / 2)
    assert (found.freedom, found.runs) == (LEAST_FREEDOM, 3)


@given(
    logs=st.lists(
        st.tuples(
            st.lists(st.floats(-700, 700), max_size=4).map(tuple), st.sampled_from(["a", "b", None])
        ),
        max_size=12,
    )
)
def test_the_spread_of_any_history_is_a_number(
    logs: Sequence[tuple[tuple[float, ...], str | None]],
) -> None:
    found = between_runs([EarlierRun(logs=one, commit=commit) for one, commit in logs])

    assert math.isfinite(found.variance)
    assert found.variance >= 0
    assert found.freedom >= LEAST_FREEDOM


def test_the_error_combines_launches_and_runs_with_satterthwaite_s_freedom() -> None:
    # Logarithms of -0.01, 0, 0.01 each: s² / n is 0.0001 / 3, twice 0.00006667 with 4 degrees of
    # freedom; the runs add 2 × 0.0004 with 5. So the variance is 0.00086667, and of freedom
    # 0.00086667² / (0.00006667² / 4 + 0.0008² / 5) = 5.818.
    between = BetweenRuns(variance=0.0004, freedom=5, runs=6, whole=0.0004)

    found = compared(a_side(-0.01, 0.0, 0.01), a_side(0.09, 0.1, 0.11), between)

    reach = math.log(known(found.interval).high / known(found.interval).low) / 2
    # Student's t of 5.818 degrees of freedom at 95 %, between 2.571 of 5 and 2.447 of 6.
    assert reach == pytest.approx(2.465 * math.sqrt(0.00086667), rel=1e-3)


def test_runs_that_differ_as_usual_are_inconclusive_and_more_launches_do_not_decide() -> None:
    def of_spread(spread: float) -> BetweenRuns:
        return BetweenRuns(variance=spread**2, freedom=20, runs=21, whole=spread**2)

    sides = a_side(0.0, 0.001, -0.001), a_side(0.03, 0.031, 0.029)
    noisy = a_side(0.0, 0.02, -0.02), a_side(0.03, 0.05, 0.01)

    assert compared(*sides, of_spread(0.002)).verdict == "faster"
    assert compared(*sides, of_spread(0.03)).verdict == "inconclusive"
    assert compared(*noisy, of_spread(0.0)).launches_needed is not None
    assert compared(*noisy, of_spread(0.03)).launches_needed is None


def test_a_run_delayed_by_others_is_not_called_slower() -> None:
    quiet = BetweenRuns(variance=0.002**2, freedom=20, runs=21, whole=0.002**2)
    slow = (0.4, 0.41, 0.39)

    alone = compared(a_side(*slow), a_side(0.0, 0.01, -0.01), quiet)
    delayed = compared(a_side(*slow, delay=0.4), a_side(0.0, 0.01, -0.01), quiet)
    both = compared(a_side(*slow, delay=0.4), a_side(0.0, 0.01, -0.01, delay=0.4), quiet)

    assert [one.verdict for one in (alone, delayed, both)] == ["slower", "inconclusive", "slower"]


@pytest.mark.parametrize(
    ("counted", "factor"),
    [
        # Ready for as long as it ran, while others had the CPU: it took twice as long.
        ({"ran_ns": 500, "waited_ns": 500, "foreign_ns": 500}, 2.0),
        # What it waited for its own threads is no delay.
        ({"ran_ns": 500, "waited_ns": 500, "foreign_ns": 0}, 1.0),
        # Others ran, and it need not wait.
        ({"ran_ns": 500, "waited_ns": 0, "foreign_ns": 500}, 1.0),
        ({"ran_ns": 500, "steal_ns": 250}, 1.5),
        ({"ran_ns": 500, "throttled_ns": 250}, 1.5),
        # Where waiting is not known, what idle CPUs could have taken is taken off.
        ({"ran_ns": 500, "foreign_ns": 500, "rested_ns": 250}, 1.5),
        ({"ran_ns": 0, "steal_ns": 250}, 1.0),
        ({"ran_ns": 500, "steal_ns": -250}, 1.0),
        ({}, 1.0),
        # Without samples of the host.
        (None, 1.0),
    ],
)
def test_a_delay_is_time_that_others_took_while_the_launch_was_ready(
    counted: dict[str, Any] | None, factor: float
) -> None:
    windows = () if counted is None else (HostWindow(from_ms=0, to_ms=1000, **counted),)
    host = HostOverTime(cpus=(), windows=windows, looks=1, look_ns=0)

    assert math.exp(delay(host)) == pytest.approx(factor)
    assert delay(None) == 0.0
