"""The load generator's entry point: reads an order, sends the requests and reports results.

The process is started as `python -m corebound.serving.generator`. Like a worker, it reads
its order from descriptor 3 and writes its messages to descriptor 4. It imports everything
before it reads the order: an import during the requests would delay them by about 0.1 s.
"""

import asyncio
import gc
import os
import resource
import socket
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import BinaryIO

from corebound.errors import CoreboundError, HostError, InputError
from corebound.records import atomic_write
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Warmed
from corebound.serving.generator import apache, http
from corebound.serving.generator.driver import LoadDriver, clock_ns, new_loop
from corebound.serving.generator.http import PersistentConnection, Target
from corebound.serving.generator.reduce import Cost, reduce
from corebound.serving.generator.streaming import completion_bodies, most_tokens, streaming_body
from corebound.worker import protocol
from corebound.worker.protocol import ErrorBoundary, MessageWriter

# The descriptors that the process has open in addition to its connections.
SPARE_DESCRIPTORS = 32


def describe(error: BaseException) -> tuple[str, str | None] | None:
    """What is wrong and how to fix it, for an error that is meant for the user."""
    return (
        (f"{error.where}: {error.what}", error.fix) if isinstance(error, CoreboundError) else None
    )


async def generate(order: GeneratorOrder, requests: BinaryIO, reply: MessageWriter) -> None:
    """Execute an order with the built-in HTTP client, and send all messages.

    Raises:
        CoreboundError: The order cannot be executed.
    """
    reply.during = "connect"
    target = _target(order)
    _allow_connections(order)
    driver = LoadDriver(order, lambda: PersistentConnection(target, clock_ns), clock_ns)
    await driver.connect()
    reply.during = "warm-up"
    warm = await driver.warm_up()
    reply.send(Warmed(ok=warm.ok, errors=warm.errors))
    # Keep the loop running, so that it notices connections that the server closes meanwhile.
    if await asyncio.to_thread(requests.readline) != protocol.GO:
        return  # the runner has abandoned the launch
    reply.during = "measure"
    await driver.connect()
    answered = await _measure(order, driver)
    driver.close()
    reply.send(answered)


async def _measure(order: GeneratorOrder, driver: LoadDriver) -> Answered:
    opened = sum(connection.opened for connection in driver.connections)
    gc.collect()
    gc.freeze()
    gc.disable()
    cpu_ns, wall_ns = time.process_time_ns(), clock_ns()
    samples, began_ns = await driver.measure()
    cost = Cost(
        cpu_ns=time.process_time_ns() - cpu_ns,
        wall_ns=clock_ns() - wall_ns,
        connections=len(driver.connections),
        opened=sum(connection.opened for connection in driver.connections) - opened,
    )
    gc.enable()
    return reduce(samples, order.traffic, began_ns=began_ns, cost=cost, search=driver.highest)


def generate_with_ab(order: GeneratorOrder, requests: BinaryIO, reply: MessageWriter) -> None:
    """Execute an order with ApacheBench.

    Raises:
        CoreboundError: ab is not installed, or has failed.
    """
    reply.during = "warm-up"
    reply.send(apache.warm_up(order))
    if requests.readline() == protocol.GO:
        reply.during = "measure"
        reply.send(apache.measure(order))


def _target(order: GeneratorOrder) -> Target:
    try:
        address = socket.getaddrinfo(order.host, order.port, type=socket.SOCK_STREAM)[0][4]
    except OSError as error:
        raise HostError(
            what=f"the name cannot be resolved: {error.strerror}.",
            where=order.host,
            fix="Give the server's address, such as 127.0.0.1.",
        ) from error
    try:
        requests = _requests(order)
    except ValueError as error:
        raise InputError(
            what=f"this is not a valid request: {error}.",
            where=f"{order.method} {order.path}",
            fix="Percent-encode spaces and non-ASCII letters in the path, such as %20.",
        ) from error
    streaming = order.traffic.streaming
    return Target(
        host=str(address[0]),
        port=order.port,
        requests=requests,
        is_head=order.method == "HEAD",
        most_tokens=None if streaming is None else most_tokens(streaming),
        status=order.status,
        answer_text=order.answer_text,
    )


def _requests(order: GeneratorOrder) -> Iterator[bytes]:
    """All requests, those of the warm-up first; building them later would delay others."""
    build = partial(
        http.request,
        method=order.method,
        host=order.host,
        port=order.port,
        path=order.path,
        content_type=order.content_type,
        headers=order.headers,
        keeps_connection=order.keeps_connections,
    )
    given = [_body(file) for file in order.body_files]
    streaming = order.traffic.streaming
    if streaming is None:
        return cycle([build(body=body) for body in given or (None,)])
    if streaming.has_bodies:
        return cycle([build(body=streaming_body(body, streaming)) for body in given])
    count = order.traffic.warmup_requests + order.traffic.requests
    bodies = completion_bodies(streaming, count, order.traffic.seed)
    # Only the rounds that saturate a server for a search send more.
    return cycle([build(body=body) for body in bodies])


def _body(file: str) -> bytes:
    try:
        return atomic_write.read(Path(file))
    except OSError as error:
        raise InputError(
            what=f"the body of the requests cannot be read: {error.strerror}.",
            where=file,
            fix="Name a readable file.",
        ) from error


def _allow_connections(order: GeneratorOrder) -> None:
    """Raise the limit on open files to the number of connections that may be opened."""
    needed = max(order.connections, order.traffic.concurrency or 0) + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise HostError(
            what=f"{needed} open files are needed, but only {hard} are allowed.",
            where="this host",
            fix="Use fewer connections, or raise the limit (`ulimit -n`).",
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def main() -> int:
    """Execute one order; returns 0 on success, or 1 on a failure reported to the runner."""
    for descriptor in (protocol.REQUEST_FD, protocol.REPLY_FD):
        os.set_inheritable(descriptor, False)
    requests = os.fdopen(protocol.REQUEST_FD, "rb")
    reply = MessageWriter(os.fdopen(protocol.REPLY_FD, "wb"), traffic.encode)
    boundary = ErrorBoundary(reply, describe)
    with boundary:
        order = traffic.decode_order(requests.readline())
        if order.traffic.client == "ab":
            generate_with_ab(order, requests, reply)
        else:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(generate(order, requests, reply))
    if boundary.failed:
        return 1
    # Stay alive until the runner has taken its last sample.
    requests.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
