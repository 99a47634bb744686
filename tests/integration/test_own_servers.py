"""Servers that a scenario declares: real small ones, and those that misbehave."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corebound.launch.launch import LaunchResult
from corebound.machine import discovery
from corebound.scenario.traffic import Answered
from corebound.stats import latency
from support import needs
from support.environments import launch_once
from support.servers import below_with, while_measuring

SERVER = """
import json, os, signal, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, workers, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
asked = 0

def sleep(until):
    time.sleep(until - time.monotonic())

def compute(until):
    while time.monotonic() < until:
        pass

LATE = {"late-idle": sleep, "late-busy": compute}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if mode == "closing" else "HTTP/1.1"

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(503 if mode == "never-ready" else 200, b"ok")

    def do_POST(self):
        global asked
        asked += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if mode == "dying" and asked > 30:
            print("out of luck", flush=True)
            os._exit(3)
        if self.path == "/v1/chat/completions":
            return self.stream(json.loads(body))
        wrong = mode == "wrong" or (mode == "wrong-later" and asked > 30)
        wrong = wrong or (mode in LATE and not os.path.exists("all-up"))
        sum(range(3000))
        time.sleep(0.005)  # beside it, the generator's own time is short on a busy host, too
        self.answer(200, b"error" if wrong else b"sum of " + body)

    def stream(self, body):
        assert body["stream"] and body["messages"], body
        events = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
        events += [{"choices": [{"delta": {"content": " w"}}]}] * body["max_tokens"]
        events += [{"choices": [{"delta": {}, "finish_reason": "length"}]}]
        lines = [f"data: {json.dumps(event)}\\n\\n" for event in events] + ["data: [DONE]\\n\\n"]
        time.sleep(0.01)
        self.answer(200, "".join(lines).encode(), "text/event-stream")

    def log_message(self, *_):
        pass

print("starting", mode, flush=True)
if mode == "broken":
    raise SystemExit("no such model")
if mode == "leaking" and os.fork() == 0:
    os.setsid()
    time.sleep(600)
server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
if workers > 1:
    children = []
    for number in range(workers):
        children.append(os.fork())
        if not children[-1]:
            if mode in LATE and number:
                LATE[mode](time.monotonic() + 1.5)
                open("all-up", "w").close()
            server.serve_forever()
    signal.signal(signal.SIGTERM, lambda *_: [os.kill(pid, signal.SIGTERM) for pid in children])
    for _ in children:
        os.wait()
    raise SystemExit
