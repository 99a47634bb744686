"""Schedules of open loops: seeded, at the rate asked for, and spread as their name says."""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.scenario.traffic import OPEN_SHAPES, Shape
from corebound.serving.generator.driver import FIRST_CONNECTIONS, LoadDriver, Samples, intended_ns
from corebound.serving.generator.http import Answer
from support.build import OF_A_SHAPE, a_traffic, an_order

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


def test_a_closed_loop_has_no_schedule() -> None:
    with pytest.raises(ValueError, match="schedule"):
        intended_ns(a_traffic(shape="closed"))


MS = 1_000_000


class MadeUpTime(selectors.SelectSelector):
    """A selector that never waits: time passes when there is nothing else to do."""

    now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits for ever"
        self.now_s += timeout
        return super().select(0)


class MadeUpLoop(asyncio.SelectorEventLoop):
    """A loop that goes by such time."""

    def __init__(self, made_up: MadeUpTime) -> None:
        super().__init__(made_up)
        self._made_up = made_up

    def time(self) -> float:
        return self._made_up.now_s


class Server:
    """Answers each request as told by its number, so much later; None: never."""

    def __init__(self, does: Callable[[int], tuple[float, str | None]]) -> None:
        self._does = does
        self.clock_ns: Callable[[], int] = lambda: 0
        self.seen: list[int] = []
        self.at_once = 0
        self.most_at_once = 0

    async def answer(self, deadline_ns: int) -> Answer:
        took_ms, error = self._does(len(self.seen))
        self.seen.append(self.clock_ns())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        left_s = (deadline_ns - self.clock_ns()) / 1e9
        late = took_ms / 1e3 > left_s
        await asyncio.sleep(left_s if late else took_ms / 1e3)
        self.at_once -= 1
        return Answer(error="timeout" if late else error, ended_ns=self.clock_ns())


