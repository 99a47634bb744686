"""Specifies the comparison of two points of one history."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.comparison import Comparison
from corebound.stats.history.change_point import HistoryArrays, segments_of
from corebound.stats.history.pairwise import MIN_NOISE_POINTS, compare_points
from support.known import known

LOGS = st.lists(st.floats(-1, 1), min_size=30, max_size=60)


def a_history(logs: list[float], *, kernels: str = "", error: float = 0.0) -> HistoryArrays:
    """A night a figure, in one kernel, or each in that of its letter."""
    values = np.array(logs, dtype=np.float64)
    told = kernels or "a" * len(logs)
    borders = [at for at in range(1, len(told)) if told[at] != told[at - 1]]
    return HistoryArrays(
        logs=values, errors=np.full(values.size, error), segments=segments_of(told, borders)
    )


def noise(nights: int, *, seed: int = 1, kind: str = "normal") -> list[float]:
    rng = np.random.default_rng(seed)
    course = rng.normal(0, 0.02, nights)
    if kind == "spikes":
        course += np.where(rng.random(nights) < 0.05, rng.exponential(0.3, nights), 0)
    if kind == "two kinds":
        course += 0.06 * (rng.random(nights) < 0.3)
    return [*map(float, course)]


def width_of(found: Comparison | None) -> float:
    assert found is not None
    return known(found.interval).high / known(found.interval).low


def test_a_step_differs_from_the_noise_around_it() -> None:
    logs = noise(40) + [0.2 + value for value in noise(40, seed=2)]

    found = known(compare_points(a_history(logs), 10, 70, changed=(40,), margin=0.02))

    assert found.verdict == "slower"
    assert known(found.interval).low < math.exp(-0.2) < known(found.interval).high
    assert known(found.p_value) < 0.01


@pytest.mark.parametrize("kind", ["normal", "spikes", "two kinds"])
def test_two_points_of_one_level_differ_once_in_twenty(kind: str) -> None:
    wrong = tries = 0
    for seed in range(40):
        course = a_history(noise(60, seed=seed, kind=kind))
        for before, after in ((5, 50), (20, 21), (30, 59)):
            found = known(compare_points(course, before, after, changed=(), margin=0.001))
            wrong += found.verdict in {"faster", "slower"}
            tries += 1
    # Three standard errors of a binomial count about one in twenty.
    assert wrong <= tries / 20 + 3 * math.sqrt(tries * 0.05 * 0.95)


def test_a_missing_value_has_no_comparison() -> None:
    logs = noise(30)
    logs[3] = math.nan

    assert compare_points(a_history(logs), 3, 9, changed=(), margin=0.02) is None


def test_few_points_give_no_noise() -> None:
    found = known(
        compare_points(
            a_history([0.0, *noise(MIN_NOISE_POINTS - 2)]), 0, 5, changed=(), margin=0.02
        )
    )

    assert (found.interval, found.p_value, found.verdict) == (None, None, "inconclusive")


def test_wide_intervals_of_points_widen_their_comparison() -> None:
    sure = compare_points(a_history(noise(40)), 3, 9, changed=(), margin=0.02)
    unsure = compare_points(a_history(noise(40), error=0.5), 3, 9, changed=(), margin=0.02)

    assert width_of(unsure) > width_of(sure)


@given(logs=LOGS, places=st.tuples(st.integers(0, 29), st.integers(0, 29)))
def test_swapping_the_points_gives_the_reciprocal(
    logs: list[float], places: tuple[int, int]
) -> None:
    course = a_history(logs)
    one = known(compare_points(course, *places, changed=(), margin=0.02))
    other = known(compare_points(course, *reversed(places), changed=(), margin=0.02))

    assert one.speedup_ratio * other.speedup_ratio == pytest.approx(1)
    assert width_of(one) == pytest.approx(width_of(other))
    assert one.p_value == other.p_value


def test_values_at_the_ends_of_a_float_s_range_have_a_ratio() -> None:
    logs = [math.log(5e-324)] * 20 + [math.log(1.7e308)] * 20

    found = known(compare_points(a_history(logs), 0, 39, changed=(20,), margin=0.02))

    assert found.verdict == "slower"
    assert 0 < found.speedup_ratio < 1e-300
