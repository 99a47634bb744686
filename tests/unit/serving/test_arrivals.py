"""Schedules of open loops: seeded, at the rate asked for, and spread as their name says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.scenario.traffic import OPEN_SHAPES, Shape
from corebound.serving.generator.driver import intended_ns
from support.build import a_traffic

open_shapes = st.sampled_from(OPEN_SHAPES)
rates = st.floats(0.1, 100_000)
seeds = st.integers(0, 2**32 - 1)


@given(open_shapes, rates, st.integers(1, 500), seeds)
def test_every_request_has_a_time_and_none_goes_back(
    shape: Shape, rate_per_s: float, requests: int, seed: int
) -> None:
    times = intended_ns(a_traffic(shape=shape, requests=requests, rate_per_s=rate_per_s, seed=seed))

    assert len(times) == requests
    assert times[0] >= 0
    assert (np.diff(times) >= 0).all()


@given(open_shapes, seeds)
def test_the_same_seed_gives_the_same_schedule(shape: Shape, seed: int) -> None:
    traffic = a_traffic(shape=shape, seed=seed)

    assert (intended_ns(traffic) == intended_ns(traffic)).all()


@given(rates)
def test_a_constant_rate_sends_at_once_and_then_evenly(rate_per_s: float) -> None:
    times = intended_ns(a_traffic(shape="constant", rate_per_s=rate_per_s))

    assert times[0] == 0
    # Each is rounded to a nanosecond.
    assert np.abs(np.diff(times) - 1e9 / rate_per_s).max() <= 1


@given(rates, seeds)
def test_poisson_arrivals_come_at_their_rate_and_in_no_rhythm(rate_per_s: float, seed: int) -> None:
    times = intended_ns(
        a_traffic(shape="poisson", requests=10_000, rate_per_s=rate_per_s, seed=seed)
    )
    gaps_s = np.diff(times) / 1e9

    # An exponential distribution's mean and standard deviation are both 1 / rate; of 10,000
    # the mean is off by 1 % (one standard error), the deviation by 1.4 %: six of them.
    assert gaps_s.mean() * rate_per_s == pytest.approx(1.0, abs=0.06)
    assert gaps_s.std() * rate_per_s == pytest.approx(1.0, abs=0.085)


def test_two_seeds_give_two_schedules() -> None:
    first, second = (intended_ns(a_traffic(shape="poisson", seed=seed)) for seed in (1, 2))

    assert (first != second).any()


def test_a_closed_loop_has_no_schedule() -> None:
    with pytest.raises(ValueError, match="schedule"):
        intended_ns(a_traffic(shape="closed"))
