"""Specifies which blocks a budget holds, and how long a launch may take."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.planning.budget import Turns, blocks_within, fair_share_s, next_turn


def turns(blocks: int, block_s: float, wanted: int = 3, least_block_s: float = 0.0) -> Turns:
    return Turns(blocks=blocks, wanted=wanted, block_s=block_s, least_block_s=least_block_s)


def test_a_scenario_without_a_block_comes_first_if_its_shortest_launches_fit() -> None:
    assert next_turn([turns(1, 1.0), turns(0, 99.0, least_block_s=5)], 10.0) == 1
    assert next_turn([turns(1, 1.0), turns(0, 99.0, least_block_s=11)], 10.0) == 0
    assert next_turn([turns(3, 1.0), turns(0, 99.0, least_block_s=11)], 10.0) == 1
    assert next_turn([turns(3, 1.0)], 10.0) is None


@pytest.mark.parametrize(
    ("budget_s", "blocks"),
    [(2, (1, 0)), (6, (1, 1)), (16, (2, 1)), (100, (3, 3)), (math.inf, (3, 3))],
)
def test_a_budget_holds_a_first_block_of_all_that_fit_before_a_second_of_one(
    budget_s: float, blocks: tuple[int, int]
) -> None:
    scenarios = [turns(0, 4.0, least_block_s=2), turns(0, 6.0, least_block_s=4)]

    assert blocks_within(scenarios, budget_s) == blocks


@given(
    st.floats(0.1, 1e4),
    st.integers(1, 10),
    st.lists(st.tuples(st.integers(0, 10), st.floats(0, 1e4))),
)
def test_with_its_fair_share_a_launch_leaves_all_others_theirs(
    left_s: float, own: int, others: list[tuple[int, float]]
) -> None:
    share_s = fair_share_s(left_s, own, others)

    used_s = own * share_s + sum(launches * min(each, share_s) for launches, each in others)
    assert used_s == pytest.approx(left_s)
    assert share_s >= left_s / (own + sum(launches for launches, _ in others)) * (1 - 1e-9)
