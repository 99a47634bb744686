"""Launches under real load: disturbance is detected and named, and nothing else is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.launch.launch import LaunchResult
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.machine.procfs import descendants, resource_usage
from corebound.runner.refused_launches import screen
from support import needs
from support.commands import busy_process, until
from support.launches import CPUS, launch_step
from support.servers import make_scratch
from support.texts import numbers_in

pytestmark = pytest.mark.measures

COUNTS = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done"


def a_launch(
    supervision: Supervision,
    scratch: Path,
    *,
    function: str = "computes_for",
    command: list[str] | None = None,
    ms: int = 5,
    iterations: int = 200,
    cpus: tuple[int, ...] = (CPUS[-1],),
    events: tuple[str, ...] = (),
) -> LaunchResult:
    return launch_step(
        supervision,
        scratch,
        None if command else function,
        command=command,
        parameters={} if command else {"ms": ms},
        iterations=iterations,
        cpus=cpus,
        timeout_s=60.0,
        counting=CounterSupport(events=events),
    )


@pytest.mark.quick
def test_a_launch_beside_a_busy_process_is_disturbed_and_discarded(
    scratch: Path, supervision: Supervision
) -> None:
    with busy_process(CPUS[-1]):
        outcome = a_launch(supervision, scratch)

    ((refused, disturbance),) = screen([outcome], may_refuse=True)
    assert disturbance is not None
    assert "foreign load" in disturbance.by
    assert refused.status == "invalid"
    assert "foreign load" in str(refused.reason)
    (worker,) = refused.workers
    assert sum(one.last - one.first + 1 for one in worker.disturbed) > 100

    ((accepted, disturbance),) = screen([outcome], may_refuse=False)
    assert accepted.status == "ok"
    assert disturbance is not None
    assert accepted.workers[0].disturbed == worker.disturbed


def test_one_thread_on_fully_busy_cpus_is_discarded(
    scratch: Path, supervision: Supervision
) -> None:
    with ExitStack() as stack:
        for cpu in CPUS * 3:
            stack.enter_context(busy_process(cpu))
        outcome = a_launch(supervision, scratch, cpus=tuple(CPUS))

    ((refused, disturbance),) = screen([outcome], may_refuse=True)
    assert disturbance is not None
    assert "foreign load" in disturbance.by
    assert refused.status == "invalid"


def test_a_sleeping_launch_beside_a_busy_process_is_not_disturbed(
    scratch: Path, supervision: Supervision
) -> None:
    with busy_process(CPUS[-1]):
        outcome = a_launch(supervision, scratch, function="naps", ms=50, iterations=40)

    assert screen([outcome], may_refuse=True) == ((outcome, None),)


@needs.two_cpus
def test_a_busy_process_on_other_cpus_does_not_disturb_a_launch(
    scratch: Path, supervision: Supervision
) -> None:
    with busy_process(CPUS[0]):
        beside = a_launch(supervision, scratch)
        within = a_launch(supervision, scratch, cpus=(CPUS[0],))

    assert within.host is not None
    shared = within.host.share("foreign_ns")
    assert shared is not None
    assert shared > 0.3
    assert _accounted_share(beside) < 1.1


def _accounted_share(outcome: LaunchResult) -> float:
    """Foreign load with the time that the worker itself says it used, of what its CPUs had.

    Whatever else runs on this machine, that is one at most; what is counted twice, or is of
    another CPU, makes it more.
    """
    host, (worker,) = outcome.host, outcome.workers
    assert host is not None
    foreign_ns = host.total("foreign_ns")
    assert foreign_ns is not None
    return (foreign_ns + sum(worker.cpu_ns[1:])) / (host.duration_ms * 1e6 * len(host.cpus))


@pytest.mark.parametrize("cpus", [(CPUS[-1],), tuple(CPUS)])
@pytest.mark.parametrize(
    "workload",
    [{"function": "competes_with_itself"}, {"command": ["sh", "-c", COUNTS], "iterations": 150}],
    ids=["threads", "processes shorter than a sampling interval"],
)
def test_threads_and_processes_of_a_launch_are_not_foreign_load(
    scratch: Path, supervision: Supervision, cpus: tuple[int, ...], workload: dict[str, Any]
) -> None:
    assert _accounted_share(a_launch(supervision, scratch, cpus=cpus, **workload)) < 1.1


@pytest.fixture(scope="module")
def by_itself() -> LaunchResult:
    """A launch beside which nothing was started: 300 iterations of 5 ms."""
    scratch = make_scratch()
    with Supervision(scratch) as supervision:
        return a_launch(supervision, scratch, iterations=300)


def test_a_host_is_sampled_seldom_and_names_unavailable_telemetry(by_itself: LaunchResult) -> None:
    host = by_itself.host

    assert host is not None
    assert host.cpus == (CPUS[-1],)
    assert 1 <= len(host.windows) <= 1 + host.duration_ms / 500
    assert host.windows[0].from_ms == 0
    assert all(a.to_ms == b.from_ms for a, b in zip(host.windows, host.windows[1:], strict=False))
    assert host.total("steal_ns") is not None
    assert (host.total("throttled_ns") is None) == ("throttling" in host.unavailable)
    assert (not host.frequencies_hz) == ("frequency" in host.unavailable)
    # How little looking takes, benchmarks.telemetry_cost says of a quiet host.
    assert host.look_ns > 0


@pytest.mark.quick
def test_resource_use_of_a_launch_is_recorded_over_time(by_itself: LaunchResult) -> None:
    host, (worker,) = by_itself.host, by_itself.workers
    assert host is not None
    # What it says itself that it used, one iteration more or less at each end.
    assert host.total("ran_ns") == pytest.approx(sum(worker.cpu_ns[1:]), rel=0.05)
    user, system = host.total("user_ns"), host.total("system_ns")
    assert user is not None
    assert system is not None
    assert user > system
    assert host.peak_rss_bytes is not None
    assert worker.peak_rss_bytes is not None
    assert host.peak_rss_bytes > 5 << 20
    (thread,) = [thread for thread in worker.threads if thread.tid == thread.pid]
    assert host.total("involuntary") == thread.involuntary
    assert (host.total("migrations") is None) == ("migrations" in host.unavailable)
    assert "GPU use" in host.unavailable


def stop_and_continue(worker: int, _group: Path) -> None:
    os.kill(worker, signal.SIGSTOP)
    time.sleep(2.0)
    os.kill(worker, signal.SIGCONT)


def freeze_and_thaw(worker: int, group: Path) -> None:
    (group / "cgroup.procs").write_text(str(worker))
    v1, v2 = group / "freezer.state", group / "cgroup.freeze"
    state, freeze, thaw = (v1, "FROZEN", "THAWED") if v1.exists() else (v2, "1", "0")
    state.write_text(freeze)
    time.sleep(2.5)
    state.write_text(thaw)


@pytest.mark.parametrize(("suspend", "least_s"), [(stop_and_continue, 1.2), (freeze_and_thaw, 1.5)])
def test_a_suspended_launch_is_discarded_with_the_duration(
    scratch: Path,
    supervision: Supervision,
    request: pytest.FixtureRequest,
    *,
    suspend: Callable[[int, Path], None],
    least_s: float,
) -> None:
    def at_work() -> list[int]:
        below = sorted(descendants(supervision.pid))
        return below[:1] if resource_usage(lambda: below[:1]).cpu_ns > 0.6e9 else []

    group = request.getfixturevalue("freezer") if suspend is freeze_and_thaw else scratch
    with ThreadPoolExecutor(1) as pool:
        completed = pool.submit(lambda: suspend(until(at_work)[0], group))
        outcome = a_launch(supervision, scratch, iterations=300)
        completed.result(30)

    ((refused, disturbance),) = screen([outcome], may_refuse=True)
    assert outcome.host is not None
    suspended_s = (outcome.host.total("suspended_ns") or 0) / 1e9
    assert least_s < suspended_s < outcome.host.duration_ms / 1e3
    assert disturbance is not None
    assert "suspension" in disturbance.by
    assert refused.status == "invalid"
    assert min(abs(number - suspended_s) for number in numbers_in(refused.reason)) < 0.1


def test_a_sleeping_step_is_not_suspended(scratch: Path, supervision: Supervision) -> None:
    outcome = a_launch(supervision, scratch, function="naps", ms=1500, iterations=3)

    assert outcome.host is not None
    assert outcome.host.total("suspended_ns") == 0


THROTTLED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
import test_disturbance as here
from corebound.launch.supervisor_client import Supervision
from corebound.runner.refused_launches import screen
# With a fifth of a CPU, imports would take seconds.
(Path(sys.argv[3]) / "cgroup.procs").write_text("0")
scratch = Path(sys.argv[4])
with Supervision(scratch) as supervision:
    outcome = here.a_launch(supervision, scratch, iterations=120)
((refused, found),) = screen([outcome], may_refuse=True)
print(refused.status, found.by if found else None)
"""


