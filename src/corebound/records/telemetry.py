"""Host telemetry during a launch, and its effect on the launch's iterations."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from corebound.bounded_numbers import Amount, Count, OffsetMs, Positive, Share
from corebound.machine.topology import CpuId

Cause = Literal["steal", "throttling", "foreign load", "suspension"]

HostCounter = Literal[
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


# NVML's utilization is that of the driver's latest whole sampling period, which may last up to 1 s
# and may have ended up to 1 s ago: only a reading this long after the start knows nothing older.
GPU_PERIODS_MS = 2_000

# CPUs that a launch may use while it is paused, and what stopping it may take: a launch of a few
# short iterations is hardly paused for longer. 46 of 349 µs were seen.
_MOST_WHILE_PAUSED = 0.02
_STOPPING_NS = 200_000


def sum_known(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


class Pauses(Struct, frozen=True, kw_only=True):
    """How long a launch was paused while launches that it took turns with ran.

    `cpu_ns` is the CPU time that its processes used nevertheless. `is_like_baseline` is whether it
    kept as many threads busy as the baseline that it alternated with.
    """

    duration_ns: Count
    cpu_ns: Count
    is_like_baseline: bool = True

    @property
    def were_quiet(self) -> bool:
        """Whether it used no more CPU time than stopping its processes takes."""
        return self.cpu_ns <= max(_MOST_WHILE_PAUSED * self.duration_ns, _STOPPING_NS)

    @property
    def allow_alternation(self) -> bool:
        """Whether further launches of its cell may alternate, too."""
        return self.were_quiet and self.is_like_baseline


class GpuUse(Struct, frozen=True, kw_only=True):
    """One GPU at one reading; unknown values are None.

    Attributes:
        id: NVML's index of it, in the order of the PCI bus.
        busy_share: Share of the driver's latest sampling period, a sixth of a second to a
            second, in which a kernel of any process ran on it. The first readings of a launch
            include time before it (`HostOverTime.gpu_busy_shares`).
        memory_bytes: Memory in use on it, by any process.
    """

    id: str
    busy_share: Share | None
    memory_bytes: Count | None


class HostWindow(Struct, frozen=True, kw_only=True):
    """The time between two readings of the host; unknown values are None, never 0.

    Attributes:
        from_ms, to_ms: Milliseconds since the workers' start signal.
        steal_ns: Time that the hypervisor gave to others, summed over the launch's CPUs.
        foreign_ns: CPU time on the launch's CPUs of other processes, neither the launch's nor
            corebound's own; a lower bound.
        rested_ns: Idle time of these CPUs, summed.
        waited_ns: How long the launch's threads were ready to run and waited for a CPU, summed.
        most_stolen_ns: Steal of the CPU that lost most; most_waited_ns: the wait of the thread
            that waited most. None in older records.
        throttled_ns: How long a cgroup's quota stopped threads; throttled_periods: in
            how many of its periods.
        suspended_ns: How long the launch's processes were kept from running by a signal such
            as SIGSTOP, a debugger, a frozen cgroup or a suspended host; a lower bound.
        cpu_pressure_ns, memory_pressure_ns, io_pressure_ns: How long some thread of the
            host waited for it (PSI, "some").
        frequency_hz: Mean clock of some of the launch's CPUs at the end of the window.
        minor_faults, major_faults: Page faults of the launch's processes.
        ran_ns: Their CPU time; user_ns, system_ns: how the kernel splits it, in its ticks.
        voluntary, involuntary: Context switches of the monitored threads; migrations:
            their moves between CPUs.
        rss_bytes: Memory of the launch's processes at the end of the window; shared memory
            counts for each.
        node_bytes: Their own memory by node at that time; empty if not read, because reading
            is expensive and therefore rare.
        gpus: Use of GPUs at the end of the window; empty without any.
    """

    from_ms: OffsetMs
    to_ms: OffsetMs
    steal_ns: Count | None = None
    foreign_ns: Count | None = None
    rested_ns: Count | None = None
    waited_ns: Count | None = None
    most_stolen_ns: Count | None = None
    most_waited_ns: Count | None = None
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
    """The host during a launch's iterations.

    Attributes:
        cpus: The launch's CPUs; steal and foreign load refer to them.
        windows: Consecutive windows without a gap, in order.
        looks: Number of readings of the host; look_ns: their CPU time.
        unavailable: What could not be read, and why, in words.
    """

    cpus: tuple[CpuId, ...]
    windows: tuple[HostWindow, ...]
    looks: Count
    look_ns: Count
    unavailable: dict[str, str] = field(default_factory=dict)

    @property
    def duration_ms(self) -> int:
        """From the workers' start to the last reading."""
        return self.windows[-1].to_ms - self.windows[0].from_ms if self.windows else 0

    def total(self, counted: HostCounter) -> int | None:
        """A count summed over all windows; None if any window lacks it."""
        values = [getattr(window, counted) for window in self.windows]
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    def share(self, counted: HostCounter, *, cpus: int = 1) -> float | None:
        """A time as a share of the launch's duration on so many CPUs; None if unknown."""
        time_ns, available_ns = self.total(counted), self.duration_ms * 1_000_000 * cpus
        return None if time_ns is None or not available_ns else time_ns / available_ns

    @property
    def peak_rss_bytes(self) -> int | None:
        """The highest memory use of any reading; None without any."""
        readings = (window.rss_bytes for window in self.windows if window.rss_bytes is not None)
        return max(readings, default=None)

    @property
    def gpu_busy_shares(self) -> tuple[float, ...]:
        """The busy share of the busiest GPU at each reading that covers only the launch.

        Empty without GPUs, and for a launch shorter than `GPU_PERIODS_MS`.
        """
        all_shares = (
            [gpu.busy_share for gpu in window.gpus]
            for window in self.windows
            if window.to_ms >= GPU_PERIODS_MS
        )
        known = ([share for share in shares if share is not None] for shares in all_shares)
        return tuple(max(shares) for shares in known if shares)

    @property
    def frequencies_hz(self) -> tuple[int, ...]:
        """Every clock reading, in order."""
        return tuple(
            window.frequency_hz for window in self.windows if window.frequency_hz is not None
        )


