"""A server of the user's own: when it is ready, which processes answer, whether it answers right.

A running service, which corebound does not start, has no processes.
"""

import mimetypes
import os
import signal
import socket
import time
from contextlib import ExitStack, suppress
from http.client import HTTP_PORT
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from msgspec.structs import replace

from corebound.machine.find_processes import with_connections
from corebound.machine.procfs import cpu_clocks_ns, descendants, process_stat
from corebound.planning.models import Command
from corebound.scenario.fault_wording import printable
from corebound.scenario.placeholders import fill
from corebound.scenario.server_workload import ServerWorkload
from corebound.scenario.traffic import GeneratorOrder, Traffic
from corebound.serving.asking import QUERY_TIMEOUT_S, ask, free_ports
from corebound.serving.generator.http import answer_error
from corebound.serving.generator.streaming import (
    completion_bodies,
    streamed_text,
    streaming_body,
)
from corebound.serving.processes import (
    ANSWER_S,
    POLL_S,
    Processes,
    ServerWorker,
    TimedOutError,
    ended,
    silent,
)
from corebound.serving.served_model import ServerError

# The file of a body that the scenario has as a text.
BODY_FILE = "request-body"
# A server of several workers that says it is ready may still start others. They are waited for
# until each has accepted a connection. The workers behind a front process accept none, so until the
# server has been idle for as long: it used no more than this share of a CPU, and started nothing.
# Processes that are never idle are not waited for longer than the last.
_IDLE_S, _IDLE_SHARE, _MOST_BUSY_S = 2.0, 0.1, 20.0
# How long processes may take to accept a connection before it is seen who did.
_ACCEPT_S = 0.05
NEW_CONNECTIONS = (
    "write `keep_alive: false` under `requests` to count a new connection into each latency."
)


def at_port(command: Command, port: int) -> Command:
    """A command with its port."""
    values = {"port": str(port)}
    return replace(
        command,
        argv=tuple(fill(word, values) for word in command.argv),
        env=tuple((name, fill(value, values)) for name, value in command.env),
    )


def _target(url: SplitResult) -> str:
    """The path and the query of an address."""
    return (url.path or "/") + (f"?{url.query}" if url.query else "")


