"""Specifies confidence intervals, trimmed means and bounds on a spread."""

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from corebound.stats.intervals import (
    LEAST,
    Interval,
    adaptive_trimmed_mean,
    geometric_mean,
    geometric_mean_interval,
    typical_launch_interval,
    typical_launch_value,
    variation_interval,
)
from corebound.stats.launch_summary import summarise
from support.build import a_cell, a_launch, a_worker
from support.known import known

times = st.floats(1.0, 1e12)


@given(ratios=st.lists(times, min_size=2, max_size=40), factor=st.floats(1e-3, 1e3))
def test_the_interval_of_a_time_is_positive_contains_its_mean_and_scales_with_it(
    ratios: list[float], factor: float
) -> None:
    interval = known(geometric_mean_interval(ratios))
    scaled = known(geometric_mean_interval([ratio * factor for ratio in ratios]))

    assert 0 <= interval.low <= interval.high
    middle = geometric_mean(ratios)
    assert interval.low <= middle * (1 + 1e-9)
    assert middle * (1 - 1e-9) <= interval.high
    # A few units in the last place of the logarithms, times t(0.975, 1) = 12.7.
    assert scaled.high == pytest.approx(interval.high * factor, rel=1e-9)


@pytest.mark.parametrize(
    # How many of n values lie outside the sign test's 95 % interval at either end, by any printed
    # table of its critical values.
    ("n", "outside"),
    [(6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (17, 4), (20, 5), (25, 7), (30, 9)],
)
def test_of_six_launches_or_more_the_interval_is_that_of_the_sign_test(
    n: int, outside: int
) -> None:
    interval = known(typical_launch_interval([math.exp(k) for k in range(n)]))

    assert outside <= math.log(interval.low) < outside + 1
    assert n - 2 - outside < math.log(interval.high) <= n - 1 - outside


@given(values=st.lists(times, min_size=2, max_size=40), factor=st.floats(10, 1e3))
def test_one_slow_launch_moves_the_value_of_a_cell_no_further_than_to_its_neighbour(
    values: list[float], factor: float
) -> None:
    slow = [*sorted(values)[:-1], max(values) * factor]

    interval = known(typical_launch_interval(values))

    assert interval.low * (1 - 1e-9) <= typical_launch_value(values) <= interval.high * (1 + 1e-9)
    if len(values) >= 6:
        assert typical_launch_value(slow) == typical_launch_value(values)


@pytest.mark.parametrize("ratios", [[], [1.0], [1.0, 0.0], [0.0, 0.0]])
def test_ratios_of_zero_or_infinity_have_no_interval(ratios: list[float]) -> None:
    assert geometric_mean_interval(ratios) is None


@pytest.mark.parametrize(
    # Student's factors of n - 1 degrees of freedom at 95 %, by any printed table.
    ("n", "factor"),
    [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (31, 2.042)],
)
def test_the_reach_of_an_interval_matches_the_table_of_student_s_t(n: int, factor: float) -> None:
    logs = [float(k) for k in range(n)]

    interval = known(geometric_mean_interval([math.exp(log) for log in logs]))

    # The variance of 0 … n - 1 is n (n + 1) / 12.
    error = math.sqrt((n + 1) / 12)
    assert math.log(interval.low) == pytest.approx((n - 1) / 2 - factor * error, abs=0.001 * n)
    assert math.log(interval.high) == pytest.approx((n - 1) / 2 + factor * error, abs=0.001 * n)


def test_the_ends_belong_to_an_interval_and_the_low_one_is_not_above_the_high_one() -> None:
    interval = Interval(low=0.98, high=1.02, confidence=0.95)

    assert all(interval.contains(value) for value in (0.98, 1.0, 1.02))
    assert not any(interval.contains(value) for value in (0.9799, 1.0201))
    with pytest.raises(ValueError, match="low end"):
        Interval(low=2.0, high=1.0, confidence=0.95)


def test_the_half_width_is_the_factor_to_either_end_from_none_to_infinite() -> None:
    of_5_percent = Interval(low=1 / 1.05, high=1.05, confidence=0.95)
    equal = known(geometric_mean_interval([3e6] * 5))
    # exp(710) is beyond a float; t(0.975, 1) = 12.7 times the spread is further.
    distant = known(geometric_mean_interval([1.0, 1e300]))

    assert of_5_percent.relative_half_width == pytest.approx(0.05)
    assert equal.relative_half_width == pytest.approx(0.0, abs=1e-12)
    assert distant.high == distant.relative_half_width == math.inf


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        geometric_mean_interval([1.0, 2.0], confidence=confidence)


values = st.lists(st.floats(-100, 100).map(lambda x: round(x, 3)), min_size=2, max_size=40)
STEADY = (0.9, 1.1, 1.0, 0.8, 1.2, 1.05, 0.95, 1.15, 0.85, 1.0)


def test_without_outliers_the_trimmed_mean_is_the_mean_with_student_s_interval() -> None:
    found = adaptive_trimmed_mean(STEADY)

    told = stats.ttest_1samp(STEADY, 0).confidence_interval(0.95)
    assert found.mean == pytest.approx(statistics.fmean(STEADY))
    assert found.freedom == 9
    assert found.mean + found.reach == pytest.approx(told.high)


def test_outliers_are_trimmed_and_winsorised_in_the_error() -> None:
    far = (*STEADY[:8], 60.0, -90.0)
    still = stats.ttest_ind(far, [0.0] * 9 + [1e-12], equal_var=False, trim=0.2)

    found = adaptive_trimmed_mean(far)

    assert found.mean == pytest.approx(stats.trim_mean(far, 0.2))
    assert found.mean / found.error == pytest.approx(still.statistic)
    assert found.freedom == 5
    assert found.reach < 0.5


def test_two_equal_groups_and_few_values_are_not_trimmed() -> None:
    kinds = (0.0, 6.0) * 8

    assert adaptive_trimmed_mean(kinds).mean == 3.0
    assert adaptive_trimmed_mean(kinds).freedom == 15
    assert adaptive_trimmed_mean((1.0,) * (LEAST - 2) + (1000.0,)).mean > 100


@given(values=values, shift=st.integers(-1000, 1000))
def test_the_trimmed_mean_lies_within_the_values_and_follows_a_shift_and_a_sign(
    values: list[float], shift: int
) -> None:
    found, moved, mirrored = (
        adaptive_trimmed_mean([sign * value + by for value in values])
        for sign, by in ((1, 0), (1, shift), (-1, 0))
    )

    assert min(values) - 1e-9 <= found.mean <= max(values) + 1e-9
    assert found.error >= 0
    assert 1 <= found.freedom < len(values)
    assert nearly_equal(moved.mean, found.mean + shift)
    assert nearly_equal(mirrored.mean, -found.mean)
    assert nearly_equal(moved.error, found.error)
    assert nearly_equal(mirrored.error, found.error)


def nearly_equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)


