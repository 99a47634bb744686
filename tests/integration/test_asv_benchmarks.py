"""asv measures scenario cells through benchmarks/scenarios.py, stores and shows them."""

import contextlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from corebound.machine import lock
from support.commands import until
from support.paths import ROOT
from support.repositories import git, write_asv_conf, write_pyproject

DOOR = ROOT / "benchmarks" / "scenarios.py"
SCENARIO = """\
schema: 1
name: count-up
title: Counting
question: Does one CPU count as fast as all of them?
workload: counting:setup
environment: project
matrix:
  binding: [none, one-cpu, {cpus: "60000"}]
measure:
  {relaunch_disturbed: 0, iterations: 12, warmup: {iterations: 2}, launches: {min: 3, max: 3}}
baseline: {binding: none}
"""
# Naps, so that other programs on the host disturb no launch; one late nap at the end of twelve
# would leave the end of an automatic warm-up unknown.
WORKLOAD = """\
import time

def setup():
    return lambda: time.sleep(0.002)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return a_project(tmp_path / "project")


def a_project(folder: Path) -> Path:
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "scenarios").mkdir()
    (folder / "tmp").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    shutil.copy(DOOR, folder / "benchmarks" / "scenarios.py")
    (folder / "scenarios" / "count.yaml").write_text(SCENARIO)
    (folder / "scenarios" / "counting.py").write_text(WORKLOAD)
    write_asv_conf(folder, "counting", benchmark_dir="benchmarks")
    (folder / ".gitignore").write_text(".asv/\nreports/\ntmp/\n__pycache__/\n")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "count")
    return folder


def environment(project: Path) -> dict[str, str]:
    """Ours, with asv's file of machines, and our lock, away from the user's own."""
    private = str(project / "tmp")
    return {**os.environ, "NO_COLOR": "1", "HOME": private, lock.LOCK_VARIABLE: private}


def asv(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "asv", *arguments),
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run(project: Path) -> tuple[str, dict[str, Any]]:
    """Measure the checkout; what was said, and what asv stored."""
    sha = git(project, "rev-parse", "HEAD").strip()
    asv(project, "machine", "--yes", "--machine", "here")
    completed = asv(
        project, "run", "--python=same", "--machine", "here", "--set-commit-hash", sha,
        "--show-stderr", "--record-samples",
    )  # fmt: skip
    (file,) = (project / ".asv" / "results" / "here").glob(f"{sha[:8]}*.json")
    result: dict[str, Any] = json.loads(file.read_text())
    return completed.stdout + completed.stderr, result


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, dict[str, Any]]:
    """A project that asv has measured once, with what was said and stored."""
    project = a_project(tmp_path_factory.mktemp("measured") / "project")
    return project, *run(project)


# It counts launches; of short naps beside many other tests, disturbed ones do not count.
@pytest.mark.quick
@pytest.mark.measures
def test_asv_stores_launches_of_every_cell_and_skips_cells_that_do_not_fit(
    measured: tuple[Path, str, dict[str, Any]],
) -> None:
    project, output, stored = measured

    (name,) = stored["results"]
    entry = dict(zip(stored["result_columns"], stored["results"][name], strict=False))
    assert name == "scenarios.CountUp.track_time"
    assert entry["params"] == [["'binding=none'", "'binding=one-cpu'", "'binding=cpus:60000'"]]
    # A value for each cell that fits, and NaN, asv's mark for skipped, for the one that does not.
    # A failed one would be None.
    assert [isinstance(one, float) for one in entry["result"][:2]] == [True, True], output
    assert entry["result"][2] is not None
    assert math.isnan(entry["result"][2])
    assert "60000" in output
    # One sample a launch, which is what can be replicated.
    assert [len(samples) for samples in entry["samples"][:2]] == [3, 3]
    assert all(0 < sample < 1 for samples in entry["samples"][:2] for sample in samples)
    # asv rounds quartiles, but not the result, to five digits.
    assert all(
        low * (1 - 1e-4) <= middle <= high * (1 + 1e-4)
        for low, middle, high in zip(
            entry["stats_q_25"][:2], entry["result"][:2], entry["stats_q_75"][:2], strict=True
        )
    )
    # Its iterations stand in corebound's own records.
    assert len(list((project / "reports" / "records").glob("*/*.jsonl"))) == 2


@pytest.mark.quick
def test_asv_publishes_and_compares_with_the_scenarios_version(
    measured: tuple[Path, str, dict[str, Any]],
) -> None:
    project, _, _ = measured
    benchmarks = json.loads((project / ".asv" / "results" / "benchmarks.json").read_text())
    planned = subprocess.run(
        (sys.executable, "-m", "corebound", "plan", "scenarios", "--json",
         "--project-python", sys.executable),
        cwd=project, env=environment(project), capture_output=True, text=True, check=True,
    )  # fmt: skip

    published = asv(project, "publish")
    shown = asv(project, "show", "HEAD")

    assert (
        benchmarks["scenarios.CountUp.track_time"]["version"]
        == (json.loads(planned.stdout)["results"][0]["sha256"])
    )
    assert benchmarks["scenarios.CountUp.track_time"]["type"] == "time"
    assert published.returncode == 0, published.stderr
    assert (project / ".asv" / "html" / "index.html").is_file()
    assert any((project / ".asv" / "html" / "graphs").rglob("scenarios.CountUp.track_time.json"))
    assert "binding=one-cpu" in shown.stdout


def test_a_broken_workload_is_a_failure_in_asv_with_its_reason(project: Path) -> None:
    (project / "scenarios" / "counting.py").write_text("def setup():\n    raise ValueError('no')\n")

    output, stored = run(project)

    (values,) = stored["results"].values()
    entry = dict(zip(stored["result_columns"], values, strict=False))
    assert entry["result"] is None or not any(isinstance(one, float) for one in entry["result"][:2])
    assert "no launch was ok" in output


# asv's interval of 99 % rests on order alone from 8 samples on (1 - 2/2**8 = 0.992); of fewer it
# takes a distribution for given. Some more, for a launch that is discarded.
BUILT = """\
schema: 1
name: version
title: A nap, as the project has it
question: How long does it take?
workload: counting_steps:setup
environment: project
binding: none
measure:
  iterations: 10
  warmup: {iterations: 2}
  relaunch_disturbed: 0
  launches: {min: 12, max: 12}
