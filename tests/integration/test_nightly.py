"""A night can be killed at any moment and run again: it goes on, and loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from corebound.publishing import folder, site
from corebound.store import jsonl
from toy_repository import git

SCENARIO = """\
schema: 1
name: counting
title: Counting
question: How long does it take to count?
workload: steps:setup
environment: host
matrix: {binding: [none, one-cpu]}
measure:
  {relaunch_disturbed: 0, iterations: 12, warmup: {iterations: 2}, launches: {min: 3, max: 3}}
baseline: {binding: none}
"""
STEPS = "def setup():\n    return lambda: sum(range(20_000))\n"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    made = tmp_path / "suite"
    (made / "scenarios").mkdir(parents=True)
    (made / "scenarios" / "counting.yaml").write_text(SCENARIO)
    (made / "scenarios" / "steps.py").write_text(STEPS)
    (made / ".gitignore").write_text("reports/\ntmp/\n")
    (made / "tmp").mkdir()
    git(made, "init", "--quiet", "--initial-branch", "main")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "begin")
    # Last night's site.
    good = tmp_path / "good"
    good.mkdir()
    (good / "index.html").write_text("last night")
    folder.publish(site.opened(good, "yesterday"), made / "public")
    return made


def start(suite: Path, *words: str) -> subprocess.Popen[str]:
    # Its own /tmp, so that a run in progress on this host neither refuses nor hides ours.
    environment = {**os.environ, "TMPDIR": str(suite / "tmp")}
    return subprocess.Popen(
        ("env", "--default-signal=INT", sys.executable, "-m", "corebound", "nightly",
         "--to", "public", *words),
        cwd=suite, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def nightly(suite: Path, *words: str) -> tuple[int, str, str]:
    process = start(suite, *words)
    out, err = process.communicate(timeout=300)
    assert "Traceback" not in err, err
    return process.returncode, out, err


def journal(suite: Path) -> list[dict[str, Any]]:
    """The lines of the only night's journal."""
    found = list((suite / "reports" / "nights").glob("*/journal.jsonl"))
    assert len(found) <= 1, "another night was begun"
    return [json.loads(line) for file in found for line in file.read_text().splitlines()]


def began(step: str) -> Callable[[Path], bool]:
    def is_so(suite: Path) -> bool:
        lines = journal(suite)
        return bool(lines) and (lines[-1].get("step"), lines[-1].get("event")) == (step, "began")

    return is_so


def launched(count: int) -> Callable[[Path], bool]:
    def is_so(suite: Path) -> bool:
        files = jsonl.files(suite / "reports" / "records")
        return sum(file.read_bytes().count(b"\n") - 1 for file in files) >= count

    return is_so


def kill_when(suite: Path, is_so: Callable[[Path], bool]) -> None:
    process = start(suite)
    for _ in range(6000):
        if is_so(suite):
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    else:
        raise AssertionError("it never came so far")
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_killed_at_each_step_a_night_goes_on_and_ends_as_if_it_had_not_been(suite: Path) -> None:
    kept: tuple[Any, ...] = ()
    for moment in (
        began("environments"), began("doctor"), began("run"), launched(2), launched(4),
        began("regressions"), began("report"), began("publish"),
    ):  # fmt: skip
        kill_when(suite, moment)

        # Readers find last night's site until the night has ended, or all of tonight's.
        index = (suite / "public" / "index.html").read_text()
        assert index == "last night" or (began("publish")(suite) and "Counting" in index)
        runs = [jsonl.read(file) for file in jsonl.files(suite / "reports" / "records")]
        launches = tuple(launch for run in runs for launch in run.launches)
        assert launches[: len(kept)] == kept
        kept = launches

    code, out, err = nightly(suite)

    assert code == 0, out + err
    assert "Going on with the night" in err
    assert "no new regression" in out
    (file,) = jsonl.files(suite / "reports" / "records")
    stored = jsonl.read(file)
    assert stored.faults == ()
    assert stored.launches[: len(kept)] == kept
    measured = [launch for launch in stored.launches if launch.kind == "measure"]
    done = [(launch.block, launch.cell.key, launch.attempt) for launch in measured]
    assert len(done) == len(set(done))
    assert {(block, key) for block, key, _ in done} == {
        (block, f"binding={binding}") for block in range(3) for binding in ("none", "one-cpu")
    }
    assert "Counting" in (suite / "public" / "index.html").read_text()
    assert list((suite / "tmp").glob("corebound-*")) == []
    # It is over: the next one measures anew.
    assert journal(suite)[-1]["event"] == "over"


def test_a_step_that_fails_is_named_and_the_last_good_site_stays(
    suite: Path, tmp_path: Path
) -> None:
    (suite / "scenarios" / "counting.yaml").write_text(SCENARIO + "nonsense: 1\n")
    told = tmp_path / "told.txt"

    code, out, _ = nightly(suite, "--summary", str(told))

    assert code == 2
    assert "FAILED at `environments`" in out
    assert "nonsense" in out
    assert told.read_text() == out
    assert (suite / "public" / "index.html").read_text() == "last night"
    # Mended, it goes on where it was.
    (suite / "scenarios" / "counting.yaml").write_text(SCENARIO)
    code, out, err = nightly(suite, "--summary", str(told))
    assert (code, "Going on" in err) == (0, True), out + err
    assert "no new regression" in told.read_text()


def test_launches_that_fail_are_told_published_and_an_exit_code(suite: Path) -> None:
    (suite / "scenarios" / "steps.py").write_text("def setup():\n    raise ValueError('no')\n")
    posts: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/hook"
            code, out, err = nightly(suite, "--json", "--webhook", address)
        finally:
            server.shutdown()
            thread.join()

    assert code == 4, err
    told = json.loads(out)
    assert (told["status"], told["failed"]) == ("launches failed", None)
    assert "some launches failed" in told["text"]
    assert [post["text"] for post in posts] == [told["text"]]
    assert "Counting" in (suite / "public" / "index.html").read_text()


def test_two_nights_at_once_are_refused_and_a_webhook_that_fails_is_told(suite: Path) -> None:
    first = start(suite, "--webhook", "http://127.0.0.1:9/secret-word")
    for _ in range(3000):
        if began("run")(suite):
            break
        time.sleep(0.01)

    # In this process, for it waits a minute where there is no need to.
    from corebound.errors import HostError  # noqa: PLC0415  # of this test alone
    from corebound.nightly import night  # noqa: PLC0415  # as above

    with (
        pytest.raises(HostError, match="another night is at work"),
        night.alone(suite / "reports" / "nights", patience_s=0.0),
    ):
        pass
    _, err = first.communicate(timeout=300)
    assert first.returncode == 4
    assert "could not be sent to 127.0.0.1" in err
    assert "secret-word" not in err
