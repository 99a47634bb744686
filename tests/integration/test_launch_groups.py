"""Launches of one block: interleaved in time slices, or started at once to take turns.

Both fail separately and leave no process behind.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
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
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import plan_cells
from corebound.records import jsonl
from corebound.runner import Job, launcher
from corebound.scenario.matrix import expand
from support import commands
from support.build import a_placement, a_scenario
from support.commands import is_running, until

STEPS = '''\
import json, os, pathlib, threading, time

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


def spin():
    while True:
        pass


def setup(*, side, does="works"):
    """Notes when it was imported, when it was set up, and when every iteration ran."""
    log = (FOLDER / f"{side}.jsonl").open("a")
    print(json.dumps([IMPORTED_NS, time.monotonic_ns()]), file=log, flush=True)
    time.sleep(0.02)
    calls = iter(range(1_000_000))
    if side == "b" and does == "works on":
        threading.Thread(target=spin, daemon=True).start()
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


def launched(
    folder: Path,
    sides: str,
    *,
    turns: bool = False,
    does: str = "works",
    iterations: int = 20,
    timeout_s: float = 60,
    meanwhile: Callable[[], None] = lambda: None,
    **settings: object,
) -> list[LaunchResult]:
    """Launch these sides as one block does: interleaved, or at once with a turn each."""
    suite = folder / "suite"
    suite.mkdir(exist_ok=True)
    (suite / "steps_of_groups.py").write_text(STEPS)
    scenario = a_scenario(
        workload="steps_of_groups:setup",
        environment="host",
        matrix={"parameters": {"side": list(sides), "does": [does]}},
        measure={"iterations": iterations, "timeout_s": timeout_s},
        **({"threads": 1} | ({} if turns else {"binding": "one-cpu"}) | settings),
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
        helper = threading.Thread(target=meanwhile, daemon=True)
        jobs = [
            Job(
                name=side,
                kind="measure",
                block=0,
                position=at,
                planned=one,
                turn=at if turns else 0,
            )
            for at, (side, one) in enumerate(zip(sides, planned, strict=True))
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


def is_sound(outcome: LaunchResult) -> bool:
    """Whether nothing is wrong but, on a busy host, that a pause began late."""
    return outcome.status == "ok" or "while it was paused" in str(outcome.reason)


# A folder, and what three interleaved launches in it came to.
Interleaved = tuple[Path, list[LaunchResult]]


@pytest.fixture(scope="module")
def interleaved(tmp_path_factory: pytest.TempPathFactory) -> Interleaved:
    folder = tmp_path_factory.mktemp("interleaved")
    return folder, launched(folder, "abc")


@pytest.mark.quick
@pytest.mark.measures
def test_time_slices_alternate_and_never_overlap(interleaved: Interleaved) -> None:
    folder, outcomes = interleaved

    for outcome in outcomes:
        assert is_sound(outcome), outcome.reason
        (worker,) = outcome.workers
        assert len(worker.wall_ns) == 20
        assert [time_slice.iterations for time_slice in worker.time_slices] == [3] * 6 + [1]
    # The first of each ran in its setup, before there were time slices.
    timed = sorted((*span, side) for side in "abc" for span in times(folder, side)[2:])
    assert all(ended <= began for (_, ended, _), (began, _, _) in pairwise(timed))
    order = "".join(side for side, _ in groupby(side for _, _, side in timed))
    assert order == order[:3] * 7


@pytest.mark.quick
@pytest.mark.measures
def test_all_import_before_they_set_up_one_after_the_other(interleaved: Interleaved) -> None:
    a, b, c = (times(interleaved[0], side) for side in "abc")

    assert max(one[0][0] for one in (a, b, c)) <= min(one[0][1] for one in (a, b, c))
    # Each sets up, and runs its first iteration, before the next one sets up.
    assert a[1][1] <= b[0][1]
    assert b[1][1] <= c[0][1]


@pytest.mark.quick
@pytest.mark.measures
def test_time_slices_are_recorded_when_they_ran(interleaved: Interleaved) -> None:
    folder, outcomes = interleaved

    for side, outcome in zip("abc", outcomes, strict=True):
        began_us = [time_slice.began_us for time_slice in outcome.workers[0].time_slices]
        starts = [began for began, _ in times(folder, side)[2::3]]
        # On a busy host one or another begins late; what they have in common is between clocks.
        late_us = [us - ns / 1000 for us, ns in zip(began_us, starts, strict=True)]
        between_us = statistics.median(late_us)
        assert statistics.median(abs(us - between_us) for us in late_us) < 5_000


def test_an_interleaved_worker_is_not_foreign_load(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for name in ("1", "2"):
            (tmp_path / name).mkdir()
        own, other = (stack.enter_context(Supervision(tmp_path / name)) for name in ("1", "2"))
        with Path(os.devnull).open("r+b") as quiet:
            sleeper = other.spawn(
                ("sleep", "900"),
                env=dict(os.environ),
                cwd=tmp_path,
                descriptors=(quiet.fileno(),) * 3,
            )
        watching = LaunchMonitor(
            [],
            a_placement(cpus=tuple(os.sched_getaffinity(0)), bound=False),
            own,
            scratch=tmp_path,
            counting=CounterSupport(),
            other_supervisors=(other.pid,),
        )

        watching.start()

        assert watching._host is not None
        assert sleeper in watching._host.own_processes()
        watching.close()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("does", "status"), [("raises in set-up", "failed"), ("dies", "failed"), ("hangs", "timed-out")]
)
def test_when_one_side_fails_the_other_finishes_alone(
    tmp_path: Path, does: str, status: str
) -> None:
    alone, failed = launched(tmp_path, "ab", does=does, timeout_s=5)

    assert failed.status == status
    assert is_sound(alone), alone.reason
    assert len(alone.workers[0].wall_ns) == 20
    assert sum(time_slice.iterations for time_slice in alone.workers[0].time_slices) == 19


@pytest.mark.measures
def test_a_background_thread_does_not_run_during_the_time_slices_of_others(tmp_path: Path) -> None:
    # Nobody asks for one thread, which this is not.
    outcomes = launched(tmp_path, "ab", does="works on", iterations=100, threads="default")

    for outcome in outcomes:
        assert is_sound(outcome), outcome.reason
        assert outcome.pauses is not None
        assert outcome.pauses.duration_ns > 100 * 2_000_000
        # It would use all of it.
        assert outcome.pauses.cpu_ns < 0.05 * outcome.pauses.duration_ns


def test_workers_of_one_launch_have_their_time_slices_together(tmp_path: Path) -> None:
    outcomes = launched(tmp_path, "ab", workers=2)

    for outcome in outcomes:
        assert is_sound(outcome), outcome.reason
        assert [len(worker.wall_ns) for worker in outcome.workers] == [20, 20]
    by_side = {side: sorted(times(tmp_path, side)) for side in "ab"}
    assert all(len(both) == 2 + 40 for both in by_side.values())
    # The set-up and the first iteration of each worker come before there are time slices.
    timed = sorted((*span, side) for side in "ab" for span in by_side[side][4:])
    for (_, ended, one), (began, _, other) in pairwise(timed):
        assert one == other or ended <= began


SIDES = "abcd"


@pytest.mark.quick
@pytest.mark.measures
@pytest.mark.parametrize("workers", [1, 2])
def test_all_import_at_once_and_each_measures_all_its_iterations_in_its_turn(
    tmp_path: Path, workers: int
) -> None:
    began_ns = time.monotonic_ns()
    outcomes = launched(tmp_path, SIDES, turns=True, workers=workers)
    took_ns = time.monotonic_ns() - began_ns

    for outcome in outcomes:
        assert outcome.status == "ok", outcome.reason
        assert [len(worker.wall_ns) for worker in outcome.workers] == [20] * workers
        assert not any(worker.time_slices for worker in outcome.workers)
        assert outcome.pauses is None
        assert outcome.wait is not None
        assert outcome.wait.were_quiet
        assert outcome.duration_ns >= sum(outcome.workers[0].wall_ns)
    assert sum(outcome.duration_ns for outcome in outcomes) <= took_ns
    by_side = [times(tmp_path, side) for side in SIDES]
    set_up = [noted[:workers] for noted in map(sorted, by_side)]
    assert max(at for side in set_up for at, _ in side) < min(
        at for side in set_up for _, at in side
    )
    for one, other in pairwise(by_side):
        assert max(ended for _, ended in one) <= min(ended for _, ended in sorted(other)[:workers])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("does", "status"), [("raises in set-up", "failed"), ("dies", "failed"), ("hangs", "timed-out")]
)
def test_a_launch_that_fails_in_its_turn_costs_the_others_nothing(
    tmp_path: Path, does: str, status: str
) -> None:
    outcomes = launched(tmp_path, SIDES, turns=True, does=does, timeout_s=5)

    assert [outcome.status for outcome in outcomes] == ["ok", status, "ok", "ok"]


def test_a_launch_that_fails_to_import_beside_others_is_made_again_by_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "one fails to import").touch()

    outcomes = launched(tmp_path, SIDES, turns=True)

    assert [outcome.status for outcome in outcomes] == ["ok"] * 4
    assert [outcome.wait is None for outcome in outcomes].count(True) == 1


def test_launches_that_import_when_memory_becomes_short_are_made_again_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    available = iter((1 << 40, 1 << 40))
    # The package has a function of the module's name.
    module = sys.modules["corebound.runner.launcher"]
    monkeypatch.setattr(module, "available_memory_bytes", lambda _files: next(available, 0))

    outcomes = launched(tmp_path, SIDES, turns=True)

    assert [outcome.status for outcome in outcomes] == ["ok"] * 4
    assert [outcome.wait for outcome in outcomes] == [None] * 4


def test_when_a_supervisor_is_killed_its_launch_is_made_again_by_itself(tmp_path: Path) -> None:
    def kill_one() -> None:
        until((tmp_path / "suite" / "a.jsonl").exists)
        # That of the third launch, which waits for its turn.
        third = sorted(pid for pid in processes_below(os.getpid()) if is_supervisor(pid))[2]
        os.kill(third, signal.SIGKILL)

    outcomes = launched(tmp_path, SIDES, turns=True, meanwhile=kill_one)

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
workload: steps_of_groups:setup
environment: host
threads: 1
"""
INTERLEAVED = """\
binding: one-cpu
matrix: {parameters: {side: [a, b]}}
baseline: {parameters: {side: a}}
measure: {iterations: 5000, launches: {min: 3, max: 3}, relaunch_disturbed: 0}
"""
TOGETHER = """\
matrix: {parameters: {side: [a, b]}, binding: [none, one-cpu]}
measure: {iterations: ITERATIONS, launches: {min: 2, max: 2}, relaunch_disturbed: 0}
"""


