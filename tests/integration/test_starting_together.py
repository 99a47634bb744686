"""Launches that start at once: they take turns, fail separately, and leave no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from corebound.launch.launch import LaunchResult
from corebound.machine import discovery
from corebound.machine.procfs import processes_below
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import plan_cells
from corebound.records import jsonl
from corebound.runner import Job, launcher
from corebound.scenario.matrix import expand
from support import commands
from support.build import a_scenario
from support.commands import is_running

STEPS = '''\
import json, os, pathlib, sys, time

import numpy

FOLDER = pathlib.Path(__file__).parent
if (FOLDER / "one fails to import").exists():
    try:
        (FOLDER / "this one").mkdir()
    except FileExistsError:
        pass
    else:
        os._exit(3)
IMPORTED_NS = time.monotonic_ns()


def setup(*, side, does="works"):
    """Notes when it was imported, when it was set up, and when every iteration ran."""
    log = (FOLDER / f"{side}.jsonl").open("a")
    print(json.dumps([IMPORTED_NS, time.monotonic_ns()]), file=log, flush=True)
    calls = iter(range(1_000_000))
    if side == "b" and does == "raises in set-up":
        raise RuntimeError("no")
    values = numpy.random.default_rng(1).random((64, 64))

    def step():
        began = time.monotonic_ns()
        number = next(calls)
        while time.monotonic_ns() < began + 2_000_000:
            values @ values
        if side == "b" and number == 5:
            if does == "dies":
                os.kill(os.getpid(), 9)
            if does == "hangs":
                time.sleep(900)
        print(json.dumps([began, time.monotonic_ns()]), file=log, flush=True)

    return step
'''
SIDES = "abcd"


def together(
    folder: Path,
    *,
    does: str = "works",
    timeout_s: float = 60,
    meanwhile: Callable[[list[int]], None] = lambda _supervisors: None,
    **settings: object,
) -> list[LaunchResult]:
    """Launch four sides, which start at once and have a turn each."""
    suite = folder / "suite"
    suite.mkdir(exist_ok=True)
    (suite / "steps_together.py").write_text(STEPS)
    scenario = a_scenario(
        workload="steps_together:setup",
        environment="host",
        matrix={"parameters": {"side": list(SIDES), "does": [does]}},
        measure={"iterations": 20, "timeout_s": timeout_s},
        **{"threads": 1, **settings},
    )
    capabilities = HostCapabilities(
        topology=discovery.live_topology(),
        tools=frozenset({"taskset"}),
        pythons={"host": sys.executable},
    )
    cells = expand(scenario, "a.yaml")
    planned = plan_cells(scenario, cells, capabilities, folder=str(suite), profile=None, seed=1)
    scratch = folder / "scratch"
    scratch.mkdir()
    others = processes_below(os.getpid()).keys()
    with ExitStack() as stack:
        launch = launcher(stack, scratch, folder / "traces", lambda: None, gpus=0)
        helper = threading.Thread(
            target=lambda: meanwhile([one.pid for one in launch.supervisions]), daemon=True
        )
        jobs = [
            Job(name=side, kind="measure", block=0, position=at, planned=one, turn=at)
            for at, (side, one) in enumerate(zip(SIDES, planned, strict=True))
        ]
        helper.start()
        made = launch(jobs)
        helper.join()
        below = processes_below(os.getpid()).keys() - others
        assert below == {supervision.pid for supervision in launch.supervisions}
    return list(made)


def times(folder: Path, side: str) -> list[tuple[int, int]]:
    """When a side was imported and set up, and then when each iteration began and ended."""
    lines = (folder / "suite" / f"{side}.jsonl").read_text().splitlines()
    return [(began, ended) for began, ended in map(json.loads, lines)]


@pytest.mark.quick
@pytest.mark.measures
@pytest.mark.parametrize("workers", [1, 2])
def test_all_import_at_once_and_each_measures_all_its_iterations_in_its_turn(
    tmp_path: Path, workers: int
) -> None:
    outcomes = together(tmp_path, workers=workers)

    for outcome in outcomes:
        assert outcome.status == "ok", outcome.reason
        assert [len(worker.wall_ns) for worker in outcome.workers] == [20] * workers
        assert not any(worker.time_slices for worker in outcome.workers)
        assert outcome.pauses is None
        assert outcome.wait is not None
        assert outcome.wait.were_quiet
    by_side = [times(tmp_path, side) for side in SIDES]
    set_up = [noted[:workers] for noted in map(sorted, by_side)]
    assert max(at for side in set_up for at, _ in side) < min(
        at for side in set_up for _, at in side
    )
    for one, other in pairwise(by_side):
        assert max(ended for _, ended in one) <= min(ended for _, ended in sorted(other)[:workers])


@pytest.mark.measures
def test_their_durations_add_up_to_what_all_took(tmp_path: Path) -> None:
    began_ns = time.monotonic_ns()
    outcomes = together(tmp_path)
    took_ns = time.monotonic_ns() - began_ns

    assert sum(outcome.duration_ns for outcome in outcomes) <= took_ns
    assert all(outcome.duration_ns >= sum(outcome.workers[0].wall_ns) for outcome in outcomes)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("does", "status"), [("raises in set-up", "failed"), ("dies", "failed"), ("hangs", "timed-out")]
)
def test_a_launch_that_fails_in_its_turn_costs_the_others_nothing(
    tmp_path: Path, does: str, status: str
) -> None:
    outcomes = together(tmp_path, does=does, timeout_s=5)

    assert [outcome.status for outcome in outcomes] == ["ok", status, "ok", "ok"]


def test_a_launch_that_fails_to_import_beside_others_is_made_again_by_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "one fails to import").touch()

    outcomes = together(tmp_path)

    assert [outcome.status for outcome in outcomes] == ["ok"] * 4
    assert [outcome.wait is None for outcome in outcomes].count(True) == 1


def test_launches_that_import_when_memory_becomes_short_are_made_again_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    available = iter((1 << 40, 1 << 40))
    # The package has a function of the module's name.
    module = sys.modules["corebound.runner.launcher"]
    monkeypatch.setattr(module, "available_memory_bytes", lambda _files: next(available, 0))

    outcomes = together(tmp_path)

    assert [outcome.status for outcome in outcomes] == ["ok"] * 4
    assert [outcome.wait for outcome in outcomes] == [None] * 4


def test_when_a_supervisor_is_killed_its_launch_is_made_again_by_itself(tmp_path: Path) -> None:
    def kill_one(supervisors: list[int]) -> None:
        deadline_s = time.monotonic() + 60
        while not (tmp_path / "suite" / "a.jsonl").exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        # That of the third launch, which waits for its turn.
        third = sorted(pid for pid in processes_below(os.getpid()) if is_supervisor(pid))[2]
        os.kill(third, signal.SIGKILL)

    outcomes = together(tmp_path, meanwhile=kill_one)

    assert [outcome.status for outcome in outcomes] == ["ok"] * 4
    assert [outcome.wait is None for outcome in outcomes] == [False, False, True, False]


def is_supervisor(pid: int) -> bool:
    try:
        return b"supervisor import main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


SCENARIO = """\
schema: 1
name: turns
title: Turns
question: What stays when the run is killed?
workload: steps_together:setup
environment: host
threads: 1
matrix: {parameters: {side: [a, b]}, binding: [none, one-cpu]}
measure: {iterations: ITERATIONS, launches: {min: 2, max: 2}, relaunch_disturbed: 0}
"""


def a_run(folder: Path, *, iterations: int) -> subprocess.Popen[bytes]:
    (folder / "steps_together.py").write_text(STEPS)
    (folder / "turns.yaml").write_text(SCENARIO.replace("ITERATIONS", str(iterations)))
    arguments = ("run", "turns.yaml", "--unlocked")
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        commands.command_line(*arguments), cwd=folder, stdout=quiet, stderr=quiet
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_a_run_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    run = a_run(tmp_path, iterations=5000)
    deadline_s = time.monotonic() + 60
    while not list(tmp_path.glob("*.jsonl")):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    below = processes_below(run.pid)

    run.send_signal(how)
    run.wait(60)

    while any(map(is_running, below)):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.mark.measures
def test_a_run_records_which_launches_started_together(tmp_path: Path) -> None:
    began_s = time.monotonic()
    assert a_run(tmp_path, iterations=20).wait(120) == 0
    took_s = time.monotonic() - began_s

    (file,) = jsonl.files(tmp_path / "reports" / "records")
    launches = jsonl.read(file).launches
    for launch in launches:
        others = {one.id for one in launches if launch.id in one.started_with}
        assert set(launch.started_with) == others
    assert sum(len(launch.started_with) == 3 for launch in launches) >= 4
    assert sum(launch.duration_ns for launch in launches) / 1e9 <= took_s
