"""Servers that a scenario declares: real small ones, and those that misbehave."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corebound.launch.launch import LaunchResult
from corebound.machine import discovery
from support import needs
from support.environments import launch_once

SERVER = """
import json, os, signal, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, workers, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
asked = 0

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
    for _ in range(workers):
        children.append(os.fork())
        if not children[-1]:
            server.serve_forever()
    signal.signal(signal.SIGTERM, lambda *_: [os.kill(pid, signal.SIGTERM) for pid in children])
    for _ in children:
        os.wait()
    raise SystemExit
server.serve_forever()
"""

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
    command = [sys.executable, "server.py", "{port}", "{workers}", mode]
    asked = {"url": URL, "body": "numbers of {name}", "expect": {"text": "sum of numbers of all"}}
    return launch_once(
        folder,
        "host",
        workload={
            "server": {"command": command, **(server or {})},
            "requests": {**asked, **(requests or {})},
        },
        parameters={"concurrency": 2, "name": "all", **(parameters or {})},
        measure={"iterations": 60, "timeout_s": 60.0, **(measure or {})},
        **settings,
    )


def test_a_server_is_bound_answers_and_ends(tmp_path: Path) -> None:
    cpu = discovery.live_topology().allowed[-1].id
    outcome = served(
        tmp_path,
        server={"ready": "http://127.0.0.1:{port}/health"},
        binding={"cpus": str(cpu)},
    )

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.reason
    assert outcome.leftover_processes == ()
    assert outcome.served is not None
    assert (outcome.served.answered.ok, outcome.served.answered.errors) == (60, {})
    (worker,) = outcome.workers
    assert {allowed for thread in worker.threads for allowed in thread.allowed} == {(cpu,)}
    assert outcome.served.cpu_ns > 0


def test_the_processes_of_several_workers_are_found(tmp_path: Path) -> None:
    outcome = served(tmp_path, workers=2, parameters={"concurrency": 4})

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.reason
    tids = [{thread.tid for thread in worker.threads} for worker in outcome.workers]
    assert len(tids) == 2
    assert not tids[0] & tids[1]


def test_files_are_sent_in_turn_with_their_type(tmp_path: Path) -> None:
    (tmp_path / "bodies").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "bodies" / name).write_text('{"name": "' + name + '"}')
    outcome = served(tmp_path, requests={"body": "bodies/*.json", "expect": {"text": "json"}})

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.reason


def test_tokens_of_a_chat_are_timed_without_its_first_event(tmp_path: Path) -> None:
    requests = {
        "url": "http://127.0.0.1:{port}/v1/chat/completions",
        "protocol": "openai-chat",
        "body": '{"messages": [{"role": "user", "content": "{name}"}], "max_tokens": 5}',
        "expect": {},
    }
    outcome = served(tmp_path, requests=requests, parameters={"first_token_ms": 10_000.0})

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.reason
    assert outcome.served is not None
    assert outcome.served.answered.streamed is not None
    assert outcome.served.answered.streamed.tokens == 5 * 60
    assert outcome.served.answered.streamed.good == 60


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
        ("right", {"workers": 2, "server": {"command": None}}, "1 process, not `workers: 2`"),
    ],
)
def test_a_server_that_misbehaves_is_a_failed_launch_with_its_output(
    tmp_path: Path, mode: str, changes: dict[str, Any], reason: str
) -> None:
    if (changed := changes.get("server")) and changed.get("command", "") is None:
        command = [sys.executable, "server.py", "{port}", "1", mode]
        changes = {**changes, "server": {"command": command}}

    outcome = served(tmp_path, mode, **changes)

    assert outcome.status == "failed"
    assert reason in (outcome.reason or "")
    assert "starting" in outcome.log
    assert "BrokenPipeError" not in outcome.log  # the generator's
    assert outcome.fix


def test_a_server_that_closes_connections_can_be_measured_on_request(tmp_path: Path) -> None:
    outcome = served(tmp_path, "closing", requests={"keep_alive": False})

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.reason
    assert outcome.served is not None
    assert outcome.served.answered.opened >= 58


def test_a_process_that_a_server_leaves_behind_is_named_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corebound.serving.session.STOP_S", 1.0)

    outcome = served(tmp_path, "leaking")

    assert outcome.status == "failed"
    assert "left python" in (outcome.reason or "")
    assert outcome.leftover_processes


def test_a_port_that_another_program_has_is_not_measured_instead(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = served(tmp_path, requests={"url": f"http://127.0.0.1:{port}/"})

    assert outcome.status == "failed"
    assert f"another program already listens on port {port}" in (outcome.reason or "")


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


@contextmanager
def a_running_service() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Running) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_running_service_has_latencies_and_no_workers(tmp_path: Path) -> None:
    with a_running_service() as port:
        outcome = launch_once(
            tmp_path,
            "host",
            workload={"requests": {"url": f"http://localhost:{port}/"}},
            parameters={"concurrency": 1},
            measure={"iterations": 40},
        )

    assert (outcome.status, outcome.reason, outcome.workers) == ("ok", None, ())
    assert outcome.served is not None
    assert outcome.served.answered.ok == 40


def test_a_service_that_does_not_run_is_a_failed_launch(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path,
        "host",
        workload={"requests": {"url": "http://127.0.0.1:9/"}},
        parameters={"concurrency": 1},
    )

    assert outcome.status == "failed"
    assert "nothing answers at 127.0.0.1:9" in (outcome.reason or "")


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
    return served(folder, server=server, requests={"expect": {}}, measure={"timeout_s": 6.0})


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("drip", "no whole answer within"),
        ("endless", "no whole answer within"),
        ("headers", "header"),
        ("truncated", "before its answer was complete"),
        ("not-http", "not HTTP/1: SSH-2.0."),
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
