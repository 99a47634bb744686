"""`corebound tune` of own servers and tools: what varies, what is found, what is written."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support import needs
from support.commands import corebound
from support.environments import launch_once

HEAD = "schema: 1\nname: own\ntitle: Own\nquestion: What to set?\n"
MEASURE = "measure: {relaunch_disturbed: 0, launches: {min: 3, max: 4}}\n"

# Answers after so many milliseconds, however many ask.
SERVER = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(int(sys.argv[2]) / 1000)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass

ThreadingHTTPServer.request_queue_size = 64
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

# Better with one thread; says what it was told.
TOOL = """\
#!/bin/sh
if [ "$2" = 1 ]; then echo "rate: 20 op/s"; else echo "rate: 10 op/s"; fi
echo "threads $2, $3 on $(nproc) CPUs"
"""

pytestmark = needs.two_cpus


@pytest.mark.measures
def test_the_rate_of_an_own_server_is_tuned_with_an_interval(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "own.yaml").write_text(
        HEAD + "workload:\n"
        f'  server: {{command: [{sys.executable}, server.py, "{{port}}", "5"]}}\n'
        '  requests: {url: "http://127.0.0.1:{port}/", expect: {text: ok}}\n'
        "parameters: {concurrency: 4}\n" + MEASURE
    )
    race = ("--objective", "rate", "--bound", "p99=500ms", "--budget", "60s")

    tuned = corebound(tmp_path, "tune", "own.yaml", *race, "--json")

    assert tuned.code == 0, tuned.err
    assert "{threads}" in tuned.err
    document = json.loads(tuned.out)
    assert document["recommended"] is not None
    assert "threads" not in document["settings"]
    others = [one for one in document["finalists"] if one["cell"] != document["recommended"]]
    assert others
    assert all(one["winner_speedup_ratio"] for one in others)
    # On a busy host the budget holds few fresh launches of each, and two bound nothing useful.
    assert all(one["launches"] <= 2 or one["winner_speedup_interval"] for one in others)


@pytest.mark.measures
def test_a_service_that_runs_is_saved_and_then_tuned(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = str(opened.getsockname()[1])
    command = (sys.executable, "server.py", port, "5")
    with subprocess.Popen(command, cwd=tmp_path) as process:
        asked = ("inspect", "--port", port, "--seconds", "1", "--save", "own.yaml")
        while (saved := corebound(tmp_path, *asked)).code == 2:  # it does not listen yet
            assert process.poll() is None
        process.kill()
    assert saved.code in {0, 1}, saved.err

    for check in ("check", "plan"):
        assert corebound(tmp_path, check, "own.yaml").code == 0
    race = ("--objective", "rate", "--bound", "p99=500ms", "--budget", "60s")
    tuned = corebound(tmp_path, "tune", "own.yaml", *race, "--json")

    assert tuned.code == 0, tuned.err
    assert json.loads(tuned.out)["recommended"] is not None


def test_a_slow_server_has_a_rate_in_the_time_of_its_launch(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    # 600 requests and those before them would take twice as long.
    outcome = launch_once(
        tmp_path,
        "host",
        workload={
            "server": {"command": [sys.executable, "server.py", "{port}", "300"]},
            "requests": {"url": "http://127.0.0.1:{port}/"},
        },
        parameters={"traffic": "rate-search", "bound_ms": 900},
        measure={"iterations": 600, "timeout_s": 20.0},
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    assert outcome.served is not None
    assert outcome.served.answered.search is not None
    assert outcome.served.answered.search.within_per_s is not None


@pytest.mark.quick
@pytest.mark.measures
def test_the_emitted_script_starts_a_tool_with_the_options_that_were_found(tmp_path: Path) -> None:
    (tmp_path / "tool.sh").write_text(TOOL)
    (tmp_path / "tool.sh").chmod(0o755)
    (tmp_path / "own.yaml").write_text(
        HEAD + 'workload: {command: [./tool.sh, -t, "{threads}", "{label}"]}\n'
        "metric: {name: rate, unit: op/s, better: higher, regex: 'rate: (\\d+)'}\n"
        'parameters: {label: "two words; $HOME"}\n' + MEASURE
    )

    tuned = corebound(
        tmp_path, "tune", "own.yaml", "--max-candidates", "4", "--emit", "shell", "--json"
    )

    assert tuned.code == 0, tuned.err
    settings = json.loads(tuned.out)["settings"]
    assert settings["threads"] == "1"
    script = ["sh", str(tmp_path / "tuned" / "corebound.sh")]
    said = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith("rate: 20 op/s\nthreads 1, two words; $HOME on")
    # It binds as the winner did.
    assert ("on 1 CPUs" in said) == (settings["binding"] not in {"none", "cache", "node"})
