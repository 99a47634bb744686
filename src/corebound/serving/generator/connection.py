"""One keep-alive connection to a server, opened again whenever it is lost."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import cast

from msgspec import Struct

from corebound.serving.generator.http1 import MalformedError, Response

Clock = Callable[[], int]


class Answer(Struct, frozen=True, kw_only=True):
    """How a request ended (None: well; else the kind of error) and when."""

    error: str | None
    ended_ns: int


class Target(Struct, frozen=True, kw_only=True):
    """Where requests go and what they are.

    `host` is an address, not a name: a look-up would count as latency.
    """

    host: str
    port: int
    request: bytes
    is_head: bool


class _Connection(asyncio.Protocol):
    """Carries one request at a time."""

    def __init__(self, target: Target, clock_ns: Clock) -> None:
        self._target = target
        self._clock_ns = clock_ns
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, deadline_ns: int) -> asyncio.Future[Answer]:
        """Send the request; the answer never raises."""
        self._response = Response(to_head=self._target.is_head)
        self._answer = self._loop.create_future()
        left_s = max(0, deadline_ns - self._clock_ns()) / 1e9
        self._timer = self._loop.call_later(left_s, self._end, "timeout")
        answer = self._answer
        if self._transport is None:
            self._end("closed")
        else:
            self._transport.write(self._target.request)
        return answer

    def close(self) -> None:
        """Give it up at once; what is under way counts as closed."""
        self._end("closed")
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # as TCP's are

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._answer is None:
            self.close()  # nobody asked
            return
        try:
            complete = self._response.feed(data)
        except MalformedError:
            self._end("not HTTP")
            return
        if complete:
            self._end(_error(self._response.status), keeps=self._response.keeps)

    def eof_received(self) -> None:
        if self._response is not None and self._response.end():
            self._end(_error(self._response.status))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end("closed" if exc is None else error_kind(exc))

    def _end(self, error: str | None, *, keeps: bool = False) -> None:
        """Answer what is under way, if anything is; without `keeps` the connection goes."""
        ended_ns = self._clock_ns()
        answer, self._answer, self._response = self._answer, None, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not keeps and self._transport is not None:
            self._transport.abort()
        if answer is not None and not answer.done():
            answer.set_result(Answer(error=error, ended_ns=ended_ns))


class Line:
    """A place for one connection: what is lost is opened again by the next request."""

    def __init__(self, target: Target, clock_ns: Clock) -> None:
        """Nothing is opened yet."""
        self._target = target
        self._clock_ns = clock_ns
        self._connection: _Connection | None = None
        self.opened = 0
        self.free_ns = 0

    async def connect(self, deadline_ns: int) -> str | None:
        """Open the connection if it is not; None, or the kind of error."""
        if self._connection is not None and self._connection.is_open:
            return None
        left_s = max(0, deadline_ns - self._clock_ns()) / 1e9
        try:
            async with asyncio.timeout(left_s):
                _, self._connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._target, self._clock_ns),
                    self._target.host,
                    self._target.port,
                )
        except OSError as error:
            return error_kind(error)
        self.opened += 1
        return None

    async def ask(self, deadline_ns: int) -> Answer:
        """Send the request, and wait until it is answered or has failed."""
        error = await self.connect(deadline_ns)
        if error is not None or self._connection is None:
            return Answer(error=error, ended_ns=self._clock_ns())
        return await self._connection.send(deadline_ns)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()


def error_kind(error: Exception) -> str:
    """A word or two for what befell a connection.

    >>> error_kind(ConnectionRefusedError()), error_kind(OSError(24, "too many"))
    ('refused', 'EMFILE')
    """
    match error:
        case TimeoutError():
            return "timeout"
        case ConnectionRefusedError():
            return "refused"
        case ConnectionResetError() | BrokenPipeError() | ConnectionAbortedError():
            return "reset"
        case OSError(errno=int() as number):
            return errno.errorcode.get(number, f"error {number}")
    return type(error).__name__


def _error(status: int) -> str | None:
    return None if 200 <= status <= 299 else f"status {status}"
