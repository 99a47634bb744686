"""What several hosts say together, against published values."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.between_hosts import (
    ClassEstimate,
    HostValue,
    compare_classes,
    deviations,
    estimate_class,
    qn,
)
from support.known import known

# Thirteen trials of the BCG vaccine: log risk ratios and their variances, as in Viechtbauer,
# "Conducting meta-analyses in R with the metafor package", J. Stat. Software 36(3) (2010).
BCG = [
    (-0.8893, 0.3256), (-1.5854, 0.1946), (-1.3481, 0.4154), (-1.4416, 0.0200),
    (-0.2175, 0.0512), (-0.7861, 0.0069), (-1.6209, 0.2230), (0.0120, 0.0040),
    (-0.4694, 0.0564), (-1.3713, 0.0730), (-0.3394, 0.0124), (0.4459, 0.5325),
    (-0.0173, 0.0714),
]  # fmt: skip


def values(pairs: list[tuple[float, float]]) -> list[HostValue]:
    return [HostValue(log=log, variance=variance) for log, variance in pairs]


def hosts(logs: list[float], error: float = 0.001) -> list[HostValue]:
    return [HostValue(log=log, variance=error**2) for log in logs]


def test_mean_spread_and_intervals_are_those_of_the_literature() -> None:
    # Paule-Mandel and Hartung-Knapp: statsmodels 0.15, combine_effects(method_re="iterated"):
    # 0.31808, -0.71497, HKSJ 0.18089 and the interval -1.10911 to -0.32084.
    estimate = estimate_class(values(BCG))

    assert known(estimate.spread) ** 2 == pytest.approx(0.31808, abs=1e-5)
    assert (estimate.log, estimate.error) == pytest.approx((-0.71497, 0.18089), abs=1e-5)
    ends = math.log(known(estimate.interval).low), math.log(known(estimate.interval).high)
    assert ends == pytest.approx((-1.10911, -0.32084), abs=1e-5)
    # Q-profile: Viechtbauer, Statistics in Medicine 26 (2007) and metafor's confint.
    squares = [end**2 for end in known(estimate.spread_interval)]
    assert squares == pytest.approx([0.1197, 1.1115], abs=1e-4)


def test_one_host_says_nothing_about_its_class_and_three_have_no_outlier() -> None:
    alone = estimate_class(hosts([0.4]))
    (group,) = deviations([hosts([0.0, 0.0, 5.0])])

    assert (alone.log, alone.interval, alone.spread) == (0.4, None, None)
    assert [deviation.limit for deviation in group] == [None] * 3
    assert compare_classes([alone, an_estimate(0.0, 0.01, 5)]) is None


def test_hosts_that_agree_by_chance_do_not_narrow_the_interval_below_their_errors() -> None:
    estimate = estimate_class(hosts([0.1, 0.1, 0.1, 0.1], error=0.02))

    assert estimate.spread == 0
    assert estimate.error == pytest.approx(0.02 / math.sqrt(4))


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(1e-6, 1.0)), min_size=2, max_size=12),
    st.floats(-2, 2),
)
def test_a_common_factor_moves_the_estimate_and_nothing_else(
    pairs: list[tuple[float, float]], shift: float
) -> None:
    plain = estimate_class(values(pairs))
    moved = estimate_class(values([(log + shift, variance) for log, variance in pairs]))

    assert moved.log == pytest.approx(plain.log + shift, abs=1e-6)
    assert moved.error == pytest.approx(plain.error, rel=1e-4)
    assert moved.spread == pytest.approx(plain.spread, rel=1e-3, abs=1e-4)


def test_qn_of_ten_consecutive_numbers_and_with_outliers() -> None:
    clean = [0.0, 0.01, -0.01, 0.02, -0.02]

    # Rank C(6, 2) = 15 of the 45 distances: nine are 1, eight are 2, so it is 2. The correction
    # for ten values is 10 / 13.8.
    assert qn(np.arange(10.0)) == pytest.approx(2.2219 * 2 * 10 / 13.8)
    assert qn(np.array([*clean, 5.0, 9.0])) < 20 * qn(np.array(clean))


def test_a_host_far_from_its_class_is_an_outlier_and_the_others_are_not() -> None:
    rng = np.random.default_rng(1)
    fleet = [hosts(list(rng.normal(0, 0.03, 6))) for _ in range(20)]
    fleet[3][2] = HostValue(log=fleet[3][2].log + 0.8, variance=1e-6)

    found = [
        (group, host)
        for group, tested in enumerate(deviations(fleet))
        for host, deviation in enumerate(tested)
        if deviation.is_outlier
    ]

    assert found == [(3, 2)]


Draw = Callable[[np.random.Generator, int], Any]


def normal(rng: np.random.Generator, size: int) -> Any:
    return rng.normal(0, rng.lognormal(math.log(0.03), 0.5), size)


def heavy(rng: np.random.Generator, size: int) -> Any:
    return 0.02 * rng.standard_t(3, size)


def skewed(rng: np.random.Generator, size: int) -> Any:
    return 0.02 * rng.lognormal(0, 0.8, size)


@pytest.mark.parametrize(
    ("draw", "sizes", "seed"),
    [
        *((normal, sizes * 10, 2) for sizes in ([20] * 10, [4, 5, 6, 35, 50, 100], [200])),
        *((heavy, [20] * 30, seed) for seed in range(4)),
        (skewed, [6] * 165, 0),
    ],
)
def test_a_fleet_without_an_outlier_has_none(draw: Draw, sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)

    tested = deviations([hosts([*draw(rng, size)]) for size in sizes])

    assert not any(deviation.is_outlier for group in tested for deviation in group)


def test_hosts_with_equal_values_are_no_outliers_and_any_other_is() -> None:
    (equal,) = deviations([hosts([0.5] * 6)])
    assert not any(deviation.is_outlier for deviation in equal)

    (odd,) = deviations([hosts([0.5] * 7 + [0.6])])
    assert [deviation.is_outlier for deviation in odd] == [False] * 7 + [True]


def test_two_outliers_do_not_hide_each_other() -> None:
    rng = np.random.default_rng(3)
    fleet = [hosts([*rng.normal(0, 0.03, 18), 0.9, 0.9]) for _ in range(3)]

    for group in deviations(fleet):
        assert [deviation.is_outlier for deviation in group] == [False] * 18 + [True] * 2


def test_a_host_beyond_the_gap_is_an_outlier_in_all_values_beyond_its_limit() -> None:
    rng = np.random.default_rng(4)
    fleet = [hosts([*(0.02 * rng.standard_t(4, 20))]) for _ in range(20)]
    ids = [[f"{group % 4}-{host}" for host in range(20)] for group in range(20)]
    for group, log in ((0, 3.0), (4, 0.4)):
        fleet[group][7] = HostValue(log=log, variance=1e-6)

    alone, together = deviations(fleet), deviations(fleet, ids)

    assert alone[0][7].is_outlier
    assert not alone[4][7].is_outlier
    assert [together[group][7].is_outlier for group in (0, 4, 8)] == [True, True, False]


@pytest.mark.parametrize("seed", range(3))
def test_one_outlier_in_200_hosts_does_not_hide_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fleet = [hosts([*rng.normal(0, 0.01, 6)]) for _ in range(33)]
    fleet[5][1] = HostValue(log=0.25, variance=1e-6)

    found = [each.is_outlier for group in deviations(fleet) for each in group]

    assert found.count(True) == 1


def test_a_host_with_an_uncertain_value_may_be_further_away() -> None:
    logs = [0.0, 0.01, -0.01, 0.02, -0.02, 0.5]
    certain, uncertain = hosts(logs), hosts(logs)
    uncertain[-1] = HostValue(log=0.5, variance=0.4**2)

    (sure,), (unsure,) = deviations([certain] * 1), deviations([uncertain])

    assert known(unsure[-1].limit) > known(sure[-1].limit)


def an_estimate(log: float, error: float, hosts: int) -> ClassEstimate:
    return ClassEstimate(
        hosts=hosts, log=log, error=error, freedom=hosts - 1, spread=0.0, spread_interval=(0.0, 0.0)
    )


def test_two_classes_are_compared_with_welchs_t() -> None:
    # Of two groups, F is the square of Welch's t, with Satterthwaite's degrees of freedom:
    # t = 0.1 / hypot(0.02, 0.03) = 2.7735; (0.0004 + 0.0009)**2 / (0.0004**2/4 + 0.0009**2/9).
    difference = known(compare_classes([an_estimate(0.0, 0.02, 5), an_estimate(0.1, 0.03, 10)]))

    assert difference.statistic == pytest.approx(0.1**2 / (0.02**2 + 0.03**2))
    assert difference.freedoms == pytest.approx((1, 0.0013**2 / (0.0004**2 / 4 + 0.0009**2 / 9)))


def test_three_groups_are_compared_with_welchs_f() -> None:
    # Values of anova_oneway(groups, use_var="unequal") of statsmodels 0.15.
    groups = [[1.0, 2, 3, 4], [3.0, 4, 5, 6, 7], [10.0, 12, 14]]
    estimates = [
        an_estimate(
            float(np.mean(group)), float(np.std(group, ddof=1)) / len(group) ** 0.5, len(group)
        )
        for group in groups
    ]

    difference = known(compare_classes(estimates))

    assert difference.statistic == pytest.approx(22.6815594, rel=1e-6)
    assert difference.p_value == pytest.approx(0.00353677562, rel=1e-6)
