"""What was seen of a launch, added up over its workers and threads; None where nobody could say."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from corebound.model.record import Launch, ThreadEvidence, Worker
from corebound.model.telemetry import known_sum
from corebound.model.topology import Cpu, CpuId, NodeId, Topology

Counted = Literal["migrations", "voluntary", "involuntary", "run_ns", "wait_ns"]

# Of the threads of a process those compute that have at least this share of the CPU time
# of its busiest: the threads of a pool get about the same, a profiler's or a logger's
# next to nothing.
_LEAST_BUSY_SHARE = 0.25


def total(launch: Launch, field: Counted) -> int | None:
    """A count of every thread of a launch, taken together."""
    threads = (thread for worker in launch.workers for thread in worker.threads)
    return known_sum(getattr(thread, field) for thread in threads)


def wait_share(launch: Launch) -> float | None:
    """Share of the time its threads were ready to run that they waited for a CPU."""
    run_ns, wait_ns = total(launch, "run_ns"), total(launch, "wait_ns")
    if run_ns is None or wait_ns is None or run_ns + wait_ns == 0:
        return None
    return wait_ns / (run_ns + wait_ns)


def remote_share(launch: Launch, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
    """Share of the workers' memory that is on a node none of their CPUs belongs to.

    None where nobody could say, and on a host of one node, where it means nothing.

    Args:
        launch: The launch.
        nodes: The node of each CPU of its host.
    """
    if launch.placement is None or len(set(nodes.values())) < 2:
        return None
    own = all_bytes = 0
    for worker in launch.workers:
        mine = {nodes.get(cpu) for cpu in launch.placement.slots[worker.slot].cpus}
        own += sum(size for node, size in worker.node_bytes.items() if node in mine)
        all_bytes += sum(worker.node_bytes.values())
    return 1 - own / all_bytes if all_bytes else None


class Moves(Struct, frozen=True, kw_only=True):
    """How often threads were seen on another CPU than just before, by how far that is.

    The kernel counts moves, not whence and whither; between two looks some are not seen.
    """

    within_cores: int
    across_cores: int
    across_nodes: int


def moves(launch: Launch, topology: Topology) -> Moves | None:
    """The moves of a launch's threads once told to go; None where nobody looked."""
    places = {cpu.id: cpu for cpu in topology.cpus}
    threads = [thread for worker in launch.workers for thread in worker.threads]
    if not threads:
        return None
    found: Counter[str] = Counter()
    for thread in threads:
        seen = [places.get(stay.cpu) for stay in thread.stays if stay.to_ms > 0]
        found.update(_distance(one, other) for one, other in pairwise(seen) if one and other)
    return Moves(**{name: found[name] for name in Moves.__struct_fields__})


def _distance(one: Cpu, other: Cpu) -> str:
    if one.node != other.node:
        return "across_nodes"
    if one.core != other.core:
        return "across_cores"
    return "within_cores" if one.id != other.id else "nowhere"


def computing(worker: Worker) -> int | None:
    """How many threads of the worker's busiest process compute at once; None if nobody looked.

    Threads that a worker starts for each iteration follow one another: they are as many as
    there are at one time.
    """
    by_process: dict[int, list[ThreadEvidence]] = {}
    for thread in worker.threads:
        if thread.run_ns is not None and any(stay.to_ms > 0 for stay in thread.stays):
            by_process.setdefault(thread.pid, []).append(thread)
    if not by_process:
        return None
    main = max(by_process.values(), key=lambda threads: sum(one.run_ns or 0 for one in threads))
    most_ns = max(one.run_ns or 0 for one in main)
    return _at_once([one for one in main if (one.run_ns or 0) >= _LEAST_BUSY_SHARE * most_ns])


def _at_once(threads: Sequence[ThreadEvidence]) -> int:
    """The most of them between whose first and last sight some moment lies."""
    spans = [
        (min(stay.from_ms for stay in seen), max(stay.to_ms for stay in seen))
        for one in threads
        if (seen := [stay for stay in one.stays if stay.to_ms > 0])
    ]
    return max((sum(begin <= at < end for begin, end in spans) for at, _ in spans), default=0)


def threads_of(worker: Worker) -> int | None:
    """Threads that one worker computes with: as it says, or more where more were seen to."""
    said, seen = worker.threads_used, computing(worker)
    return max((number for number in (said, seen) if number is not None), default=None)


def allowed_cpus(worker: Worker) -> frozenset[CpuId] | None:
    """Where the worker's threads could run at the end; None where nobody looked."""
    last = [thread.allowed[-1] for thread in worker.threads if thread.allowed]
    return frozenset(cpu for cpus in last for cpu in cpus) if last else None


def median(launches: Iterable[Launch], of: Callable[[Launch], float | None]) -> float | None:
    """The median of a figure over launches; None where none has it."""
    known = [number for launch in launches if (number := of(launch)) is not None]
    return float(statistics.median(known)) if known else None


def most_common(values: Iterable[int | None]) -> int | None:
    """The number seen most often; None where none was."""
    counted = Counter(value for value in values if value is not None)
    return max(counted, key=lambda value: (counted[value], value)) if counted else None
