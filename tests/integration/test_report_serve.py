"""`corebound report --serve`: local only, rebuilt on new records, ended by Ctrl-C."""

import http.client
import re
import signal
import subprocess
from pathlib import Path

import pytest

from corebound.workflow.report import state_of
from support import commands
from support.commands import until

_LONGEST_S = 60


def fetched(port: int, path: str, host: str | None = None) -> tuple[int, str]:
    requests = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        requests.request("GET", path, headers={"Host": host} if host else {})
        answer = requests.getresponse()
        return answer.status, answer.read().decode()
    finally:
        requests.close()


@pytest.mark.quick
def test_a_site_is_served_rebuilt_and_stopped(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    out = tmp_path / "site"
    command = commands.command_line("report", "--records", str(records), "--out", str(out))
    log = tmp_path / "log"
    with (
        log.open("w") as line,
        subprocess.Popen((*command, "--serve", "--port", "0"), stdout=line, stderr=line) as process,
    ):
        try:
            port = int(_said(log, r"http://127\.0\.0\.1:(\d+)/"))
            status, page = fetched(port, "/index.html")
            refused, _ = fetched(port, "/", host="elsewhere.example")
            nameless, _ = fetched(port, "/%00")
            (records / "torn.jsonl").write_text("")
            _said(log, r"(Updated in)")
        finally:
            process.send_signal(signal.SIGINT)
            try:
                code = process.wait(timeout=_LONGEST_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    assert (status, refused, nameless, code) == (200, 403, 404, 0)
    assert "corebound run scenarios --profile quick" in page
    assert "Stopped." in log.read_text()
    assert "Traceback" not in log.read_text()


def _said(log: Path, pattern: str) -> str:
    return until(lambda: re.search(pattern, log.read_text()))[1]


def test_unfinished_files_and_our_own_caches_trigger_no_rebuild(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    before = state_of([tmp_path])

    (tmp_path / "cache/steps").write_text("x")
    (tmp_path / ".r1.jsonl.7").write_text("x")
    assert state_of([tmp_path]) == before
    (tmp_path / "r1.jsonl").write_text("x")
    assert state_of([tmp_path]) != before
