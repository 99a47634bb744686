"""Sends the requests of each traffic shape: decides when, and over which connection."""

import asyncio
import math
import select
import selectors
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.scenario.traffic import (
    OPEN_SHAPES,
    GeneratorOrder,
    HighestRate,
    RateTrial,
    Traffic,
)
from corebound.serving.generator.http import Answer
from corebound.serving.generator.streaming import Clock
from corebound.stats import rate_search


def intended_ns(traffic: Traffic) -> NDArray[np.int64]:
    """The intended send times of an open shape, relative to the start of measuring.

    `constant` sends the first request at once and the rest at equal intervals. `poisson` and
    `server` draw the gaps from an exponential distribution, so the number of requests per
    second follows a Poisson distribution (as in MLPerf's Server scenario).

    Returns:
        One time per request, in nanoseconds, in non-decreasing order.

    Raises:
        ValueError: The shape is not an open one.
    """
    rate_per_s = traffic.rate_per_s
    if rate_per_s is None:
        raise ValueError("a closed loop has no schedule")
    if traffic.shape == "constant":
        times_s = np.arange(traffic.requests) / rate_per_s
    else:
        gaps = np.random.default_rng(traffic.seed).exponential(size=traffic.requests)
        times_s = np.cumsum(gaps) / rate_per_s
    return np.rint(times_s * 1e9).astype(np.int64)


# asyncio's event loop uses the same clock, so times can be compared.
clock_ns = time.monotonic_ns


class MicrosecondSelector(selectors.EpollSelector):
    """A selector with timeouts accurate to microseconds.

    epoll_wait(2) counts milliseconds and Python rounds up, so each scheduled request would be
    sent 0.5 ms late on average. select(2) counts microseconds. Here it waits for the epoll
    descriptor, which represents all the others.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Like `EpollSelector.select`."""
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def new_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop that uses a `MicrosecondSelector`."""
    return asyncio.SelectorEventLoop(MicrosecondSelector())


# The error code of requests that succeeded.
OK = 0


class RequestTimes(Struct, frozen=True, kw_only=True):
    """The times of one request.

    `due_ns`: when it could have been sent; `from_ns`: the start of its latency; `sent_ns`:
    when it was sent.
    """

    due_ns: int
    from_ns: int
    sent_ns: int


class Samples:
    """The results of every request of a launch, in memory allocated before the first one.

    Attributes:
        over: How many so far took longer than the bound, or failed.
    """

    def __init__(self, requests: int, bound_ms: float | None = None) -> None:
        """Allocate the memory; times are on the generator's clock."""
        self._bound_ns = math.inf if bound_ms is None else bound_ms * 1e6
        self.over = 0
        room = bytes(8 * requests)
        self.latency_ns = array("q", room)
        self.lateness_ns = array("q", room)
        self.ended_ns = array("q", room)
        self.first_token_ns = array("q", room)
        self.per_token_ns = array("d", room)
        self.tokens = array("q", room)
        self.error = array("H", bytes(2 * requests))
        self.kinds: list[str] = ["ok"]
        self.count = 0
        self.waited = 0

    def add(self, index: int, moments: RequestTimes, answer: Answer) -> None:
        """Store the result of one request."""
        self.latency_ns[index] = answer.ended_ns - moments.from_ns
        self.lateness_ns[index] = max(0, moments.sent_ns - moments.due_ns)
        self.ended_ns[index] = answer.ended_ns
        self.count += 1
        if answer.error is not None or self.latency_ns[index] > self._bound_ns:
            self.over += 1
        if answer.tokens is not None:
            self.first_token_ns[index] = answer.tokens.first_ns - moments.from_ns
            self.per_token_ns[index] = answer.tokens.per_token_ns or 0.0
            self.tokens[index] = answer.tokens.tokens
        if answer.error is not None:
            if answer.error not in self.kinds:
                self.kinds.append(answer.error)
            self.error[index] = self.kinds.index(answer.error)

    def trim(self) -> None:
        """Remove the memory of requests that were not sent."""
        for values in (
            *(self.latency_ns, self.lateness_ns, self.ended_ns, self.error),
            *(self.first_token_ns, self.per_token_ns, self.tokens),
        ):
            del values[self.count :]

    @property
    def ok(self) -> int:
        """The number of successful requests."""
        return self.count - sum(self.errors.values())

    @property
    def errors(self) -> dict[str, int]:
        """The number of failed requests by kind of error, most frequent first."""
        counts = {
            kind: self.error.count(code) for code, kind in enumerate(self.kinds) if code != OK
        }
        return dict(sorted(counts.items(), key=lambda item: -item[1]))


