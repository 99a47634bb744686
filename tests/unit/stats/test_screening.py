"""Specifies which configurations of a race are screened, and which of them race."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field

from corebound.records.race import RACE_SHARE, RaceRule
from corebound.stats.racing import Entrant
from corebound.stats.screening import (
    GROUP,
    HOPELESS,
    Screening,
    has_time_to_screen,
    least_budget_s,
    race_after,
    screen,
    screened_with_time,
)


def a_rule(budget_s: float = 100.0) -> RaceRule:
    return RaceRule(budget_s=RACE_SHARE * budget_s, screen_iterations=15)


class Planned(Struct, kw_only=True):
    """The blocks of a screening, whose launches all take as long; infinite costs are failures."""

    costs: Sequence[float]
    rule: RaceRule
    launch_s: float
    launched: list[tuple[str, ...]] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    disturbed: dict[str, float] = field(default_factory=dict)

    def before(self, block: int) -> Screening:
        """The state before a block, from the launches of earlier ones."""
        blocks = {
            str(one): [at for at, keys in enumerate(self.launched[:block]) if str(one) in keys]
            for one, _ in enumerate(self.costs)
        }
        entrants = [
            Entrant(
                key=str(one),
                log_costs={
                    at: math.log(cost * (self.disturbed.get(str(one), 1.0) if first else 1.0))
                    for at in blocks[str(one)]
                    if cost < math.inf
                    for first in [at == blocks[str(one)][0]]
                },
                failures={at: "it crashed" for at in blocks[str(one)] if cost == math.inf},
                bounds={at: math.log(40.0) for at in blocks[str(one)] if cost == math.inf},
                disturbed=frozenset(blocks[str(one)][:1] if str(one) in self.disturbed else ()),
            )
            for one, cost in enumerate(self.costs)
        ]
        skipped = {key: at for key, at in self.skipped.items() if at < block}
        spent_s = {at: self.launch_s * len(keys) for at, keys in enumerate(self.launched[:block])}
        return screen(entrants, self.rule, skipped=skipped, spent_s=spent_s)


def planned(
    costs: Sequence[float],
    *,
    rule: RaceRule | None = None,
    launch_s: float = 0.7,
    disturbed: dict[str, float] | None = None,
) -> tuple[Planned, Screening]:
    made = Planned(costs=costs, rule=rule or a_rule(), launch_s=launch_s, disturbed=disturbed or {})
    while (state := made.before(len(made.launched))).launching:
        first = set(chain.from_iterable(made.launched)).isdisjoint(state.launching)
        keys: list[str] = []
        for key in state.launching:
            took_s = [launch_s] * (sum(map(len, made.launched)) + len(keys))
            if first and not has_time_to_screen(made.rule, took_s, more=1):
                made.skipped[key] = len(made.launched)
            else:
                keys.append(key)
        made.launched.append(tuple(keys))
    return made, state


COSTS = st.lists(st.sampled_from([1.0, 1.01, 1.1, 1.5, 3.0, 9.0, 40.0, math.inf]), max_size=60)
SECONDS = st.floats(0.1, 20)


@given(costs=COSTS, launch_s=SECONDS, budget_s=st.floats(1, 3000))
def test_all_are_launched_once_before_any_again_and_the_best_races_but_the_hopeless_do_not(
    costs: list[float], launch_s: float, budget_s: float
) -> None:
    made, over = planned(costs, rule=a_rule(budget_s), launch_s=launch_s)

    everyone = set(map(str, range(len(costs))))
    seen: Counter[str] = Counter()
    for block, keys in enumerate(made.launched):
        assert len(keys) <= GROUP
        seen.update(keys)
        if max(seen.values(), default=0) > 1:
            done = {*seen, *(key for key, at in made.skipped.items() if at < block)}
            assert done == everyone
        # Later launches do not change what was planned.
        left_out = [key for key, at in made.skipped.items() if at == block]
        assert {*made.before(block).launching} == {*keys, *left_out}
    assert {*over.remaining, *(one.key for one in over.out)} | {*made.skipped} == everyone
    tried = {str(one): cost for one, cost in enumerate(costs) if str(one) not in made.skipped}
    best = min(tried.values(), default=math.inf)
    if made.launched and best < math.inf:
        raced = [tried[key] for key in over.remaining]
        assert min(raced) == best
        assert max(raced) < HOPELESS * best
        assert all(one.reason == "it crashed" or one.ratio for one in over.out)


@given(costs=st.lists(st.floats(1, 9), min_size=4, max_size=60), launch_s=SECONDS)
def test_a_screening_leaves_time_for_an_answer(costs: list[float], launch_s: float) -> None:
    rule = a_rule(100.0)
    made, over = planned(costs, rule=rule, launch_s=launch_s)

    # Two are tried in any case. An answer has two fresh launches of three finalists.
    if len(made.launched[0]) > 2:
        raced_s = launch_s + 2.0
        block = len(over.remaining) if over.has_race else 0
        assert over.seconds + (block + 6) * raced_s <= 100.0 + 1e-6


def test_where_a_block_of_the_race_has_no_time_the_screening_chooses_the_winner() -> None:
    made, over = planned([2.0, 1.0, 3.0, 4.0], launch_s=8.0)

    race, _ = race_after(over, [Entrant(key="1", log_costs={0: 0.0})], made.rule, spent_s={})
    assert not over.has_race
    assert race.leader == "1"
    assert race.ending == "time"


def test_sixteen_are_halved_until_the_budget_can_race_them() -> None:
    made, over = planned([2.0] * 10 + [1.0 + one / 100 for one in range(6)], launch_s=0.7)

    assert [len(keys) for keys in made.launched] == [8, 8, 8, 4]
    assert set(over.remaining) == {"10", "11", "12"}


def test_a_long_budget_races_all_that_are_not_hopeless() -> None:
    made, over = planned([1.0] * 10 + [50.0, math.inf], rule=a_rule(3600), launch_s=2.0)

    assert [len(keys) for keys in made.launched] == [6, 6]
    assert len(over.remaining) == 10
    assert [(one.key, one.reason) for one in over.out if one.reason] == [("11", "it crashed")]


def test_a_disturbed_launch_makes_none_hopeless() -> None:
    costs = [1.0, 1.1, 50.0, 60.0]
    entrants = [
        Entrant(
            key=str(one),
            log_costs={0: math.log(cost)},
            disturbed=frozenset({0} if cost == 50 else ()),
        )
        for one, cost in enumerate(costs)
    ]

    over = screen(entrants, a_rule(), skipped={}, spent_s={0: 4.0})

    assert over.remaining == ("0", "1", "2")


def test_where_everything_fails_nothing_is_left_to_race() -> None:
    made, over = planned([math.inf] * 5)

    race, racing = race_after(over, [], made.rule, spent_s={})
    assert over.remaining == ()
    assert race.ending == "nothing left"
    assert racing == []


@pytest.mark.parametrize("rule", [RaceRule(), RaceRule(budget_s=70.0)])
def test_without_a_budget_and_in_older_records_there_is_no_screening(rule: RaceRule) -> None:
    made, over = planned([1.0] * 20, rule=rule)

    assert made.launched == []
    assert len(over.remaining) == 20


@given(candidates=st.integers(4, 60), launch_s=SECONDS)
def test_the_budget_that_all_need_has_time_for_all(candidates: int, launch_s: float) -> None:
    budget_s = least_budget_s(candidates, launch_s)

    assert screened_with_time(a_rule(1.001 * budget_s), launch_s) >= candidates


def test_one_disturbed_launch_does_not_cut_the_best() -> None:
    costs = [1.0, *(1.1 + 0.1 * one for one in range(15))]

    made, over = planned(costs, disturbed={"0": 5.0})

    assert sum("0" in keys for keys in made.launched) >= 2
    assert "0" in over.remaining


def test_where_most_launches_are_disturbed_none_is_repeated_for_that() -> None:
    costs = [1.0 + 0.1 * one for one in range(16)]

    made, _ = planned(costs, disturbed=dict.fromkeys(map(str, range(16)), 2.0))

    assert made.launched == planned(costs)[0].launched


def test_a_launch_that_was_ended_bounds_how_far_behind_the_best_it_is() -> None:
    _, over = planned([2.0, 2.0, 2.0, 2.0, math.inf])

    (out,) = over.out
    assert out.reason == "it crashed"
    assert out.ratio == pytest.approx((20.0, 20.0))
