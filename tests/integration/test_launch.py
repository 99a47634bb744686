"""Launches of real processes: what is recorded, what is refused, what is ended."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from corebound.launch.launch import LaunchResult
from corebound.launch.supervisor_client import Supervision
from corebound.machine.procfs import processes_below
from support import needs
from support.launches import CPUS, launch_step

Launcher = Callable[..., LaunchResult]


@pytest.fixture
def run(scratch: Path, supervision: Supervision) -> Launcher:
    return partial(launch_step, supervision, scratch)


@pytest.mark.quick
def test_every_iteration_has_wall_and_cpu_time(run: Launcher) -> None:
    outcome = run("short", iterations=20)

    assert outcome.status == "ok", outcome.reason
    (worker,) = outcome.workers
    assert len(worker.wall_ns) == len(worker.cpu_ns) == 20
    assert all(sample > 0 for sample in (*worker.wall_ns, *worker.cpu_ns))
    assert set(worker.phases) == {"import", "setup", "first"}


def test_an_asynchronous_step_is_awaited_if_the_scenario_asks_for_it(run: Launcher) -> None:
    outcome = run("naps_unawaited", iterations=3, awaits=True)

    assert outcome.status == "ok", outcome.reason
    (worker,) = outcome.workers
    # It sleeps for 50 ms.
    assert all(wall_ns >= 50_000_000 for wall_ns in worker.wall_ns)


def test_parameters_reach_the_workload(run: Launcher) -> None:
    assert run("parametrised", parameters={"factor": 3}).status == "ok"
    wrong = run("parametrised", parameters={"fcator": 3})
    assert wrong.status == "failed"
    assert "fcator" in str(wrong.reason)


@pytest.mark.quick
@needs.two_cpus
@pytest.mark.parametrize("function", ["moves_itself", "moves_a_thread"])
def test_a_worker_that_leaves_its_slot_is_invalid(run: Launcher, function: str) -> None:
    outcome = run(function, parameters={"to": CPUS[1]})

    assert outcome.status == "invalid"
    assert f"its slot is {CPUS[0]}" in outcome.evidence[0]


@needs.two_cpus
def test_a_worker_may_narrow_its_affinity_only_if_it_is_unbound(run: Launcher) -> None:
    bound, unbound = (
        run("moves_itself", cpus=cpus, parameters={"to": CPUS[1]}) for cpus in (tuple(CPUS), None)
    )

    assert (bound.status, unbound.status) == ("invalid", "ok")


@needs.two_cpus
@pytest.mark.parametrize("moment", ["before-start", "after-start"])
def test_a_bound_worker_stays_on_its_cpu_while_it_is_timed(run: Launcher, moment: str) -> None:
    outcome = run("short", cpus=(CPUS[1],), moment=moment, iterations=20_000)

    assert outcome.status == "ok", outcome.reason
    (worker,) = outcome.workers
    assert {thread.allowed for thread in worker.threads} == {((CPUS[1],),)}
    stays = {stay.cpu for thread in worker.threads for stay in thread.stays}
    assert moment == "after-start" or stays <= {CPUS[1]}


def test_a_variable_that_does_not_reach_the_worker_makes_it_invalid(run: Launcher) -> None:
    env = (("OMP_NUM_THREADS", "3"),)
    assert run("short", env=env).status == "ok"

    lost = run("short", env=env, strip=("env", "-u", "OMP_NUM_THREADS"))

    assert lost.status == "invalid"
    assert lost.evidence == ("OMP_NUM_THREADS=3 was set, but the worker has none",)


def test_the_users_thread_variables_do_not_reach_the_worker(
    run: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")

    assert run("short").workers[0].environment == {}


def test_leftover_processes_are_named_and_ended(run: Launcher) -> None:
    outcome = run("leaves_strays")

    assert outcome.status == "ok"
    assert outcome.leftover_processes == ("sh", "sleep", "sleep")
    assert "sleep" not in processes_below(os.getpid()).values()


@pytest.mark.quick
def test_a_launch_that_its_share_ends_counts_with_the_iterations_that_it_has(run: Launcher) -> None:
    before = processes_below(os.getpid()).keys()

    long = run("naps", parameters={"ms": 900}, share_s=5.0)
    short = run("naps", parameters={"ms": 20}, iterations=1000, share_s=2.0)

    assert (long.status, short.status) == ("ok", "ok"), (long.reason, short.reason)
    assert 3 <= len(long.workers[0].wall_ns) <= 5
    assert 3 <= len(short.workers[0].wall_ns) <= 100
    assert (long.share_s, short.share_s) == (5.0, 2.0)
    assert long.host is not None
    assert processes_below(os.getpid()).keys() == before


def test_a_launch_that_is_too_slow_for_its_share_says_what_an_iteration_takes_at_least(
    run: Launcher,
) -> None:
    first = run("naps", parameters={"ms": 100_000}, share_s=1.0)
    later = run("never_ends", share_s=1.0)
    few = run("naps", parameters={"ms": 1_700}, share_s=4.0)

    assert {one.status for one in (first, later, few)} == {"dropped"}
    assert 1 <= len(few.workers[0].wall_ns) < 3
    assert "`loop`" in str(few.reason)
    assert "`first`" in str(first.reason)
    assert 0 < (first.least_iteration_ns or 0) <= 1_000_000_000
    # Its first iteration takes no time.
    assert (later.least_iteration_ns or 0) < 10_000_000


def test_a_launch_that_needs_less_than_its_share_has_none(run: Launcher) -> None:
    outcome = run("short", share_s=100.0)

    assert (outcome.status, outcome.share_s) == ("ok", None)
    assert len(outcome.workers[0].wall_ns) == 20


@pytest.mark.quick
@pytest.mark.parametrize(
    ("function", "where"), [("never_ends", "loop"), ("never_sets_up", "setup")]
)
def test_a_launch_past_its_deadline_is_ended(run: Launcher, function: str, where: str) -> None:
    before, began_s = processes_below(os.getpid()).keys(), time.monotonic()

    outcome = run(function, timeout_s=1.0)

    assert outcome.status == "timed-out"
    assert f"`{where}`" in str(outcome.reason)
    # By itself it would have taken 900 s.
    assert time.monotonic() - began_s < 300
    # The supervisor, and what other tests share.
    assert processes_below(os.getpid()).keys() == before


# What a step raised or died of is in the log, and needs no other advice.
NO_FIX = {"raises", "raises_later", "kills_itself"}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", "in `first`: RuntimeError: the <b>oven</b> is cold"),
        ("raises_later", "in `loop`: ZeroDivisionError"),
        ("kills_itself", "the worker ended with signal 9 (Killed)"),
        ("not_a_step", "returned int, which cannot be called"),
        ("naps_unawaited", "a step of `steps:naps_unawaited` returned a coroutine"),
        ("nothing_of_that_name", "has no function `nothing_of_that_name`"),
    ],
)
def test_a_failure_is_a_record_with_its_reason(run: Launcher, function: str, message: str) -> None:
    outcome = run(function)

    assert outcome.status == "failed"
    assert message in str(outcome.reason)
    assert (outcome.fix is None) == (function in NO_FIX)
    # The log has the traceback.
    assert ("RuntimeError" in outcome.log) == (function == "raises")


def test_a_wrong_result_fails_before_timing(run: Launcher) -> None:
    wrong = run("counted", parameters={"good": False})

    assert wrong.status == "failed"
    assert "41 is not the answer" in str(wrong.reason)
    assert wrong.workers[0].wall_ns == ()
    # A right one is torn down, and its output is kept.
    assert "torn down" in run("counted").log


@pytest.mark.quick
def test_several_workers_start_together(run: Launcher) -> None:
    outcome = run("short", workers=3, iterations=2000)

    assert outcome.status == "ok", outcome.reason
    assert [worker.slot for worker in outcome.workers] == [0, 1, 2]
    assert all(len(worker.wall_ns) == 2000 for worker in outcome.workers)


@pytest.mark.quick
def test_a_command_is_timed_from_start_to_exit(run: Launcher) -> None:
    outcome = run(None, command=["sleep", "0.1"], iterations=3)

    assert outcome.status == "ok", outcome.reason
    (worker,) = outcome.workers
    assert all(wall_ns >= 100_000_000 for wall_ns in worker.wall_ns)
    # It sleeps; to start it takes some.
    assert all(0 < cpu < wall for cpu, wall in zip(worker.cpu_ns, worker.wall_ns, strict=True))


@needs.two_cpus
def test_a_command_that_changes_its_affinity_is_invalid(run: Launcher) -> None:
    outcome = run(None, command=["taskset", "-c", str(CPUS[1]), "true"], iterations=3)

    assert outcome.status == "invalid"
    assert f"the command was allowed CPUs {CPUS[1]}" in str(outcome.reason)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({"command": ["false"]}, "`false` exited with 1"),
        ({"command": ["no-such-program"]}, "was not found"),
        ({"function": "short", "cpus": None, "strip": ("/no/such/python",)}, "No such file"),
    ],
)
def test_a_program_that_fails_or_does_not_exist_is_a_failure(
    run: Launcher, program: dict[str, Any], message: str
) -> None:
    outcome = run(**{"function": None, **program})

    assert outcome.status == "failed"
    assert message in str(outcome.reason)


def test_the_scratch_folder_is_removed_with_the_supervisor(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()

    with Supervision(folder):
        assert folder.exists()

    assert not folder.exists()


def test_an_interrupt_while_a_worker_starts_leaves_nothing(
    scratch: Path, supervision: Supervision, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Supervision) -> dict[str, Any]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, Path(os.devnull).open("r+b") as nothing:
        patch.setattr(Supervision, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            supervision.spawn(
                ("sleep", "60"),
                env=dict(os.environ),
                cwd=scratch,
                descriptors=(nothing.fileno(),) * 3,
            )

    assert supervision.end(grace_s=0.0) == ("sleep",)
    assert supervision.end(grace_s=0.0) == ()