def a_run(folder: Path, scenario: str) -> subprocess.Popen[bytes]:
    (folder / "steps_of_groups.py").write_text(STEPS)
    (folder / "turns.yaml").write_text(SCENARIO + scenario)
    command = commands.command_line("run", "turns.yaml", "--unlocked")
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet)


@pytest.mark.parametrize(
    ("scenario", "how", "processes"),
    [
        # Two supervisors and two workers, one of which is paused.
        *((INTERLEAVED, how, 4) for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)),
        (TOGETHER.replace("ITERATIONS", "5000"), signal.SIGKILL, 4),
    ],
)
def test_stopping_a_run_leaves_no_process(
    tmp_path: Path, scenario: str, how: signal.Signals, processes: int
) -> None:
    run = a_run(tmp_path, scenario)
    until(lambda: len(list(tmp_path.glob("*.jsonl"))) >= (2 if scenario is INTERLEAVED else 1))
    below = processes_below(run.pid)
    assert len(below) >= processes

    run.send_signal(how)
    run.wait(60)

    until(lambda: not any(map(is_running, below)))


def test_a_run_records_which_launches_started_together(tmp_path: Path) -> None:
    began_s = time.monotonic()
    assert a_run(tmp_path, TOGETHER.replace("ITERATIONS", "20")).wait(120) == 0
    took_s = time.monotonic() - began_s

    (file,) = jsonl.files(tmp_path / "reports" / "records")
    launches = jsonl.read(file).launches
    for launch in launches:
        others = {one.id for one in launches if launch.id in one.started_with}
        assert set(launch.started_with) == others
    assert sum(len(launch.started_with) == 3 for launch in launches) >= 4
    assert sum(launch.duration_ns for launch in launches) / 1e9 <= took_s
