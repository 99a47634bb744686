"""Rules about placement: the CPUs, cores and nodes that threads and memory were on."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import combinations

from corebound import units
from corebound.diagnosis.evidence import (
    CellEvidence,
    Evidence,
    Finding,
    allowed_cpus,
    median,
    moves,
    remote_share,
    settings,
    slower_than,
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


def smt_siblings_shared(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """Threads compute on both CPUs of a core, although one thread per core is faster."""
    threads, cores = cell.threads, evidence.cores(cell.cpus)
    if not evidence.topology.has_smt or threads is None or not cores:
        return None
    busy = threads * cell.cell.workers
    if busy <= cores or busy > len(cell.cpus):
        return None
    one_thread_per_core = [
        other
        for other in evidence.peers(cell, _BINDINGS)
        if other.threads is not None
        and other.threads * other.cell.workers <= evidence.cores(other.cpus)
    ]
    loss = evidence.worst_loss(cell, one_thread_per_core)
    if loss is None:
        return None
    noun = "core" if cores == 1 else "cores"
    faster, setting = loss.than, settings(loss.than.cell, cell.cell)
    fitting = (faster.threads or 0) * faster.cell.workers
    return cell.finding(
        rule="smt-siblings-shared",
        what=f"{busy} threads run as SMT siblings on {cores} {noun}: an iteration is"
        f" {slower_than(cell, loss)}.",
        evidence=(
            f"{busy} threads on CPUs {cpu_list(cell.cpus)}, which belong to {cores} {noun}",
            f"{fitting} threads on {evidence.cores(faster.cpus)} cores with `{setting}`",
        ),
        fix="Leave the siblings idle: `binding: physical-cores` with `threads: per-core`"
        f" (outside corebound: OMP_NUM_THREADS={cores} OMP_PLACES=cores).",
        loss=loss,
    )


def threads_migrate(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """Threads migrate between nodes, or between CPUs although bound threads are faster."""
    migrations = cell.migrations
    samples = [
        sampled for launch in cell.ok if (sampled := moves(launch, evidence.topology)) is not None
    ]
    node_moves = statistics.median(sampled.across_nodes for sampled in samples) if samples else 0
    crosses_nodes = node_moves >= MANY_MOVES
    if migrations is None or (migrations < MANY_MOVES and not crosses_nodes):
        return None
    staying = [
        other
        for other in evidence.peers(cell, ("binding", "smt", "backend"))
        if other.threads == cell.threads
        and other.migrations is not None
        and other.migrations * MOVES_RATIO <= max(migrations, node_moves)
    ]
    loss = evidence.worst_loss(cell, staying)
    if loss is None and not crosses_nodes:
        return None
    lines = [f"{units.counted(migrations)} migrations between CPUs per launch"]
    if crosses_nodes:
        lines.append(f"{units.counted(node_moves)} moves between nodes per launch, as sampled")
    what = (
        "Threads migrate between nodes, away from their memory"
        if crosses_nodes
        else "Threads migrate between CPUs"
    )
    if loss is not None:
        what += f": an iteration is {slower_than(cell, loss)}"
        lines.append(
            f"{units.counted(loss.than.migrations or 0.0)} migrations per launch with"
            f" `{settings(loss.than.cell, cell.cell)}`"
        )
    binding, alternative = "`binding: physical-cores`", "OMP_PROC_BIND=true"
    if crosses_nodes:
        binding = "`binding: node`, or `physical-cores`"
        alternative = "`numactl --cpunodebind=N --membind=N command`"
    return cell.finding(
        rule="threads-migrate",
        what=f"{what}.",
        evidence=tuple(lines),
        fix=f"Bind the threads: {binding} (outside corebound: `taskset -c CPUS command`, or"
        f" {alternative}).",
        loss=loss,
    )


def memory_remote(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """Memory is on a node that none of the worker's CPUs belongs to."""
    nodes = evidence.nodes
    share = median(cell.ok, lambda launch: remote_share(launch, nodes))
    if share is None or share < REMOTE_SHARE:
        return None
    local = [
        other
        for other in evidence.peers(cell, ("memory", "bind"))
        if (other_share := median(other.ok, lambda launch: remote_share(launch, nodes))) is not None
        and other_share < REMOTE_SHARE
    ]
    loss = evidence.worst_loss(cell, local)
    what = f"{percent(share, 0)} of the memory is on another node than the worker's CPUs"
    if loss is not None:
        what += f": an iteration is {slower_than(cell, loss)}"
    return cell.finding(
        rule="memory-remote",
        what=f"{what}.",
        evidence=_by_node(cell.ok[0], cell.ok),
        fix="Allocate memory on the node of the CPUs: `memory: local` (outside corebound: `numactl"
        " --cpunodebind=N --membind=N command`), and bind before the start.",
        loss=loss,
        times_ratio=1 + share,
    )


def _by_node(first: Launch, launches: Sequence[Launch]) -> tuple[str, ...]:
    placement = first.placement
    cpus = [cpu for slot in placement.slots for cpu in slot.cpus] if placement else []
    bytes_by_node: Counter[int] = Counter()
    for launch in launches:
        for worker in launch.workers:
            bytes_by_node.update(worker.node_bytes)
    on = [
        f"{percent(size / bytes_by_node.total(), 0)} on node {node}"
        for node, size in sorted(bytes_by_node.items())
    ]
    return (f"workers on {_cpus(set(cpus))}, memory {', '.join(on)}",)


def workers_overlap(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """Workers were bound, but some of them to the same CPUs."""
    allowed = {cpu.id for cpu in evidence.topology.allowed}
    shared: set[CpuId] = set()
    pairs = launches = 0
    for launch in cell.ok:
        overlaps = _overlaps(launch, allowed)
        launches += bool(overlaps)
        pairs = max(pairs, len(overlaps))
        shared.update(cpu for cpus in overlaps for cpu in cpus)
    used = {cpu for launch in cell.ok for cpu in _all_allowed(launch)}
    if (cell.threads or 1) * cell.cell.workers <= len(used):
        return None  # they share CPUs, but there are enough CPUs for all their threads
    idle = allowed - used
    if not launches or (not idle and cell.cell.workers > len(allowed)):
        return None
    idle_cpus = f", while {_cpus(idle)} {'is' if len(idle) == 1 else 'are'} idle" if idle else ""
    return cell.finding(
        rule="workers-overlap",
        what=f"Several workers were bound to {_cpus(shared)}{idle_cpus}.",
        evidence=(
            f"{pairs} pairs of {cell.cell.workers} workers overlap"
            if pairs > 1
            else f"one pair of {cell.cell.workers} workers overlaps",
            f"in {launches} of {len(cell.ok)} launches",
        ),
        fix="Give each worker its own CPUs: `binding: per-worker`, or run at most one worker"
        " per core.",
        # At worst, each worker may get only half of a shared CPU.
        times_ratio=1.5,
    )


def _cpus(cpus: Collection[CpuId]) -> str:
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}"


def _all_allowed(launch: Launch) -> frozenset[CpuId]:
    affinities = [allowed_cpus(worker) for worker in launch.workers]
    return frozenset(cpu for cpus in affinities if cpus for cpu in cpus)


def _overlaps(launch: Launch, allowed: set[CpuId]) -> list[frozenset[CpuId]]:
    """The CPUs that pairs of bound workers share; workers that may run anywhere are left out."""
    bound = [
        cpus
        for worker in launch.workers
        if (cpus := allowed_cpus(worker)) is not None and cpus < allowed
    ]
    return [first & second for first, second in combinations(bound, 2) if first & second]
