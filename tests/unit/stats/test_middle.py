"""The middle of numbers: the mean of all, or of those that are not far out where these decide."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corebound.stats.intervals import LEAST, TrimmedMean, adaptive_trimmed_mean

values = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=40)
STEADY = (0.9, 1.1, 1.0, 0.8, 1.2, 1.05, 0.95, 1.15, 0.85, 1.0)


def test_where_nothing_stands_out_it_is_the_mean_with_students_interval() -> None:
    found = adaptive_trimmed_mean(STEADY)

    told = stats.ttest_1samp(STEADY, 0).confidence_interval(0.95)
    assert found.mean == pytest.approx(statistics.fmean(STEADY))
    assert found.freedom == 9
    assert found.mean + found.reach == pytest.approx(told.high)


def test_what_is_far_out_is_left_out_and_counts_in_the_error_as_the_outermost_that_stays() -> None:
    far = (*STEADY[:8], 60.0, -90.0)

    found = adaptive_trimmed_mean(far)

    assert found.mean == pytest.approx(stats.trim_mean(far, 0.2))
    assert found.freedom == 5
    assert found.reach < 0.5


def test_its_error_is_that_of_the_trimmed_t() -> None:
    far = (*STEADY[:8], 60.0, -90.0)
    still = stats.ttest_ind(far, [0.0] * 9 + [1e-12], equal_var=False, trim=0.2)

    assert adaptive_trimmed_mean(far).mean / adaptive_trimmed_mean(far).error == pytest.approx(
        still.statistic
    )


def test_two_equal_kinds_are_no_outliers() -> None:
    kinds = (0.0, 6.0) * 8

    assert adaptive_trimmed_mean(kinds).mean == 3.0
    assert adaptive_trimmed_mean(kinds).freedom == 15


def test_of_few_none_is_left_out() -> None:
    assert adaptive_trimmed_mean((1.0,) * (LEAST - 2) + (1000.0,)).mean > 100


@given(values=values, shift=st.integers(-1000, 1000))
def test_what_all_are_moved_by_moves_the_middle_alone(values: list[float], shift: int) -> None:
    before, after = (
        adaptive_trimmed_mean(values),
        adaptive_trimmed_mean([value + shift for value in values]),
    )

    assert near(after.mean, before.mean + shift)
    assert near(after.error, before.error)


@given(values=values)
def test_the_other_way_round_it_is_the_same(values: list[float]) -> None:
    found, mirrored = (
        adaptive_trimmed_mean(values),
        adaptive_trimmed_mean([-value for value in values]),
    )

    assert near(mirrored.mean, -found.mean)
    assert near(mirrored.error, found.error)


@given(values=values)
def test_it_lies_among_the_numbers_and_its_error_is_none_or_more(values: list[float]) -> None:
    found: TrimmedMean = adaptive_trimmed_mean(values)

    assert min(values) - 1e-9 <= found.mean <= max(values) + 1e-9
    assert found.error >= 0
    assert 1 <= found.freedom < len(values)


def near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
