"""Specifies what counts as a suspension of a launch."""

import os
import time
from collections.abc import Callable, Iterator

import pytest

from corebound.launch import thread_sampler
from corebound.launch.thread_sampler import ThreadSampler
from corebound.machine import cgroups, procfs
from corebound.machine.procfs import ProcessStat

S = 1_000_000_000

Pass = Callable[[float], None]


@pytest.fixture
def watch() -> Iterator[ThreadSampler]:
    """Of this process, which hardly runs while made-up time passes; looked at twice."""
    watch = ThreadSampler(os.getpid())
    watch.sample(search=True)
    watch.start()
    watch.sample()
    yield watch
    watch.close()


@pytest.fixture
def pass_s(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Lets time pass at once."""
    passed_ns = [0]
    real_ns = time.monotonic_ns

    def pass_s(seconds: float) -> None:
        passed_ns[0] += round(seconds * S)

    monkeypatch.setattr(time, "monotonic_ns", lambda: real_ns() + passed_ns[0])
    return pass_s


def in_state(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    line = f"1 (x) {state} {' '.join('0' for _ in range(49))}"
    monkeypatch.setattr(thread_sampler, "_read_stat", lambda _stat: ProcessStat(line.encode()))


@pytest.mark.parametrize(
    ("state", "suspended_s"), [("T", 2.4), ("frozen", 2.4), ("S", 0), ("D", 0), ("R", 0)]
)
def test_a_stopped_process_and_a_frozen_cgroup_are_suspended_and_one_that_waits_is_not(
    watch: ThreadSampler,
    pass_s: Pass,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    suspended_s: float,
) -> None:
    if state == "frozen":
        monkeypatch.setattr(cgroups, "is_frozen", lambda _tree, _pid: True)
    else:
        in_state(monkeypatch, state)
    for _ in range(4):
        pass_s(0.8)
        watch.sample()

    # Between the first of the four and the one before it may have run.
    assert watch.suspended_ns == pytest.approx(suspended_s * S, rel=0.3)


@pytest.mark.parametrize(("tracer", "suspended"), [("its own", False), ("another", True)])
def test_only_a_tracer_outside_the_launch_suspends_a_process(
    watch: ThreadSampler,
    pass_s: Pass,
    monkeypatch: pytest.MonkeyPatch,
    tracer: str,
    *,
    suspended: bool,
) -> None:
    in_state(monkeypatch, "t")
    pid = os.getpid() if tracer == "its own" else 1
    monkeypatch.setattr(procfs, "read", lambda _path: f"\nTracerPid:\t{pid}\n".encode())
    for _ in range(3):
        pass_s(0.8)
        watch.sample()

    assert (watch.suspended_ns > 0) is suspended


def test_a_late_sample_without_waiting_is_a_suspension(watch: ThreadSampler, pass_s: Pass) -> None:
    pass_s(5)
    watch.sample()

    assert watch.suspended_ns == pytest.approx(5 * S, rel=0.1)


def test_a_late_sample_that_waited_for_a_cpu_is_no_suspension(
    watch: ThreadSampler, pass_s: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_ns = thread_sampler._own_wait_ns
    monkeypatch.setattr(thread_sampler, "_own_wait_ns", lambda: really_ns() + 4 * S)
    pass_s(5)
    watch.sample()

    assert watch.suspended_ns == 0
