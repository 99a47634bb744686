"""Asks a server one question, outside the measurement: is it ready, is its answer right?"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from threading import Timer
from types import MappingProxyType

from msgspec import Struct

from corebound.serving.generator.http import MOST_BODY_BYTES

LOOPBACK = "127.0.0.1"
# How long a server may take to say whether it is ready.
QUERY_TIMEOUT_S = 2.0


class Reply(Struct, frozen=True, kw_only=True):
    """One answer of a server.

    Attributes:
        status, reason: Of its first line.
        content: Its body.
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
        host: The address to connect to.
        port: Its port.
        path: The path and the query.
        method: The method.
        body: The body; None: none.
        headers: More headers.
        within_s: How long all of it may take, also if an answer arrives byte by byte.

    Raises:
        OSError: there is no connection, or no whole answer in time.
        http.client.HTTPException: the answer is not HTTP, or too long.
    """
    by_s = time.monotonic() + within_s
    with closing(http.client.HTTPConnection(host, port, timeout=within_s)) as connection:
        connection.connect()
        # A timeout of the socket begins anew with each byte.
        end = Timer(max(0.0, by_s - time.monotonic()), _shut_down, (connection.sock,))
        end.daemon = True
        end.start()
        try:
            connection.request(method, path, body, headers=dict(headers))
            answer = connection.getresponse()
            content = answer.read(MOST_BODY_BYTES + 1)
            if len(content) <= MOST_BODY_BYTES and answer.length:
                raise http.client.IncompleteRead(content, answer.length)
        except (OSError, http.client.HTTPException):
            _require_in_time(by_s, within_s)
            raise
        finally:
            end.cancel()
    _require_in_time(by_s, within_s)
    if len(content) > MOST_BODY_BYTES:
        raise http.client.HTTPException(f"its answer has more than {MOST_BODY_BYTES // 2**20} MiB")
    return Reply(
        status=answer.status, reason=answer.reason, content=content, closes=answer.will_close
    )


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports of the loopback interface that are free at this moment."""
    with ExitStack() as sockets:
        ports = []
        for _ in range(count):
            server_socket = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            server_socket.bind((LOOPBACK, 0))
            ports.append(int(server_socket.getsockname()[1]))
    return tuple(ports)


def _shut_down(connection: socket.socket) -> None:
    with suppress(OSError):  # it may have ended just now
        connection.shutdown(socket.SHUT_RDWR)


def _require_in_time(by_s: float, within_s: float) -> None:
    if time.monotonic() >= by_s:
        raise TimeoutError(f"no whole answer within {within_s:.3g} s")
