"""What is kept of a launch's requests."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.scenario.traffic import Answered, Shape, Streamed
from corebound.serving.generator.driver import RequestTimes, Samples
from corebound.serving.generator.http import Answer
from corebound.serving.generator.reduce import MOST_WINDOWS, Cost, reduce, window_ns
from corebound.serving.generator.streaming import TokenTimes
from corebound.stats import latency
from support.build import a_streaming, a_traffic
from support.known import known

MS = 1_000_000
BEGAN_NS = 5_000 * MS
COST = Cost(cpu_ns=1, wall_ns=2, connections=3, opened=4)

# When a request went, how long it took, and how it ended.
Went = tuple[int, int, str | None]


def reduced(requests: Sequence[Went], *, shape: Shape = "closed", **of_traffic: Any) -> Answered:
    samples = Samples(len(requests))
    for index, (at_ms, took_ms, error) in enumerate(requests):
        at_ns = BEGAN_NS + at_ms * MS
        moments = RequestTimes(due_ns=at_ns, from_ns=at_ns, sent_ns=at_ns)
        samples.add(index, moments, Answer(error=error, ended_ns=at_ns + took_ms * MS))
    traffic = a_traffic(shape=shape, requests=len(requests), **of_traffic)
    return reduce(samples, traffic, began_ns=BEGAN_NS, cost=COST)


kinds = st.sampled_from([None, None, "reset", "status 503"])
went = st.lists(
    st.tuples(st.integers(0, 300_000), st.integers(0, 5_000), kinds), min_size=1, max_size=100
)


@given(went)
def test_every_request_is_in_one_window_and_the_worst_of_all_is_in_its_own(
    requests: list[Went],
) -> None:
    answered = reduced(requests)

    well = [took_ms * MS for _, took_ms, error in requests if error is None]
    assert sum(window.ok for window in answered.windows) == answered.ok == len(well)
    assert sum(window.errors for window in answered.windows) == sum(answered.errors.values())
    assert max((w.worst_ns for w in answered.windows if w.worst_ns is not None), default=None) == (
        max(well, default=None)
    )
    assert answered.windows[-1].ok + answered.windows[-1].errors > 0


@given(st.integers(0, 7 * 86_400 * 1_000 * MS))
def test_there_are_some_200_windows_at_most_and_none_is_below_100_ms(duration_ns: int) -> None:
    length_ns = window_ns(duration_ns)

    assert length_ns >= 100 * MS
    assert duration_ns // length_ns + 1 <= MOST_WINDOWS


def test_the_duration_runs_to_the_last_answer_of_any_kind() -> None:
    answered = reduced([(0, 10, None), (50, 900, "timeout")])

    assert answered.duration_ns == 950 * MS


def test_a_stall_is_windows_without_answers_and_then_a_bad_one() -> None:
    requests: list[Went] = [(at_ms, 1, None) for at_ms in range(0, 100, 10)]

    answered = reduced([*requests, (100, 450, None)])

    assert [window.ok for window in answered.windows] == [10, 0, 0, 0, 0, 1]
    assert answered.windows[-1].worst_ns == 450 * MS


def test_a_single_stream_is_judged_at_its_90th_percentile() -> None:
    # 64 is the least number of queries; none may be discarded then, and none may fail.
    requests: list[Went] = [(0, took_ms, None) for took_ms in range(1, 65)]
    good, bad = (
        known(reduced(one, shape="single-stream").mlperf)
        for one in (requests, [*requests[1:], (0, 1, "reset")])
    )

    assert (good.needed, good.satisfied, good.latency_ns) == (64, True, 64 * MS)
    assert (bad.satisfied, bad.latency_ns) == (False, None)


def test_queries_take_as_long_as_their_slowest_request_and_offline_is_a_throughput() -> None:
    # 662 queries of two requests, 1 ms and 7 ms.
    requests: list[Went] = [(0, 1, None), (0, 7, None)] * 662

    queries = known(reduced(requests, shape="multi-stream", samples_a_query=2).mlperf)
    offline = reduced([(0, 500, None)] * 10, shape="offline")

    assert (queries.queries, queries.latency_ns) == (662, 7 * MS)
    assert offline.sampled == ()
    assert known(offline.mlperf).samples_per_s == 20.0
    # Other shapes are not MLPerf's.
    others: tuple[Shape, ...] = ("closed", "constant", "poisson")
    assert [reduced([(0, 1, None)], shape=shape).mlperf for shape in others] == [None] * 3


@pytest.mark.parametrize(
    ("requests", "last", "satisfied"),
    [
        (459, (50, None), True),
        (458, (50, None), False),
        (459, (51, None), False),
        # A failed request is over any bound.
        (459, (1, "closed"), False),
    ],
)
def test_a_server_is_satisfied_by_459_requests_within_the_bound(
    requests: int, last: tuple[int, str | None], satisfied: bool
) -> None:
    within: list[Went] = [(0, 50, None)] * (requests - 1)

    answered = reduced([*within, (0, *last)], shape="server", bound_ms=50.0)

    found = known(answered.mlperf)
    assert (found.over_bound, found.satisfied) == (last != (50, None), satisfied)


def test_the_first_200_requests_to_arrive_are_kept_whatever_they_end_as() -> None:
    requests: list[Went] = [(at_ms, 5, "reset" if at_ms == 1 else None) for at_ms in range(300)]

    (first, second, *rest) = reduced(requests[::-1]).sampled

    assert (first, second) == ((0, 5_000, None, True), (1_000, 6_000, None, False))
    assert rest[-1] == (199_000, 204_000, None, True)


def streamed(*requests: tuple[int, int, int, str | None], **bounds_ms: float) -> Streamed:
    """Reduce requests of (first token, last token, tokens, error), in ms after the sending."""
    samples = Samples(len(requests))
    for index, (first_ms, last_ms, count, error) in enumerate(requests):
        times = TokenTimes(
            first_ns=BEGAN_NS + first_ms * MS, last_ns=BEGAN_NS + last_ms * MS, tokens=count
        )
        moments = RequestTimes(due_ns=BEGAN_NS, from_ns=BEGAN_NS, sent_ns=BEGAN_NS)
        ended_ns = BEGAN_NS + (last_ms + 1) * MS
        samples.add(index, moments, Answer(error=error, ended_ns=ended_ns, tokens=times))
    traffic = a_traffic(requests=len(requests), streaming=a_streaming(**bounds_ms))
    return known(reduce(samples, traffic, began_ns=BEGAN_NS, cost=COST).streamed)


def test_tokens_and_their_times_are_those_of_successful_requests() -> None:
    result = streamed((100, 200, 11, None), (300, 700, 11, None), (1, 2, 99, "cut off"))

    first = known(latency.percentiles(result.first_token))
    per_token = known(latency.percentiles(result.per_token))
    assert result.tokens == 22
    assert (first.count, round(first.p50_ns / MS), round(first.max_ns / MS)) == (2, 100, 300)
    # 100 ms and 400 ms for the ten tokens after the first.
    assert per_token.p50_ns == pytest.approx(10 * MS, rel=1e-3)
    assert per_token.max_ns == pytest.approx(40 * MS, rel=1e-3)


def test_good_answers_are_within_both_bounds() -> None:
    requests = [
        (100, 200, 11, None),
        (300, 400, 11, None),
        (100, 500, 11, None),
        (1, 2, 2, "reset"),
    ]

    both = {"first_token_bound_ms": 200.0, "per_token_bound_ms": 20.0}
    assert streamed(*requests).good == 3
    assert streamed(*requests, first_token_bound_ms=200.0).good == 2
    assert streamed(*requests, **both).good == 1


def test_the_tokens_of_requests_that_were_not_sent_are_removed() -> None:
    samples = Samples(5)
    moments = RequestTimes(due_ns=BEGAN_NS, from_ns=BEGAN_NS, sent_ns=BEGAN_NS)
    times = TokenTimes(first_ns=BEGAN_NS + MS, last_ns=BEGAN_NS + 2 * MS, tokens=2)
    samples.add(0, moments, Answer(error=None, ended_ns=BEGAN_NS + 3 * MS, tokens=times))

    samples.trim()

    result = known(
        reduce(samples, a_traffic(streaming=a_streaming()), began_ns=BEGAN_NS, cost=COST).streamed
    )
    assert (result.tokens, result.good) == (2, 1)
