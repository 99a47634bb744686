"""Rules about placement: the CPUs, cores and nodes that threads and memory were on."""

from collections.abc import Collection, Sequence
from itertools import combinations

from corebound import units
from corebound.diagnosis.evidence import (
    Evidence,
    Finding,
    settings,
    slower_than,
)
from corebound.diagnosis.subject import Subject
from corebound.machine.topology import CpuId, cpu_list
from corebound.units import percent

_BINDINGS = ("binding", "smt", "threads", "omp", "backend")

# Migrations per launch from which threads count as moving, and how many times as many as
# in a cell whose threads stay. The page's section on threads uses the same values.
MANY_MOVES = 10
MOVES_RATIO = 3
# A tenth of the memory on another node: at twice the local latency (a distance of 21
# against 10), a memory-bound step is then 10 % slower.
REMOTE_SHARE = 0.1


def smt_siblings_shared(cell: Subject, evidence: Evidence) -> Finding | None:
    """Threads compute on both CPUs of a core, although one thread per core is faster."""
    threads, cores = cell.threads, evidence.cores(cell.cpus)
    if not evidence.topology.has_smt or threads is None or not cores:
        return None
    busy = threads * cell.workers
    if busy <= cores or busy > len(cell.cpus):
        return None
    one_thread_per_core = [
        other
        for other in evidence.peers(cell, _BINDINGS)
        if other.threads is not None
        and other.threads * other.cell.workers <= evidence.cores(other.cpus)
    ]
    loss = evidence.worst_loss(cell, one_thread_per_core)
    spare = cell.spare_cores(evidence.topology)
    if loss is None and not spare:
        return None
    what = f"{busy} threads run as SMT siblings on {_cores(cores)}"
    lines = [f"{busy} threads on CPUs {cpu_list(cell.cpus)}, which belong to {_cores(cores)}"]
    if loss is not None:
        what += f": an iteration is {slower_than(cell, loss)}"
        fitting = (loss.than.threads or 0) * loss.than.workers
        lines.append(
            f"{fitting} threads on {evidence.cores(loss.than.cpus)} cores with"
            f" `{settings(loss.than, cell)}`"
        )
    line = f"OMP_NUM_THREADS={cores} OMP_PLACES=cores"
    setting = cell.setting("`binding: physical-cores` with `threads: per-core`", line)
    fix = f"Leave the siblings idle: {setting}."
    if spare:
        what += f", while {_cores(spare)} {'is' if spare == 1 else 'are'} idle"
        first = {cpu.core: cpu.id for cpu in reversed(evidence.topology.allowed)}
        line = f"taskset -c {cpu_list(first.values())}"
        fix = f"Bind it to one CPU of each core: `{line} command`."
    return cell.finding(
        rule="smt-siblings-shared",
        what=f"{what}.",
        evidence=tuple(lines),
        fix=fix,
        line=line,
        loss=loss,
    )


def _cores(number: int) -> str:
    return f"{number} core{'' if number == 1 else 's'}"


def threads_migrate(cell: Subject, evidence: Evidence) -> Finding | None:
    """Threads migrate between nodes, or between CPUs although bound threads are faster."""
    migrations = cell.migrations
    node_moves = cell.node_moves(evidence.topology)
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
    lines = [f"{units.counted(migrations)} migrations between CPUs {cell.over}"]
    if crosses_nodes:
        lines.append(f"{units.counted(node_moves)} moves between nodes {cell.over}, as sampled")
    what = (
        "Threads migrate between nodes, away from their memory"
        if crosses_nodes
        else "Threads migrate between CPUs"
    )
    if loss is not None:
        what += f": an iteration is {slower_than(cell, loss)}"
        lines.append(
            f"{units.counted(loss.than.migrations or 0.0)} migrations per launch with"
            f" `{settings(loss.than, cell)}`"
        )
    binding, alternative = "`binding: physical-cores`", "OMP_PROC_BIND=true"
    if crosses_nodes:
        binding = "`binding: node`, or `physical-cores`"
        alternative = "`numactl --cpunodebind=N --membind=N command`"
    return cell.finding(
        rule="threads-migrate",
        what=f"{what}.",
        evidence=tuple(lines),
        fix="Bind the threads: "
        + cell.setting(binding, f"`taskset -c CPUS command`, or {alternative}")
        + ".",
        loss=loss,
    )


