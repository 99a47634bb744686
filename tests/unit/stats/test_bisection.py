"""Specifies the search for a commit: it finds the planted one, and errs at most once in twenty."""

import math
import random
from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.bisection import (
    ALPHA,
    BisectionOutcome,
    LaunchRequest,
    LaunchResults,
    OutOfTimeError,
    error_share,
    launch_counts,
    search,
    sign,
)
from support.known import known

# Draws one launch's factor of noise.
Noise = Callable[[random.Random], float]


def gaussian(spread: float) -> Noise:
    return lambda chance: 1 + chance.gauss(0, spread)


def heavy(spread: float, outlier: float) -> Noise:
    """One launch in ten is slowed down by a neighbour."""
    return lambda chance: (
        (1 + abs(chance.gauss(0, spread))) * (outlier if chance.random() < 0.1 else 1.0)
    )


def two_kinds(spread: float, slower: float) -> Noise:
    """Every second process, by chance, is of the slow kind."""
    return lambda chance: (1 + chance.gauss(0, spread)) * (1 + slower * (chance.random() < 0.5))


def simulate(
    last: int,
    slower: Mapping[int, float],
    *,
    noise: Noise,
    seed: int = 0,
    broken: frozenset[int] = frozenset(),
    asked: list[LaunchRequest] | None = None,
    most: int = 30,
    requests: int = 1000,
) -> BisectionOutcome:
    """Search a line of commits whose cost is planted; blocks drift, launches are noisy."""
    chance = random.Random(seed)
    costs = [1e6]
    for place in range(1, last + 1):
        costs.append(costs[-1] * (1 + slower.get(place, 0.0)))
    searching = search(last, least=6, most=most, margin=0.02)
    kept: dict[tuple[int, ...], dict[int, dict[int, float]]] = {}
    answer: LaunchResults | None = None
    while True:
        try:
            if requests == 0:
                searching.throw(OutOfTimeError())
            requests -= 1
            ask = searching.send(answer) if answer is not None else next(searching)
        except StopIteration as ended:
            ending: BisectionOutcome = ended.value
            return ending
        if asked is not None:
            asked.append(ask)
        known = kept.setdefault(ask.places, {place: {} for place in ask.places})
        for block in range(len(next(iter(known.values()))), ask.launches):
            drift = 1 + chance.gauss(0, 0.05)
            for place in ask.places:
                known[place][block] = costs[place] * drift * noise(chance)
        out = broken & set(ask.places)
        ratios = {
            (one, two): {
                block: math.log(known[two][block] / known[one][block]) for block in known[one]
            }
            for one, two in pairwise(ask.places)
            if not {one, two} & out
        }
        answer = LaunchResults(log_ratios=ratios, broken=out)


