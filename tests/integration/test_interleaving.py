"""Interleaved launches with real processes: they alternate, fail separately and are cleaned up."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from corebound.launch.launch import LaunchResult
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.machine import discovery
from corebound.machine.procfs import processes_below
from corebound.machine.topology import CpuId
from corebound.planning.host_support import HostCapabilities
from corebound.planning.models import Placement, Slot
from corebound.planning.plan import plan_cells
from corebound.runner import Job, launcher
from corebound.scenario.matrix import expand
from support import commands
from support.build import a_scenario
from support.commands import is_running

STEPS = '''\
import json, os, pathlib, threading, time

FOLDER = pathlib.Path(__file__).parent


def spin():
    while True:
        pass


IMPORTED_NS = time.monotonic_ns()


def setup(*, side, does="works"):
    """Notes when every iteration began and ended, by the clock that all processes share."""
    with (FOLDER / f"{side}.setup").open("w") as file:
        print(json.dumps([IMPORTED_NS, time.monotonic_ns()]), file=file)
    time.sleep(0.02)
    log = (FOLDER / f"{side}.jsonl").open("a")
    calls = iter(range(1_000_000))
    if side == "b" and does == "works on":
        threading.Thread(target=spin, daemon=True).start()

    def step():
        began = time.monotonic_ns()
        number = next(calls)
        while time.monotonic_ns() < began + 2_000_000:
            pass
        if side == "b" and number == 5:
            if does == "dies":
                os.kill(os.getpid(), 9)
            if does == "hangs":
                time.sleep(900)
        print(json.dumps([began, time.monotonic_ns()]), file=log, flush=True)

    if side == "b" and does == "never sets up":
        raise RuntimeError("no")
    return step
'''


def together(
    folder: Path,
    *sides: str,
    does: str = "works",
    iterations: int = 20,
    timeout_s: float = 60,
    workers: int = 1,
) -> list[LaunchResult]:
    """Launch these sides as one block does."""
    suite = folder / "suite"
    suite.mkdir()
    (suite / "steps_by_turns.py").write_text(STEPS)
    scenario = a_scenario(
        workload="steps_by_turns:setup",
        environment="host",
        binding="one-cpu",
        workers=workers,
        matrix={"parameters": {"side": list(sides), "does": [does]}},
        measure={"iterations": iterations, "timeout_s": timeout_s},
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
        made = launch(
            [
                Job(name=side, kind="measure", block=0, position=place, planned=one)
                for place, (side, one) in enumerate(zip(sides, planned, strict=True))
            ]
        )
        below = processes_below(os.getpid()).keys() - others
        assert below == {supervision.pid for supervision in launch.supervisions}
        return list(made)


def spans(folder: Path, side: str) -> list[tuple[int, int]]:
    lines = (folder / "suite" / f"{side}.jsonl").read_text().splitlines()
    return [(began, ended) for began, ended in map(json.loads, lines)]


@pytest.mark.quick
@pytest.mark.measures
@pytest.mark.parametrize("sides", ["ab", "abc"])
def test_time_slices_alternate_and_never_overlap(tmp_path: Path, sides: str) -> None:
    outcomes = together(tmp_path, *sides)

    for outcome in outcomes:
        assert outcome.status == "ok", outcome.reason
        (worker,) = outcome.workers
        assert len(worker.wall_ns) == 20
        assert [time_slice.iterations for time_slice in worker.time_slices] == [3] * 6 + [1]
    # The first of each ran in its setup, before there were time slices.
    timed = sorted((*span, side) for side in sides for span in spans(tmp_path, side)[1:])
    assert all(ended <= began for (_, ended, _), (began, _, _) in pairwise(timed))
    order = "".join(side for side, _ in groupby(side for _, _, side in timed))
    assert order == order[: len(sides)] * 7


def test_all_import_before_they_set_up_one_after_the_other(tmp_path: Path) -> None:
    together(tmp_path, "a", "b", "c")

    begins = [json.loads((tmp_path / "suite" / f"{side}.setup").read_text()) for side in "abc"]
    assert max(imported for imported, _ in begins) <= min(began for _, began in begins)
    first_iterations = [spans(tmp_path, side)[0] for side in "abc"]
    assert first_iterations[0][1] <= begins[1][1]
    assert first_iterations[1][1] <= begins[2][1]


@pytest.mark.measures
def test_time_slices_are_recorded_when_they_ran(tmp_path: Path) -> None:
    outcomes = together(tmp_path, "a", "b")

    for side, outcome in zip("ab", outcomes, strict=True):
        began_us = [time_slice.began_us for time_slice in outcome.workers[0].time_slices]
        starts = [began for began, _ in spans(tmp_path, side)[1::3]]
        # On a busy host one or another begins late; what they have in common is between clocks.
        late_us = [us - ns / 1000 for us, ns in zip(began_us, starts, strict=True)]
        between_us = statistics.median(late_us)
        assert statistics.median(abs(us - between_us) for us in late_us) < 5_000


def test_interleaved_workers_are_not_foreign_load(tmp_path: Path) -> None:
    with ExitStack() as stack:
        own, other = (stack.enter_context(a_supervision(tmp_path / name)) for name in ("1", "2"))
        sleeper = asleep(other, tmp_path)
        placement = Placement(
            slots=(Slot(cpus=tuple(CpuId(cpu) for cpu in os.sched_getaffinity(0))),),
            threads=None,
            backend="none",
            memory="default",
            moment="before-start",
            bound=False,
        )
        watching = LaunchMonitor(
            [],
            placement,
            own,
            scratch=tmp_path,
            counting=CounterSupport(),
            other_supervisors=(other.pid,),
        )

        watching.start()

        assert watching._host is not None
        assert sleeper in watching._host.own_processes()
        watching.close()


def a_supervision(folder: Path) -> Supervision:
    folder.mkdir()
    return Supervision(folder)


def asleep(supervision: Supervision, folder: Path) -> int:
    quiet = os.open(os.devnull, os.O_RDWR)
    try:
        return supervision.spawn(
            ("sleep", "900"), env=dict(os.environ), cwd=folder, descriptors=(quiet, quiet, quiet)
        )
    finally:
        os.close(quiet)


@pytest.mark.quick
@pytest.mark.parametrize("does", ["never sets up", "dies"])
def test_when_one_side_fails_the_other_finishes_alone(tmp_path: Path, does: str) -> None:
    alone, failed = together(tmp_path, "a", "b", does=does)

    assert failed.status == "failed"
    assert alone.status == "ok", alone.reason
    assert len(alone.workers[0].wall_ns) == 20
    assert sum(time_slice.iterations for time_slice in alone.workers[0].time_slices) == 19


def test_a_side_that_hangs_times_out_and_the_other_finishes(tmp_path: Path) -> None:
    alone, hung = together(tmp_path, "a", "b", does="hangs", timeout_s=3)

    assert hung.status == "timed-out"
    assert alone.status == "ok", alone.reason


@pytest.mark.measures
def test_a_background_thread_does_not_run_during_the_time_slices_of_others(tmp_path: Path) -> None:
    outcomes = together(tmp_path, "a", "b", does="works on", iterations=100)

    for outcome in outcomes:
        assert outcome.status == "ok", outcome.reason
        assert outcome.pauses is not None
        assert outcome.pauses.duration_ns > 100 * 2_000_000
        assert outcome.pauses.were_quiet


def test_workers_of_one_launch_have_their_time_slices_together(tmp_path: Path) -> None:
    outcomes = together(tmp_path, "a", "b", workers=2)

    for outcome in outcomes:
        assert outcome.status == "ok", outcome.reason
        assert [len(worker.wall_ns) for worker in outcome.workers] == [20, 20]
    by_side = {side: spans(tmp_path, side) for side in "ab"}
    assert all(len(both) == 40 for both in by_side.values())
    # The two first iterations of each ran in its setup.
    timed = sorted((*span, side) for side in "ab" for span in sorted(by_side[side])[2:])
    for (_, ended, one), (began, _, other) in pairwise(timed):
        assert one == other or ended <= began


SCENARIO = """\
schema: 1
name: turns
title: Turns
question: What stays when the run is killed?
workload: steps_by_turns:setup
environment: host
binding: one-cpu
matrix: {parameters: {side: [a, b]}}
baseline: {parameters: {side: a}}
measure: {iterations: 2000, launches: {min: 3, max: 3}, relaunch_disturbed: 0}
"""


def a_run(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "steps_by_turns.py").write_text(STEPS)
    (folder / "turns.yaml").write_text(SCENARIO)
    arguments = ("run", "turns.yaml", "--unlocked")
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        commands.command_line(*arguments), cwd=folder, stdout=quiet, stderr=quiet
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_a_run_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    run = a_run(tmp_path)
    logs = [tmp_path / f"{side}.jsonl" for side in "ab"]
    deadline_s = time.monotonic() + 60
    while not all(log.exists() and log.stat().st_size for log in logs):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    below = processes_below(run.pid)
    assert len(below) >= 4  # two supervisors, two workers

    run.send_signal(how)
    run.wait(60)

    while any(map(is_running, below)):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
