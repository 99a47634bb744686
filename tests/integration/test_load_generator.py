"""The load generator process against a real server over real sockets."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.scenario.traffic import Answered, GeneratorOrder, Lengths, Shape, Warmed
from corebound.stats import latency
from corebound.worker import protocol
from support import needs
from support.build import OF_A_SHAPE, a_streaming, a_traffic
from support.paths import DATA
from support.servers import GeneratorClient, start_generator

SERVER = DATA / "servers" / "small_server.py"


class Server:
    """The small server, in a process that may be stopped or killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            (sys.executable, str(SERVER)), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def stopped_for(self, seconds: float) -> None:
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


@pytest.fixture
def generator(tmp_path: Path) -> Iterator[GeneratorClient]:
    with start_generator(tmp_path) as started:
        yield started.generator


def an_order_to(server: Server, path: str = "/ok", **of_traffic: Any) -> GeneratorOrder:
    return GeneratorOrder(
        traffic=a_traffic(**of_traffic), host="127.0.0.1", port=server.port, path=path
    )


def adds_up(answered: Answered, requests: int) -> bool:
    counted = sum(window.ok + window.errors for window in answered.windows)
    return answered.ok + sum(answered.errors.values()) == requests == counted


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shape", "path"),
    [*((shape, "/ok") for shape in OF_A_SHAPE), ("closed", "/chunked"), ("constant", "/once")],
)
def test_every_request_of_every_traffic_shape_is_answered(
    shape: Shape, path: str, server: Server, generator: GeneratorClient
) -> None:
    warmed = generator.order(an_order_to(server, path, shape=shape, warmup_requests=8))
    answered = generator.go()

    assert warmed == Warmed(ok=8, errors={})
    assert (answered.ok, answered.errors) == (100, {})
    assert adds_up(answered, 100)


def test_a_body_arrives_whole_however_large(
    server: Server, generator: GeneratorClient, tmp_path: Path
) -> None:
    # More than a socket's buffers hold; the server reads it to the end before it answers.
    body = tmp_path / "body"
    body.write_bytes(bytes(20_000_000))
    order = an_order_to(server, requests=4)

    generator.order(replace(order, content_type="image/jpeg", body_files=(str(body),)))

    assert generator.go().ok == 4


@pytest.mark.parametrize(
    ("path", "requests", "errors"),
    [
        ("/status/503", 100, {"status 503": 100}),
        ("/mixed", 100, {"status 503": 25}),
        ("/drop", 100, {"closed": 100}),
        ("/garbage", 100, {"not HTTP": 100}),
        ("/hang", 8, {"timeout": 8}),
    ],
)
def test_failed_requests_are_counted_by_kind_and_have_no_latency(
    path: str, requests: int, errors: dict[str, int], server: Server, generator: GeneratorClient
) -> None:
    generator.order(
        an_order_to(server, path, requests=requests, timeout_s=0.2 if path == "/hang" else 30.0)
    )
    answered = generator.go()

    counted = latency.percentiles(answered.latencies)
    assert answered.errors == errors
    assert adds_up(answered, requests)
    assert (counted.count if counted else 0) == answered.ok


@pytest.mark.quick
@pytest.mark.parametrize("shape", ["closed", "constant"])
def test_a_server_killed_while_requests_are_under_way_shows_as_errors(
    shape: Shape, server: Server, generator: GeneratorClient
) -> None:
    # Either shape takes two seconds for as many, were it left to.
    requests = {"closed": 400, "constant": 200}[shape]
    generator.order(
        an_order_to(server, "/ok?ms=20", shape=shape, requests=requests, warmup_requests=4)
    )
    killing = threading.Timer(0.8, server.process.kill)
    killing.start()
    answered = generator.go()
    killing.join()

    assert answered.ok > 0
    assert answered.errors["refused"] > 0
    assert set(answered.errors) <= {"refused", "reset", "closed"}
    assert adds_up(answered, requests)


def test_every_request_to_a_missing_server_is_an_error(
    server: Server, generator: GeneratorClient
) -> None:
    server.end()

    warmed = generator.order(an_order_to(server, warmup_requests=3))
    answered = generator.go()

    assert warmed == Warmed(ok=0, errors={"refused": 3})
    assert answered.errors == {"refused": 100}


def test_connections_closed_by_the_server_are_reopened(
    server: Server, generator: GeneratorClient, tmp_path: Path
) -> None:
    generator.order(an_order_to(server, warmup_requests=8))
    restarted = Server.__new__(Server)
    server.end()
    with socket.create_server(("127.0.0.1", server.port), reuse_port=False) as listening:
        restarted.process = subprocess.Popen(
            (sys.executable, str(SERVER), str(listening.fileno())),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(listening.fileno(),),
        )
    assert restarted.process.stdout is not None
    restarted.process.stdout.readline()
    answered = generator.go()
    restarted.end()

    assert (answered.ok, answered.errors) == (100, {})


def test_a_two_second_stall_shows_fully_in_an_open_loop_and_little_in_a_closed_one(
    server: Server, tmp_path: Path
) -> None:
    answered = {}
    for shape, more in (("poisson", {"rate_per_s": 100.0}), ("closed", {"concurrency": 4})):
        with start_generator(tmp_path / shape) as started:
            # A closed loop of four, 30 ms each, sends some 130 in a second; an open one 100.
            order = an_order_to(
                server, "/ok?ms=30", shape=shape, requests=300, warmup_requests=8, **more
            )
            started.generator.order(order)
            stopping = threading.Timer(0.5, lambda: server.stopped_for(2.0))
            stopping.start()
            answered[shape] = started.generator.go()
            stopping.join()

    opened, closed = (latency.percentiles(answered[shape].latencies) for shape in answered)
    assert opened is not None
    assert closed is not None
    # Some 200 requests were meant to go while it stood still, half of them for over a second.
    assert opened.p99_9_ns >= 1_800_000_000
    assert opened.p90_ns >= 500_000_000
    # Four waited: 1.3 % of the requests, which its 90th percentile knows nothing of.
    assert closed.max_ns >= 1_800_000_000
    assert closed.p90_ns < 500_000_000
    assert answered["poisson"].ok == answered["closed"].ok == 300
    still = [window.ok for window in answered["poisson"].windows]
    assert still.count(0) * answered["poisson"].window_ns >= 1_500_000_000


