"""What telemetry and counters say about launches, as facts; what is unavailable says so."""

import statistics
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from corebound.analysis.launch_metrics import metric_of
from corebound.analysis.scenario_result import CellResult
from corebound.diagnosis.evidence import moves
from corebound.machine.topology import Topology
from corebound.records.launch_record import Launch
from corebound.records.telemetry import HostCounter, HostOverTime, QuotaUse
from corebound.stats.launch_summary import is_too_short
from corebound.units import cpu_quota, duration, percent, size


class LaunchFact(NamedTuple):
    """A value and its description; an unknown value is replaced by a word."""

    value: str
    says: str


def cpu_of(cell: CellResult) -> Iterator[LaunchFact]:
    """CPU time of an iteration, and its ratio to the wall time."""
    summary = cell.summary
    if summary.cpu_median_ns is not None and (busy := summary.cpus_busy) is not None:
        says = f"CPU time per {metric_of((cell,)).unit} ({busy:.3g} CPUs busy)"
        yield LaunchFact(duration(summary.cpu_median_ns), says)
    elif is_too_short(summary):
        yield LaunchFact("–", "CPU time: an iteration is too short for the CPU clock")


def host_state(launch: Launch) -> tuple[LaunchFact, ...]:
    """The state of the host while the launch was timed; unavailable values say so.

    Empty for records of a corebound version that did not sample the host.
    """
    host = launch.host
    if host is None or not host.windows:
        return ()
    figures = [
        *_split(host),
        *_memory(host),
        *_gpus(host),
        _share(host.share("steal_ns", cpus=len(host.cpus)), "CPU time stolen by the hypervisor"),
        _share(host.share("foreign_ns", cpus=len(host.cpus)), "CPU time used by other programs"),
        *(_share(host.share(counter), says) for counter, says in _PRESSURES),
        *_throttled(launch.quota, host),
        _clock(host),
    ]
    if launch.disturbance is not None:
        says = f"disturbed by {' and '.join(launch.disturbance.by)}"
        figures.insert(0, LaunchFact(percent(launch.disturbance.share, 0), says))
    return tuple(figures)


def migration_facts(launch: Launch, topology: Topology) -> tuple[LaunchFact, ...]:
    """Where threads were seen to move; empty if threads were not sampled or none moved."""
    seen_moves = moves(launch, topology)
    if seen_moves is None:
        return ()
    each = (
        (seen_moves.within_cores, "within a core"),
        (seen_moves.across_cores, "across cores"),
        (seen_moves.across_nodes, "across nodes"),
    )
    parts = [f"{number:,} {where}" for number, where in each if number]
    return (LaunchFact(", ".join(parts), "of the sampled migrations"),) if parts else ()


def _split(host: HostOverTime) -> Iterator[LaunchFact]:
    user, system = host.total("user_ns"), host.total("system_ns")
    if user is not None and system is not None and user + system:
        share = system / (user + system)
        yield LaunchFact(percent(share, 0), "CPU time in the kernel")


def _memory(host: HostOverTime) -> Iterator[LaunchFact]:
    peak, minor, major = host.peak_rss_bytes, host.total("minor_faults"), host.total("major_faults")
    if peak is not None:
        yield LaunchFact(size(peak), "peak memory")
    if minor is not None and major is not None:
        yield LaunchFact(f"{minor:,} and {major:,}", "minor and major page faults")


def _gpus(host: HostOverTime) -> Iterator[LaunchFact]:
    """The use of the busiest GPU; empty for a launch that uses no GPU."""
    if shares := host.gpu_busy_shares:
        yield LaunchFact(percent(statistics.fmean(shares), 0), "time a GPU was busy")
    elif any(window.gpus for window in host.windows):
        yield LaunchFact(_UNAVAILABLE, "time a GPU was busy")


_PRESSURES: tuple[tuple[HostCounter, str], ...] = (
    ("cpu_pressure_ns", "CPU pressure on the host"),
    ("memory_pressure_ns", "memory pressure on the host"),
    ("io_pressure_ns", "I/O pressure on the host"),
)
_UNAVAILABLE = "unavailable"


def _shares(shares: Iterable[float | None], says: str) -> LaunchFact:
    each = ["unknown" if share is None else percent(share) for share in shares]
    is_known = any(text != "unknown" for text in each)
    return LaunchFact(", ".join(each) if is_known else _UNAVAILABLE, says)


def _share(share: float | None, says: str) -> LaunchFact:
    return _shares((share,), says)


def _throttled(quota: QuotaUse | None, host: HostOverTime) -> Iterator[LaunchFact]:
    """CPU quota throttling. Without a quota the text differs from that of an unused quota."""
    if quota is not None and quota.throttled_periods is not None:
        periods = f"{quota.throttled_periods:,} of {quota.periods:,}"
        yield LaunchFact(cpu_quota(quota.cpus), "CPU quota")
        yield LaunchFact(periods, "periods throttled by it")
        yield LaunchFact(duration(quota.throttled_ns or 0), "CPU time throttled")
        return
    share = host.share("throttled_ns")
    if share is None and "throttling" in host.unavailable:
        yield LaunchFact("no quota", "throttled by a quota")
    else:
        yield _share(share, "throttled by a quota")


def _clock(host: HostOverTime) -> LaunchFact:
    clocks = host.frequencies_hz
    if not clocks:
        return LaunchFact(_UNAVAILABLE, "clock")
    least, most = (f"{hz / 1e9:.2f}" for hz in (min(clocks), max(clocks)))
    return LaunchFact(f"{least} to {most} GHz" if least != most else f"{least} GHz", "clock")


def counter_facts(launch: Launch) -> tuple[LaunchFact, ...]:
    """Hardware counters of the launch; empty for records of a corebound version without them."""
    counters = launch.counters
    if counters is None:
        return ()
    per_cycle = counters.instructions_per_cycle
    if per_cycle is None and not counters.slots:
        return (LaunchFact(_UNAVAILABLE, "hardware counters"),)
    instructions = _UNAVAILABLE if per_cycle is None else f"{per_cycle:.2f}"
    all_cycles = sum(counters.cycles_by_pmu.values())
    return (
        LaunchFact(instructions, "instructions per cycle"),
        *(
            LaunchFact(percent(cycles / all_cycles, 0), f"cycles on {pmu}")
            for pmu, cycles in counters.cycles_by_pmu.items()
            if all_cycles
        ),
        _shares(
            (counters.slots.get("core_bound"), counters.slots.get("memory_bound")),
            "pipeline slots core bound and memory bound",
        ),
    )