server.serve_forever()
"""

COMMAND = (sys.executable, "server.py")
URL = "http://127.0.0.1:{port}/predict"


def served(
    folder: Path,
    mode: str = "right",
    *,
    server: dict[str, Any] | None = None,
    requests: dict[str, Any] | None = None,
    parameters: dict[str, Any] | None = None,
    measure: dict[str, Any] | None = None,
    **settings: Any,
) -> LaunchResult:
    """One launch of the small server."""
    (folder / "server.py").write_text(SERVER)
    command = [*COMMAND, "{port}", "{workers}", mode]
    asked = {"url": URL, "body": "numbers of {name}", "expect": {"text": "sum of numbers of all"}}
    return launch_once(
        folder,
        "host",
        workload={
            "server": {"command": command, **(server or {})},
            "requests": {**asked, **(requests or {})},
        },
        parameters={
            "name": "all",
            **({} if "traffic" in (parameters or {}) else {"concurrency": 2}),
            **(parameters or {}),
        },
        measure={"iterations": 60, "timeout_s": 60.0, **(measure or {})},
        **settings,
    )


def answered(outcome: LaunchResult) -> Answered:
    """What a launch with which nothing is wrong was answered."""
    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    assert outcome.served is not None
    return outcome.served.answered


def test_a_server_is_bound_answers_and_ends(tmp_path: Path) -> None:
    cpu = discovery.live_topology().allowed[-1].id
    ready = {"ready": "http://127.0.0.1:{port}/health"}

    outcome = served(tmp_path, server=ready, binding={"cpus": str(cpu)})

    assert (answered(outcome).ok, answered(outcome).errors) == (60, {})
    (worker,) = outcome.workers
    assert {allowed for thread in worker.threads for allowed in thread.allowed} == {(cpu,)}
    assert outcome.served is not None
    assert outcome.served.cpu_ns > 0


def test_the_processes_of_several_workers_are_found_and_files_are_sent_with_their_type(
    tmp_path: Path,
) -> None:
    (tmp_path / "bodies").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "bodies" / name).write_text('{"name": "' + name + '"}')
    requests = {"body": "bodies/*.json", "expect": {"text": "json"}}

    outcome = served(tmp_path, workers=2, parameters={"concurrency": 4}, requests=requests)

    assert answered(outcome).ok == 60
    first, second = ({thread.tid for thread in worker.threads} for worker in outcome.workers)
    assert not first & second


@pytest.mark.parametrize("mode", ["late-idle", "late-busy"])
@pytest.mark.parametrize(
    "parameters", [{"concurrency": 1}, {"traffic": "rate-search", "bound_ms": 1000.0}]
)
def test_no_request_is_sent_before_each_of_several_workers_answers(
    tmp_path: Path, mode: str, parameters: dict[str, Any]
) -> None:
    ready = {"ready": "http://127.0.0.1:{port}/health"}

    outcome = served(tmp_path, mode, server=ready, workers=2, parameters=parameters)

    assert answered(outcome).errors == {}
    assert len(outcome.workers) == 2


def test_tokens_of_a_chat_are_timed_without_its_first_event(tmp_path: Path) -> None:
    requests = {
        "url": "http://127.0.0.1:{port}/v1/chat/completions",
        "protocol": "openai-chat",
        "body": '{"messages": [{"role": "user", "content": "{name}"}], "max_tokens": 5}',
        "expect": {},
    }
    outcome = served(tmp_path, requests=requests, parameters={"first_token_ms": 10_000.0})

    streamed = answered(outcome).streamed
    assert streamed is not None
    assert (streamed.tokens, streamed.good) == (5 * 60, 60)


@pytest.mark.parametrize(
    ("mode", "changes", "reason"),
    [
        ("broken", {}, "ended with 1 before it was ready"),
        (
            "never-ready",
            {"server": {"ready": "http://127.0.0.1:{port}/"}, "measure": {"timeout_s": 3.0}},
            "status 503",
        ),
        ("wrong", {}, "wrong answer: 200 OK, b'error'"),
        ("wrong-later", {}, "wrong answer: "),
        ("right", {"requests": {"expect": {"status": 204}}}, "status 200"),
        ("dying", {}, "ended with 3 while"),
        ("closing", {}, "closes the connection"),
        (
            "right",
            {"workers": 2, "server": {"command": [*COMMAND, "{port}", "1", "right"]}},
            "1 process, not `workers: 2`",
        ),
    ],
)
def test_a_server_that_misbehaves_is_a_failed_launch_with_its_output(
    tmp_path: Path, mode: str, changes: dict[str, Any], reason: str
) -> None:
    outcome = served(tmp_path, mode, **changes)

    assert (outcome.status, outcome.ended_by) == ("failed", None)
    assert reason in (outcome.reason or "")
    assert "starting" in outcome.log
    assert "BrokenPipeError" not in outcome.log  # the generator's
    assert outcome.fix


def test_a_server_that_closes_connections_can_be_measured_on_request(tmp_path: Path) -> None:
    outcome = served(tmp_path, "closing", requests={"keep_alive": False})

    assert answered(outcome).opened >= 58


def test_a_process_that_a_server_leaves_behind_is_named_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corebound.serving.session.STOP_S", 1.0)

    outcome = served(tmp_path, "leaking")

    assert outcome.status == "failed"
    assert "left python" in (outcome.reason or "")
    assert outcome.leftover_processes


def test_a_launch_that_times_out_while_its_server_ends_names_what_is_left(tmp_path: Path) -> None:
    outcome = served(tmp_path, "leaking", measure={"timeout_s": 5.0})

    assert outcome.status == "timed-out"
    assert "stop of python" in (outcome.reason or "")


def test_a_port_that_another_program_has_is_not_measured_instead(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = served(tmp_path, requests={"url": f"http://127.0.0.1:{port}/"})

    assert outcome.status == "failed"
    assert f"another program already listens on port {port}" in (outcome.reason or "")


def test_the_highest_rate_within_a_bound_is_found(tmp_path: Path) -> None:
    search = {"traffic": "rate-search", "bound_ms": 1000.0}
    outcome = served(tmp_path, parameters=search, measure={"iterations": 600})

    found = answered(outcome)
    assert 350 < found.ok + sum(found.errors.values()) <= 600
    assert found.search is not None
    assert found.search.within_per_s is not None
    # The latencies are those at this rate.
    rate = found.search.within_per_s
    result = latency.percentiles(found.latencies)
    assert result is not None
    at_rate = (trial.requests for trial in found.search.trials if trial.rate_per_s == rate)
    assert result.count == sum(at_rate)
    assert result.p90_ns < 1e9


def test_a_bound_that_the_server_cannot_meet_fails_with_the_reason(tmp_path: Path) -> None:
    search = {"traffic": "rate-search", "bound_ms": 0.01}
    outcome = served(tmp_path, parameters=search, measure={"iterations": 250})

    assert outcome.status == "failed"
    assert "took longer than 0.01 ms" in (outcome.reason or "")


def test_a_delayed_generator_makes_the_launch_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delay() -> None:
        (generator,) = below_with(b"corebound.serving.generator")
        os.kill(generator, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(generator, signal.SIGCONT)

    delayed = while_measuring(monkeypatch, delay, after_s=0.5)
    # Three seconds of requests.
    traffic = {"traffic": "constant", "rate": 20.0}
    outcome = served(tmp_path, parameters=traffic)

    assert delayed.is_set(), outcome.reason
    assert outcome.status == "invalid"
    assert any("load generator sent" in one and "late" in one for one in outcome.evidence)
    assert "load generator" in (outcome.fix or "")


class Running(BaseHTTPRequestHandler):
    """A service that runs already."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(0.005)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def launch_against(folder: Path, port: int) -> LaunchResult:
    """Measure a service of this host that corebound does not start."""
    return launch_once(
        folder,
        "host",
        workload={"requests": {"url": f"http://localhost:{port}/"}},
        parameters={"concurrency": 1},
        measure={"iterations": 40},
    )


