"""What an interval promises, whatever numbers it is made of."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.intervals import Interval, geometric_mean, geometric_mean_interval

times = st.floats(1.0, 1e12)


@given(ratios=st.lists(times, min_size=2, max_size=40))
def test_the_interval_of_a_time_is_never_negative_and_holds_its_middle(
    ratios: list[float],
) -> None:
    interval = geometric_mean_interval(ratios)

    assert interval is not None
    assert 0 <= interval.low <= interval.high
    middle = geometric_mean(ratios)
    assert interval.low <= middle * (1 + 1e-9)
    assert middle * (1 - 1e-9) <= interval.high


@given(ratios=st.lists(times, min_size=2, max_size=20), factor=st.floats(1e-3, 1e3))
def test_another_unit_scales_the_interval(ratios: list[float], factor: float) -> None:
    interval = geometric_mean_interval(ratios)
    scaled = geometric_mean_interval([ratio * factor for ratio in ratios])

    assert interval is not None
    assert scaled is not None
    # A few units in the last place of the logarithms, times t(0.975, 1) = 12.7.
    assert scaled.high == pytest.approx(interval.high * factor, rel=1e-9)


@pytest.mark.parametrize("ratios", [[], [1.0], [1.0, 0.0], [0.0, 0.0]])
def test_what_has_no_factor_between_has_no_interval(ratios: list[float]) -> None:
    assert geometric_mean_interval(ratios) is None


@pytest.mark.parametrize(
    # Student's factors of n - 1 degrees of freedom at 95 %, by any printed table.
    ("n", "factor"),
    [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (31, 2.042)],
)
def test_an_interval_reaches_as_far_as_the_table_of_students_t_says(n: int, factor: float) -> None:
    logs = [float(k) for k in range(n)]

    interval = geometric_mean_interval([math.exp(log) for log in logs])

    assert interval is not None
    # The variance of 0 … n - 1 is n (n + 1) / 12.
    error = math.sqrt((n + 1) / 12)
    assert math.log(interval.low) == pytest.approx((n - 1) / 2 - factor * error, abs=0.001 * n)
    assert math.log(interval.high) == pytest.approx((n - 1) / 2 + factor * error, abs=0.001 * n)


def test_the_ends_belong_to_an_interval() -> None:
    interval = Interval(low=0.98, high=1.02, confidence=0.95)

    inside = [interval.contains(value) for value in (0.98, 1.0, 1.02)]
    outside = [interval.contains(value) for value in (0.9799, 1.0201)]

    assert inside == [True] * 3
    assert outside == [False] * 2


def test_equal_numbers_leave_no_doubt() -> None:
    interval = geometric_mean_interval([3e6] * 5)

    assert interval is not None
    assert interval.relative_half_width == pytest.approx(0.0, abs=1e-12)


def test_two_far_apart_numbers_tell_next_to_nothing_but_do_not_fail() -> None:
    # exp(710) is beyond a float; t(0.975, 1) = 12.7 times the spread is further.
    interval = geometric_mean_interval([1.0, 1e300])

    assert interval is not None
    assert interval.high == math.inf
    assert interval.relative_half_width == math.inf


def test_the_half_width_is_the_factor_to_either_end() -> None:
    assert Interval(low=1 / 1.05, high=1.05, confidence=0.95).relative_half_width == pytest.approx(
        0.05
    )


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        geometric_mean_interval([1.0, 2.0], confidence=confidence)


def test_a_low_end_is_not_above_the_high_end() -> None:
    with pytest.raises(ValueError, match="low end"):
        Interval(low=2.0, high=1.0, confidence=0.95)
