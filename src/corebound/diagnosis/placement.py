"""Rules about placement: the CPUs, cores and nodes that threads and memory were on."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from corebound import units
from corebound.diagnosis.evidence import (
    CellEvidence,
    Evidence,
    Finding,
    allowed_cpus,
    as_long_as,
    median,
    moves,
    remote_share,
)
from corebound.machine.topology import CpuId, cpu_list
from corebound.records.launch_record import Launch
from corebound.units import percent

_BINDINGS = ("binding", "smt", "threads", "omp", "backend")

# Migrations per launch from which threads count as moving, and how many times as many as
# in a cell whose threads stay. The page's section on threads uses the same values.
MANY_MOVES = 10
MOVES_RATIO = 3
# A tenth of the memory on another node: at twice the local latency (a distance of 21
# against 10), a memory-bound step is then 10 % slower.
REMOTE_SHARE = 0.1


def smt_siblings_shared(one: CellEvidence, among: Evidence) -> Finding | None:
    """Threads compute on both CPUs of a core, although one thread per core is faster."""
    threads, cores = one.threads, among.cores(one.cpus)
    if not among.topology.has_smt or threads is None or not cores:
        return None
    busy = threads * one.cell.workers
    if busy <= cores or busy > len(one.cpus):
        return None
    apart = [
        other
        for other in among.peers(one, _BINDINGS)
        if other.threads is not None
        and other.threads * other.cell.workers <= among.cores(other.cpus)
    ]
    loss = among.worst_loss(one, apart)
    if loss is None:
        return None
    units = "core's units" if cores == 1 else "cores' units"
    beside = f"{among.cores(loss.than.cpus)} cores"
    return Finding(
        rule="smt-siblings-shared",
        tone="bad",
        what=f"{busy} threads share {cores} {units}: an iteration takes {as_long_as(one, loss)}.",
        evidence=(
            f"{busy} threads on CPUs {cpu_list(one.cpus)}, which are {cores} of the host's cores",
            f"{(loss.than.threads or 0) * loss.than.cell.workers} threads on {beside} beside it",
        ),
        fix="Leave the siblings idle: `binding: physical-cores` with `threads: per-core`"
        f" (outside corebound OMP_NUM_THREADS={cores} OMP_PLACES=cores).",
        cells=(one.cell,),
        times_ratio=loss.ratio,
    )


def threads_migrate(one: CellEvidence, among: Evidence) -> Finding | None:
    """Threads migrate between nodes, or between CPUs although bound threads are faster."""
    counted = one.migrations
    seen = [found for each in one.ok if (found := moves(each, among.topology)) is not None]
    crossed = statistics.median(found.across_nodes for found in seen) if seen else 0
    across = crossed >= MANY_MOVES
    if counted is None or (counted < MANY_MOVES and not across):
        return None
    staying = [
        other
        for other in among.peers(one, ("binding", "smt", "backend"))
        if other.threads == one.threads
        and other.migrations is not None
        and other.migrations * MOVES_RATIO <= max(counted, crossed)
    ]
    loss = among.worst_loss(one, staying)
    if loss is None and not across:
        return None
    evidence = [f"{units.counted(counted)} moves between CPUs a launch"]
    if across:
        evidence.append(
            f"seen on another node than just before {units.counted(crossed)} times a launch"
        )
    what = (
        "Threads move between nodes and leave their memory behind"
        if across
        else "Threads keep moving between CPUs"
    )
    if loss is not None:
        what += f": an iteration takes {as_long_as(one, loss)}"
        evidence.append(f"{units.counted(loss.than.migrations or 0.0)} moves a launch beside it")
    binding = "`binding: node`, or `physical-cores`" if across else "`binding: physical-cores`"
    return Finding(
        rule="threads-migrate",
        tone="bad" if loss else "warn",
        what=f"{what}.",
        evidence=tuple(evidence),
        fix=f"Bind them: {binding} (outside corebound `taskset -c CPUS command`, or"
        f" {'`numactl --cpunodebind=N --membind=N command`' if across else 'OMP_PROC_BIND=true'}).",
        cells=(one.cell,),
        times_ratio=loss.ratio if loss else 1.0,
    )


def memory_remote(one: CellEvidence, among: Evidence) -> Finding | None:
    """Memory is on a node that none of the worker's CPUs belongs to."""
    nodes = among.nodes
    share = median(one.ok, lambda launch: remote_share(launch, nodes))
    if share is None or share < REMOTE_SHARE:
        return None
    local = [
        other
        for other in among.peers(one, ("memory", "bind"))
        if (beside := median(other.ok, lambda launch: remote_share(launch, nodes))) is not None
        and beside < REMOTE_SHARE
    ]
    loss = among.worst_loss(one, local)
    what = f"{percent(share, 0)} of the memory is on a node that none of its CPUs belongs to"
    if loss is not None:
        what += f": an iteration takes {as_long_as(one, loss)}"
    return Finding(
        rule="memory-remote",
        tone="bad" if loss else "warn",
        what=f"{what}.",
        evidence=_by_node(one.ok[0], one.ok),
        fix="Take memory where the CPUs are: `memory: local` (outside corebound `numactl"
        " --cpunodebind=N --membind=N command`), and bind before it starts.",
        cells=(one.cell,),
        times_ratio=loss.ratio if loss else 1 + share,
    )


