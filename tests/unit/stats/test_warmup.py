"""Specifies when a launch is warmed up, and the segmentation that decides it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corebound.stats.warmup import (
    SteadyState,
    change_points,
    cuts_before_elbow,
    steady_state,
    worst,
)


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


LEVEL_FLOOR = 1e-6


@settings(max_examples=50)
@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=120))
def test_cuts_rise_and_leave_every_segment_its_least_length(values: list[float]) -> None:
    cuts = cuts_before_elbow(values, min_segment=2, variance_floor=LEVEL_FLOOR)

    ends = (0, *cuts, len(values))
    assert all(end - start >= 2 for start, end in itertools.pairwise(ends))


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), noise=st.sampled_from([0.002, 0.01, 0.03]))
def test_two_levels_are_separated_if_noise_allows_it(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    levels = np.repeat([1.5, 1.0], [80, 220])

    cuts = cuts_before_elbow(
        levels * np.exp(noise * rng.standard_normal(300)), min_segment=2, variance_floor=LEVEL_FLOOR
    )

    assert any(abs(cut - 80) <= 1 for cut in cuts)


def test_a_series_of_one_value_has_no_cut() -> None:
    assert cuts_before_elbow([1.0] * 200, min_segment=2, variance_floor=LEVEL_FLOOR) == ()


VARIANCE_FLOOR = 0.01


def _cost(values: list[float], cuts: tuple[int, ...], penalty: float) -> float:
    ends = (0, *cuts, len(values))
    return penalty * len(cuts) + sum(
        (end - start) * math.log(float(np.var(values[start:end])) + VARIANCE_FLOOR)
        for start, end in itertools.pairwise(ends)
    )


@settings(max_examples=60)
@given(
    values=st.lists(st.floats(0, 10, width=16), min_size=4, max_size=14),
    penalty=st.floats(0.1, 20),
    min_segment=st.integers(2, 4),
)
def test_the_segmentation_has_the_least_cost(
    values: list[float], penalty: float, min_segment: int
) -> None:
    found = change_points(
        values, penalty=penalty, min_segment=min_segment, variance_floor=VARIANCE_FLOOR
    )

    candidates = (
        cuts
        for count in range(len(values) // min_segment)
        for cuts in itertools.combinations(range(min_segment, len(values)), count)
        if all(b - a >= min_segment for a, b in itertools.pairwise((0, *cuts, len(values))))
    )
    least = min((_cost(values, cuts, penalty) for cuts in candidates), default=math.inf)
    assert _cost(values, found, penalty) <= least + 1e-6


def test_a_step_is_located() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(1.0, 0.01, 600)
    values[400:] += 0.05

    assert change_points(values, penalty=100, min_segment=10, variance_floor=1e-6) == (400,)


def test_a_change_of_noise_is_found() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(1.0, 0.01, 300), rng.normal(1.0, 0.05, 300)])

    (cut,) = change_points(values, penalty=100, min_segment=10, variance_floor=1e-6)

    assert abs(cut - 300) <= 3


def test_a_short_series_is_one_segment() -> None:
    assert change_points([1, 9, 1], penalty=0.1, min_segment=2, variance_floor=VARIANCE_FLOOR) == ()


def test_a_variance_needs_two_values_and_a_floor() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        change_points([1, 2], penalty=1, min_segment=1, variance_floor=VARIANCE_FLOOR)
    with pytest.raises(ValueError, match="floor"):
        change_points([1, 2], penalty=1, min_segment=2, variance_floor=0)
