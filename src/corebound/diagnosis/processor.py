"""Rules about hardware counters: where the processor's pipeline waited."""

from collections.abc import Callable

from msgspec import Struct

from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding, median
from corebound.records.telemetry import Counters
from corebound.units import percent

# Shares of pipeline slots that are worth reporting: the thresholds of Intel's own metrics
# (perfmon, tma_backend_bound > 0.2, tma_memory_bound > 0.2, tma_core_bound > 0.1).
BACKEND_SHARE, MEMORY_SHARE, CORE_SHARE = 0.2, 0.2, 0.1

# As for memory pages: at twice the local latency, a tenth of the loads costs up to a tenth.
REMOTE_SHARE = 0.1


class _Waits(Struct, frozen=True, kw_only=True):
    """What the back end of a pipeline waits for, as shares of all slots.

    Attributes:
        memory: Share waiting for data from memory and caches.
        core: Share waiting for execution units.
    """

    memory: float
    core: float


def memory_bound(cell: CellEvidence, _: Evidence) -> Finding | None:
    """The pipeline mostly waits for memory and caches."""
    waits = _waits(cell)
    if waits is None or waits.memory <= MEMORY_SHARE or waits.memory < waits.core:
        return None
    return cell.finding(
        rule="memory-bound",
        tone="plain",
        what=f"The processor waits for memory in {percent(waits.memory, 0)} of its pipeline slots."
        " More threads would share the same bandwidth.",
        evidence=_lines(cell),
        fix="Move fewer bytes (a narrower type, fused operators, a channels-last layout), keep"
        " a worker within one cache and its node (`binding: cache`, `memory: local`), and try"
        " fewer threads.",
        times_ratio=1 / (1 - min(waits.memory, 0.9)),
    )


def core_bound(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """The pipeline mostly waits for its execution units."""
    waits = _waits(cell)
    if waits is None or waits.core <= CORE_SHARE or waits.core <= waits.memory:
        return None
    shares_cores = evidence.topology.has_smt and evidence.cores(cell.cpus) < len(cell.cpus)
    fix = (
        "Run one thread per core, because two CPUs of a core share its units:"
        " `binding: physical-cores` with `threads: per-core`."
        if shares_cores
        else "The units are busy, as they should be in matrix products. To go faster, use wider"
        " instructions, a narrower type (bfloat16) or fewer operations."
    )
    return cell.finding(
        rule="core-bound",
        tone="plain",
        what=f"The processor waits for its execution units in {percent(waits.core, 0)} of its"
        " pipeline slots.",
        evidence=_lines(cell),
        fix=fix,
        times_ratio=1 / (1 - min(waits.core, 0.9)),
    )


def remote_loads(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """Loads came from another node's memory."""
    if len(set(evidence.nodes.values())) < 2:
        return None
    share = median(cell.ok, lambda launch: _remote_share(launch.counters))
    if share is None or share < REMOTE_SHARE:
        return None
    return cell.finding(
        rule="remote-loads",
        what=f"{percent(share, 0)} of the loads that missed the last cache came from another node.",
        evidence=_lines(cell),
        fix="Keep threads and memory on one node: `binding: node` with `memory: local` (outside"
        " corebound: `numactl --cpunodebind=N --membind=N command`).",
        times_ratio=1 + share,
    )


def _waits(cell: CellEvidence) -> _Waits | None:
    """What the back end waits for; None if unknown or too little to report."""
    memory, core, backend = (
        _slots(cell, name) for name in ("memory_bound", "core_bound", "backend_bound")
    )
    if memory is None or core is None or backend is None or backend <= BACKEND_SHARE:
        return None
    return _Waits(memory=memory, core=core)


def _slots(cell: CellEvidence, name: str) -> float | None:
    return _counted(cell, lambda counters: counters.slots.get(name))


def _counted(cell: CellEvidence, counter: Callable[[Counters], float | None]) -> float | None:
    return median(cell.ok, lambda launch: counter(launch.counters) if launch.counters else None)


def _remote_share(counters: Counters | None) -> float | None:
    if counters is None or counters.remote_loads is None or not counters.llc_misses:
        return None
    return min(1.0, counters.remote_loads / counters.llc_misses)


def _lines(cell: CellEvidence) -> tuple[str, ...]:
    per_cycle = _counted(cell, lambda counters: counters.instructions_per_cycle)
    shares = [
        (name.replace("_", " "), share)
        for name in ("retiring", "bad_speculation", "frontend_bound", "memory_bound", "core_bound")
        if (share := _slots(cell, name)) is not None
    ]
    lines = [f"instructions per cycle: {per_cycle:.2f}"] if per_cycle is not None else []
    if shares:
        listed = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares)
        lines.append(f"slots: {listed}")
    return tuple(lines)