def test_a_throttled_launch_is_discarded_with_the_reason(scratch: Path, quota: Path) -> None:
    here = Path(__file__).parent
    folders = (str(here), str(here.parent), str(quota), str(scratch))

    completed = subprocess.run(
        (sys.executable, "-c", THROTTLED, *folders), check=True, capture_output=True, text=True
    )

    assert completed.stdout.startswith("invalid")
    assert "throttling" in completed.stdout


def test_a_launch_without_host_samples_is_not_judged(by_itself: LaunchResult) -> None:
    unseen = replace(by_itself, host=None)

    assert screen([unseen], may_refuse=True) == ((unseen, None),)


def test_a_launch_records_its_software_counters(by_itself: LaunchResult) -> None:
    counters, (worker,) = by_itself.counters, by_itself.workers

    assert counters is not None
    assert counters.source == "proc"
    assert counters.cycles is None
    # All but the first iteration, one more or less, and none of it twice.
    assert counters.task_clock_ns is not None
    assert 298 * 5e6 < counters.task_clock_ns < 2 * sum(worker.cpu_ns)
    assert counters.switches is not None
    assert counters.faults is not None


@needs.perf
def test_perf_counts_a_launch_and_is_not_a_leftover_process(
    scratch: Path, supervision: Supervision
) -> None:
    outcome = a_launch(supervision, scratch, iterations=50, events=("page-faults",))

    assert outcome.status == "ok", outcome.reason
    assert outcome.leftover_processes == ()
    assert outcome.counters is not None
    assert outcome.counters.source == "perf"
    assert outcome.counters.running_share == 1.0


@needs.perf
def test_a_launch_whose_perf_fails_is_valid_and_says_why(
    scratch: Path, supervision: Supervision
) -> None:
    outcome = a_launch(supervision, scratch, iterations=50, events=("no-such-event",))

    assert outcome.status == "ok", outcome.reason
    assert outcome.counters is not None
    assert outcome.counters.source == "proc"
    assert "perf" in outcome.counters.unavailable["hardware counters"]