class QuotaUse(Struct, frozen=True, kw_only=True):
    """The CPU quota of a launch's workers, and what it did while they were timed.

    Attributes:
        cpus: The smallest quota of their cgroup and its ancestors, in CPUs; the largest if
            workers have different ones.
        period_us: The period in which it allows that time.
        periods: In how many periods the cgroup ran; throttled_periods: in how many of these the
            quota stopped threads; throttled_ns: for how long, summed over CPUs. None if the
            kernel does not report it.
    """

    cpus: Positive
    period_us: Count
    periods: Count | None
    throttled_periods: Count | None
    throttled_ns: Count | None

    @property
    def throttled_share(self) -> float | None:
        """The share of the periods in which the quota stopped threads; None if unknown."""
        if not self.periods or self.throttled_periods is None:
            return None
        return min(1.0, self.throttled_periods / self.periods)


class DisturbedIterations(Struct, frozen=True, kw_only=True):
    """Iterations of a worker, from `first` to `last`, that something outside disturbed."""

    first: Count
    last: Count
    by: tuple[Cause, ...]


# Why a launch is refused: something outside disturbed it, or a launch that it alternated with; or
# the launch and its baseline alternated although they kept different numbers of threads busy.
Refusal = Literal["disturbed", "partner disturbed", "unlike threads"]


class Disturbance(Struct, frozen=True, kw_only=True):
    """The disturbances of a launch.

    Attributes:
        share: The disturbed share of its iterations after the warm-up, or of its time if it has
            no iterations.
        by: The causes, the strongest first.
        evidence: The same in words, with values.
        refused: Whether the launch is invalid because of it and had to be repeated.
        refusal: Why it was refused; None if it was not, and in older records
            (`stats.interference.refusal_of` tells it for both).
    """

    share: Amount
    by: tuple[Cause, ...]
    evidence: tuple[str, ...]
    refused: bool = False
    refusal: Refusal | None = None


class Counters(Struct, frozen=True, kw_only=True):
    """Counts of a launch's processes while its iterations ran; absent ones are None.

    Attributes:
        source: The origin: `perf`, or `proc` for what the kernel always counts.
        cycles, instructions: In user space and the kernel.
        cycles_by_pmu: If the processor has several kinds of cores (`cpu_core`,
            `cpu_atom`), the cycles counted on each kind, not scaled; else empty.
        llc_misses: Loads that missed the last-level cache.
        remote_loads: Loads from another node's memory.
        slots: Shares of the pipeline's slots by top-down name (`retiring`,
            `bad_speculation`, `frontend_bound`, `backend_bound`; of level 2
            `memory_bound`, `core_bound`); empty if the processor does not report them.
        task_clock_ns: CPU time.
        switches, migrations, faults: Context switches, moves between CPUs, page faults.
        running_share: The least share of the time that a counter was active when counters
            were multiplexed; the counts are scaled up by it.
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
        """IPC; None if either was not counted."""
        if not self.cycles or self.instructions is None:
            return None
        return self.instructions / self.cycles