"""


def built(project: Path) -> None:
    """Let the project be one that asv builds, of two commits, the second much slower."""
    for name in ("count.yaml", "counting.py"):
        (project / "scenarios" / name).unlink()
    (project / "scenarios" / "version.yaml").write_text(BUILT)
    (project / "scenarios" / "counting_steps.py").write_text(
        "from counting import count\n\n\ndef setup():\n    return count\n"
    )
    write_pyproject(project, "counting", **{"py-modules": ["counting"]})
    for seconds, subject in (("0.002", "nap"), ("0.02", "nap longer")):
        nap = f"import time\n\n\ndef count():\n    time.sleep({seconds})\n"
        (project / "counting.py").write_text(nap)
        git(project, "add", "--all")
        git(project, "commit", "--quiet", "--message", subject)


def page(process: subprocess.Popen[bytes], port: int, path: str) -> bytes:
    """What a server of this machine that has just been started answers."""

    def answer() -> bytes | None:
        assert process.poll() is None, "it ended by itself"
        with contextlib.suppress(OSError), closing(HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("GET", path)
            return connection.getresponse().read()
        return None

    return until(answer)


def test_asv_builds_and_measures_commits_and_finds_the_slower_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(project)
    # It is not in what asv builds, and found on PATH.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    asv(project, "machine", "--yes", "--machine", "here")

    report = asv(project, "continuous", "--machine", "here", "--show-stderr", "HEAD~1", "HEAD")
    compared = asv(project, "compare", "--machine", "here", "HEAD~1", "HEAD")
    ranged = asv(project, "run", "--machine", "here", "--skip-existing", "HEAD~1..HEAD")
    published = asv(project, "publish")

    # It says so itself, and exits with 1.
    assert report.returncode == 1, report.stdout + report.stderr
    assert "PERFORMANCE DECREASED" in report.stdout
    assert "scenarios.Version.track_time" in compared.stdout
    # Its only commit has been measured: nothing is again.
    assert ranged.returncode == 0, ranged.stdout + ranged.stderr
    records = list((project / "reports" / "records").glob("*/*.jsonl"))
    assert len(records) == 2
    assert published.returncode == 0, published.stdout + published.stderr
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # asv's own server, as `asv preview` starts it.
    server = subprocess.Popen(
        (sys.executable, "-m", "asv", "preview", "--port", str(port)),
        cwd=project, env=environment(project),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert b"airspeed velocity" in page(server, port, "/")
        index = json.loads(page(server, port, "/index.json"))
    finally:
        server.kill()
        server.wait()
    assert list(index["benchmarks"]) == ["scenarios.Version.track_time"]
