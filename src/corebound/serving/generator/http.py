"""A minimal HTTP/1.1 client that sends one request repeatedly over keep-alive connections."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import cast

from msgspec import Struct

# No model server sends this much before the body.
MOST_HEAD_BYTES = 65_536
_NO_BODY = (204, 304)


class MalformedError(Exception):
    """The received data is not an HTTP/1 response."""


class Response:
    """Parses one response incrementally; counts the bytes of its body without storing them."""

    def __init__(self, *, to_head: bool = False) -> None:
        """Prepare to parse a response; `to_head`: the response to HEAD has no body."""
        self._to_head = to_head
        self._rest = b""
        self._next: Callable[[], bool] = self._head
        self._left_bytes = 0
        self.status = 0
        self.keeps = False
        self.complete = False

    def feed(self, data: bytes) -> bool:
        """Parse received data; True once the response is complete.

        Raises:
            MalformedError: It is not HTTP/1, or there is data after the response.
        """
        self._rest += data
        while not self.complete and self._next():
            pass
        if self.complete and self._rest:
            raise MalformedError("more came than the answer")
        return self.complete

    def end(self) -> bool:
        """Note that the server closed the connection; True if that completes the response."""
        self.complete = self.complete or self._next == self._until_closed
        self.keeps = False
        return self.complete

    # Each method below consumes what it can of `_rest`; True means that parsing can continue.

    def _head(self) -> bool:
        head, found, rest = self._rest.partition(b"\r\n\r\n")
        if not found:
            if len(self._rest) > MOST_HEAD_BYTES or not _may_begin(self._rest):
                raise MalformedError("no head of an answer")
            return False
        self._rest = rest
        first, *lines = head.split(b"\r\n")
        version, self.status = _status_line(first)
        if self.status < 200:
            return True  # an interim response, such as 100 Continue: the final one follows
        fields = _fields(lines)
        connection = fields.get(b"connection", b"").lower()
        self.keeps = b"close" not in connection and (
            version == b"HTTP/1.1" or b"keep-alive" in connection
        )
        return self._body(fields)

    def _body(self, fields: dict[bytes, bytes]) -> bool:
        if self._to_head or self.status in _NO_BODY:
            self.complete = True
        elif b"chunked" in fields.get(b"transfer-encoding", b"").lower():
            self._next = self._chunk_size
        elif b"content-length" in fields:
            self._left_bytes = _number(fields[b"content-length"], 10)
            self._next = self._sized
        else:
            self.keeps = False
            self._next = self._until_closed
        return True

    def _sized(self) -> bool:
        self._skip()
        self.complete = not self._left_bytes
        return False

    def _until_closed(self) -> bool:
        self._rest = b""
        return False

    def _chunk_size(self) -> bool:
        line = self._line()
        if line is None:
            return False
        size = _number(line.partition(b";")[0], 16)
        self._left_bytes = size + 2  # includes the line end after the chunk
        self._next = self._chunk if size else self._trailer
        return True

    def _chunk(self) -> bool:
        self._skip()
        if not self._left_bytes:
            self._next = self._chunk_size
        return not self._left_bytes

    def _trailer(self) -> bool:
        line = self._line()
        self.complete = line == b""
        return line is not None

    def _line(self) -> bytes | None:
        line, found, rest = self._rest.partition(b"\r\n")
        if not found:
            if len(self._rest) > MOST_HEAD_BYTES:
                raise MalformedError("no end of a line")
            return None
        self._rest = rest
        return line

    def _skip(self) -> None:
        taken = min(self._left_bytes, len(self._rest))
        self._rest = self._rest[taken:]
        self._left_bytes -= taken


def request(
    *, method: str, host: str, port: int, path: str, content_type: str | None, body: bytes | None
) -> bytes:
    """Build a complete request, including its body.

    Raises:
        ValueError: The method, path or a header contains characters that are not allowed.
    """
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {f'[{host}]' if ':' in host else host}:{port}",
        "User-Agent: corebound",
        "Accept: */*",
    ]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if not head.isascii() or head.count("\n") != len(lines) - 1 or len(lines[0].split()) != 3:
        raise ValueError("a request's method, path and headers are plain words")
    return head.encode() + b"\r\n\r\n" + (body or b"")


def _may_begin(data: bytes) -> bool:
    return data[:7] == b"HTTP/1."[: len(data)]


def _status_line(line: bytes) -> tuple[bytes, int]:
    version, _, rest = line.partition(b" ")
    if not _may_begin(version) or len(version) != 8:
        raise MalformedError("not HTTP/1")
    status = _number(rest[:3], 10)
    if not 100 <= status <= 599:
        raise MalformedError("no status")
    return version, status


def _fields(lines: list[bytes]) -> dict[bytes, bytes]:
    fields = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon:
            raise MalformedError("no header")
        fields[name.strip().lower()] = value.strip()
    return fields


def _number(text: bytes, base: int) -> int:
    digits = text.strip()
    if not digits.isalnum():  # int() would take signs and underscores
        raise MalformedError("no number")
    try:
        return int(digits, base)
    except ValueError:
        raise MalformedError("no number") from None


Clock = Callable[[], int]


class Answer(Struct, frozen=True, kw_only=True):
    """The kind of error of a request (None: success), and when the request ended."""

    error: str | None
    ended_ns: int


class Target(Struct, frozen=True, kw_only=True):
    """The address of the server and the request to send.

    `host` is an address, not a name: a name lookup would count as latency.
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
        """Send the request; the returned future never raises."""
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
        """Abort the connection; a pending request ends with the error `closed`."""
        self._end("closed")
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # as TCP's are

    def data_received(self, data: bytes) -> None:
        if self._response is None or self._answer is None:
            self.close()  # data without a request
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
        """Complete the pending request, if any; close the connection unless `keeps`."""
        ended_ns = self._clock_ns()
        answer, self._answer, self._response = self._answer, None, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not keeps and self._transport is not None:
            self._transport.abort()
        if answer is not None and not answer.done():
            answer.set_result(Answer(error=error, ended_ns=ended_ns))


class PersistentConnection:
    """A connection that the next request reopens if it was lost."""

    def __init__(self, target: Target, clock_ns: Clock) -> None:
        """Store the target; nothing is opened yet."""
        self._target = target
        self._clock_ns = clock_ns
        self._connection: _Connection | None = None
        self.opened = 0
        self.free_ns = 0

    async def connect(self, deadline_ns: int) -> str | None:
        """Open the connection if it is closed; returns the kind of error, or None."""
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
        """Send the request, and wait until it has succeeded or failed."""
        error = await self.connect(deadline_ns)
        if error is not None or self._connection is None:
            return Answer(error=error, ended_ns=self._clock_ns())
        return await self._connection.send(deadline_ns)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()


def error_kind(error: Exception) -> str:
    """A short name for the error of a connection.

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
