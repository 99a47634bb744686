"""Specifies when a launch is warmed up, and the segmentation that decides it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corebound.stats.warmup import SteadyState, steady_state, worst


def noisy(levels: list[tuple[int, float]], *, noise: float = 0.01, seed: int = 1) -> list[int]:
    """So many iterations at each level, in milliseconds, each with relative noise."""
    rng = np.random.default_rng(seed)
    return [
        int(1e6 * level * np.exp(noise * rng.standard_normal()))
        for count, level in levels
        for _ in range(count)
    ]


@pytest.mark.parametrize("n", [12, 20, 49, 100, 1000])
def test_constant_noise_is_steady(n: int) -> None:
    assert steady_state(noisy([(n, 45.0)], noise=0.03)) == SteadyState(kind="steady", start=0)


def test_long_first_iterations_are_warm_up() -> None:
    samples_ns = [900, 60, 45, 44, 45, 46, 44, 45, 45, 46, 44, 45]

    assert steady_state(samples_ns) == SteadyState(kind="warm-up then steady", start=2)


@pytest.mark.parametrize("n", [20, 49, 200, 3000])
def test_a_longer_first_phase_is_warm_up(n: int) -> None:
    found = steady_state(noisy([(3 * n // 10, 54.0), (n - 3 * n // 10, 45.0)]))

    assert found.kind == "warm-up then steady"
    # Of two neighbours the noise may make the wrong one the likelier place of a cut.
    assert abs(found.start - 3 * n // 10) <= 1


def test_a_launch_that_ends_slower_is_slowing_down() -> None:
    assert steady_state(noisy([(40, 45.0), (60, 54.0)])) == SteadyState(kind="slowdown", start=40)


def test_a_change_shortly_before_the_end_leaves_no_steady_state() -> None:
    found = steady_state(noisy([(280, 45.0), (20, 60.0)]))

    # The first fifth of 300 is left out.
    assert found == SteadyState(kind="never steady", start=60)


def test_a_change_below_the_margin_is_ignored() -> None:
    # The 5 % of Traini et al. (2022).
    assert steady_state(noisy([(100, 45.0), (100, 46.5)])).kind == "steady"


def test_a_very_long_launch_is_analysed_in_groups() -> None:
    found = steady_state(noisy([(30_000, 54.0), (70_001, 45.0)]))

    assert found.kind == "warm-up then steady"
    # 100,001 in groups of 34, and a cut may be one of them off.
    assert abs(found.start - 30_000) <= 2 * 34


def test_a_single_spike_is_no_change() -> None:
    samples_ns = noisy([(200, 45.0)])
    samples_ns[120] *= 20

    assert steady_state(samples_ns).kind == "steady"


@pytest.mark.parametrize("samples_ns", [[], [7], [0] * 40, [0, 5, 5, 5], [5] * 40])
def test_degenerate_series_are_steady(samples_ns: list[int]) -> None:
    assert steady_state(samples_ns) == SteadyState(kind="steady", start=0)


@settings(max_examples=60)
@given(samples_ns=st.lists(st.integers(0, 10**12), min_size=1, max_size=80))
def test_some_samples_are_always_left(samples_ns: list[int]) -> None:
    assert 0 <= steady_state(samples_ns).start < len(samples_ns)


@settings(max_examples=40)
@given(seed=st.integers(0, 1000), factor=st.integers(2, 1000))
def test_another_unit_changes_nothing(seed: int, factor: int) -> None:
    samples_ns = noisy([(15, 60.0), (45, 45.0)], seed=seed)

    assert steady_state([factor * sample for sample in samples_ns]) == steady_state(samples_ns)


def test_the_worker_that_settles_last_counts() -> None:
    early = SteadyState(kind="warm-up then steady", start=2)
    late = SteadyState(kind="warm-up then steady", start=9)
    slowed = SteadyState(kind="slowdown", start=5)

    assert worst([late, early]) == late
    assert worst([early, slowed, late]) == slowed
