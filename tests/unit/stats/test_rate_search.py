"""The search for the highest rate within a bound, on queues with a known answer."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from corebound.scenario.traffic import HighestRate, RateTrial
from corebound.stats.rate_search import RateSearch, most_by_chance
from support.known import known

# A server with exponential service times and one queue (M/M/1), 100 requests per second.
CAPACITY_PER_S = 100.0


def exact_rate_per_s(bound_s: float) -> float:
    """The rate whose p99 is the bound.

    The time in an M/M/1 system is exponential with rate capacity - arrivals, so its p99 is
    ln(100) / (capacity - arrivals).
    """
    return CAPACITY_PER_S - math.log(100) / bound_s


def over_bound(rate_per_s: float, requests: int, bound_s: float, rng: np.random.Generator) -> int:
    """Simulate one trial by Lindley's recursion, from an empty queue."""
    gaps_s = rng.exponential(1 / rate_per_s, requests)
    services_s = rng.exponential(1 / CAPACITY_PER_S, requests)
    wait_s, over = 0.0, 0
    for gap_s, service_s in zip(gaps_s.tolist(), services_s.tolist(), strict=True):
        wait_s = max(0.0, wait_s - gap_s)
        wait_s += service_s
        over += wait_s > bound_s
    return over


def searched(
    bound_s: float, *, requests: int, seed: int, capacity_per_s: float = CAPACITY_PER_S
) -> HighestRate:
    rng = np.random.default_rng(seed)
    search = RateSearch(capacity_per_s=capacity_per_s, requests=requests)
    while (following := search.next()) is not None:
        rate_per_s, count = following
        over = over_bound(rate_per_s, count, bound_s, rng)
        search.add(RateTrial(rate_per_s=rate_per_s, requests=count, over=over))
    return search.highest()


# A trial starts with an empty queue, so fewer requests find a rate that is too high: of nine
# searches in ten, 4,000 requests are within 17 %, 20,000 within 11 %.
@pytest.mark.parametrize(("requests", "limit", "median"), [(4000, 0.2, 0.1), (20_000, 0.13, 0.06)])
@pytest.mark.parametrize("bound_s", [0.1, 0.2])
def test_the_rate_of_a_known_queue_is_found(
    bound_s: float, requests: int, limit: float, median: float
) -> None:
    found = [
        searched(bound_s, requests=requests, seed=seed).within_per_s or math.nan
        for seed in range(40)
    ]

    errors = np.array(found) / exact_rate_per_s(bound_s) - 1
    assert abs(np.median(errors)) < median
    assert np.quantile(np.abs(errors), 0.9) < limit


@pytest.mark.parametrize("capacity_per_s", [85.0, 400.0])
def test_a_capacity_that_was_measured_wrongly_is_no_obstacle(capacity_per_s: float) -> None:
    found = searched(0.2, requests=12_000, seed=1, capacity_per_s=capacity_per_s)

    assert found.within_per_s == pytest.approx(exact_rate_per_s(0.2), rel=0.15)


def test_all_requests_are_used_no_rate_is_above_the_capacity_and_those_around_are_close() -> None:
    fast = searched(100.0, requests=2000, seed=1)
    small, usual = searched(0.2, requests=1234, seed=1), searched(0.2, requests=6000, seed=1)

    assert (fast.over_per_s, fast.within_per_s) == (None, CAPACITY_PER_S)
    assert max(trial.rate_per_s for trial in fast.trials) == CAPACITY_PER_S
    assert sum(trial.requests for trial in small.trials) == 1234
    assert min(trial.requests for trial in small.trials) >= 100
    within, over = known(usual.within_per_s), known(usual.over_per_s)
    assert within < over <= 1.06 * within


def test_trials_share_the_time_that_is_left_and_end_when_too_few_requests_fit() -> None:
    search = RateSearch(capacity_per_s=10.0, requests=1000)
    left_s, counts = 60.0, []
    while (following := search.next(left_s=left_s)) is not None:
        rate_per_s, requests = following
        over = requests if rate_per_s > 8 else 0
        search.add(RateTrial(rate_per_s=rate_per_s, requests=requests, over=over))
        left_s -= requests / rate_per_s
        counts.append(requests)

    assert counts[0] == 100
    assert min(counts) == 20
    assert 0 <= left_s < 20 / 5
    assert search.highest().within_per_s is not None