# What the parts of a search that has a time get of it; trials get the rest, of which the last share
# is for the answers to the last requests.
_WARM_UP_SHARE, _SATURATING_SHARE, _ALONE_SHARE, _LAST_SHARE = 0.15, 0.2, 0.1, 0.2

# A server may get faster in its first requests: it compiles, or starts more processes. So a loop
# over all connections goes on for as long, with twice the requests in each round, and until a round
# got no more than this multiple of the answers of its first half in its second. The last round has
# so many requests, more than the generator sends in this time.
_SATURATED_NS, _RISING, _MOST_SATURATING = 1_000_000_000, 1.25, 64 * rate_search.LEAST_TRIAL

# The connections that an open loop has before its first request. Opening one more over
# loopback costs a fraction of a millisecond, once. Hundreds of idle ones may trouble a server.
FIRST_CONNECTIONS = 16


class Connection(Protocol):
    """The interface of a connection that `LoadDriver` needs; `LoadDriver` sets `free_ns`."""

    free_ns: int

    @property
    def opened(self) -> int: ...

    async def connect(self, deadline_ns: int) -> str | None: ...

    async def ask(self, deadline_ns: int) -> Answer: ...

    def close(self) -> None: ...


class LoadDriver:
    """Sends one order's requests, and stores exactly one result for each of them.

    Attributes:
        connections: All connections.
        highest: The result of `rate-search`; None before, and in the other shapes.
    """

    def __init__(
        self, order: GeneratorOrder, new_line: Callable[[], Connection], clock_ns: Clock
    ) -> None:
        """Create the connection objects without opening them."""
        self._traffic = order.traffic
        self._new_connection = new_line
        self._clock_ns = clock_ns
        self._timeout_ns = round(order.traffic.timeout_s * 1e9)
        self._search_ns = math.inf if (s := order.traffic.search_s) is None else s * 1e9
        # Nothing is waited for longer.
        self._until_ns = math.inf
        self._max_connections = _connections(order)
        first = (
            min(self._max_connections, FIRST_CONNECTIONS)
            if self._traffic.shape in {*OPEN_SHAPES, "rate-search"}
            else self._max_connections
        )
        self.connections = [new_line() for _ in range(first)]
        self.highest: HighestRate | None = None

    async def connect(self) -> None:
        """Open all closed connections; a failure surfaces at the connection's next request."""
        deadline_ns = self._clock_ns() + self._timeout_ns
        await asyncio.gather(*(connection.connect(deadline_ns) for connection in self.connections))

    def close(self) -> None:
        """Close every connection."""
        for connection in self.connections:
            connection.close()

    async def warm_up(self) -> Samples:
        """Send the warm-up requests over all existing connections."""
        samples = Samples(self._traffic.warmup_requests)
        most_ns, requests = _WARM_UP_SHARE * self._search_ns, self._traffic.warmup_requests
        await self._closed(self.connections, samples, requests, most_ns=most_ns)
        return samples

    async def measure(self) -> tuple[Samples, int]:
        """Send the measured requests.

        Returns:
            The results in the order of sending, and the intended time of the first request.
        """
        requests = self._traffic.requests
        samples = Samples(requests, self._traffic.bound_ms)
        began_ns = self._clock_ns()
        match self._traffic.shape:
            case "closed" | "single-stream":
                await self._closed(self.connections, samples, requests)
            case "offline":
                await self._closed(self.connections, samples, requests, from_ns=began_ns)
            case "multi-stream":
                await self._queries(samples)
            case "rate-search":
                await self._search(samples, began_ns)
            case _:
                offsets_ns = intended_ns(self._traffic).tolist()
                start_ns = self._clock_ns()
                began_ns = start_ns + offsets_ns[0]
                await self._open(samples, [start_ns + at_ns for at_ns in offsets_ns])
        return samples, began_ns

    async def _search(self, samples: Samples, began_ns: int) -> None:
        """Search for the highest rate within the bound, in trials one after the other.

        Trials are open loops with random arrivals, the same at each rate: the gaps of one seed are
        longer or shorter, but have the same order. A closed loop over all connections first
        measures the throughput of the saturated server, which no trial exceeds; only the results of
        its first round are kept. Then requests go out one after the other: if these are over the
        bound, the search ends, because trials at ever lower rates would take many minutes. A trial
        ends once it is clearly over the bound. A search that has a time sends fewer requests in
        each of its parts.
        """
        traffic, whole_ns = self._traffic, (1 - _WARM_UP_SHARE) * self._search_ns
        self._until_ns = began_ns + whole_ns
        alone = min(rate_search.ALONE, traffic.requests // 4)
        capacity_per_s = await self._saturate(samples, began_ns + _SATURATING_SHARE * whole_ns)
        ended_ns, over_before, saturating = self._clock_ns(), samples.over, samples.count
        search = rate_search.RateSearch(
            capacity_per_s=capacity_per_s,
            requests=traffic.requests - saturating - alone,
            least_per_s=traffic.least_per_s,
        )
        if not search.is_hopeless:
            single, most_ns = self.connections[:1], _ALONE_SHARE * whole_ns
            await self._closed(single, samples, alone, first=saturating, most_ns=most_ns)
            alone = samples.count - saturating
        over = samples.over - over_before
        if over > rate_search.MOST_OVER_ALONE * alone:
            rate_per_s = alone * 1e9 / max(1, self._clock_ns() - ended_ns)
            search.add(RateTrial(rate_per_s=rate_per_s, requests=alone, over=over))
            samples.trim()
            self.highest = search.highest()
            return
        while (following := search.next(left_s=self._left_s)) is not None:
            rate_per_s, requests = following
            first, over_before = samples.count, samples.over
            trial = replace(
                traffic,
                shape="poisson",
                rate_per_s=rate_per_s,
                requests=requests,
                bound_ms=None,
                least_per_s=None,
                search_s=None,
                seed=traffic.seed + search.times_tried(rate_per_s),
            )
            start_ns = self._clock_ns()
            schedule = [start_ns + at_ns for at_ns in intended_ns(trial).tolist()]
            await self._open(
                samples,
                schedule,
                first=first,
                most_over=over_before + rate_search.most_by_chance(requests),
            )
            sent, over = samples.count - first, samples.over - over_before
            search.add(RateTrial(rate_per_s=rate_per_s, requests=sent, over=over))
        samples.trim()
        self.highest = search.highest()

    async def _saturate(self, samples: Samples, until_ns: float) -> float:
        """Measure the throughput of the saturated server once it no longer rises, per second."""
        requests = min(rate_search.LEAST_TRIAL, max(1, self._traffic.requests // 2))
        began_ns, of_round = self._clock_ns(), samples
        while True:
            round_ns = self._clock_ns()
            most_ns = until_ns - round_ns
            await self._closed(self.connections, of_round, requests, most_ns=most_ns)
            ended_ns = self._clock_ns()
            half_ns, answered_ns = (round_ns + ended_ns) / 2, of_round.ended_ns[: of_round.count]
            before = sum(at_ns <= half_ns for at_ns in answered_ns)
            is_rising = of_round.count - before > _RISING * before
            is_steady = ended_ns - began_ns >= _SATURATED_NS and not is_rising
            # A next round takes about twice as long as this one.
            has_time = ended_ns + 2 * (ended_ns - round_ns) < until_ns
            if is_steady or not has_time or requests >= _MOST_SATURATING:
                return of_round.count * 1e9 / max(1, ended_ns - round_ns)
            requests *= 2
            of_round = Samples(requests)

    @property
    def _left_s(self) -> float:
        """How long the trials of a search may still send requests."""
        return max(0.0, (1 - _LAST_SHARE) * (self._until_ns - self._clock_ns()) / 1e9)

    async def _closed(
        self,
        connections: Sequence[Connection],
        samples: Samples,
        requests: int,
        *,
        first: int = 0,
        from_ns: int | None = None,
        most_ns: float = math.inf,
    ) -> None:
        """Run a closed loop: each connection sends its next request when its last has ended.

        The results are stored from the index `first` on. After `most_ns`, no more are sent.
        """
        indexes = iter(range(first, first + requests))
        began_ns = self._clock_ns()
        for connection in connections:
            connection.free_ns = began_ns
        await asyncio.gather(
            *(
                self._send_in_sequence(connection, samples, indexes, from_ns, began_ns + most_ns)
                for connection in connections
            )
        )

    async def _send_in_sequence(
        self,
        connection: Connection,
        samples: Samples,
        indexes: Iterator[int],
        from_ns: int | None,
        until_ns: float,
    ) -> None:
        for index in indexes:
            sent_ns = self._clock_ns()
            moments = RequestTimes(
                due_ns=connection.free_ns,
                from_ns=sent_ns if from_ns is None else from_ns,
                sent_ns=sent_ns,
            )
            await self._ask(connection, index, moments, samples, sent_ns + self._timeout_ns)
            if connection.free_ns >= until_ns:
                return

    async def _queries(self, samples: Samples) -> None:
        """Send all requests of a query at once, and the next query when all have ended."""
        due_ns = self._clock_ns()
        for first in range(0, self._traffic.requests, len(self.connections)):
            from_ns = self._clock_ns()
            await asyncio.gather(
                *(
                    self._send_for_query(connection, samples, index, due_ns, from_ns)
                    for index, connection in enumerate(self.connections, start=first)
                )
            )
            due_ns = max(connection.free_ns for connection in self.connections)

    async def _send_for_query(
        self, connection: Connection, samples: Samples, index: int, due_ns: int, from_ns: int
    ) -> None:
        sent_ns = self._clock_ns()
        moments = RequestTimes(due_ns=due_ns, from_ns=from_ns, sent_ns=sent_ns)
        await self._ask(connection, index, moments, samples, sent_ns + self._timeout_ns)

    async def _open(
        self,
        samples: Samples,
        schedule: Sequence[int],
        *,
        first: int = 0,
        most_over: float = math.inf,
    ) -> None:
        """Send each request at its scheduled time, or once a connection is free after it.

        The results are stored from the index `first` on. No more requests are sent once more than
        `most_over` of all are over the bound.
        """
        due: deque[int] = deque()
        idle = list(self.connections)

        async def work(connection: Connection) -> None:
            while due:
                index = due.popleft()
                await self._scheduled(connection, first + index, schedule[index], samples)
            idle.append(connection)

        async with asyncio.TaskGroup() as at_work:
            for index, at_ns in enumerate(schedule):
                left_ns = at_ns - self._clock_ns()
                if left_ns > 0:
                    await asyncio.sleep(left_ns / 1e9)
                if samples.over > most_over:
                    due.clear()
                    break
                due.append(index)
                connection = idle.pop() if idle else self._add_connection()
                if connection is None:
                    samples.waited += 1
                else:
                    at_work.create_task(work(connection))

    async def _scheduled(
        self, connection: Connection, index: int, at_ns: int, samples: Samples
    ) -> None:
        sent_ns = self._clock_ns()
        moments = RequestTimes(
            due_ns=max(at_ns, connection.free_ns), from_ns=at_ns, sent_ns=sent_ns
        )
        deadline_ns = at_ns + self._timeout_ns
        if sent_ns >= deadline_ns:
            # Its timeout passed before a connection was free, so it is not sent.
            samples.add(index, moments, Answer(error="timeout", ended_ns=sent_ns))
            return
        await self._ask(connection, index, moments, samples, deadline_ns)

    async def _ask(
        self,
        connection: Connection,
        index: int,
        moments: RequestTimes,
        samples: Samples,
        deadline_ns: int,
    ) -> None:
        answer = await connection.ask(round(min(deadline_ns, self._until_ns)))
        connection.free_ns = answer.ended_ns
        samples.add(index, moments, answer)

    def _add_connection(self) -> Connection | None:
        if len(self.connections) >= self._max_connections:
            return None
        self.connections.append(self._new_connection())
        return self.connections[-1]


def _connections(order: GeneratorOrder) -> int:
    """The maximum number of connections that a shape may open."""
    traffic = order.traffic
    match traffic.shape:
        case "closed":
            return min(traffic.concurrency or 1, traffic.requests)
        case "single-stream":
            return 1
        case "multi-stream":
            return traffic.samples_a_query or 1
        case "offline":
            return min(order.connections, traffic.requests)
        case _:
            return order.connections
