"""Rules about hardware counters: where the processor's pipeline waited."""

from __future__ import annotations

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


def memory_bound(one: CellEvidence, _: Evidence) -> Finding | None:
    """The pipeline mostly waits for memory and caches."""
    waits = _waits(one)
    if waits is None or waits.memory <= MEMORY_SHARE or waits.memory < waits.core:
        return None
    return Finding(
        rule="memory-bound",
        tone="plain",
        what=f"The processor waits for memory in {percent(waits.memory, 0)} of its slots: more"
        " threads share the same bandwidth.",
        evidence=_lines(one),
        fix="Move fewer bytes (a narrower type, fused operators, a layout such as channels"
        " last), keep a worker within one cache and its node (`binding: cache`,"
        " `memory: local`), and try fewer threads.",
        cells=(one.cell,),
        times_ratio=1 / (1 - min(waits.memory, 0.9)),
    )


def core_bound(one: CellEvidence, among: Evidence) -> Finding | None:
    """The pipeline mostly waits for its execution units."""
    waits = _waits(one)
    if waits is None or waits.core <= CORE_SHARE or waits.core <= waits.memory:
        return None
    siblings = among.topology.has_smt and among.cores(one.cpus) < len(one.cpus)
    fix = (
        "Two CPUs of a core share its units: one thread a core, `binding: physical-cores` with"
        " `threads: per-core`."
        if siblings
        else "The units are busy, which products of matrices should see to: wider instructions or a"
        " narrower type (bfloat16), or fewer operations."
    )
    return Finding(
        rule="core-bound",
        tone="plain",
        what=f"The processor waits for its execution units in {percent(waits.core, 0)} of its"
        " slots.",
        evidence=_lines(one),
        fix=fix,
        cells=(one.cell,),
        times_ratio=1 / (1 - min(waits.core, 0.9)),
    )


def remote_loads(one: CellEvidence, among: Evidence) -> Finding | None:
    """Loads came from another node's memory."""
    if len(set(among.nodes.values())) < 2:
        return None
    share = median(one.ok, lambda launch: _remote_share(launch.counters))
    if share is None or share < REMOTE_SHARE:
        return None
    return Finding(
        rule="remote-loads",
        tone="warn",
        what=f"{percent(share, 0)} of the loads that missed the caches came from another node.",
        evidence=_lines(one),
        fix="Keep threads and memory on one node: `binding: node` with `memory: local` (outside"
        " corebound `numactl --cpunodebind=N --membind=N command`).",
        cells=(one.cell,),
        times_ratio=1 + share,
    )


def _waits(one: CellEvidence) -> _Waits | None:
    """What the back end waits for; None if unknown or too little to report."""
    memory, core, backend = (
        _slots(one, name) for name in ("memory_bound", "core_bound", "backend_bound")
    )
    if memory is None or core is None or backend is None or backend <= BACKEND_SHARE:
        return None
    return _Waits(memory=memory, core=core)


def _slots(one: CellEvidence, name: str) -> float | None:
    return _counted(one, lambda counters: counters.slots.get(name))


def _counted(one: CellEvidence, of: Callable[[Counters], float | None]) -> float | None:
    return median(one.ok, lambda launch: of(launch.counters) if launch.counters else None)


def _remote_share(counters: Counters | None) -> float | None:
    if counters is None or counters.remote_loads is None or not counters.llc_misses:
        return None
    return min(1.0, counters.remote_loads / counters.llc_misses)


def _lines(one: CellEvidence) -> tuple[str, ...]:
    per_cycle = _counted(one, lambda counters: counters.instructions_per_cycle)
    shares = [
        (name.replace("_", " "), share)
        for name in ("retiring", "bad_speculation", "frontend_bound", "memory_bound", "core_bound")
        if (share := _slots(one, name)) is not None
    ]
    lines = [f"instructions per cycle: {per_cycle:.2f}"] if per_cycle is not None else []
    if shares:
        told = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares)
        lines.append(f"slots: {told}")
    return tuple(lines)
