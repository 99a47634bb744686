"""Specifies a race: who leaves it and when, when it ends, and who is recommended."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.race import RaceRule
from corebound.stats.racing import Entrant, finalists, look_error, replay
from support.examples import examples
from support.known import known


def an_entrant(key: str, costs: Sequence[float], **changes: Any) -> Entrant:
    """An entrant whose launches in blocks 0, 1, … have these costs."""
    logs = {block: math.log(cost) for block, cost in enumerate(costs)}
    return replace(Entrant(key=key, log_costs=logs), **changes)


def noisy(true: float, *, blocks: int, seed: int, spread: float = 0.01) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(cost) for cost in true * np.exp(rng.normal(0, spread, blocks))]


def a_field(costs: Mapping[str, float], *, blocks: int = 30, seed: int = 1) -> list[Entrant]:
    return [
        an_entrant(key, noisy(cost, blocks=blocks, seed=1000 * seed + index))
        for index, (key, cost) in enumerate(costs.items())
    ]


def test_a_race_goes_on_until_all_that_remain_have_a_launch_in_its_block() -> None:
    entrants = [an_entrant("a", [1.0, 1.0]), an_entrant("b", [2.0])]

    race = replay(entrants, RaceRule())

    assert race.ending is None
    assert race.blocks == 1
    assert race.remaining == ("a", "b")


def test_one_that_is_slower_by_more_than_the_margin_need_not_be_certainly_slower() -> None:
    race = replay(a_field({"a": 1.0, "b": 1.03, "c": 1.03}, seed=3), RaceRule())

    assert race.ending == "decided"
    assert race.remaining == ("a",)
    lows = [one.ratio[1] for one in race.dropped if one.ratio is not None]
    assert min(lows) < 1
    assert min(lows) >= 1 / 1.02
    assert race.faster_at_most == pytest.approx(1 / min(lows) - 1)


def test_one_that_failures_leave_alone_has_won() -> None:
    b = replace(an_entrant("b", noisy(1.001, blocks=4, seed=2)), failures={4: "it crashed"})
    c = an_entrant("c", noisy(1.5, blocks=8, seed=3))
    entrants = [an_entrant("a", noisy(1.0, blocks=8, seed=1)), b, c]

    race = replay(entrants, RaceRule(margin=0.0001))

    assert [one.key for one in race.dropped] == ["c", "b"]
    assert (race.remaining, race.ending, race.faster_at_most) == (("a",), "decided", 0.0)


def test_the_best_wins_a_race_and_later_launches_do_not_change_that() -> None:
    shorter = a_field({"a": 1.2, "b": 1.0, "c": 1.1})
    race = replay(shorter, RaceRule())
    with_fresh = [
        replace(
            one,
            log_costs={at: log if at < race.blocks else 9.0 for at, log in one.log_costs.items()},
        )
        for one in shorter
    ]

    assert (race.ending, race.leader) == ("decided", "b")
    assert race.faster_at_most <= 0.02
    assert replay(with_fresh, RaceRule()) == race


def test_a_failed_launch_leaves_the_race_with_its_reason() -> None:
    failing = an_entrant("b", [1.0], failures={1: "it crashed"})

    race = replay([an_entrant("a", [1.0, 1.0]), failing], RaceRule())

    assert [(one.key, one.reason) for one in race.dropped] == [("b", "it crashed")]
    assert race.ending == "decided"  # only one is left


def test_a_race_in_which_everything_fails_has_no_winner() -> None:
    entrants = [Entrant(key=key, log_costs={}, failures={0: "no"}) for key in "ab"]

    race = replay(entrants, RaceRule())

    assert race.ending == "nothing left"
    assert finalists(race, entrants, RaceRule()) is None


@pytest.mark.parametrize(
    ("budget_s", "blocks"),
    # A block takes 10 s. A launch takes 5 s, so four fresh ones take 20 s of 40 s.
    [(0.7 * 39, 1), (29, 2)],
)
def test_a_race_ends_in_time_for_two_fresh_launches_of_each_finalist(
    budget_s: float, blocks: int
) -> None:
    entrants = a_field({"a": 1.0, "b": 1.004})

    race = replay(entrants, RaceRule(budget_s=budget_s), spent_s=dict.fromkeys(range(30), 10.0))

    assert (race.ending, race.blocks) == ("time", blocks)
    assert race.faster_at_most > 0.02


def test_of_ties_the_one_with_less_cpu_time_is_recommended() -> None:
    # Two configurations without noise and of equal cost.
    entrants = [
        an_entrant(key, [1.0] * 3, cpu_logs=dict.fromkeys(range(3), log))
        for key, log in (("a", math.log(2.0)), ("b", 0.0))
    ]

    chosen = known(finalists(replay(entrants, RaceRule()), entrants, RaceRule()))

    assert (set(chosen.ties), chosen.recommended) == ({"a", "b"}, "b")


def test_the_default_is_launched_again_even_if_it_was_dropped() -> None:
    entrants = a_field({"default": 3.0, "a": 1.0, "b": 1.1, "c": 2.0})
    race = replay(entrants, RaceRule())

    chosen = known(finalists(race, entrants, RaceRule(), always=["default"]))

    assert chosen.keys == ("a", "b", "default")


@given(entrants=st.integers(2, 300), error=st.floats(0.001, 0.2))
def test_the_errors_of_all_looks_and_comparisons_add_up_to_the_rules(
    entrants: int, error: float
) -> None:
    rule = RaceRule(error=error, max_blocks=98)

    spent = (entrants - 1) * sum(
        look_error(rule, entrants=entrants, blocks=n) for n in range(2, 99)
    )

    assert spent == pytest.approx(error)


@examples(6)
@given(seed=st.integers(0, 10_000), order=st.permutations([1.0, 1.001, 1.002, 1.03, 1.05, 4.0]))
@example(seed=17, order=[1.0, 1.001, 1.002, 1.03, 1.05, 4.0])
def test_everyone_remains_or_was_dropped_once_and_the_leader_is_one_of_the_ties(
    seed: int, order: list[float]
) -> None:
    # The last block drops one whose variance was shared with those that remain.
    entrants = a_field({str(index): cost for index, cost in enumerate(order)}, seed=seed)

    race = replay(entrants, RaceRule())

    left = [one.key for one in race.dropped]
    assert sorted([*race.remaining, *left]) == sorted(one.key for one in entrants)
    assert all(one.block < race.blocks for one in race.dropped)
    assert race.leader in known(finalists(race, entrants, RaceRule())).ties


@examples(8)
@given(
    candidates=st.sampled_from([2, 12, 16, 40]),
    odd=st.dictionaries(st.integers(0, 39), st.floats(-12, 12), max_size=3),
    block=st.integers(0, 3),
    seed=st.integers(0, 1_000),
)
@example(candidates=16, odd={3: 1.3}, block=1, seed=1)
@example(candidates=12, odd={0: 1.7}, block=1, seed=1)
def test_any_ratio_of_launches_has_an_ending(
    candidates: int, odd: dict[int, float], block: int, seed: int
) -> None:
    entrants = a_field({str(index): 1.0 for index in range(candidates)}, blocks=6, seed=seed)
    for index, digits in odd.items():
        entrant = entrants[index % candidates]
        log = entrant.log_costs[block] + digits * math.log(10)
        entrants[index % candidates] = replace(entrant, log_costs={**entrant.log_costs, block: log})
    rule = RaceRule(max_blocks=6)

    race = replay(entrants, rule)
    known(finalists(race, entrants, rule, always=["0"]))

    assert race.ending is not None
    assert race.faster_at_most >= 0
    assert all(low <= middle for one in race.dropped for middle, low in [one.ratio or (1, 1)])


def test_a_wrong_recommendation_is_rare() -> None:
    costs = {"best": 1.0, **{str(index): 1.03 for index in range(5)}}

    wrong = 0
    for seed in range(12):
        entrants = a_field(costs, blocks=60, seed=seed)
        race = replay(entrants, RaceRule(max_blocks=60))
        wrong += race.leader != "best"

    assert wrong <= 1  # `python -m benchmarks.simulation tune` has the rates by noise