class DeclaredServer:
    """One launch of a server that a scenario declares.

    Attributes:
        distribution: What it is called in messages.
        port: A free port, for a server that takes one.
        ports: How many free ports it takes, the further ones in `more_ports`.
        answer_fix: What to do about a wrong answer.
    """

    distribution = "the server"
    ports = 1
    answer_fix = "Correct `requests`, or write the right answer under `expect`."

    def __init__(self, own: ServerWorkload, *, folder: str, workers: int, path: str | None) -> None:
        """Choose its port.

        Args:
            folder: The folder of the scenario, in which the files of bodies are.
            workers: The number of its processes that answer requests.
            path: Its PATH, where programs of its environment are found; None: the usual one.
        """
        self.port, *self.more_ports = free_ports(self.ports)
        own = own.filled({"port": str(self.port)})
        self._server, self._requests = own.server, own.requests
        self._folder, self._path = folder, path
        self._count = 0 if own.server is None else workers
        self._url = urlsplit(own.requests.url)
        self._bodies: tuple[Path, ...] = ()
        self._root: int | None = None
        self._before_ns: dict[int, int] = {}
        self._found: tuple[int, ...] = ()
        # Its processes that have accepted connections.
        self._accepting: set[int] = set()
        # A name may stand for several addresses, of which one is reached.
        self._reached = self._url.hostname or ""

    def write(self, folder: Path) -> dict[str, str]:
        """Find or write the bodies of the requests, and check that the port is free.

        Raises:
            ServerError: there is no body, or something else listens on the port.
        """
        body, files = self._requests.body, self._requests.body_files
        if files is not None:
            pattern = Path(self._folder, files)
            below = str(pattern.relative_to(pattern.anchor))
            self._bodies = tuple(sorted(Path(pattern.anchor).glob(below)))
            if not self._bodies:
                raise ServerError(
                    what=f"no file is named {pattern}.",
                    where="requests",
                    fix="Correct `body`; it is relative to the scenario file.",
                )
        elif body is not None:
            self._bodies = (folder.with_name(BODY_FILE),)
            self._bodies[0].write_text(body, encoding="utf-8")
        if self._count and self._refusal() is None:
            raise ServerError(
                what=f"another program already listens on port {self._url.port}.",
                where=self.distribution,
                fix="End it, or write `{port}` in the command and in `url`: a free port.",
            )
        return {} if self._path is None else {"PATH": self._path}

    def order(self, traffic: Traffic) -> GeneratorOrder:
        """What the load generator sends."""
        asked, url = self._requests, self._url
        return GeneratorOrder(
            traffic=traffic,
            host=self._reached,
            port=url.port or HTTP_PORT,
            path=_target(url),
            method=asked.sent_method,
            content_type=self._content_type(),
            headers={"Host": url.netloc.rpartition("@")[2], **asked.headers},
            body_files=tuple(map(str, self._bodies)),
            status=asked.expect.status,
            answer_text=asked.expect.text,
            keeps_connections=asked.keep_alive,
        )

    def _content_type(self) -> str | None:
        """The type of the bodies, unless a header says it."""
        asked = self._requests
        if any(name.lower() == "content-type" for name in asked.headers):
            return None
        if asked.body_files is not None:
            return mimetypes.guess_type(self._bodies[0].name)[0] or "application/octet-stream"
        if asked.body is None:
            return "application/json" if asked.streams else None
        return "application/json" if asked.body.lstrip()[:1] in {"{", "["} else "text/plain"

    def _refusal(self) -> str | None:
        """Why no connection is accepted; None if one is."""
        address = (self._url.hostname or "", self._url.port or HTTP_PORT)
        try:
            with socket.create_connection(address, timeout=QUERY_TIMEOUT_S) as reached:
                self._reached = str(reached.getpeername()[0])
        except OSError as error:
            return f"{address[0]}:{address[1]}: {error.strerror or error}"
        return None

    def _unready(self) -> str | None:
        """Why it is not ready; None if it is."""
        if self._server is None or self._server.ready is None:
            return self._refusal()
        address = urlsplit(self._server.ready)
        try:
            status = ask(
                address.hostname or "",
                address.port or HTTP_PORT,
                _target(address),
                within_s=QUERY_TIMEOUT_S,
            ).status
        except (OSError, ValueError) as error:
            return f"{address.geturl()}: {error}"
        if not 200 <= status <= 299:
            return f"{address.geturl()}: status {status}"
        return self._refusal()

    def await_ready(self, processes: Processes, root: int | None) -> None:
        """Wait until it is ready, and all its workers answer.

        Raises:
            ServerError: it has ended, or it was not ready before the launch's deadline.
            TimedOutError: its workers were not before this deadline.
        """
        self.await_answer(processes, root)
        if root is not None and self._count > 1:
            self._await_workers(processes, root)
        self._before_ns = cpu_clocks_ns(self._tree())

    def await_answer(self, processes: Processes, root: int | None) -> None:
        """Wait until it says that it is ready, of which one of several workers is enough.

        Raises:
            ServerError: as in `await_ready`.
        """
        self._root = root
        while (why := self._unready()) is not None:
            if root is None:
                raise ServerError(
                    what=f"nothing answers at {why}.",
                    where=self.distribution,
                    fix="Start it, or correct `url`.",
                )
            if (code := processes.exit_code(root)) is not None:
                raise ended(code, "before it was ready")
            try:
                processes.wait(POLL_S)
            except TimedOutError:
                raise ServerError(
                    what=f"it was not ready in time: {why}.",
                    where=self.distribution,
                    fix="Correct `ready` or `url`, or increase `measure.timeout_s`.",
                ) from None

    def _await_workers(self, processes: Processes, root: int) -> None:
        began_s = idle_s = time.monotonic()
        before: dict[int, int] = {}
        while len(self._accepting) < self._count:
            self._accepting |= self._accept(processes)
            if (code := processes.exit_code(root)) is not None:
                raise ended(code, "before its workers were ready")
            now_s, clocks_ns = time.monotonic(), cpu_clocks_ns(self._tree())
            used_ns = sum(clocks_ns.values()) - sum(before.values())
            if clocks_ns.keys() != before.keys() or used_ns > _IDLE_SHARE * POLL_S * 1e9:
                idle_s = now_s
            if now_s - idle_s >= _IDLE_S or now_s - began_s >= _MOST_BUSY_S:
                return
            before = clocks_ns
            processes.wait(POLL_S)

    def _accept(self, processes: Processes) -> set[int]:
        """Connect to it, and see which of its processes accept.

        Nothing is sent, so that a process that answers one request at a time keeps its connection,
        and others accept the next ones.
        """
        port = self._url.port or HTTP_PORT
        with ExitStack() as connections, suppress(OSError):
            for _ in range(2 * self._count):
                connections.enter_context(
                    socket.create_connection((self._reached, port), timeout=QUERY_TIMEOUT_S)
                )
            processes.wait(_ACCEPT_S)
            return with_connections(self._tree(), port)
        return set()

    def _tree(self) -> tuple[int, ...]:
        return () if self._root is None else tuple({self._root, *descendants(self._root)})

    def require_right_answer(self, traffic: Traffic, left_s: float) -> None:
        """Send one request before any timing counts, and check its answer.

        Raises:
            ServerError: the answer is wrong, or the server closes the connection after it.
        """
        order = self.order(traffic)
        body = self._bodies[0].read_bytes() if self._bodies else None
        if (streaming := traffic.streaming) is not None:
            body = (
                completion_bodies(streaming, 1, traffic.seed)[0]
                if body is None
                else streaming_body(body, streaming)
            )
        kind = {"Content-Type": order.content_type} if order.content_type else {}
        try:
            reply = ask(
                *(order.host, order.port, order.path),
                method=order.method,
                body=body,
                headers=kind | order.headers,
                within_s=min(ANSWER_S, left_s),
            )
        except (OSError, ValueError) as error:
            raise silent(error, self.distribution) from error
        content = reply.content
        wrong = answer_error(reply.status, content, expected=order.status, text=order.answer_text)
        wrong = wrong or self.difference(content, streams=streaming is not None)
        if wrong is not None:
            raise ServerError(
                what=f"{wrong}: {reply.status} {printable(reply.reason)}, {content[:200]!r}.",
                where=f"{order.method} {self._url.geturl()}",
                fix=self.answer_fix,
            )
        if reply.closes and order.keeps_connections and streaming is None:
            raise ServerError(
                what="it closes the connection after each answer.",
                where=self.distribution,
                fix=f"Let it keep connections (HTTP/1.1), or {NEW_CONNECTIONS}",
            )

    def difference(self, content: bytes, *, streams: bool) -> str | None:
        """How an answer of the right status and text is wrong nonetheless; None if it is not."""
        return "not a stream" if streams and not streamed_text(content) else None

    def workers(self) -> tuple[ServerWorker, ...]:
        """Its processes that answer requests; of a running service, none.

        A single one is the root, with all that it started. Several are those that accepted
        connections, if there are as many; else those with most CPU time since the server was
        ready; without any, those that have started none, and then those with most CPU time in all.

        Raises:
            ServerError: it has fewer processes.
        """
        if not self._found and self._count:
            self._found = self._busiest()
        alive = (pid for pid in self._found if process_stat(pid) is not None)
        return tuple(ServerWorker(id=str(pid), pid=pid, ready=True) for pid in alive)

    def _busiest(self) -> tuple[int, ...]:
        if self._count == 1 and self._root is not None:
            return (self._root,)
        clocks_ns = cpu_clocks_ns(self._tree())
        if len(accepting := self._accepting & clocks_ns.keys()) == self._count:
            return tuple(sorted(accepting))

        def rank(pid: int) -> tuple[int, bool, int]:
            used_ns = clocks_ns[pid] - self._before_ns.get(pid, 0)
            return used_ns, not descendants(pid) - {pid}, clocks_ns[pid]

        found = sorted(clocks_ns, key=rank, reverse=True)[: self._count]
        if len(found) < self._count:
            has = "1 process" if len(found) == 1 else f"{len(found)} processes"
            raise ServerError(
                what=f"it has {has}, not `workers: {self._count}`.",
                where=self.distribution,
                fix="Pass `{workers}` to its command, or correct `workers`.",
            )
        return tuple(sorted(found))

    def stop(self, pids: tuple[int, ...]) -> None:
        """Ask the root process to end the server."""
        if self._server is not None and process_stat(pids[0]) is not None:
            os.kill(pids[0], signal.Signals[self._server.stop])