def _by_node(first: Launch, launches: Sequence[Launch]) -> tuple[str, ...]:
    placement = first.placement
    given = [cpu for slot in placement.slots for cpu in slot.cpus] if placement else []
    held: Counter[int] = Counter()
    for launch in launches:
        for worker in launch.workers:
            held.update(worker.node_bytes)
    on = [
        f"{percent(size / held.total(), 0)} on node {node}" for node, size in sorted(held.items())
    ]
    return (f"on CPUs {cpu_list(given)}, memory: {', '.join(on)}",)


def workers_overlap(one: CellEvidence, among: Evidence) -> Finding | None:
    """Workers were bound, but some of them to the same CPUs."""
    every = {cpu.id for cpu in among.topology.allowed}
    shared: set[CpuId] = set()
    pairs = launches = 0
    for launch in one.ok:
        found = _overlaps(launch, every)
        launches += bool(found)
        pairs = max(pairs, len(found))
        shared.update(cpu for cpus in found for cpu in cpus)
    used = {cpu for launch in one.ok for cpu in _all_allowed(launch)}
    if (one.threads or 1) * one.cell.workers <= len(used):
        return None  # they share CPUs, but there are enough CPUs for all their threads
    idle = every - used
    if not launches or (not idle and one.cell.workers > len(every)):
        return None
    rest = f"; CPUs {cpu_list(idle)} are left idle" if idle else ""
    return Finding(
        rule="workers-overlap",
        tone="warn",
        what=f"Workers were bound to the same CPUs ({cpu_list(shared)}){rest}.",
        evidence=(
            f"{pairs} pairs of {one.cell.workers} workers overlap"
            if pairs > 1
            else f"one pair of {one.cell.workers} workers overlaps",
            f"in {launches} of {len(one.ok)} launches",
        ),
        fix="Give each worker CPUs of its own: `binding: per-worker`, or as few workers as"
        " there are cores.",
        cells=(one.cell,),
        # At worst, each worker may get only half of a shared CPU.
        times_ratio=1.5,
    )


def _all_allowed(launch: Launch) -> frozenset[CpuId]:
    found = [allowed_cpus(worker) for worker in launch.workers]
    return frozenset(cpu for cpus in found if cpus for cpu in cpus)


def _overlaps(launch: Launch, every: set[CpuId]) -> list[frozenset[CpuId]]:
    """The CPUs that pairs of bound workers share; workers that may run anywhere are left out."""
    bound = [
        cpus
        for worker in launch.workers
        if (cpus := allowed_cpus(worker)) is not None and cpus < every
    ]
    return [one & other for one, other in combinations(bound, 2) if one & other]