@pytest.mark.quick
@pytest.mark.parametrize("shape", ["closed", "poisson"])
def test_a_stream_is_timed_from_its_first_token_to_its_last(
    shape: Shape, server: Server, generator: GeneratorClient
) -> None:
    path = "/v1/completions?first_ms=100&each_ms=20"
    streaming = a_streaming(output_tokens=Lengths(median=6, most=6), first_token_bound_ms=50.0)
    generator.order(
        an_order_to(server, path, shape=shape, requests=20, warmup_requests=4, streaming=streaming)
    )
    answered = generator.go()

    assert (answered.ok, answered.errors) == (20, {})
    # llama-server closes a connection after a stream, whatever it announced.
    assert answered.opened >= 4
    assert answered.streamed is not None
    assert answered.streamed.tokens == 20 * 6
    # Every first token comes after its bound.
    assert answered.streamed.good == 0
    first, per_token = (
        latency.percentiles(text)
        for text in (answered.streamed.first_token, answered.streamed.per_token)
    )
    assert first is not None
    assert per_token is not None
    assert first.count == per_token.count == 20
    # The server waits as long at least; a busy host makes it longer. Latencies are kept to 0.1 %.
    assert 99_000_000 <= first.p50_ns < 200_000_000
    assert 19_000_000 <= per_token.p50_ns < 60_000_000


def test_a_stream_without_an_end_is_an_error(server: Server, generator: GeneratorClient) -> None:
    path = "/v1/completions?first_ms=1&each_ms=0&cut=1"
    generator.order(an_order_to(server, path, requests=5, streaming=a_streaming()))

    assert generator.go().errors == {"cut off": 5}


@pytest.mark.measures
@needs.ab
def test_throughput_and_percentiles_match_ab(server: Server, tmp_path: Path) -> None:
    answered = {}
    body = tmp_path / "body"
    body.write_bytes(bytes(20_000))
    for client in ("ab", "corebound"):
        with start_generator(tmp_path / client) as started:
            order = an_order_to(
                server, "/ok?ms=10&queue=1", requests=150, warmup_requests=20, client=client
            )
            order = replace(order, content_type="image/jpeg", body_files=(str(body),))
            started.generator.order(order)
            answered[client] = started.generator.go()

    theirs, ours = (latency.percentiles(answered[client].latencies) for client in answered)
    assert theirs is not None
    assert ours is not None
    # One at a time, 10 ms each, four waiting: 100/s and 40 ms, whoever asks. The host may
    # be busy with others, so only a factor of two is held against either.
    for share in ("p50_ns", "p90_ns"):
        assert 0.5 < getattr(ours, share) / getattr(theirs, share) < 2
    rates = [latency.throughput_per_s(a.ok, a.duration_ns) or 0.0 for a in answered.values()]
    assert 0.5 < rates[1] / rates[0] < 2
    assert answered["ab"].ok == 150


@needs.ab
def test_failed_requests_of_ab_are_counted(server: Server, generator: GeneratorClient) -> None:
    generator.order(an_order_to(server, "/mixed", client="ab"))
    answered = generator.go()

    assert (answered.ok, answered.errors) == (75, {"status": 25})


@needs.ab
def test_an_ab_that_fails_is_an_error_with_its_message(
    server: Server, generator: GeneratorClient
) -> None:
    order = an_order_to(server, "/hang", warmup_requests=4, client="ab", timeout_s=1.0)

    failure = generator.order(order)

    assert isinstance(failure, protocol.Failure)
    assert "timeout specified has expired" in failure.what


def test_without_ab_the_error_says_how_to_install_it(server: Server, tmp_path: Path) -> None:
    with start_generator(tmp_path, PATH=str(tmp_path)) as started:
        order = an_order_to(server, warmup_requests=4, client="ab")
        failure = started.generator.order(order)

        assert isinstance(failure, protocol.Failure)
        assert failure.fix is not None
        assert "apt-get install apache2-utils" in failure.fix
        assert started.exit_code() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"body_files": ("/nowhere/at/all",)}, "/nowhere/at/all"),
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
        ({"connections": 10**9}, "open files"),
        ({"path": "/a b"}, "plain"),
    ],
)
def test_an_impossible_order_is_an_error_without_a_traceback(
    change: dict[str, Any], message: str, server: Server, generator: GeneratorClient
) -> None:
    failure = generator.order(replace(an_order_to(server), **change))

    assert isinstance(failure, protocol.Failure)
    assert message in failure.what


def test_the_generator_runs_until_its_orders_end(server: Server, tmp_path: Path) -> None:
    with start_generator(tmp_path) as started:
        started.generator.order(an_order_to(server))
        started.generator.go()
        assert started._supervision.exit_code(started._pid) is None

        started.generator.part()

        assert started.exit_code() == 0


def test_a_generator_that_is_abandoned_before_measuring_exits_quietly(
    server: Server, tmp_path: Path
) -> None:
    with start_generator(tmp_path) as started:
        started.generator.order(an_order_to(server))

        started.generator.part()

        assert started.exit_code() == 0
