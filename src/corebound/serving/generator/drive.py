"""The shapes of traffic: when the next request goes, over which connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from corebound.model.traffic import OPEN, GeneratorOrder
from corebound.serving.arrivals import intended_ns
from corebound.serving.generator.connection import Answer, Clock
from corebound.serving.generator.samples import Moments, Samples

# Connections that an open loop has before its first request. Over loopback one more
# costs a fraction of a millisecond, once; a server may dislike hundreds that idle.
FIRST_CONNECTIONS = 16


class Line(Protocol):
    """What the shapes need of a connection; `free_ns` is theirs to keep."""

    free_ns: int

    @property
    def opened(self) -> int: ...

    async def connect(self, deadline_ns: int) -> str | None: ...

    async def ask(self, deadline_ns: int) -> Answer: ...

    def close(self) -> None: ...


class Drive:
    """Sends one order's requests. Every request is written down once, whatever befalls it."""

    def __init__(
        self, order: GeneratorOrder, new_line: Callable[[], Line], clock_ns: Clock
    ) -> None:
        """Make the connections' places; nothing is opened yet."""
        self._traffic = order.traffic
        self._new_line = new_line
        self._clock_ns = clock_ns
        self._timeout_ns = round(order.traffic.timeout_s * 1e9)
        self._most = _connections(order)
        first = min(self._most, FIRST_CONNECTIONS) if self._traffic.shape in OPEN else self._most
        self.lines = [new_line() for _ in range(first)]

    async def connect(self) -> None:
        """Open what is not open; a failure shows when the line is next asked."""
        deadline_ns = self._clock_ns() + self._timeout_ns
        await asyncio.gather(*(line.connect(deadline_ns) for line in self.lines))

    def close(self) -> None:
        """Close every connection."""
        for line in self.lines:
            line.close()

    async def warm_up(self) -> Samples:
        """Send the warm-up requests over all connections there are."""
        samples = Samples(self._traffic.warmup_requests)
        await self._closed(self.lines, samples, self._traffic.warmup_requests)
        return samples

    async def measure(self) -> tuple[Samples, int]:
        """Send what is measured.

        Returns:
            What came of each request, in the order of sending, and the first's intended time.
        """
        requests = self._traffic.requests
        samples = Samples(requests)
        began_ns = self._clock_ns()
        match self._traffic.shape:
            case "closed" | "single-stream":
                await self._closed(self.lines, samples, requests)
            case "offline":
                await self._closed(self.lines, samples, requests, from_ns=began_ns)
            case "multi-stream":
                await self._queries(samples)
            case _:
                offsets_ns = intended_ns(self._traffic).tolist()
                start_ns = self._clock_ns()
                began_ns = start_ns + offsets_ns[0]
                await self._open(samples, [start_ns + at_ns for at_ns in offsets_ns])
        return samples, began_ns

    async def _closed(
        self, lines: Sequence[Line], samples: Samples, requests: int, *, from_ns: int | None = None
    ) -> None:
        """Each line sends its next request when its last has ended."""
        indexes = iter(range(requests))
        began_ns = self._clock_ns()
        for line in lines:
            line.free_ns = began_ns
        await asyncio.gather(*(self._one_by_one(line, samples, indexes, from_ns) for line in lines))

    async def _one_by_one(
        self, line: Line, samples: Samples, indexes: Iterator[int], from_ns: int | None
    ) -> None:
        for index in indexes:
            sent_ns = self._clock_ns()
            moments = Moments(
                due_ns=line.free_ns,
                from_ns=sent_ns if from_ns is None else from_ns,
                sent_ns=sent_ns,
            )
            await self._ask(line, index, moments, samples, sent_ns + self._timeout_ns)

    async def _queries(self, samples: Samples) -> None:
        """All of a query's requests at once, and the next query when all are back."""
        due_ns = self._clock_ns()
        for first in range(0, self._traffic.requests, len(self.lines)):
            from_ns = self._clock_ns()
            await asyncio.gather(
                *(
                    self._one_of_query(line, samples, index, due_ns, from_ns)
                    for index, line in enumerate(self.lines, start=first)
                )
            )
            due_ns = max(line.free_ns for line in self.lines)

    async def _one_of_query(
        self, line: Line, samples: Samples, index: int, due_ns: int, from_ns: int
    ) -> None:
        sent_ns = self._clock_ns()
        moments = Moments(due_ns=due_ns, from_ns=from_ns, sent_ns=sent_ns)
        await self._ask(line, index, moments, samples, sent_ns + self._timeout_ns)

    async def _open(self, samples: Samples, schedule: Sequence[int]) -> None:
        """Each request goes at its time, or as soon after as there is a connection."""
        due: deque[int] = deque()
        idle = list(self.lines)

        async def work(line: Line) -> None:
            while due:
                index = due.popleft()
                await self._scheduled(line, index, schedule[index], samples)
            idle.append(line)

        async with asyncio.TaskGroup() as at_work:
            for index, at_ns in enumerate(schedule):
                left_ns = at_ns - self._clock_ns()
                if left_ns > 0:
                    await asyncio.sleep(left_ns / 1e9)
                due.append(index)
                line = idle.pop() if idle else self._one_more()
                if line is None:
                    samples.waited += 1
                else:
                    at_work.create_task(work(line))

    async def _scheduled(self, line: Line, index: int, at_ns: int, samples: Samples) -> None:
        sent_ns = self._clock_ns()
        moments = Moments(due_ns=max(at_ns, line.free_ns), from_ns=at_ns, sent_ns=sent_ns)
        deadline_ns = at_ns + self._timeout_ns
        if sent_ns >= deadline_ns:
            # It was given up before its turn came: nothing is sent, nothing is lost.
            samples.note(index, moments, Answer(error="timeout", ended_ns=sent_ns))
            return
        await self._ask(line, index, moments, samples, deadline_ns)

    async def _ask(
        self, line: Line, index: int, moments: Moments, samples: Samples, deadline_ns: int
    ) -> None:
        answer = await line.ask(deadline_ns)
        line.free_ns = answer.ended_ns
        samples.note(index, moments, answer)

    def _one_more(self) -> Line | None:
        if len(self.lines) >= self._most:
            return None
        self.lines.append(self._new_line())
        return self.lines[-1]


def _connections(order: GeneratorOrder) -> int:
    """The most connections that a shape may have open."""
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
