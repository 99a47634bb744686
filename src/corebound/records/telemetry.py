"""What was seen of the host while a launch was timed, and what that did to its iterations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from corebound.bounds import Amount, Count, OffsetMs, Share
from corebound.machine.topology import CpuId

Cause = Literal["steal", "throttling", "foreign load", "suspension"]

Counted = Literal[
    "steal_ns",
    "foreign_ns",
    "waited_ns",
    "throttled_ns",
    "throttled_periods",
    "suspended_ns",
    "cpu_pressure_ns",
    "memory_pressure_ns",
    "io_pressure_ns",
    "minor_faults",
    "major_faults",
    "ran_ns",
    "user_ns",
    "system_ns",
    "voluntary",
    "involuntary",
    "migrations",
]


def known_sum(values: Iterable[int | None]) -> int | None:
    """A sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class GpuUse(Struct, frozen=True, kw_only=True):
    """One GPU at one look; what it does not tell is None.

    Attributes:
        id: NVML's number of it, in the order of the PCI bus.
        busy_share: Share of the driver's latest sampling period, a sixth of a second to a
            second, in which some kernel ran on it: whoever's.
        memory_bytes: Memory in use on it, by whomever.
    """

    id: str
    busy_share: Share | None
    memory_bytes: Count | None


class HostWindow(Struct, frozen=True, kw_only=True):
    """A stretch between two looks at the host; what nobody could say is None, never 0.

    Attributes:
        from_ms, to_ms: Milliseconds since the launch's workers were told to go.
        steal_ns: What the hypervisor gave to others of the launch's CPUs, taken together.
        foreign_ns: CPU time on the launch's CPUs of what is neither of the launch nor
            corebound's own; at least that much.
        rested_ns: How long these CPUs did nothing for a program, taken together.
        waited_ns: How long the launch's threads were ready to run and waited for a CPU.
        throttled_ns: How long a cgroup's quota stopped threads; throttled_periods: in
            how many of its periods.
        suspended_ns: How long the launch's processes were kept from running by a signal such
            as SIGSTOP, a debugger, a frozen cgroup or a suspended host; at least that long.
        cpu_pressure_ns, memory_pressure_ns, io_pressure_ns: How long some thread of the
            host waited for it (PSI, "some").
        frequency_hz: Mean clock of some of the launch's CPUs as the stretch ended.
        minor_faults, major_faults: Page faults of the launch's processes.
        ran_ns: Their CPU time; user_ns, system_ns: how the kernel splits it, in its ticks.
        voluntary, involuntary: Context switches of the threads that are watched; migrations:
            their moves between CPUs.
        rss_bytes: Memory of the launch's processes as the stretch ended, what they share
            counted for each.
        node_bytes: Their own memory by node then; empty where it was not looked at, which
            costs much and so is done seldom.
        gpus: Use of GPUs as the stretch ended; empty where there are none.
    """

    from_ms: OffsetMs
    to_ms: OffsetMs
    steal_ns: Count | None = None
    foreign_ns: Count | None = None
    rested_ns: Count | None = None
    waited_ns: Count | None = None
    throttled_ns: Count | None = None
    throttled_periods: Count | None = None
    suspended_ns: Count | None = None
    cpu_pressure_ns: Count | None = None
    memory_pressure_ns: Count | None = None
    io_pressure_ns: Count | None = None
    frequency_hz: Count | None = None
    minor_faults: Count | None = None
    major_faults: Count | None = None
    ran_ns: Count | None = None
    user_ns: Count | None = None
    system_ns: Count | None = None
    voluntary: Count | None = None
    involuntary: Count | None = None
    migrations: Count | None = None
    rss_bytes: Count | None = None
    node_bytes: dict[Count, Count] = field(default_factory=dict)
    gpus: tuple[GpuUse, ...] = ()


