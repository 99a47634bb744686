"""Specifies what a calibration promises, checked in simulated experiments."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from corebound.records.calibration import Noise
from corebound.stats.comparison import Comparison, compare
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.noise_floor import LEAST_PAIRS, experiments, noise, spread_ratio
from corebound.stats.ranks import compare_ranks
from support.build import a_cell, a_launch, a_worker
from support.examples import examples
from support.known import known

MARGIN = 0.001


Pairs = tuple[list[float], list[float]]


def pairs(rng: np.random.Generator, count: int, spread: float = 0.02) -> Pairs:
    """Ratios and levels of pairs of equal launches, whose ratios have this spread."""
    return pairs_of(np.exp(rng.normal(0, spread / math.sqrt(2), (2, count))))


def pairs_of(times: NDArray[np.float64]) -> Pairs:
    return list(times[0] / times[1]), list(np.log(times).mean(axis=0))


def student_says(drawn: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of experiments and the reach of their intervals: a tenth more than t(0.975, 9)."""
    n = drawn.shape[1]
    assert n == 10
    return drawn.mean(axis=1), 1.1 * 2.262 * drawn.std(axis=1, ddof=1) / math.sqrt(n)


@pytest.fixture(scope="module")
def calibrations() -> list[Noise]:
    """Of sixteen hosts of one spread, each from thirty pairs of launches."""
    rng = np.random.default_rng(1)
    return [
        noise(*pairs(rng, 30), launches=10, margin=MARGIN, adaptive=False, seed=k)
        for k in range(16)
    ]


def test_equal_cells_alarm_in_less_than_one_of_twenty_simulations(
    calibrations: list[Noise],
) -> None:
    assert 0.02 <= np.mean([one.false_alarm_rate for one in calibrations]) <= 0.05


def test_the_smallest_detectable_slowdown_is_found_nine_times_in_ten(
    calibrations: list[Noise],
) -> None:
    rng = np.random.default_rng(2)
    shares = []
    for found in calibrations:
        slower, baseline = rng.normal(0, 0.02 / math.sqrt(2), (2, 200, 10))
        slower += math.log1p(known(found.detectable_ratio))
        means, reaches = student_says(slower - baseline)
        ranks = [compare_ranks(*sides) for sides in zip(slower, baseline, strict=True)]
        by_ranks = [each is not None and each.interval.high < 1 for each in ranks]
        shares.append(float(np.mean((means - reaches > 0) | by_ranks)))

    # Thirty pairs tell a spread to 13 %, so calibrations differ, and too small a spread costs more
    # than too large a one gains: the mean of sixteen is 0.87 with a standard deviation of 0.02.
    assert float(np.mean(shares)) == pytest.approx(0.87, abs=0.06)


def test_the_floor_is_the_reach_of_an_interval(calibrations: list[Noise]) -> None:
    _, reaches = student_says(np.random.default_rng(3).normal(0, 0.02, (4000, 10)))

    # Thirty pairs tell a spread to 13 %, sixteen times thirty to 3 %.
    floor = np.mean([one.floor_ratio for one in calibrations])
    assert floor == pytest.approx(float(np.median(reaches)), rel=0.08)


def test_with_a_wide_margin_every_quiet_pair_is_equivalent() -> None:
    found = noise(
        *pairs(np.random.default_rng(1), 30, 0.001),
        launches=10,
        margin=0.02,
        adaptive=False,
        seed=1,
    )

    assert found.false_alarm_rate == 0
    # Whatever lies within the margin is equal: so a slowdown has to reach about that far.
    assert found.detectable_ratio == pytest.approx(0.02, abs=0.002)


@examples(8)
@given(
    logs=st.lists(st.floats(-0.5, 0.5), min_size=LEAST_PAIRS, max_size=20),
    launches=st.integers(2, 30),
    seed=st.integers(0, 10),
)
def test_the_order_of_the_copies_does_not_matter(
    logs: list[float], launches: int, seed: int
) -> None:
    one, other = (
        noise(
            [math.exp(sign * log) for log in logs],
            [0.0] * len(logs),
            launches=launches,
            margin=0.02,
            adaptive=True,
            seed=seed,
        )
        for sign in (1, -1)
    )

    assert one.floor_ratio == pytest.approx(other.floor_ratio)
    assert one.false_alarm_rate == pytest.approx(other.false_alarm_rate, abs=0.05)