def test_a_running_service_has_latencies_and_no_workers(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Running) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        outcome = launch_against(tmp_path, server.server_port)
        server.shutdown()

    assert answered(outcome).ok == 40
    assert outcome.workers == ()


def test_a_service_that_does_not_run_is_a_failed_launch(tmp_path: Path) -> None:
    outcome = launch_against(tmp_path, 9)

    assert outcome.status == "failed"
    assert "nothing answers at localhost:9" in (outcome.reason or "")


# One answer to each request of a connection, byte by byte or without end.
HOSTILE = """
import os, socket, sys, threading, time

OK = b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"
CHUNKED = b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
mode = sys.argv[2]

def read(client):
    data = b""
    while b"numbers" not in data:
        if not (got := client.recv(65536)):
            raise OSError
        data += got

def answer(client):
    with client:
        try:
            for index in range(1000):
                read(client)
                if mode == "drip":
                    for byte in OK:
                        client.sendall(bytes([byte]))
                        time.sleep(0.2)
                elif mode == "endless":
                    client.sendall(CHUNKED)
                    while True:
                        client.sendall(b"2\\r\\nok\\r\\n")
                        time.sleep(0.05)
                elif mode == "continue":
                    client.sendall(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
                elif mode == "truncated":
                    return client.sendall(OK.replace(b"2\\r", b"9\\r"))
                elif mode == "not-http":
                    client.sendall(b"SSH-2.0\\r\\n")
                elif mode == "many-headers":
                    time.sleep(0.005)
                    client.sendall(OK[:-4] + b"X: y\\r\\n" * 300 + OK[-4:])
                    continue
                elif mode == "headers":
                    client.sendall(b"HTTP/1.1 200 OK\\r\\nX: " + b"y" * 200_000 + b"\\r\\n")
                time.sleep(0.005)
                client.sendall(OK)
                if mode == "closes-after-5" and index == 4:
                    return
        except OSError:
            pass

print("starting", mode, flush=True)
def start_short_ones():
    while True:
        if not os.fork():
            time.sleep(0.3)
            os._exit(0)
        time.sleep(0.02)

if mode == "short-children":
    threading.Thread(target=start_short_ones, daemon=True).start()
if mode == "daemon" and os.fork():
    time.sleep(0.5)
    raise SystemExit
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()
"""


def hostile(folder: Path, mode: str) -> LaunchResult:
    """One launch of a server that speaks HTTP badly."""
    (folder / "hostile.py").write_text(HOSTILE)
    server = {"command": [sys.executable, "hostile.py", "{port}", mode]}
    return served(folder, server=server, requests={"expect": {}}, measure={"timeout_s": 4.0})


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("drip", "no whole answer within"),
        ("endless", "no whole answer within"),
        ("headers", "header"),
        ("truncated", "before its answer was complete"),
        ("not-http", "not HTTP/1: SSH-2.0"),
        ("closes-after-5", "requests failed (closed"),
    ],
)
def test_an_answer_that_never_ends_or_breaks_http_fails_in_time(
    tmp_path: Path, mode: str, reason: str
) -> None:
    outcome = hostile(tmp_path, mode)

    assert outcome.status == "failed", outcome.reason
    assert reason in (outcome.reason or "")
    assert "starting" in outcome.log


def test_a_daemon_is_told_to_stay_in_the_foreground(tmp_path: Path) -> None:
    outcome = hostile(tmp_path, "daemon")

    assert outcome.status == "failed"
    assert "foreground" in (outcome.fix or "")


@pytest.mark.parametrize("mode", ["continue", "short-children", "many-headers"])
def test_interim_answers_many_headers_and_children_that_end_soon_are_no_fault(
    tmp_path: Path, mode: str
) -> None:
    outcome = hostile(tmp_path, mode)

    assert (outcome.status, outcome.reason) == ("ok", None)


C_SERVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <unistd.h>

int main(int count, char **words) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 64)) return 1;
    const char *answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for (;;) {
        int client = accept(listener, 0, 0);
        char request[65536];
        while (read(client, request, sizeof request) > 0) {
            usleep(5000);
            write(client, answer, strlen(answer));
        }
        close(client);
    }
}
"""


@needs.compiler
def test_a_c_program_is_a_server_too(tmp_path: Path) -> None:
    (tmp_path / "server.c").write_text(C_SERVER)
    subprocess.run(["gcc", "-O1", "-o", "server", "server.c"], cwd=tmp_path, check=True)
    outcome = launch_once(
        tmp_path,
        "host",
        workload={
            "server": {"command": ["./server", "{port}"]},
            "requests": {"url": "http://127.0.0.1:{port}/", "expect": {"text": "ok"}},
        },
        parameters={"concurrency": 1},
        measure={"iterations": 60},
    )

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.reason