def memory_remote(cell: Subject, evidence: Evidence) -> Finding | None:
    """Memory is on a node that none of the worker's CPUs belongs to."""
    nodes = evidence.nodes
    share = cell.remote_share(nodes)
    if share is None or share < REMOTE_SHARE:
        return None
    local = [
        other
        for other in evidence.peers(cell, ("memory", "bind"))
        if (other_share := other.remote_share(nodes)) is not None and other_share < REMOTE_SHARE
    ]
    loss = evidence.worst_loss(cell, local)
    what = f"{percent(share, 0)} of the memory is on another node than the worker's CPUs"
    if loss is not None:
        what += f": an iteration is {slower_than(cell, loss)}"
    return cell.finding(
        rule="memory-remote",
        what=f"{what}.",
        evidence=(_by_node(cell),),
        fix="Allocate memory on the node of the CPUs: "
        + cell.setting("`memory: local`", "`numactl --cpunodebind=N --membind=N command`")
        + ", and bind before the start.",
        loss=loss,
        times_ratio=1 + share,
    )


def _by_node(cell: Subject) -> str:
    total = sum(cell.node_bytes.values())
    on = [
        f"{percent(size / total, 0)} on node {node}"
        for node, size in sorted(cell.node_bytes.items())
    ]
    return f"workers on {_cpus(cell.cpus)}, memory {', '.join(on)}"


def workers_overlap(cell: Subject, evidence: Evidence) -> Finding | None:
    """Workers were bound, but some of them to the same CPUs."""
    allowed = {cpu.id for cpu in evidence.topology.allowed}
    shared: set[CpuId] = set()
    pairs = launches = 0
    for affinities in cell.affinities:
        overlaps = _overlaps(affinities, allowed)
        launches += bool(overlaps)
        pairs = max(pairs, len(overlaps))
        shared.update(cpu for cpus in overlaps for cpu in cpus)
    used = {cpu for affinities in cell.affinities for cpus in affinities for cpu in cpus}
    if (cell.threads or 1) * cell.workers <= len(used):
        return None  # they share CPUs, but there are enough CPUs for all their threads
    idle = allowed - used
    if not launches or not cell.is_kept_waiting or (not idle and cell.workers > len(allowed)):
        return None
    idle_cpus = f", while {_cpus(idle)} {'is' if len(idle) == 1 else 'are'} idle" if idle else ""
    binding = cell.setting("`binding: per-worker`", "`taskset -c CPUS command` for each worker")
    return cell.finding(
        rule="workers-overlap",
        what=f"Several workers were bound to {_cpus(shared)}{idle_cpus}.",
        evidence=(
            f"{pairs} pairs of {cell.workers} workers overlap"
            if pairs > 1
            else f"one pair of {cell.workers} workers overlaps",
            *((f"in {launches} of {len(cell.affinities)} launches",) if evidence.cells else ()),
        ),
        fix=f"Give each worker its own CPUs: {binding}, or run at most one worker per core.",
        # At worst, each worker may get only half of a shared CPU.
        times_ratio=1.5,
    )


def _cpus(cpus: Collection[CpuId]) -> str:
    return f"{'CPU' if len(cpus) == 1 else 'CPUs'} {cpu_list(cpus)}"


def _overlaps(
    affinities: Sequence[frozenset[CpuId]], allowed: set[CpuId]
) -> list[frozenset[CpuId]]:
    """The CPUs that pairs of bound workers share; workers that may run anywhere are left out."""
    bound = [cpus for cpus in affinities if cpus < allowed]
    return [first & second for first, second in combinations(bound, 2) if first & second]