class ServedLine:
    """A connection to such a server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.free_ns = 0
        self.opened = 0

    async def connect(self, deadline_ns: int) -> str | None:
        assert deadline_ns > self._server.clock_ns()
        self.opened += 1
        return None

    async def ask(self, deadline_ns: int) -> Answer:
        return await self._server.answer(deadline_ns)

    def close(self) -> None:
        return


def drive(
    server: Server, *, connections: int = 64, held_up_ms: float = 0.0, **of_traffic: Any
) -> tuple[Samples, int]:
    """Drive a server; the generator is held up so long before each reading of its clock."""
    selector = MadeUpTime()
    server.clock_ns = lambda: round(selector.now_s * 1e9)

    def clock_ns() -> int:
        selector.now_s += held_up_ms / 1e3
        return server.clock_ns()

    order = an_order(traffic=a_traffic(**of_traffic), connections=connections)
    with asyncio.Runner(loop_factory=lambda: MadeUpLoop(selector)) as runner:

        async def all_of_it() -> tuple[Samples, int]:
            ours = LoadDriver(order, lambda: ServedLine(server), clock_ns)
            await ours.connect()
            return await ours.measure()

        return runner.run(all_of_it())


def steady(took_ms: float) -> Server:
    return Server(lambda _: (took_ms, None))


def as_ms(times_ns: Any) -> list[int]:
    return [round(time_ns / MS) for time_ns in times_ns]


def test_a_closed_loop_and_offline_keep_so_many_requests_under_way() -> None:
    closed, offline = steady(10), steady(10)

    samples, _ = drive(closed, shape="closed", requests=100, concurrency=8)
    from_the_start, _ = drive(offline, shape="offline", requests=9, connections=3)

    assert (closed.most_at_once, offline.most_at_once) == (8, 3)
    assert as_ms(samples.latency_ns) == [10] * 100
    assert as_ms(from_the_start.latency_ns) == [10] * 3 + [20] * 3 + [30] * 3


def test_a_closed_loop_s_latency_counts_from_the_sending_and_not_from_a_free_connection() -> None:
    samples, _ = drive(steady(10), shape="closed", requests=9, concurrency=1, held_up_ms=5)

    assert as_ms(samples.latency_ns) == [10] * 9
    assert as_ms(samples.lateness_ns) == [5] * 9


def test_a_query_of_several_requests_waits_for_the_slowest_of_the_last() -> None:
    server = Server(lambda number: (30 if number % 4 == 2 else 10, None))

    drive(server, shape="multi-stream", requests=12, samples_a_query=4)

    began_ns = server.seen[0]
    assert as_ms(at_ns - began_ns for at_ns in server.seen) == [0] * 4 + [30] * 4 + [60] * 4


@pytest.mark.parametrize("shape", ["constant", "poisson", "server"])
def test_an_open_loop_sends_by_its_schedule_whatever_the_server_does(shape: Shape) -> None:
    quick, slow = steady(1), steady(1_000)

    drive(quick, shape=shape, requests=50, connections=1_000)
    drive(slow, shape=shape, requests=50, connections=1_000)

    assert as_ms(quick.seen) == as_ms(slow.seen)


def test_a_server_that_stalls_shows_it_in_an_open_loop_and_in_a_closed_one_hardly() -> None:
    # At 100/s, 200 requests fall into a stall that begins with the first: they wait for what
    # is left of it, from 2,000 ms down in steps of 10.
    server = steady(0)
    server._does = lambda _: (max(0.0, 3_000 - (server.clock_ns() / MS - 1_000_000)), None)
    same = Server(lambda number: (2_000 if number < 4 else 1, None))

    samples, _ = drive(server, shape="constant", requests=500, rate_per_s=100.0, connections=1_000)
    closed, _ = drive(same, shape="closed", requests=500, concurrency=4)

    assert as_ms(samples.latency_ns)[:3] == [3_000, 2_990, 2_980]
    assert sum(latency_ns > 1_000 * MS for latency_ns in samples.latency_ns) == 200
    # Only once a connection.
    assert sum(latency_ns > 1_000 * MS for latency_ns in closed.latency_ns) == 4


def test_waiting_for_a_connection_is_latency_but_not_lateness() -> None:
    # One connection, 10 ms a request, one due every millisecond: the n-th waits 9 n ms.
    samples, _ = drive(steady(10), shape="constant", requests=5, rate_per_s=1_000.0, connections=1)

    assert as_ms(samples.latency_ns) == [10, 19, 28, 37, 46]
    assert as_ms(samples.lateness_ns) == [0] * 5
    assert samples.waited == 4


def test_connections_are_opened_as_an_open_loop_needs_them_up_to_the_most() -> None:
    server = steady(1_000)

    drive(server, shape="constant", requests=100, connections=FIRST_CONNECTIONS + 5)

    assert server.most_at_once == FIRST_CONNECTIONS + 5


def test_a_request_that_waits_longer_than_it_may_is_an_error_and_never_sent() -> None:
    server = steady(1_000)

    samples, _ = drive(
        server, shape="constant", requests=10, rate_per_s=1e12, connections=1, timeout_s=0.5
    )

    assert samples.errors == {"timeout": 10}
    assert len(server.seen) == 1


answers = st.tuples(
    st.floats(0, 2_000), st.sampled_from([None, "reset", "closed", "status 500", "refused"])
)


@given(
    shape=st.sampled_from(sorted(OF_A_SHAPE)),
    script=st.lists(answers, min_size=1, max_size=20),
    queries=st.integers(1, 20),
    connections=st.integers(1, 30),
    timeout_s=st.floats(0.01, 3),
)
def test_every_request_of_any_shape_ends_as_one_answer_or_one_error(
    shape: Shape,
    script: list[tuple[float, str | None]],
    queries: int,
    connections: int,
    timeout_s: float,
) -> None:
    server = Server(lambda number: script[number % len(script)])

    samples, began_ns = drive(
        server, shape=shape, requests=4 * queries, connections=connections, timeout_s=timeout_s
    )

    assert samples.ok + sum(samples.errors.values()) == samples.count == len(samples.latency_ns)
    # A search for a rate ends early if no rate can be within its bound.
    assert samples.count == 4 * queries or shape == "rate-search"
    # It also sends more than it keeps, until the saturated server gets no faster.
    assert len(server.seen) <= 4 * queries or shape == "rate-search"
    assert min(samples.ended_ns) >= began_ns
    if shape in OPEN_SHAPES:
        # Nothing is waited for longer than it may take from when it was meant to go; the
        # made-up clock is good to a microsecond.
        assert max(samples.latency_ns) <= timeout_s * 1e9 + 1_000


@pytest.mark.parametrize(
    ("search", "count"),
    [
        # Single requests exceed the bound: it ends before its trials. Or they keep it.
        ({"bound_ms": 5.0}, 100 + 50),
        ({"bound_ms": 15.0}, 1200),
        # 1600 requests over 16 connections at 10 ms take 1 s.
        ({"bound_ms": 15.0, "least_per_s": 1700.0}, 100),
        ({"bound_ms": 15.0, "least_per_s": 1500.0}, 1200),
    ],
)
def test_a_search_ends_early_if_it_cannot_find_a_rate(search: dict[str, Any], count: int) -> None:
    samples, _ = drive(steady(10), shape="rate-search", requests=1200, **search)

    assert samples.count == len(samples.latency_ns) == count


def test_a_server_that_gets_faster_is_not_judged_by_its_first_second() -> None:
    # 100 requests over 16 connections take 700 ms, and 70 ms from then on.
    server = steady(10)
    server._does = lambda _: (10 if server.clock_ns() > 1_000.7e9 else 100, None)

    samples, _ = drive(
        server, shape="rate-search", requests=1200, bound_ms=15.0, least_per_s=1_400.0
    )

    assert samples.count == 1200


# In rounds until 1 s has passed, at 1,600 per second.
SATURATING = 100 + 200 + 400 + 800 + 1600


def test_a_trial_of_a_search_ends_once_it_is_clearly_over_the_bound() -> None:
    # The saturated server and the single requests are fast; then each takes 100 ms.
    server = Server(lambda number: (10 if number < SATURATING + 50 else 100, None))

    samples, _ = drive(server, shape="rate-search", requests=1200, bound_ms=15.0)

    # 6 trials: from half of the throughput down to less than a 16th of it. In each, 4 requests
    # over the bound are enough, and those that are under way then end.
    trials = samples.count - 150
    assert trials < 6 * 100 * 2 / 3
    assert samples.over >= 6 * 4


@pytest.mark.parametrize(
    ("took_ms", "search_s", "of_traffic"),
    [
        # 100 requests over 16 connections take 14 s, 50 one after the other 100 s, a trial 25 s.
        (2_000, 60.0, {"bound_ms": 3_000.0}),
        (1e9, 20.0, {"timeout_s": 300.0}),
    ],
)
def test_a_search_of_a_slow_server_ends_in_time(
    took_ms: float, search_s: float, of_traffic: dict[str, Any]
) -> None:
    samples, began_ns = drive(
        steady(took_ms), shape="rate-search", requests=1200, search_s=search_s, **of_traffic
    )

    assert max(samples.ended_ns) - began_ns <= search_s * 1e9 + 1_000
    if took_ms < 1e9:
        assert 16 < samples.count < 400
        assert samples.errors == {}
