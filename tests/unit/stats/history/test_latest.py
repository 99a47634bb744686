"""Specifies the latest value of a short series relative to the values before it."""

import math
import random

import pytest

from corebound.stats.history.latest import LatestDifference, latest_difference
from support.known import known
from support.series import Observation, history_arrays


def latest(*values: float) -> LatestDifference | None:
    return latest_difference(history_arrays([Observation(figure=value) for value in values]))


def test_one_value_has_nothing_to_compare_with() -> None:
    assert latest(2.0) is None


def test_two_values_have_a_ratio_without_an_interval() -> None:
    difference = known(latest(2.0, 3.0))

    assert difference.ratio == pytest.approx(1.5)
    assert difference.before == 1
    assert difference.interval is None


def test_the_interval_is_that_of_one_further_normal_value() -> None:
    difference = known(latest(math.exp(-0.1), 1.0, math.exp(0.1), math.exp(0.5)))

    # Three values with standard deviation 0.1; Student's factor of 2 degrees is 4.303.
    reach = 4.3027 * 0.1 * math.sqrt(1 + 1 / 3)
    assert difference.ratio == pytest.approx(math.exp(0.5))
    assert known(difference.interval).low == pytest.approx(math.exp(0.5 - reach), rel=1e-4)
    assert known(difference.interval).high == pytest.approx(math.exp(0.5 + reach), rel=1e-4)


def test_values_of_another_environment_do_not_count() -> None:
    old = [Observation(figure=9.0, key="old")] * 3
    new = [Observation(figure=1.0, key="new"), Observation(figure=1.1, key="new")]

    difference = known(latest_difference(history_arrays([*old, *new])))

    assert difference.ratio == pytest.approx(1.1)
    assert difference.before == 1


def test_without_a_change_the_interval_misses_1_in_one_of_twenty_series() -> None:
    chance = random.Random(7)
    missed = 0
    for _ in range(2_000):
        difference = known(latest(*(math.exp(chance.gauss(0, 0.02)) for _ in range(4))))
        missed += not known(difference.interval).low <= 1 <= known(difference.interval).high

    # The standard error of the share is 0.5 %.
    assert missed / 2_000 == pytest.approx(0.05, abs=0.015)
