"""The load generator's entry point: reads an order, sends the requests and reports results.

The process is started as `python -m corebound.serving.generator`. Like a worker, it reads
its order from descriptor 3 and writes its messages to descriptor 4. It imports everything
before it reads the order: an import during the requests would delay them by about 0.1 s.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import BinaryIO

from corebound.errors import CoreboundError, HostError, InputError
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Warmed
from corebound.serving.generator import http
from corebound.serving.generator.apache import Apache
from corebound.serving.generator.driver import LoadDriver, clock_ns, new_loop
from corebound.serving.generator.http import PersistentConnection, Target
from corebound.serving.generator.reduce import Cost, reduce
from corebound.worker import protocol

# The descriptors that the process has open in addition to its connections.
SPARE_DESCRIPTORS = 32


class RunnerConnection:
    """The two pipes to the runner, and the current phase of the work."""

    def __init__(self, orders: BinaryIO, answers: BinaryIO) -> None:
        self.orders = orders
        self._answers = answers
        self.during = "start"

    def send(self, message: traffic.Message) -> None:
        """Write one message and flush it: the runner waits for it."""
        self._answers.write(traffic.encode(message))
        self._answers.flush()


class Edge:
    """The generator's outermost error handler: reports any exception to the runner.

    Like the worker's, it catches exceptions of every class. An exit or an interrupt ends the
    launch too, and the runner learns the reason only from this report.
    """

    def __init__(self, talk: RunnerConnection) -> None:
        self._talk = talk
        self.failed = False

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is None:
            return False
        if isinstance(error, CoreboundError):
            what, fix = f"{error.where}: {error.what}", error.fix
        else:
            what, fix = f"{type(error).__name__}: {error}", None
            traceback.print_exception(error)
        self._talk.send(protocol.Failure(during=self._talk.during, what=what, fix=fix))
        self.failed = True
        return True


async def generate(order: GeneratorOrder, talk: RunnerConnection) -> None:
    """Execute an order with the built-in HTTP client, and send all messages.

    Raises:
        CoreboundError: The order cannot be executed.
    """
    talk.during = "connect"
    target = _target(order)
    _allow_connections(order)
    drive = LoadDriver(order, lambda: PersistentConnection(target, clock_ns), clock_ns)
    await drive.connect()
    talk.during = "warm-up"
    warm = await drive.warm_up()
    talk.send(Warmed(ok=warm.ok, errors=warm.errors))
    # Keep the loop running, so that it notices connections that the server closes meanwhile.
    if await asyncio.to_thread(talk.orders.readline) != protocol.GO:
        return  # the runner has abandoned the launch
    talk.during = "measure"
    await drive.connect()
    answered = await _measure(order, drive)
    drive.close()
    talk.send(answered)


async def _measure(order: GeneratorOrder, drive: LoadDriver) -> Answered:
    opened = sum(line.opened for line in drive.lines)
    gc.collect()
    gc.freeze()
    gc.disable()
    cpu_ns, wall_ns = time.process_time_ns(), clock_ns()
    samples, began_ns = await drive.measure()
    cost = Cost(
        cpu_ns=time.process_time_ns() - cpu_ns,
        wall_ns=clock_ns() - wall_ns,
        connections=len(drive.lines),
        opened=sum(line.opened for line in drive.lines) - opened,
    )
    gc.enable()
    return reduce(samples, order.traffic, began_ns=began_ns, cost=cost)


def with_ab(order: GeneratorOrder, talk: RunnerConnection) -> None:
    """Execute an order with ApacheBench.

    Raises:
        CoreboundError: ab is not installed, or has failed.
    """
    apache = Apache(order)
    talk.during = "warm-up"
    talk.send(apache.warm_up())
    if talk.orders.readline() == protocol.GO:
        talk.during = "measure"
        talk.send(apache.measure())


def _target(order: GeneratorOrder) -> Target:
    try:
        address = socket.getaddrinfo(order.host, order.port, type=socket.SOCK_STREAM)[0][4]
    except OSError as error:
        raise HostError(
            what=f"its name leads to no address: {error.strerror}.",
            where=order.host,
            fix="Give the server's address, such as 127.0.0.1.",
        ) from error
    body = _body(order.body_file)
    try:
        request = http.request(
            method=order.method,
            host=order.host,
            port=order.port,
            path=order.path,
            content_type=order.content_type,
            body=body,
        )
    except ValueError as error:
        raise InputError(
            what=f"it makes no request: {error}.",
            where=f"{order.method} {order.path}",
            fix="Write spaces and other letters in the path as %20 and the like.",
        ) from error
    return Target(
        host=str(address[0]), port=order.port, request=request, is_head=order.method == "HEAD"
    )


def _body(file: str | None) -> bytes | None:
    if file is None:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(
            what=f"the body of the requests cannot be read: {error.strerror}.",
            where=file,
            fix="Name a file that exists and may be read.",
        ) from error


def _allow_connections(order: GeneratorOrder) -> None:
    """Raise the limit on open files to the number of connections that may be opened."""
    wanted = max(order.connections, order.traffic.concurrency or 0) + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise HostError(
            what=f"{wanted} open files are needed and {hard} allowed.",
            where="this host",
            fix="Ask for fewer connections, or raise the limit (`ulimit -n`).",
        )
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> int:
    """Execute one order; returns 0 on success, or 1 on a failure reported to the runner."""
    for descriptor in (protocol.REQUEST_FD, protocol.REPLY_FD):
        os.set_inheritable(descriptor, False)
    talk = RunnerConnection(
        os.fdopen(protocol.REQUEST_FD, "rb"), os.fdopen(protocol.REPLY_FD, "wb")
    )
    edge = Edge(talk)
    with edge:
        order = traffic.decode_order(talk.orders.readline())
        if order.traffic.client == "ab":
            with_ab(order, talk)
        else:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(generate(order, talk))
    if edge.failed:
        return 1
    # Stay alive until the runner has taken its last sample.
    talk.orders.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
