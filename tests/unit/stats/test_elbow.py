"""A series is cut as often as it really changes, whatever its noise."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corebound.stats.warmup import cuts_before_elbow

FLOOR = 1e-6


@settings(max_examples=50)
@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=120))
def test_cuts_rise_and_leave_every_segment_its_least_length(values: list[float]) -> None:
    cuts = cuts_before_elbow(values, min_segment=2, variance_floor=FLOOR)

    ends = (0, *cuts, len(values))
    assert all(end - start >= 2 for start, end in itertools.pairwise(ends))


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), noise=st.sampled_from([0.002, 0.01, 0.03]))
def test_two_levels_are_told_apart_at_any_noise_that_leaves_them_apart(
    seed: int, noise: float
) -> None:
    rng = np.random.default_rng(seed)
    levels = np.repeat([1.5, 1.0], [80, 220])

    cuts = cuts_before_elbow(
        levels * np.exp(noise * rng.standard_normal(300)), min_segment=2, variance_floor=FLOOR
    )

    assert any(abs(cut - 80) <= 1 for cut in cuts)


def test_a_series_of_one_value_has_no_cut() -> None:
    assert cuts_before_elbow([1.0] * 200, min_segment=2, variance_floor=FLOOR) == ()
