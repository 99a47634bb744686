"""How far off the spread of a few launches may be."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import optimize, stats

from corebound.stats.intervals import variation_interval
from corebound.stats.launch_summary import summarise
from support.build import a_cell, a_launch, a_worker


def of_spread(ratio: float, n: int) -> list[float]:
    """Numbers whose standard deviation is this share of their mean."""
    z = np.linspace(-1.0, 1.0, n)
    return list(1.0 + ratio * z / z.std(ddof=1))


@pytest.mark.parametrize("n", [4, 6, 20])
@pytest.mark.parametrize("ratio", [0.01, 0.05, 0.15])
def test_it_is_near_the_exact_interval_of_normal_numbers(ratio: float, n: int) -> None:
    # sqrt(n) * mean / sd has a noncentral t distribution: exact, and too slow for a page.
    t = math.sqrt(n) / ratio

    def exact(share: float) -> float:
        def off(true: float) -> float:
            return float(stats.nct.cdf(t, n - 1, math.sqrt(n) / true)) - share

        return float(optimize.brentq(off, ratio / 20, min(ratio * 40, 3.0)))

    found = variation_interval(of_spread(ratio, n))

    assert found is not None
    assert found.low == pytest.approx(exact(0.025), rel=0.01)
    assert found.high == pytest.approx(exact(0.975), rel=0.08)


def test_it_holds_the_spread_of_few_launches_as_often_as_it_says() -> None:
    noise = random.Random(11)
    held = 0
    for _ in range(2000):
        found = variation_interval([noise.gauss(1.0, 0.02) for _ in range(6)])
        held += found is not None and found.contains(0.02)

    # 95 % of 2,000, give or take three standard errors of 0.5 %.
    assert 0.935 <= held / 2000 <= 0.965


def test_what_nobody_can_tell_has_no_bound() -> None:
    assert variation_interval([]) is None
    assert variation_interval([1.0]) is None
    assert variation_interval([0.0, 0.0]) is None
    assert variation_interval([1.0, 0.0]) is None
    wild = variation_interval([*[1.0] * 5, 1e6])
    assert wild is not None
    assert math.isinf(wild.high)


def test_launches_that_took_the_same_have_no_spread() -> None:
    found = variation_interval([5.0, 5.0, 5.0])

    assert found is not None
    assert (found.low, found.high) == (0.0, 0.0)


def test_a_cells_spread_lies_within_its_interval() -> None:
    launches = [
        a_launch(block=block, workers=(a_worker(wall_ns=(wall_ns,) * 30),))
        for block, wall_ns in enumerate((100, 104, 99, 103))
    ]
    cell = summarise(a_cell(), launches, "auto")

    assert cell.spread_ratio is not None
    assert cell.spread_interval is not None
    assert cell.spread_interval.low < cell.spread_ratio < cell.spread_interval.high
