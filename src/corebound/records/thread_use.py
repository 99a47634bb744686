"""How many threads a worker computed with, as seen from outside, and whether it is what was asked.

What a framework reports is what it was told, or the size of its own pool. A function may start
threads of its own, or change the number later, so only what was seen proves a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from corebound.planning import environment_variables
from corebound.records.launch_record import Launch, ThreadEvidence, Worker
from corebound.records.telemetry import HostOverTime, Pauses
from corebound.scenario.runtimes import RUNTIMES, Framework

# A thread counts as computing if it has at least this share of the CPU time of its process's
# busiest thread. The threads of a pool use about the same time; those of a profiler or a
# logger use next to nothing.
LEAST_BUSY_SHARE = 0.25
# In less time, threads that the first iteration woke are still part of what is seen.
_LEAST_TIMED_NS = 100_000_000
# By how many threads, or by what share of those requested, a process may exceed its number: for
# threads that hand over data, and for progress threads. DistributedDataParallel's use 0.02 to 0.1.
_SPARE_THREADS = 0.35
_SPARE_SHARE = 0.1

Proof = Literal["proven", "contradicted", "not proven"]


def timed_ns(host: HostOverTime | None, pauses: Pauses | None) -> int:
    """For how long a launch's threads were observed, without its pauses; 0 if they were not."""
    observed_ns = host.duration_ms * 1_000_000 if host else 0
    return max(observed_ns - (pauses.duration_ns if pauses else 0), 0)


def computing(worker: Worker) -> int | None:
    """Threads of the worker's busiest process that compute at once; None if not sampled.

    Threads that a worker starts anew for each iteration follow one another, so only those
    that exist at the same time count.
    """
    busiest = max(_by_process(worker).values(), key=_run_ns, default=())
    spans = [
        (min(stay.from_ms for stay in stays), max(stay.to_ms for stay in stays))
        for thread in _busy(busiest)
        if (stays := [stay for stay in thread.stays if stay.to_ms > 0])
    ]
    return max(
        (sum(begin <= moment < end for begin, end in spans) for moment, _ in spans), default=None
    )


def busy_threads(worker: Worker, elapsed_ns: int) -> dict[int, float]:
    """For each process, how many of its threads computed or were ready to, on average.

    Threads that wait for a CPU count, or the number would depend on how many CPUs the worker
    has, and on what else runs there. Threads that take turns count as one.

    Args:
        elapsed_ns: As from `timed_ns`.

    Returns:
        The numbers by process id, lowest first; empty if too little was seen.
    """
    if elapsed_ns < _LEAST_TIMED_NS:
        return {}
    return {
        pid: sum((thread.run_ns or 0) + (thread.wait_ns or 0) for thread in _busy(threads))
        / elapsed_ns
        for pid, threads in sorted(_by_process(worker).items())
    }


def limit(framework: Framework, requested: int, inter_op: int | None) -> float | None:
    """The number of busy threads above which a process had more threads than it was asked for.

    None if the requested number does not limit all threads that the framework computes with:
    MindSpore's pipelines and data sets have their own, TensorFlow its inter-op threads.

    Args:
        requested: The number of intra-op threads.
        inter_op: The number of inter-op threads; None: the default.
    """
    pools = RUNTIMES[framework].inter_op
    if pools == "pipelines" or (pools == "shared" and inter_op is None):
        return None
    pooled = inter_op or 1
    allowed = requested + pooled - 1 if pools == "shared" else requested * pooled
    return allowed + max(_SPARE_THREADS, _SPARE_SHARE * allowed)


def contradictions(
    worker: Worker, elapsed_ns: int, *, framework: Framework, inter_op: int | None
) -> Iterator[str]:
    """Every sign that a worker had another number of threads than was requested, in words.

    Only a worker's own process is judged: those of loaders are no part of its pool.

    Args:
        elapsed_ns: As from `timed_ns`; 0: its busy threads are not judged.
        inter_op: The number of inter-op threads that was requested; None: the default.
    """
    if inter_op is not None and worker.inter_op_used not in {None, inter_op}:
        yield (
            f"{_threads(inter_op, 'inter-op thread')} requested, but the framework uses"
            f" {worker.inter_op_used}"
        )
    requested = worker.threads_asked
    if requested is None:
        return
    asked = f"{_threads(requested, 'thread')} requested, but"
    if worker.threads_used not in {None, requested}:
        yield f"{asked} the framework uses {worker.threads_used}"
    elif worker.threads_after not in {None, requested}:
        yield f"{asked} at the end the framework is set to {worker.threads_after}"
    seen = next(iter(busy_threads(worker, elapsed_ns).values()), 0.0)
    most = limit(framework, requested, inter_op)
    if most is not None and seen > most:
        yield f"{asked} {seen:.1f} threads were busy on average"


def _threads(number: int, noun: str) -> str:
    return f"{number} {noun} was" if number == 1 else f"{number} {noun}s were"


def proof(launch: Launch, worker: Worker) -> Proof | None:
    """Whether a worker computed with as many threads as requested; None if none were requested.

    It is not proven if fewer were seen: a workload may have too little to do for more.
    """
    cell, placement, requested = launch.cell, launch.placement, worker.threads_asked
    inter_op = environment_variables.inter_op(cell, placement) if placement else None
    if requested is None and inter_op is None:
        return None
    elapsed_ns = timed_ns(launch.host, launch.pauses)
    # A server computes several answers at once.
    judged_ns = 0 if launch.served else elapsed_ns
    if any(contradictions(worker, judged_ns, framework=cell.framework, inter_op=inter_op)):
        return "contradicted"
    seen = busy_threads(worker, elapsed_ns).values()
    most = None if requested is None else limit(cell.framework, requested, inter_op)
    # Processes that a command starts may end before they are seen.
    is_most_seen = _run_ns(worker.threads) >= sum(worker.cpu_ns[1:]) / 2
    if (
        requested is None
        or not seen
        or not is_most_seen
        or max(seen) > (most or requested + _SPARE_THREADS)
    ):
        return "not proven"
    # Threads of several that take turns add up to one.
    is_enough = requested == 1 or ((computing(worker) or 0) >= requested and max(seen) > 1)
    return "proven" if is_enough else "not proven"


def _by_process(worker: Worker) -> dict[int, list[ThreadEvidence]]:
    """The threads that used CPU time once measuring began, by process; a mere launcher has none."""
    by_process: dict[int, list[ThreadEvidence]] = {}
    for thread in worker.threads:
        if thread.run_ns is not None and any(stay.to_ms > 0 for stay in thread.stays):
            by_process.setdefault(thread.pid, []).append(thread)
    return by_process


def _busy(threads: Sequence[ThreadEvidence]) -> list[ThreadEvidence]:
    longest_ns = max((thread.run_ns or 0 for thread in threads), default=0)
    return [thread for thread in threads if (thread.run_ns or 0) >= LEAST_BUSY_SHARE * longest_ns]


def _run_ns(threads: Sequence[ThreadEvidence]) -> int:
    return sum(thread.run_ns or 0 for thread in threads)
