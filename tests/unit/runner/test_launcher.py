"""What a launch of a server has of its own in each block."""

from __future__ import annotations

from itertools import pairwise

from corebound.runner.launcher import traffic_in_block
from support.build import a_traffic


def test_searches_for_a_rate_have_other_arrivals_in_each_block() -> None:
    traffic = a_traffic(shape="rate-search", seed=5)

    seeds = [traffic_in_block(traffic, block).seed for block in range(50)]

    assert seeds[0] == 5
    # A search takes the next seed when it tries a rate again.
    assert min(later - earlier for earlier, later in pairwise(seeds)) > 100


def test_other_traffic_is_the_same_in_each_block() -> None:
    traffic = a_traffic(shape="poisson", seed=5)

    assert traffic_in_block(traffic, 3) == traffic
