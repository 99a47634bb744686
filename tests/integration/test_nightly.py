"""`corebound nightly` killed at any moment resumes and loses nothing."""

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from corebound.errors import HostError
from corebound.records import jsonl
from corebound.records.launch_record import Launch
from corebound.workflow import nightly_steps
from support import commands, repositories
from support.commands import until


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return repositories.nightly_suite(tmp_path)


def start(suite: Path, *arguments: str) -> subprocess.Popen[str]:
    return commands.start(suite, "nightly", "--to", "public", *arguments)


def began(suite: Path, step: str) -> Callable[[], bool]:
    def condition() -> bool:
        lines = repositories.read_journal(suite)
        return bool(lines) and (lines[-1].get("step"), lines[-1].get("event")) == (step, "began")

    return condition


def launched(suite: Path, count: int) -> Callable[[], bool]:
    def condition() -> bool:
        files = jsonl.files(suite / "reports" / "records")
        return sum(file.read_bytes().count(b"\n") - 1 for file in files) >= count

    return condition


def kill_when(suite: Path, condition: Callable[[], bool], *arguments: str) -> None:
    process = start(suite, "--update", *arguments)
    until(lambda: condition() or process.poll() is not None, 300)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.communicate()


def check_nothing_lost(suite: Path, kept: tuple[Launch, ...]) -> tuple[Launch, ...]:
    """Readers find last night's site or all of tonight's, and no launch has gone; all there are."""
    index = repositories.published_page(suite)
    completed = {
        line["step"] for line in repositories.read_journal(suite) if line.get("event") == "began"
    }
    assert index == repositories.PREVIOUS_PAGE or ("publish" in completed and "Counting" in index)
    runs = [jsonl.read(file) for file in jsonl.files(suite / "reports" / "records")]
    launches = tuple(launch for run in runs for launch in run.launches)
    assert launches[: len(kept)] == kept
    return launches


def resume_to_end(suite: Path, kept: tuple[Launch, ...]) -> None:
    """The night ends as if it had not been killed."""
    code, out, err = repositories.run_nightly(suite, "--update")

    assert code == 0, out + err
    assert "Resuming the interrupted nightly run" in err
    assert "no new regression" in out
    (file,) = jsonl.files(suite / "reports" / "records")
    stored = jsonl.read(file)
    assert stored.faults == ()
    assert stored.launches[: len(kept)] == kept
    measured = [launch for launch in stored.launches if launch.kind == "measure"]
    completed = [(launch.block, launch.cell.key, launch.attempt) for launch in measured]
    assert len(completed) == len(set(completed))
    assert {(block, key) for block, key, _ in completed} == {
        (block, f"binding={binding}") for block in range(3) for binding in ("none", "one-cpu")
    }
    assert "Counting" in repositories.published_page(suite)
    assert list(commands.private_tmp(suite).glob("corebound-*")) == []
    # It is over: the next one measures anew.
    assert repositories.read_journal(suite)[-1]["event"] == "over"


def test_a_nightly_run_killed_at_any_step_resumes_to_the_same_result(suite: Path) -> None:
    repositories.push_change(suite)
    kept: tuple[Launch, ...] = ()
    moments = [began(suite, step) for step in ("update", "run", "regressions", "publish")]
    moments[2:2] = [launched(suite, 3)]
    # When it has the lock, before any step.
    for moment in ((suite / "reports" / "nights" / "lock").exists, *moments):
        kill_when(suite, moment)
        kept = check_nothing_lost(suite, kept)
    # And as it tells its summary, to somebody who takes long to listen.
    with webhook_server(answers=False) as (address, posts):
        kill_when(suite, lambda: bool(posts), "--webhook", address)
    kept = check_nothing_lost(suite, kept)

    resume_to_end(suite, kept)


def test_a_nightly_run_killed_at_random_moments_loses_nothing(suite: Path) -> None:
    chance = random.Random(1)
    repositories.push_change(suite)
    kept: tuple[Launch, ...] = ()
    for _ in range(3):
        process = start(suite, "--update")
        time.sleep(chance.uniform(0.3, 5))
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        kept = check_nothing_lost(suite, kept)
        if process.returncode != -signal.SIGKILL:
            # What was left of the night took less than that.
            assert process.returncode == 0, out + err
            assert repositories.read_journal(suite)[-1]["event"] == "over"
            return

    resume_to_end(suite, kept)


@contextmanager
def webhook_server(*, answers: bool = True) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The address of somebody who is told summaries, and what they were told."""
    posts: list[dict[str, Any]] = []
    over = threading.Event()

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            if not answers:
                over.wait()
                return
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", posts
        finally:
            over.set()
            server.shutdown()
            thread.join()


def test_a_failed_step_is_named_and_the_previous_site_stays(suite: Path, tmp_path: Path) -> None:
    scenario = suite / "scenarios" / "counting.yaml"
    sound = scenario.read_text()
    scenario.write_text(f"{sound}nonsense: 1\n")
    summary = tmp_path / "told.txt"

    code, out, _ = repositories.run_nightly(suite, "--summary", str(summary))

    assert code == 2
    assert "FAILED at `environments`" in out
    assert "nonsense" in out
    assert summary.read_text() == out
    assert repositories.published_page(suite) == repositories.PREVIOUS_PAGE
    # Mended, it goes on where it was.
    scenario.write_text(sound)
    code, out, err = repositories.run_nightly(suite, "--summary", str(summary))
    assert (code, "Resuming" in err) == (0, True), out + err
    assert "no new regression" in summary.read_text()


@pytest.mark.quick
def test_failed_launches_are_reported_published_and_set_the_exit_code(suite: Path) -> None:
    (suite / "scenarios" / "steps.py").write_text("def setup():\n    raise ValueError('no')\n")
    with webhook_server() as (address, posts):
        code, out, err = repositories.run_nightly(suite, "--json", "--webhook", address)

    assert code == 4, err
    summary = json.loads(out)
    assert (summary["status"], summary["failed"]) == ("launches failed", None)
    assert "some launches failed" in summary["text"]
    assert [post["text"] for post in posts] == [summary["text"]]
    assert "Counting" in repositories.published_page(suite)


def test_a_second_nightly_run_is_refused_and_a_failed_webhook_is_reported(suite: Path) -> None:
    first = start(suite, "--webhook", "http://127.0.0.1:9/secret-word")
    until(began(suite, "run"))

    # In this process, for it waits a minute where there is no need to.
    with (
        pytest.raises(HostError, match="another nightly run is active"),
        nightly_steps.nightly_lock(suite / "reports" / "nights", patience_s=0.0),
    ):
        pass
    _, err = first.communicate(timeout=300)
    assert first.returncode == 4
    assert "could not be sent to 127.0.0.1" in err
    assert "secret-word" not in err
