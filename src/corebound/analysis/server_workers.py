"""Where a server's workers ran and what that cost them."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from corebound.analysis.launch_metrics import migrations, span_of
from corebound.analysis.scenario_result import CellResult
from corebound.diagnosis.evidence import remote_share
from corebound.machine.identity import Host
from corebound.machine.topology import CpuId
from corebound.records.launch_record import Launch, Stay
from corebound.records.telemetry import Counters

# The name of these values in the reason for their absence.
BOUND_LEVELS = "core bound and memory bound"


MEMORY_ON_OTHER_NODE = "memory on another node"


_NOT_COUNTED = "not counted"


class WorkerActivity(Struct, frozen=True, kw_only=True):
    """The workers of one server configuration: medians over its `ok` launches, None if unavailable.

    Attributes:
        cpu_use: CPU time of the workers on each CPU over the launch's duration; CPUs on which no
            worker was seen are left out.
        overlap: The share of the time in which a core had two or more workers, out of the time in
            which it had any.
        migrations: Moves of their threads between CPUs.
        core_bound, memory_bound: Shares of the pipeline's slots, of the server's whole process
            tree.
        core_bound_workers: `core_bound` of each worker, in the last launch that has it.
        remote_loads: Loads from another node's memory.
        remote_memory: The share of the workers' memory on a node that they do not run on.
        unavailable: What is unavailable, and why.
        spans: The minimum and maximum over the launches for `migrations`, `overlap`, `core bound`
            and `remote memory`; left out if all have the same value.
    """

    cpu_use: Mapping[CpuId, float]
    overlap: float | None
    migrations: float | None
    core_bound: float | None
    memory_bound: float | None
    core_bound_workers: tuple[float, ...]
    remote_loads: float | None
    remote_memory: float | None
    unavailable: Mapping[str, str]
    spans: Mapping[str, tuple[float, float]]


def worker_activity(cell: CellResult, host: Host) -> WorkerActivity:
    """Collect the values of a server configuration's workers on this host."""
    launches = [
        launch for launch in cell.launches if launch.status == "ok" and launch.served is not None
    ]
    cores = {cpu.id: cpu.core for cpu in host.topology.cpus}
    nodes = {cpu.id: cpu.node for cpu in host.topology.cpus}
    uses = [use for launch in launches if (use := cpu_use(launch))]
    metrics: dict[str, Callable[[Launch], float | None]] = {
        "overlap": lambda launch: overlap(launch, cores),
        "migrations": migrations,
        "core bound": lambda launch: _slot(launch.counters, "core_bound"),
        "remote memory": lambda launch: remote_share(launch, nodes),
    }
    spans = ((name, span_of(cell, count)) for name, count in metrics.items())
    by_worker = next(
        (shares for launch in reversed(launches) if (shares := _of_workers(launch))), ()
    )
    return WorkerActivity(
        cpu_use={
            cpu: statistics.median(use.get(cpu, 0.0) for use in uses)
            for cpu in sorted({cpu for use in uses for cpu in use})
        },
        overlap=_median(launches, metrics["overlap"]),
        migrations=_median(launches, metrics["migrations"]),
        core_bound=_median(launches, metrics["core bound"]),
        memory_bound=_median(launches, lambda launch: _slot(launch.counters, "memory_bound")),
        core_bound_workers=by_worker,
        remote_loads=_median(
            launches, lambda launch: launch.counters.remote_loads if launch.counters else None
        ),
        remote_memory=_median(launches, metrics["remote memory"]),
        unavailable=_unavailable(launches, one_node=len(set(nodes.values())) < 2),
        spans={name: span for name, span in spans if span is not None},
    )


def cpu_use(launch: Launch) -> dict[CpuId, float]:
    """CPU time of a launch's workers on each CPU, in CPUs; empty if unavailable.

    A thread's CPU time is assumed to be spread evenly over the time in which it was seen running.
    """
    served = launch.served
    if served is None:
        return {}
    used_ns: dict[CpuId, float] = {}
    for thread in (thread for worker in launch.workers for thread in worker.threads):
        stays = _measured(thread.stays)
        total_ms = sum(stay.to_ms - stay.from_ms for stay in stays)
        if thread.run_ns is None or not total_ms:
            continue
        for stay in stays:
            part_ns = thread.run_ns * (stay.to_ms - stay.from_ms) / total_ms
            used_ns[stay.cpu] = used_ns.get(stay.cpu, 0.0) + part_ns
    return {cpu: used_ns[cpu] / served.answered.duration_ns for cpu in sorted(used_ns)}


def overlap(launch: Launch, cores: Mapping[CpuId, object]) -> float | None:
    """The share of the time with two or more workers on a core, out of that with any.

    None if no worker was seen on any CPU.
    """
    moments: dict[object, list[tuple[int, int, int]]] = {}
    for number, worker in enumerate(launch.workers):
        for stay in (stay for thread in worker.threads for stay in _measured(thread.stays)):
            at = moments.setdefault(cores.get(stay.cpu, stay.cpu), [])
            at += [(stay.from_ms, 1, number), (stay.to_ms, -1, number)]
    busy_ms = shared_ms = 0
    for core in moments.values():
        here: dict[int, int] = {}
        before_ms = 0
        for at_ms, change, number in sorted(core):
            busy_ms += (at_ms - before_ms) * (len(here) >= 1)
            shared_ms += (at_ms - before_ms) * (len(here) >= 2)
            before_ms = at_ms
            here[number] = here.get(number, 0) + change
            if not here[number]:
                del here[number]
    return shared_ms / busy_ms if busy_ms else None


def _measured(stays: Iterable[Stay]) -> list[Stay]:
    return [
        Stay(cpu=stay.cpu, from_ms=max(stay.from_ms, 0), to_ms=stay.to_ms)
        for stay in stays
        if stay.to_ms > max(stay.from_ms, 0)
    ]


def _median(launches: Sequence[Launch], of: Callable[[Launch], float | None]) -> float | None:
    available = [value for launch in launches if (value := of(launch)) is not None]
    return statistics.median(available) if available else None


def _slot(counters: Counters | None, name: str) -> float | None:
    return None if counters is None else counters.slots.get(name)


def _of_workers(launch: Launch) -> tuple[float, ...]:
    """The core-bound share of each worker; empty unless every one has it."""
    shares = [_slot(worker.counters, "core_bound") for worker in launch.workers]
    available = tuple(value for value in shares if value is not None)
    return available if len(available) == len(shares) else ()


def _unavailable(launches: Sequence[Launch], *, one_node: bool) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for launch in launches:
        counters = launch.counters
        unavailable = {} if counters is None else counters.unavailable
        overall = _NOT_COUNTED if counters is None else unavailable.get("hardware counters")
        if _slot(counters, "core_bound") is None:
            narrower = next(
                (
                    unavailable[name]
                    for name in unavailable
                    if name.startswith(("slots", "topdown"))
                ),
                "",
            )
            level = "the processor does not distinguish core bound from memory bound"
            reasons.setdefault(BOUND_LEVELS, overall or narrower or level)
        if counters is None or counters.remote_loads is None:
            reason = overall or unavailable.get("node-load-misses", _NOT_COUNTED)
            reasons.setdefault("remote loads", reason)
    if launches and one_node:
        reasons[MEMORY_ON_OTHER_NODE] = "the host has one node"
    return reasons
