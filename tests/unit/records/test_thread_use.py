"""Specifies when the threads that were seen prove, or contradict, a requested number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.launch_record import Launch, ThreadEvidence, Worker
from corebound.records.thread_use import busy_threads, contradictions, limit, proof
from corebound.scenario.cell import Threads
from corebound.scenario.runtimes import Framework
from support.build import (
    a_cell,
    a_host_over_time,
    a_launch,
    a_placement,
    a_thread,
    a_window,
    a_worker,
)

SECOND_NS = 1_000_000_000


def threads(*shares: float, pid: int = 100, waited: float = 0.0) -> tuple[ThreadEvidence, ...]:
    """Threads that ran, and waited for a CPU, for these shares of a second."""
    return tuple(
        replace(
            a_thread(tid=pid + index, run_ns=round(share * SECOND_NS)),
            pid=pid,
            wait_ns=round(waited * SECOND_NS),
        )
        for index, share in enumerate(shares)
    )


def told(worker: Worker, *, framework: Framework = "pytorch", inter_op: int | None = None) -> int:
    return len(list(contradictions(worker, SECOND_NS, framework=framework, inter_op=inter_op)))


def launched(worker: Worker, *, framework: Framework = "pytorch") -> Launch:
    cell = replace(a_cell(), framework=framework, threads=Threads(rule=worker.threads_asked or 1))
    launch = a_launch(
        cell=cell, workers=(worker,), placement=a_placement(threads=worker.threads_asked)
    )
    return replace(launch, host=a_host_over_time(a_window(to_ms=1000)))


@pytest.mark.parametrize(
    ("seen", "deviations"),
    [
        pytest.param(threads(0.93, 0.93), 1, id="two threads on two free CPUs"),
        pytest.param(threads(0.3, 0.3, waited=0.68), 1, id="two threads on busy CPUs"),
        pytest.param(threads(0.5, 0.5, waited=0.5), 1, id="two threads on one CPU"),
        pytest.param(threads(*[0.24] * 4, 0.05, waited=0.6), 1, id="a pool of a data set"),
        # Helpers, and processes of its own.
        pytest.param(threads(0.5, 0.5), 0, id="threads that take turns"),
        pytest.param(threads(0.13, 0.02, waited=0.66), 0, id="gloo's progress thread"),
        pytest.param(threads(0.8, 0.2), 0, id="Python and XLA's only thread"),
        pytest.param((*threads(0.05), *threads(0.9, 0.9, pid=200)), 0, id="loaders"),
    ],
)
def test_more_busy_threads_than_requested_contradict_a_matching_report(
    seen: tuple[ThreadEvidence, ...], deviations: int
) -> None:
    worker = a_worker(threads_asked=1, threads_used=1, threads=seen)

    assert told(worker) == deviations
    assert (proof(launched(worker), worker) == "contradicted") == (deviations == 1)


@given(st.integers(1, 512))
def test_as_many_threads_as_requested_never_contradict_and_twice_as_many_do(requested: int) -> None:
    def worker(number: int) -> Worker:
        return a_worker(threads_asked=requested, threads=threads(*[1.0] * number))

    assert told(worker(requested)) == 0
    assert told(worker(2 * requested)) == 1


def test_one_helper_among_sixteen_threads_is_tolerated() -> None:
    assert told(a_worker(threads_asked=16, threads=threads(*[1.0] * 17))) == 0


def test_too_short_an_observation_says_nothing() -> None:
    assert busy_threads(a_worker(threads=threads(1.0, 1.0)), 50_000_000) == {}


def test_a_step_that_changes_the_setting_is_noticed_at_the_end() -> None:
    worker = replace(a_worker(threads_asked=2, threads_used=None), threads_after=1)

    assert told(worker) == 1


def test_requested_inter_op_threads_are_checked() -> None:
    worker = replace(a_worker(), inter_op_used=2)

    assert told(worker, inter_op=1) == 1
    assert told(worker, inter_op=2) == told(worker) == 0


@pytest.mark.parametrize(
    ("requested", "seen", "expected"),
    [
        (1, threads(1.0), "proven"),
        (2, threads(0.9, 0.8), "proven"),
        (2, threads(1.0, 0.01), "not proven"),
        (2, threads(0.5, 0.5), "not proven"),
        (2, (), "not proven"),
    ],
)
def test_only_what_was_seen_proves_a_number(
    requested: int, seen: tuple[ThreadEvidence, ...], expected: str
) -> None:
    worker = a_worker(threads_asked=requested, threads_used=requested, threads=seen)

    assert proof(launched(worker), worker) == expected


def test_a_number_that_does_not_limit_all_threads_is_not_contradicted_by_them() -> None:
    worker = a_worker(threads_asked=1, threads=threads(0.7, 0.4, 0.3, 0.3))

    assert told(worker, framework="mindspore") == told(worker, framework="tensorflow") == 0
    assert told(worker, framework="tensorflow", inter_op=1) == 1
    assert proof(launched(worker, framework="mindspore"), worker) == "not proven"
    assert limit("tensorflow", 2, 4) != limit("pytorch", 2, 4)


def test_without_a_requested_number_there_is_nothing_to_prove() -> None:
    worker = a_worker(threads_used=4)

    assert proof(launched(worker), worker) is None
