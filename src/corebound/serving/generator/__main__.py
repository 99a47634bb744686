"""The load generator's process.

Started as `python -m corebound.serving.generator` with the order on descriptor 3 and
the answers on 4, as a worker is. All it needs is imported before the order is read: an
import while requests are under way would hold them up by a tenth of a second.
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

# What the process has open besides its connections.
SPARE_DESCRIPTORS = 32


class RunnerConnection:
    """The two pipes; remembers which part of the work is under way."""

    def __init__(self, orders: BinaryIO, answers: BinaryIO) -> None:
        self.orders = orders
        self._answers = answers
        self.during = "start"

    def send(self, message: traffic.Message) -> None:
        """Write one message at once: the runner waits for it."""
        self._answers.write(traffic.encode(message))
        self._answers.flush()


class Edge:
    """Where the generator ends: whatever befell it becomes a record, and goes no further.

    A process of its own has an edge of its own, as the worker has, and here too of every
    class: an exit or an interrupt ends the launch, and the runner can only tell what it is
    told here.
    """

    def __init__(self, talk: RunnerConnection) -> None:
        self._talk = talk
        self.failed = False

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is None:
            return False
        if isinstance(error, CoreboundError):
            what, mend = f"{error.where}: {error.what}", error.mend
        else:
            what, mend = f"{type(error).__name__}: {error}", None
            traceback.print_exception(error)
        self._talk.send(protocol.Failure(during=self._talk.during, what=what, mend=mend))
        self.failed = True
        return True


async def generate(order: GeneratorOrder, talk: RunnerConnection) -> None:
    """Carry out an order with connections of our own, up to the last message.

    Raises:
        CoreboundError: The order cannot be carried out.
    """
    talk.during = "connect"
    target = _target(order)
    _allow_connections(order)
    drive = LoadDriver(order, lambda: PersistentConnection(target, clock_ns), clock_ns)
    await drive.connect()
    talk.during = "warm-up"
    warm = await drive.warm_up()
    talk.send(Warmed(ok=warm.ok, errors=warm.errors))
    # The loop runs on, so that it sees connections that the server closes meanwhile.
    if await asyncio.to_thread(talk.orders.readline) != protocol.GO:
        return  # the runner has given the launch up
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
    """Carry out an order with ApacheBench.

    Raises:
        CoreboundError: ab is missing, or has given up.
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
            mend="Give the server's address, such as 127.0.0.1.",
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
            mend="Write spaces and other letters in the path as %20 and the like.",
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
            mend="Name a file that exists and may be read.",
        ) from error


def _allow_connections(order: GeneratorOrder) -> None:
    """Let the process have as many descriptors as it may open connections."""
    wanted = max(order.connections, order.traffic.concurrency or 0) + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        raise HostError(
            what=f"{wanted} open files are needed and {hard} allowed.",
            where="this host",
            mend="Ask for fewer connections, or raise the limit (`ulimit -n`).",
        )
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> int:
    """Carry out one order; 0 if it was, 1 if it failed and the runner knows why."""
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
    # Stay until the runner has had its last look.
    talk.orders.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
