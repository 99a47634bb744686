"""Comparisons by rank against SciPy's exact test, and their invariants."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corebound.stats.ranks import LEAST_LAUNCHES, compare_ranks
from support.known import known

logs = st.lists(
    st.floats(-50, 50, allow_subnormal=False), min_size=LEAST_LAUNCHES, max_size=12, unique=True
)


@given(logs, logs)
def test_the_p_value_is_that_of_the_exact_test(ours: list[float], theirs: list[float]) -> None:
    if set(ours) & set(theirs):
        return
    comparison = known(compare_ranks(ours, theirs))

    expected = stats.mannwhitneyu(ours, theirs, method="exact").pvalue
    assert comparison.p_value == pytest.approx(expected, rel=1e-12)


@given(logs, logs)
def test_swapping_the_cells_gives_the_reciprocal(ours: list[float], theirs: list[float]) -> None:
    one, other = compare_ranks(ours, theirs), compare_ranks(theirs, ours)

    assert one is not None
    assert other is not None
    assert one.p_value == other.p_value
    assert one.interval.low == pytest.approx(1 / other.interval.high)


@given(logs, logs, st.sampled_from([0.9, 0.95, 0.99, 0.999]))
def test_the_interval_excludes_one_exactly_where_the_test_rejects(
    ours: list[float], theirs: list[float], confidence: float
) -> None:
    comparison = known(compare_ranks(ours, theirs, confidence=confidence))

    # Ties, also of times that differ by less than a float shows.
    if (np.exp(np.subtract.outer(theirs, ours)) == 1.0).any():
        return
    is_outside = not comparison.interval.contains(1.0)
    assert is_outside == (comparison.p_value <= 1 - confidence + 1e-12)


def test_fewer_than_five_launches_of_a_side_have_no_comparison() -> None:
    assert compare_ranks([0.0] * 4, [1.0] * 12) is None


def test_equal_launches_never_differ() -> None:
    comparison = known(compare_ranks([0.0] * 8, [0.0] * 8))

    assert comparison.p_value == 1.0
    assert comparison.interval.contains(1.0)


def test_one_launch_that_is_far_away_does_not_hide_a_difference() -> None:
    slow = [math.log(ms) for ms in (16.7, 51.7, 39.0, 25.0, 480.0, 23.0)]
    fast = [math.log(ms) for ms in (9.9, 10.1, 12.6, 11.3, 13.0, 12.2)]

    comparison = known(compare_ranks(fast, slow))

    assert comparison.interval.low > 1.2


def test_the_interval_holds_the_shift_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        ours, theirs = rng.standard_t(2, 8), rng.standard_t(2, 8) + 1.0
        comparison = known(compare_ranks(ours.tolist(), theirs.tolist()))
        held += comparison.interval.contains(math.e)

    # At 99 %, fewer than 388 of 400 happen once in 1,000.
    assert held >= 388
