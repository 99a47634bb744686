"""A minimal HTTP/1.1 client that sends requests over keep-alive connections."""

import asyncio
import errno
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import cast

import httptools
from msgspec import Struct

from corebound.serving.generator.streaming import Clock, TokenStream, TokenTimes

# No model server sends this much before the body.
MOST_HEAD_BYTES = 65_536
# What is kept of a body, in which a text is looked for: one without end must not fill the memory.
MOST_BODY_BYTES = 64 * 2**20
_BEGINNING = b"HTTP/1."


class MalformedError(ValueError):
    """The received data is not an HTTP/1 response."""


class Response:
    """Parses one response incrementally, without keeping its body.

    Attributes:
        status: The status of the response; 0 until its head has been received.
        keeps: Whether the server keeps the connection open.
    """

    def __init__(
        self, *, to_head: bool = False, receive: Callable[[bytes], object] | None = None
    ) -> None:
        """Prepare to parse a response.

        Args:
            to_head: Whether it is the response to HEAD, which has no body.
            receive: Called with each part of the body; None ignores the body.
        """
        self._to_head = to_head
        self._receive = receive
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self._has_head = False
        self._has_length = False
        self._closes = False
        self.status = 0
        self.keeps = False
        self.complete = False

    def feed(self, data: bytes) -> bool:
        """Parse received data; True once the response is complete.

        Raises:
            MalformedError: It is not HTTP/1, or there is data after the response.
        """
        if not self._has_head:
            # The parser also knows other protocols and versions, and does not limit the head.
            if not self._head_bytes and not _BEGINNING.startswith(data[: len(_BEGINNING)]):
                raise MalformedError(f"not HTTP/1: {data[:80].decode('latin-1').strip()}")
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # The parser stops at a change of protocol, which ends the response.
            if self.status != 101:
                raise MalformedError(str(error)) from error
            self.complete = True
        if not self._has_head and self._head_bytes > MOST_HEAD_BYTES:
            raise MalformedError("its header is too long")
        return self.complete

    def end(self) -> bool:
        """Note that the server closed the connection; True if that completes the response."""
        self.complete = self.complete or (self._has_head and not self._has_length)
        self.keeps = False
        return self.complete

    # The parser calls the methods below.

    def on_message_begin(self) -> None:
        """A response begins; the final one follows interim ones, such as 100 Continue."""
        if self.complete:
            raise MalformedError("data after the response")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer after the body."""
        match name.lower():
            case b"content-length":
                self._has_length = True
            case b"transfer-encoding":
                self._has_length = self._has_length or b"chunked" in value.lower()
            case b"connection":
                self._closes = b"close" in value.lower()

    def on_headers_complete(self) -> None:
        """The head of a response is complete."""
        self.status = self._parser.get_status_code()
        version = self._parser.get_http_version()
        if not version.startswith("1.") or not 100 <= self.status <= 599:
            raise MalformedError("not HTTP/1")
        if self.status < 200:
            return
        self._has_head = True
        self.keeps = self._parser.should_keep_alive()
        if self._to_head:
            # The parser waits for a body and does not know that there is none.
            self.keeps = self.keeps or (version == "1.1" and not self._closes)
            self.complete = True

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        if self.complete:
            raise MalformedError("data after the response")
        if self._receive is not None:
            self._receive(data)

    def on_message_complete(self) -> None:
        """A response is complete."""
        self.complete = self._has_head


def request(
    *,
    method: str,
    host: str,
    port: int,
    path: str,
    content_type: str | None,
    body: bytes | None,
    headers: Mapping[str, str] = MappingProxyType({}),
    keeps_connection: bool = True,
) -> bytes:
    """Build a complete request, including its body.

    Raises:
        ValueError: The method, path or a header contains characters that are not allowed.
    """
    fields = {
        "Host": f"{f'[{host}]' if ':' in host else host}:{port}",
        "User-Agent": "corebound",
        "Accept": "*/*",
    }
    if content_type is not None:
        fields["Content-Type"] = content_type
    if not keeps_connection:
        fields["Connection"] = "close"
    fields |= {name.title(): value for name, value in headers.items()}
    if body is not None:
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    head = "\r\n".join(lines)
    if not head.isascii() or head.count("\n") != len(lines) - 1 or len(lines[0].split()) != 3:
        raise ValueError("a request's method, path and headers are plain words")
    return head.encode() + b"\r\n\r\n" + (body or b"")


class Answer(Struct, frozen=True, kw_only=True):
    """The kind of error of a request (None: success), when it ended, and what it streamed."""

    error: str | None
    ended_ns: int
    tokens: TokenTimes | None = None


class Target(Struct, frozen=True, kw_only=True):
    """The address of the server and the requests to send.

    `host` is an address, not a name: a name lookup would count as latency. `requests` gives
    the next request to send. `most_tokens` is the most tokens that a request asks for, whose
    answers are streams of tokens, each over a connection of its own; None for other answers.
    `status` and `answer_text` are of a success, as in `GeneratorOrder`.
    """

    host: str
    port: int
    requests: Iterator[bytes]
    is_head: bool
    most_tokens: int | None = None
    status: int | None = None
    answer_text: str | None = None


def answer_error(
    status: int, body: bytes | bytearray, *, expected: int | None, text: str | None
) -> str | None:
    """Why an answer is no success; None if it is one.

    Args:
        body: Its body; only read if `text` is given.
        expected: The status of a success; None: any of 200 to 299.
        text: A text in the body of a success; None: any body.
    """
    if status != expected if expected is not None else not 200 <= status <= 299:
        return f"status {status}"
    return None if text is None or text.encode() in body else "wrong answer"


class _Connection(asyncio.Protocol):
    """Carries one request at a time."""

    def __init__(self, target: Target, clock_ns: Clock) -> None:
        self._target = target
        self._clock_ns = clock_ns
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self._stream: TokenStream | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._body = bytearray()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def _receiver(self) -> Callable[[bytes], object] | None:
        """What takes the body of the answer; None if nobody does."""
        if self._stream is not None:
            return self._stream.feed
        return None if self._target.answer_text is None else self._body.extend

    def send(self, deadline_ns: int) -> asyncio.Future[Answer]:
        """Send the request; the returned future never raises."""
        most_tokens = self._target.most_tokens
        self._stream = (
            None if most_tokens is None else TokenStream(self._clock_ns, most_tokens=most_tokens)
        )
        self._body.clear()
        self._response = Response(to_head=self._target.is_head, receive=self._receiver)
        self._answer = self._loop.create_future()
        left_s = max(0, deadline_ns - self._clock_ns()) / 1e9
        self._timer = self._loop.call_later(left_s, self._end, "timeout")
        answer = self._answer
        if self._transport is None:
            self._end("closed")
        else:
            self._transport.write(next(self._target.requests))
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
        if len(self._body) > MOST_BODY_BYTES:
            self._end("too long")
        elif complete:
            # llama-server announces that it keeps a connection after a stream, but closes it.
            keeps = self._response.keeps and self._stream is None
            self._end(self._error(self._response.status), keeps=keeps)

    def eof_received(self) -> None:
        if self._response is not None and self._response.end():
            self._end(self._error(self._response.status))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end("closed" if exc is None else error_kind(exc))

    def _error(self, status: int) -> str | None:
        target = self._target
        return answer_error(status, self._body, expected=target.status, text=target.answer_text)

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
            tokens = None
            if self._stream is not None and error is None:
                error, tokens = self._stream.error, self._stream.times
            answer.set_result(Answer(error=error, ended_ns=ended_ns, tokens=tokens))


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
