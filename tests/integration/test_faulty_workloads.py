"""`corebound run` names what is wrong with a workload: affinity, leftovers, load, throttling.

tests/numa covers memory on another node.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support import needs
from support.commands import busy_process

CPUS = sorted(os.sched_getaffinity(0))
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

SCENARIO = """\
schema: 1
name: suspect
title: A suspect
question: Is it found?
workload: suspects:{function}
environment: host
threads: 1
matrix:
  binding: [{bindings}]
measure: {{relaunch_disturbed: {retries}, iterations: {iterations}, launches: {{min: 2, max: 2}}}}
"""
WORKLOADS = """\
import os, subprocess, time

def counts():
    return lambda: sum(range(500_000))

def moves():
    steps = iter(range(1_000_000))

    def step():
        if next(steps) == 5:
            os.sched_setaffinity(0, {0})
        time.sleep(0.002)

    return step

def strays():
    subprocess.Popen(["setsid", "sleep", "977"])
    return lambda: time.sleep(0.002)
"""


def findings_of(
    suite: Path,
    function: str,
    *,
    bindings: str,
    iterations: int = 20,
    retries: int = 0,
    within: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """What a run finds of a workload, by rule; `within` is a cgroup to run it in."""
    (suite / "suspects.py").write_text(WORKLOADS)
    (suite / "suspect.yaml").write_text(
        SCENARIO.format(
            function=function, bindings=bindings, iterations=iterations, retries=retries
        )
    )
    run: tuple[str, ...] = (
        sys.executable,
        "-m",
        "corebound",
        "run",
        "suspect.yaml",
        "--unlocked",
        "--json",
    )
    if within is not None:
        run = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(within / "cgroup.procs"), *run)
    completed = subprocess.run(run, cwd=suite, capture_output=True, text=True, check=False)
    assert completed.returncode in {0, 4}, completed.stderr
    return {finding["rule"]: finding for finding in json.loads(completed.stdout)["findings"]}


@pytest.mark.quick
@needs.two_cpus
def test_a_workload_that_changes_its_affinity_is_named(tmp_path: Path) -> None:
    last = f'{{cpus: "{CPUS[-1]}"}}'

    seen = findings_of(tmp_path, "moves", bindings=f"none, {last}")["not-as-asked"]

    # Unbound it may move as it likes.
    assert seen["cells"] == [f"binding=cpus:{CPUS[-1]}"]
    assert any(f"its slot is {CPUS[-1]}" in line for line in seen["evidence"])


def test_leftover_processes_of_a_workload_are_named(tmp_path: Path) -> None:
    seen = findings_of(tmp_path, "strays", bindings="none")["strays"]

    assert seen["evidence"] == ["sleep: 2"]


def test_a_competing_load_is_named(tmp_path: Path) -> None:
    last = CPUS[-1]

    with busy_process(last):
        seen = findings_of(
            tmp_path, "counts", bindings=f'{{cpus: "{last}"}}', iterations=150, retries=1
        )["foreign-load"]

    assert seen["cells"] == [f"binding=cpus:{last}"]
    assert any("foreign load" in line for line in seen["evidence"])
    assert "1 launch without results" in seen["evidence"]


def test_a_throttling_quota_is_named(tmp_path: Path, quota: Path) -> None:
    seen = findings_of(tmp_path, "counts", bindings="one-cpu", iterations=60, within=quota)[
        "throttled"
    ]

    assert "2 launches kept and marked" in seen["evidence"]
    assert any("throttling" in line for line in seen["evidence"])


OF_THE_HOST = {"foreign-load", "steal", "throttled", "not-as-asked", "strays"}
# A quarter of what accuses: beyond it something else really ran.
QUIET_CPUS = 0.025


@pytest.mark.measures
def test_an_undisturbed_workload_is_valid(tmp_path: Path) -> None:
    cpu, quiet = CPUS[-1], False
    for _ in range(3):
        before = _busy_share(cpu)
        if not _is_accused(tmp_path, cpu):
            return
        quiet = quiet or max(before, _busy_share(cpu)) < QUIET_CPUS
    if not quiet:
        pytest.skip(f"others keep CPU {cpu} of this host busy")
    pytest.fail(f"CPU {cpu} was quiet, and yet a launch on it was accused")


def _is_accused(suite: Path, cpu: int) -> bool:
    seen = findings_of(suite, "counts", bindings=f'{{cpus: "{cpu}"}}', iterations=150)
    return bool(OF_THE_HOST & seen.keys())


def _busy_share(cpu: int) -> float:
    """What the CPU does while none of ours is on it."""

    def idle() -> int:
        for line in Path("/proc/stat").read_text().splitlines():
            if line.startswith(f"cpu{cpu} "):
                return sum(map(int, line.split()[4:6]))
        raise AssertionError(f"no CPU {cpu}")

    before, began_s = idle(), time.monotonic()
    time.sleep(1.0)
    return 1 - (idle() - before) * TICK_S / (time.monotonic() - began_s)