def test_a_bound_that_no_rate_meets_ends_the_search_without_a_rate() -> None:
    # 1 % of service times alone take longer than 46 ms.
    found = searched(0.001, requests=100_000, seed=1)

    assert found.within_per_s is None
    assert len(found.trials) <= 8


def test_one_unlucky_trial_does_not_decide() -> None:
    """The first trial fails by chance; the search comes back to its rate."""
    search = RateSearch(capacity_per_s=100.0, requests=20_000)
    first = True
    while (following := search.next()) is not None:
        rate_per_s, requests = following
        over = 2 * requests // 100 if first or rate_per_s > 80 else 0
        first = False
        search.add(RateTrial(rate_per_s=rate_per_s, requests=requests, over=over))

    assert search.highest().within_per_s == pytest.approx(80.0, rel=0.06)


@pytest.mark.parametrize("requests", [700, 1950, 6000])
@pytest.mark.parametrize("disturbed", [(8, 8), (54, 8)])
@pytest.mark.parametrize("at", [0, 1])
def test_a_trial_that_a_stall_made_late_does_not_rule_the_search(
    requests: int, disturbed: tuple[int, int], at: int
) -> None:
    """A server of 85 requests/s; one trial has 8 late requests, all in a row."""
    search = RateSearch(capacity_per_s=90.0, requests=requests)
    while (following := search.next()) is not None:
        rate_per_s, count = following
        sent, over = (count, 0) if rate_per_s < 85 else (20, 6)
        if len(search.trials) == at and (at == 0 or disturbed == (8, 8)):
            sent, over = disturbed
        search.add(RateTrial(rate_per_s=rate_per_s, requests=sent, over=over))

    assert search.highest().within_per_s == pytest.approx(85, rel=0.2)


@given(
    outcomes=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40),
    requests=st.integers(1, 10_000),
    least=st.sampled_from([None, 1.0, 60.0]),
)
def test_any_trials_end_within_the_requests(
    outcomes: list[tuple[float, float]], requests: int, least: float | None
) -> None:
    search = RateSearch(capacity_per_s=100.0, requests=requests, least_per_s=least)
    for sent, late in itertools.cycle(outcomes):
        if (following := search.next()) is None:
            break
        rate_per_s, count = following
        # A trial does not end before one request more than chance allows was late.
        sent_ = max(min(most_by_chance(count) + 1, count), round(sent * count))
        search.add(RateTrial(rate_per_s=rate_per_s, requests=sent_, over=round(late * sent_)))

    found = search.highest()
    assert sum(trial.requests for trial in found.trials) <= requests
    if found.within_per_s is not None and found.over_per_s is not None:
        assert found.within_per_s < found.over_per_s


def a_search(*trials: tuple[float, int, int], least_per_s: float | None = None) -> RateSearch:
    """A search with these trials: rate, requests, those over the bound."""
    search = RateSearch(capacity_per_s=100.0, requests=1950, least_per_s=least_per_s)
    for rate_per_s, requests, over in trials:
        search.add(RateTrial(rate_per_s=rate_per_s, requests=requests, over=over))
    return search


def test_four_of_a_hundred_requests_over_the_bound_are_no_chance() -> None:
    # At the share of 1 %, 4 or more of 100 are over in 1.8 % of trials.
    assert binom.sf(3, 100, 0.01) == pytest.approx(0.018, abs=0.001)
    assert most_by_chance(100) == 3


@pytest.mark.parametrize(
    ("search", "expected_per_s"),
    [
        # The saturated server is below the least rate, or not.
        (a_search(least_per_s=101.0), None),
        (a_search(least_per_s=99.0), 50.0),
        # A rate below the least one is clearly over the bound, or by chance.
        (a_search((50.0, 60, 4), least_per_s=60.0), None),
        (a_search((50.0, 100, 3), least_per_s=60.0), pytest.approx(50 * (1 / 3) ** 0.25, rel=0.5)),
        # The rate below one that is just over the bound is near it.
        (a_search((50.0, 200, 3)), pytest.approx(50 * (1 / 1.5) ** 0.25)),
        (a_search((50.0, 60, 30)), 25.0),
        # No trial is made of the few requests that ended trials leave.
        (a_search((50.0, 100, 0), (75.0, 1850, 300)), None),
    ],
)
def test_the_next_rate_of_a_search(search: RateSearch, expected_per_s: object) -> None:
    following = search.next()

    assert (following and following[0]) == expected_per_s