def test_more_launches_lower_the_floor() -> None:
    ratios = pairs(np.random.default_rng(4), 30)

    found = [
        noise(*ratios, launches=n, margin=MARGIN, adaptive=False, seed=1) for n in (4, 8, 16, 30)
    ]

    sizes = [one.detectable_ratio or math.inf for one in found]
    assert sizes == sorted(sizes, reverse=True)
    assert [one.floor_ratio for one in found] == sorted(
        (one.floor_ratio for one in found), reverse=True
    )


def test_stopping_at_a_narrow_interval_raises_the_floor() -> None:
    ratios = pairs(np.random.default_rng(5), 20)

    fixed, adaptive = (
        noise(*ratios, launches=10, margin=MARGIN, adaptive=price, seed=1).floor_ratio
        for price in (False, True)
    )

    assert math.log1p(adaptive) == pytest.approx(1.2 / 1.1 * math.log1p(fixed))


def test_a_spread_is_a_share_and_too_few_or_too_noisy_pairs_tell_no_slowdown() -> None:
    wild = noise([0.01, 100.0, 0.01], [0.0] * 3, launches=2, margin=0.02, adaptive=False, seed=1)

    # The logarithms are -0.01, 0, 0.01, whose standard deviation is 0.01.
    ratios = [math.exp(log) for log in (-0.01, 0.0, 0.01)]
    assert spread_ratio(ratios) == pytest.approx(math.expm1(0.01))
    assert wild.detectable_ratio is None
    with pytest.raises(ValueError, match="three pairs"):
        noise([1.0, 1.1], [0.0, 0.0], launches=6, margin=0.02, adaptive=False, seed=1)


def one_in_ten_slow(rng: np.random.Generator, *size: int) -> NDArray[np.float64]:
    """Times of launches that differ by 1 %; one in ten takes up to twice as long."""
    slow = np.where(rng.random(size) < 0.1, rng.uniform(math.log(1.1), math.log(2), size), 0.0)
    times: NDArray[np.float64] = 1e8 * np.exp(rng.normal(0, 0.01, size) + slow)
    return times


def a_side(medians_ns: NDArray[np.float64]) -> CellSummary:
    launches = [
        a_launch(block=block, workers=(a_worker(wall_ns=(round(median_ns),)),))
        for block, median_ns in enumerate(medians_ns)
    ]
    return summarise(a_cell(), launches, "auto")


def compared_for_real(trials: int, *, slowdown: float, adaptive: bool = False) -> list[Comparison]:
    """Comparisons of ten launches of each, of which one side is slower, by `compare` itself."""
    found = []
    for times in one_in_ten_slow(np.random.default_rng(7), trials, 2, 10):
        cell, baseline = a_side(times[0] * (1 + slowdown)), a_side(times[1])
        one = known(compare(cell, baseline, margin=0.02, adaptive=adaptive))
        found.append(one)
    return found


def known_pairs() -> Pairs:
    """Pairs enough to know that noise."""
    return pairs_of(one_in_ten_slow(np.random.default_rng(6), 2, 500))


@pytest.mark.parametrize(("slowdown", "adaptive"), [(0.02, False), (0.03, False), (0.03, True)])
def test_with_slow_outliers_a_calibration_detects_as_much_as_a_comparison(
    slowdown: float, adaptive: bool
) -> None:
    drawn = experiments(*known_pairs(), launches=10, adaptive=adaptive, seed=1)

    promised = np.mean([each.detectable_slowdown(0.02) <= math.log1p(slowdown) for each in drawn])
    real = compared_for_real(100, slowdown=slowdown, adaptive=adaptive)
    found = np.mean([one.verdict == "slower" for one in real])
    # Of 100 trials a rate of one half has a standard deviation of 5 %, and less elsewhere.
    assert promised == pytest.approx(found, abs=3 * 0.05)
    # A mean of all launches finds 3 % in a quarter of the trials.
    assert slowdown < 0.03 or promised > 0.8


def test_with_slow_outliers_floor_and_false_alarms_match_a_comparison() -> None:
    promised = noise(*known_pairs(), launches=10, margin=0.02, adaptive=False, seed=1)

    real = compared_for_real(200, slowdown=0.0)

    reaches = [one.interval.relative_half_width for one in real if one.interval]
    assert promised.floor_ratio == pytest.approx(float(np.median(reaches)), rel=0.1)
    # A mean of all launches has a floor of 13 %.
    assert promised.floor_ratio < 0.02
    alarms = np.mean([one.verdict in {"faster", "slower"} for one in real])
    # 200 trials at 3 %: standard deviation 1.2 %.
    assert promised.false_alarm_rate == pytest.approx(alarms, abs=0.036)