class HostOverTime(Struct, frozen=True, kw_only=True):
    """The host over the time that a launch's iterations took.

    Attributes:
        cpus: Those that the launch was given; steal and foreign load are of them.
        windows: Stretches without a gap, in order.
        looks: How often the host was looked at; look_ns: CPU time of that.
        unavailable: What could not be seen, and why, in words.
    """

    cpus: tuple[CpuId, ...]
    windows: tuple[HostWindow, ...]
    looks: Count
    look_ns: Count
    unavailable: dict[str, str] = field(default_factory=dict)

    @property
    def duration_ms(self) -> int:
        """From the workers' start to the last look."""
        return self.windows[-1].to_ms - self.windows[0].from_ms if self.windows else 0

    def total(self, counted: Counted) -> int | None:
        """A count over all windows; None where any of them has none."""
        values = [getattr(window, counted) for window in self.windows]
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    def share(self, counted: Counted, *, cpus: int = 1) -> float | None:
        """A time as a share of the launch's duration on so many CPUs; None where unknown."""
        time_ns, whole_ns = self.total(counted), self.duration_ms * 1_000_000 * cpus
        return None if time_ns is None or not whole_ns else time_ns / whole_ns

    @property
    def peak_rss_bytes(self) -> int | None:
        """The most memory that any look found; None where none did."""
        known = (one.rss_bytes for one in self.windows if one.rss_bytes is not None)
        return max(known, default=None)

    @property
    def gpu_busy_shares(self) -> tuple[float, ...]:
        """What share of the time its busiest GPU was busy, look by look; empty without any."""
        each = ([gpu.busy_share for gpu in one.gpus] for one in self.windows)
        known = ([share for share in shares if share is not None] for shares in each)
        return tuple(max(shares) for shares in known if shares)

    @property
    def frequencies_hz(self) -> tuple[int, ...]:
        """Every clock that was read, in order."""
        return tuple(one.frequency_hz for one in self.windows if one.frequency_hz is not None)


class Marked(Struct, frozen=True, kw_only=True):
    """Iterations of a worker, from `first` to `last`, that something outside disturbed."""

    first: Count
    last: Count
    by: tuple[Cause, ...]


class Disturbance(Struct, frozen=True, kw_only=True):
    """What disturbed a launch.

    Attributes:
        share: Of its iterations after the warm-up, or of its time where it has none, that were
            disturbed.
        by: What disturbed them, the strongest first.
        evidence: The same in words, with figures.
        refused: Whether the launch is invalid for it, and was to be made again.
    """

    share: Amount
    by: tuple[Cause, ...]
    evidence: tuple[str, ...]
    refused: bool = False


class Counters(Struct, frozen=True, kw_only=True):
    """Counts of a launch's processes while its iterations ran; absent ones are None.

    Attributes:
        source: What counted: `perf`, or `proc` for what the kernel counts anyway.
        cycles, instructions: In user space and the kernel.
        cycles_by_pmu: Where the processor has several kinds of cores (`cpu_core`,
            `cpu_atom`), the cycles counted on each kind, not scaled; else empty.
        llc_misses: Loads that missed the last cache.
        remote_loads: Loads that came from another node's memory.
        slots: Shares of the pipeline's slots by top-down name (`retiring`,
            `bad_speculation`, `frontend_bound`, `backend_bound`; of level 2
            `memory_bound`, `core_bound`); empty where the processor does not say.
        task_clock_ns: CPU time.
        switches, migrations, faults: Context switches, moves between CPUs, page faults.
        running_share: The least share of the time that a counter really counted, where
            they took turns; the counts are scaled up by it.
        unavailable: What could not be counted, and why.
    """

    source: Literal["perf", "proc"]
    cycles: Count | None = None
    cycles_by_pmu: dict[str, Count] = field(default_factory=dict)
    instructions: Count | None = None
    llc_misses: Count | None = None
    remote_loads: Count | None = None
    slots: dict[str, Amount] = field(default_factory=dict)
    task_clock_ns: Count | None = None
    switches: Count | None = None
    migrations: Count | None = None
    faults: Count | None = None
    running_share: Share | None = None
    unavailable: dict[str, str] = field(default_factory=dict)

    @property
    def instructions_per_cycle(self) -> float | None:
        """IPC; None where either was not counted."""
        if not self.cycles or self.instructions is None:
            return None
        return self.instructions / self.cycles
