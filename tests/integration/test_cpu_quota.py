"""A real cgroup limits a launch, proves it, and is gone afterwards."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corebound.launch.cpu_quota import quota_support
from corebound.machine.cgroups import cpu_group
from corebound.machine.sysfs import LIVE
from support.commands import corebound, start, until

SCENARIO = """\
schema: 1
name: limited
title: Limited
question: Is it limited?
workload: counts:{function}
environment: host
matrix: {{cpu_quota: [0.2, 0.5]}}
threads: quota
measure: {{relaunch_disturbed: 0, iterations: {iterations}, launches: {{min: 2, max: 2}}}}
"""
WORKLOADS = """\
import time
from pathlib import Path

def counts():
    return lambda: sum(range(1_000_000))

def leaves():
    steps = iter(range(1_000_000))

    def step():
        if next(steps) == 2:
            for procs in Path("/sys/fs/cgroup").glob("**/corebound-????????/cgroup.procs"):
                (procs.parent.parent / "cgroup.procs").write_text("0")
        sum(range(1_000_000))

    return step

def sleeps():
    return lambda: time.sleep(60)
"""
RUN = ("run", "limited.yaml", "--unlocked")


def cgroups() -> set[Path]:
    group = cpu_group(LIVE)
    assert group is not None
    return set((Path("/") / group.folders[0]).glob("corebound-????????"))


@pytest.fixture(autouse=True)
def _leaves_no_cgroup() -> Iterator[None]:
    support = quota_support()
    if support.tool != "cgroup":
        pytest.skip(f"needs a cgroup with a CPU quota: {support.reason}")
    yield
    assert cgroups() == set()


def written(suite: Path, function: str, *, iterations: int = 12) -> Path:
    (suite / "counts.py").write_text(WORKLOADS)
    (suite / "limited.yaml").write_text(SCENARIO.format(function=function, iterations=iterations))
    return suite


def launches(suite: Path) -> list[dict[str, Any]]:
    (file,) = suite.glob("reports/records/*/*.jsonl")
    return [json.loads(line)["record"] for line in file.read_text().splitlines()[1:]]


@pytest.mark.quick
def test_a_launch_gets_the_cpu_time_of_its_quota(tmp_path: Path) -> None:
    completed = corebound(written(tmp_path, "counts"), *RUN)

    assert completed.code == 0, completed
    assert "2 configurations have a CPU quota" in completed.err
    for launch in launches(tmp_path):
        asked, use = launch["cell"]["cpu_quota"], launch["quota"]
        assert launch["status"] == "ok", launch["reason"]
        assert launch["placement"]["threads"] == 1
        assert use["cpus"] == asked
        assert use["throttled_periods"] <= use["periods"]
        # Half a CPU may be more than a busy host gives it.
        assert use["throttled_periods"] or asked == 0.5


def test_a_worker_that_leaves_its_cgroup_makes_the_launch_invalid(tmp_path: Path) -> None:
    corebound(written(tmp_path, "leaves"), *RUN)

    for launch in launches(tmp_path):
        assert launch["status"] == "invalid"
        assert "a worker had none" in launch["reason"]


def test_a_killed_run_leaves_no_cgroup(tmp_path: Path) -> None:
    run = start(written(tmp_path, "sleeps"), *RUN)
    try:
        until(cgroups)
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()

    until(lambda: not cgroups())


def test_the_next_run_removes_what_a_run_killed_with_its_supervisor_left(tmp_path: Path) -> None:
    group = cpu_group(LIVE)
    assert group is not None
    (Path("/") / group.folders[0] / "corebound-0123abcd").mkdir()

    ended = corebound(written(tmp_path, "counts", iterations=2), *RUN)

    assert ended.code == 0, ended
    assert cgroups() == set()


def test_a_quota_from_outside_is_read(tmp_path: Path, quota: Path) -> None:
    def output(*arguments: str) -> str:
        within = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(quota / "cgroup.procs"))
        command = (*within, sys.executable, "-m", "corebound", *arguments)
        return subprocess.run(
            command, cwd=written(tmp_path, "counts"), capture_output=True, text=True, check=True
        ).stdout

    assert "CPU quota of 0.2 CPUs" in output("topology")
    planned = output("plan", "limited.yaml")
    assert "`cpu_quota: 0.5` is more than this host allows: 0.2 CPUs" in planned
    assert "threads 1, not bound, CPU quota of 0.2 CPUs" in planned