def of_spread(ratio: float, n: int) -> list[float]:
    """Numbers whose standard deviation is this share of their mean."""
    z = np.linspace(-1.0, 1.0, n)
    return list(1.0 + ratio * z / z.std(ddof=1))


@pytest.mark.parametrize("n", [4, 6, 20])
@pytest.mark.parametrize("ratio", [0.01, 0.05, 0.15])
def test_the_interval_of_a_spread_is_near_the_exact_one_of_normal_values(
    ratio: float, n: int
) -> None:
    # sqrt(n) * mean / sd has a noncentral t distribution: exact, and too slow for a page.
    t = math.sqrt(n) / ratio

    def exact(share: float) -> float:
        def off(true: float) -> float:
            return float(stats.nct.cdf(t, n - 1, math.sqrt(n) / true)) - share

        return float(optimize.brentq(off, ratio / 20, min(ratio * 40, 3.0)))

    found = known(variation_interval(of_spread(ratio, n)))

    assert found.low == pytest.approx(exact(0.025), rel=0.01)
    assert found.high == pytest.approx(exact(0.975), rel=0.08)


def test_the_interval_of_a_spread_covers_as_often_as_promised() -> None:
    noise = random.Random(11)
    held = 0
    for _ in range(2000):
        found = variation_interval([noise.gauss(1.0, 0.02) for _ in range(6)])
        held += found is not None and found.contains(0.02)

    # 95 % of 2,000, give or take three standard errors of 0.5 %.
    assert 0.935 <= held / 2000 <= 0.965


def test_an_unknown_spread_has_no_bound_and_equal_launches_have_none() -> None:
    values: tuple[list[float], ...] = ([], [1.0], [0.0, 0.0], [1.0, 0.0])

    assert [variation_interval(one) for one in values] == [None] * 4
    assert math.isinf(known(variation_interval([*[1.0] * 5, 1e6])).high)
    equal = known(variation_interval([5.0, 5.0, 5.0]))
    assert (equal.low, equal.high) == (0.0, 0.0)


def test_a_cells_spread_lies_within_its_interval() -> None:
    launches = [
        a_launch(block=block, workers=(a_worker(wall_ns=(wall_ns,) * 30),))
        for block, wall_ns in enumerate((100, 104, 99, 103))
    ]
    cell = summarise(a_cell(), launches, "auto")

    assert (
        known(cell.spread_interval).low
        < known(cell.spread_ratio)
        < known(cell.spread_interval).high
    )
