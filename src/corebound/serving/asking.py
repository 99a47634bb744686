"""Asks a server one question, outside the measurement: is it ready, is its answer right?"""

import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from types import MappingProxyType

from msgspec import Struct

from corebound.serving.generator import http

LOOPBACK = "127.0.0.1"
# How long a server may take to say whether it is ready.
QUERY_TIMEOUT_S = 2.0


class Reply(Struct, frozen=True, kw_only=True):
    """One answer of a server.

    Attributes:
        status, reason: Of its first line.
        closes: Whether the server closes the connection after it.
    """

    status: int
    reason: str
    content: bytes
    closes: bool


def ask(
    host: str,
    port: int,
    path: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    within_s: float,
) -> Reply:
    """Send one request over a connection of its own, and wait for the whole answer.

    Args:
        path: The path and the query.
        body: The body; None: none.
        headers: More headers.
        within_s: How long all of it may take, also if an answer arrives byte by byte.

    Raises:
        OSError: there is no connection, or no whole answer in time.
        MalformedError: the answer is not HTTP, or too long.
        ValueError: the method, path or a header contains characters that are not allowed.
    """
    question = http.request(
        method=method,
        host=host,
        port=port,
        path=path,
        content_type=None,
        body=body,
        headers=headers,
    )
    by_s = time.monotonic() + within_s
    answer = _Answer(to_head=method == "HEAD")
    with (
        suppress(TimeoutError),
        socket.create_connection((host, port), timeout=within_s) as connection,
    ):
        connection.sendall(question)
        # A timeout of the socket begins anew with each byte.
        while not answer.complete and (left_s := by_s - time.monotonic()) > 0:
            connection.settimeout(left_s)
            if data := connection.recv(1 << 16):
                answer.feed(data)
            elif not answer.end():
                raise ConnectionError("it closed the connection before its answer was complete")
            if len(answer.content) > http.MOST_BODY_BYTES:
                raise http.MalformedError(f"it has more than {http.MOST_BODY_BYTES // 2**20} MiB")
    if not answer.complete:
        raise TimeoutError(f"no whole answer within {within_s:.3g} s")
    return Reply(
        status=answer.status,
        reason=answer.reason,
        content=bytes(answer.content),
        closes=not answer.keeps,
    )


class _Answer(http.Response):
    """An answer as the load generator reads it, with its body and its reason."""

    def __init__(self, *, to_head: bool) -> None:
        self.content = bytearray()
        self.reason = ""
        super().__init__(to_head=to_head, receive=self.content.extend)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.reason = ""

    def on_status(self, reason: bytes) -> None:
        self.reason += reason.decode("latin-1")


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports of the loopback interface that are free at this moment."""
    with ExitStack() as sockets:
        ports = []
        for _ in range(count):
            server_socket = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            server_socket.bind((LOOPBACK, 0))
            ports.append(int(server_socket.getsockname()[1]))
    return tuple(ports)
