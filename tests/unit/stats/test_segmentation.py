"""Specifies how a series is divided into segments of their own mean and variance."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.segmentation import change_points, cuts_before_elbow
from support.examples import examples

LEVEL_FLOOR = 1e-6


@examples(50)
@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=120))
def test_cuts_rise_and_leave_every_segment_its_least_length(values: list[float]) -> None:
    cuts = cuts_before_elbow(values, min_segment=2, variance_floor=LEVEL_FLOOR)

    ends = (0, *cuts, len(values))
    assert all(end - start >= 2 for start, end in itertools.pairwise(ends))


@examples(20)
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


@examples(60)
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