@pytest.mark.parametrize("last", [1, 2, 3, 7, 29, 200])
@pytest.mark.parametrize("change", [0.5, 0.05, -0.2])
def test_the_planted_commit_is_found_wherever_it_is(last: int, change: float) -> None:
    for place in {1, last, (last + 1) // 2, max(1, last // 3)}:
        ending = simulate(last, {place: change}, noise=gaussian(0.002), seed=place)

        assert (ending.outcome, ending.suspects) == ("found", (place,))
        assert ending.good < place <= ending.bad
        assert known(ending.interval).contains(1 + change) or ending.slowdown_ratio == (
            pytest.approx(1 + change, rel=0.01)
        )


def test_a_search_out_of_time_in_its_first_look_says_what_the_ends_took() -> None:
    searching = search(8, least=6, most=30, margin=0.02)
    next(searching)
    ratios = {(0, 8): {0: math.log(1.4), 1: math.log(1.5), 2: math.log(1.6)}}

    with pytest.raises(StopIteration) as ended:
        searching.throw(OutOfTimeError(LaunchResults(log_ratios=ratios, broken=frozenset())))

    ending: BisectionOutcome = ended.value.value
    assert (ending.outcome, ending.suspects) == ("out of time", ())
    assert ending.slowdown_ratio == pytest.approx(1.5, rel=0.01)
    assert known(ending.interval).contains(1.5)


def test_a_search_out_of_time_says_whether_the_ends_differ_and_what_is_left() -> None:
    def out_of_time(requests: int) -> BisectionOutcome:
        return simulate(
            8, {6: 0.5}, noise=lambda chance: 1 + chance.gauss(0, 0.01), requests=requests
        )

    nothing, ends, half = map(out_of_time, (1, 2, 3))

    assert {one.outcome for one in (nothing, ends, half)} == {"out of time"}
    assert nothing.suspects == ()
    assert ends.suspects == tuple(range(1, 9))
    assert half.suspects == tuple(range(5, 9))
    assert half.slowdown_ratio == pytest.approx(1.5, rel=0.05)


def test_without_a_difference_between_the_ends_nothing_is_searched() -> None:
    asked: list[LaunchRequest] = []

    ending = simulate(29, {}, noise=gaussian(0.003), asked=asked)

    assert ending.outcome == "no difference"
    assert ending.suspects == ()
    assert {ask.places for ask in asked} == {(0, 29)}


@pytest.mark.parametrize(
    ("unchanged", "changed"),
    [
        (gaussian(0.02), gaussian(0.015)),
        (heavy(0.01, 1.3), heavy(0.01, 1.05)),
        (two_kinds(0.003, 0.06), two_kinds(0.003, 0.06)),
    ],
    ids=["gaussian", "heavy", "two kinds"],
)
def test_an_innocent_commit_is_blamed_in_at_most_one_search_of_twenty(
    unchanged: Noise, changed: Noise
) -> None:
    trials, wrong, right = 100, 0, 0
    told = [simulate(29, {}, noise=unchanged, seed=seed) for seed in range(trials)]
    for seed in range(trials):
        place = 1 + seed % 29
        ending = simulate(29, {place: 0.06}, noise=changed, seed=seed)
        wrong += bool(ending.suspects) and place not in ending.suspects
        right += ending.suspects == (place,)

    assert sum(bool(one.suspects) for one in told) <= ALPHA * trials
    assert wrong <= ALPHA * trials
    # What noise hides is told as inconclusive or as a range; most of it is found all the same.
    assert right >= 0.5 * trials


def test_with_bimodal_processes_a_single_test_errs_more_often_than_its_share() -> None:
    # Measured: 0.85 % of 4,000, at a share of 0.07 %. That the search keeps within ALPHA all the
    # same, above, is therefore empirical: docs/explanation/bisection.md has the results.
    chance, noise, level = random.Random(5), two_kinds(0.003, 0.06), error_share(0, 7) / 5
    trials = 1000
    wrong = sum(
        sign([math.log(noise(chance) / noise(chance)) for _ in range(6)], level) != 0
        for _ in range(trials)
    )

    assert 0.0007 * trials < wrong <= 0.02 * trials


def test_with_several_changes_one_of_them_is_found() -> None:
    planted = {5: 0.03, 14: 0.05, 22: 0.10}
    for seed in range(20):
        ending = simulate(29, planted, noise=gaussian(0.004), seed=seed)

        assert ending.outcome == "found"
        assert set(ending.suspects) <= planted.keys()


def test_equal_changes_on_both_sides_of_the_middle_do_not_stop_the_search() -> None:
    ending = simulate(8, {2: 0.1, 7: 0.1}, noise=gaussian(0.004))

    assert ending.suspects in {(2,), (7,)}


@pytest.mark.parametrize(
    ("broken", "outcome", "suspects"),
    [
        ({14, 15, 22, 3}, "found", (20,)),
        ({19, 20, 21}, "range", (19, 20, 21, 22)),
        ({29}, "broken", ()),
    ],
)
def test_commits_that_do_not_build_are_skipped_or_leave_a_range(
    broken: set[int], outcome: str, suspects: tuple[int, ...]
) -> None:
    ending = simulate(29, {20: 0.3}, noise=gaussian(0.004), broken=frozenset(broken))

    assert (ending.outcome, ending.suspects) == (outcome, suspects)


def test_a_clear_difference_needs_fewer_launches_than_a_small_one() -> None:
    def launches(change: float) -> int:
        asked: list[LaunchRequest] = []
        simulate(29, {11: change}, noise=gaussian(0.01), asked=asked)
        most = {ask.places: ask.launches * len(ask.places) for ask in asked}
        return sum(most.values())

    assert launches(0.5) < launches(0.05)


@given(planned=st.integers(2, 30), tests=st.integers(1, 200))
def test_all_tests_together_stay_within_the_allowed_error(planned: int, tests: int) -> None:
    assert sum(error_share(test, planned) for test in range(tests)) <= ALPHA + 1e-12


@given(least=st.integers(2, 100), more=st.integers(0, 100))
def test_interim_tests_rise_to_the_maximum_of_launches(least: int, more: int) -> None:
    found = launch_counts(least, least + more)

    assert list(found) == sorted(set(found))
    assert found[0] == max(least, 3)
    assert found[-1] == max(least + more, 3)


def test_equal_differences_have_a_sign_unless_they_are_zero() -> None:
    assert sign([0.0, 0.0, 0.0], 0.01) == 0
    assert sign([-0.1, -0.1, -0.1], 0.01) == -1
