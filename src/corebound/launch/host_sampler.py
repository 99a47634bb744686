"""Samples the host while a launch is timed, and computes what happened between two samples."""

import contextlib
import dataclasses
import importlib
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from corebound.machine import procfs
from corebound.machine.cgroups import Throttling, quotas, throttling
from corebound.machine.procfs import CpuTicks, ResourceUsage, resource_usage
from corebound.machine.sysfs import LIVE, read_cpu_list
from corebound.machine.topology import CpuId
from corebound.records.telemetry import GPU_PERIODS_MS, GpuUse, HostOverTime, HostWindow

# Run-queue wait is known only for sampled threads. If they account for less than this share
# of the CPU time, too many threads started and ended between two samples.
_SAMPLED_SHARE = 0.9
# An exception: unsampled threads that used less than this share of a CPU hardly waited, because
# a thread that competes for a CPU gets a good part of it. This keeps a short-lived helper from
# hiding the wait of a launch that mostly sleeps.
_UNSAMPLED_CPUS = 0.01


class ThreadTotals(Struct, frozen=True, kw_only=True):
    """Totals over the sampled threads since they started.

    Counts that are unavailable are None. `waited_by_thread` has `waited_ns` by thread id.
    """

    ran_ns: int
    waited_ns: int
    waited_by_thread: dict[int, int] = field(default_factory=dict)
    voluntary: int | None = None
    involuntary: int | None = None
    migrations: int | None = None


def total_threads(totals: Sequence[ThreadTotals | None]) -> ThreadTotals | None:
    """Add up the totals of several samplers; a count unknown in any is unknown in the sum."""
    counted = [total for total in totals if total is not None]
    if not counted or len(counted) < len(totals):
        return None
    return ThreadTotals(
        ran_ns=sum(total.ran_ns for total in counted),
        waited_ns=sum(total.waited_ns for total in counted),
        waited_by_thread=dict(
            chain.from_iterable(total.waited_by_thread.items() for total in counted)
        ),
        voluntary=_sum([total.voluntary for total in counted]),
        involuntary=_sum([total.involuntary for total in counted]),
        migrations=_sum([total.migrations for total in counted]),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    counts = [value for value in values if value is not None]
    return sum(counts) if len(counts) == len(values) else None


class HostSnapshot(Struct, frozen=True, kw_only=True):
    """The values of all cumulative counters at one moment.

    Attributes:
        tick_ns: The length of one tick.
        launch: Resources used by the launch's processes; own_ns: CPU time that corebound's
            own processes used on these CPUs.
        threads: Totals over the sampled threads.
        suspended_ns: How long the launch was suspended.
        pressure_us: Stall time for CPU, memory and I/O, in this order.
        throttled: What the quota of each cgroup above the launch did.
        frequency_hz, node_bytes, gpus: As in `HostWindow`.
    """

    at_ns: int
    ticks: CpuTicks | None
    tick_ns: int
    launch: ResourceUsage
    own_ns: int
    threads: ThreadTotals | None
    suspended_ns: int
    pressure_us: tuple[int | None, ...]
    throttled: tuple[Throttling | None, ...]
    frequency_hz: int | None = None
    node_bytes: dict[int, int] = field(default_factory=dict)
    gpus: tuple[GpuUse, ...] = ()


def window_between(
    before: HostSnapshot, now: HostSnapshot, *, origin_ns: int, cpus: int
) -> HostWindow:
    """The window between two samples.

    Args:
        before: The sample at the start of the window.
        now: The sample at the end of the window.
        origin_ns: The moment from which the window's times count.
        cpus: The number of CPUs assigned to the launch.
    """
    pressure = [
        _increase(earlier, later)
        for earlier, later in zip(before.pressure_us, now.pressure_us, strict=True)
    ]
    cpu, memory, io = (None if stall_us is None else stall_us * 1000 for stall_us in pressure)
    periods, throttled_ns = _most_throttled(before, now)
    rested_ns, steal_ns, most_stolen_ns = _idle_and_stolen_ns(before, now)
    return HostWindow(
        from_ms=(before.at_ns - origin_ns) // 1_000_000,
        to_ms=(now.at_ns - origin_ns) // 1_000_000,
        steal_ns=steal_ns,
        foreign_ns=_foreign_ns(before, now, cpus, rested_ns, steal_ns),
        rested_ns=rested_ns,
        waited_ns=(waited_ns := _waited_ns(before, now)),
        most_stolen_ns=most_stolen_ns,
        most_waited_ns=None if waited_ns is None else _most_waited_ns(before, now),
        throttled_ns=throttled_ns,
        throttled_periods=periods,
        suspended_ns=_increase(before.suspended_ns, now.suspended_ns),
        cpu_pressure_ns=cpu,
        memory_pressure_ns=memory,
        io_pressure_ns=io,
        frequency_hz=now.frequency_hz,
        minor_faults=_increase(before.launch.minor_faults, now.launch.minor_faults),
        major_faults=_increase(before.launch.major_faults, now.launch.major_faults),
        ran_ns=_increase(before.launch.cpu_ns, now.launch.cpu_ns),
        user_ns=_increase(before.launch.user_ns, now.launch.user_ns),
        system_ns=_increase(before.launch.system_ns, now.launch.system_ns),
        rss_bytes=now.launch.rss_bytes,
        node_bytes=now.node_bytes,
        gpus=now.gpus,
        **_thread_increases(before.threads, now.threads),
    )


def _increase(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)


def _thread_increases(
    before: ThreadTotals | None, now: ThreadTotals | None
) -> dict[str, int | None]:
    names = ("voluntary", "involuntary", "migrations")
    if before is None or now is None:
        return dict.fromkeys(names)
    return {name: _increase(getattr(before, name), getattr(now, name)) for name in names}


def _foreign_ns(
    before: HostSnapshot, now: HostSnapshot, cpus: int, resting: int | None, steal: int | None
) -> int | None:
    """CPU time used by anything but the launch and corebound; excludes interrupts and idle time.

    This is computed from the idle time of the CPUs, not from their user and system time:
    idle time is measured, while busy time may be estimated from timer ticks.
    """
    if resting is None or steal is None:
        return None
    own_ns = now.launch.cpu_ns - before.launch.cpu_ns + now.own_ns - before.own_ns
    return max(0, (now.at_ns - before.at_ns) * cpus - resting - steal - own_ns)


def _idle_and_stolen_ns(before: HostSnapshot, now: HostSnapshot) -> tuple[int | None, ...]:
    """How long the CPUs rested and how long they were stolen, and the longest of one CPU."""
    early, late = before.ticks, now.ticks
    if early is None or late is None:
        return None, None, None
    each = zip(early.steal_of_each, late.steal_of_each, strict=True)
    most = max((later - earlier for earlier, later in each), default=None)
    ticks = late.resting - early.resting, late.steal - early.steal, most
    return tuple(None if count is None else max(0, count) * now.tick_ns for count in ticks)


def _most_waited_ns(before: HostSnapshot, now: HostSnapshot) -> int | None:
    if before.threads is None or now.threads is None:
        return None
    earlier_ns = before.threads.waited_by_thread
    waits_ns = now.threads.waited_by_thread.items()
    return max((wait_ns - earlier_ns.get(tid, 0) for tid, wait_ns in waits_ns), default=None)


def _waited_ns(before: HostSnapshot, now: HostSnapshot) -> int | None:
    if before.threads is None or now.threads is None:
        return None
    ran_ns = now.launch.cpu_ns - before.launch.cpu_ns
    unsampled_ns = ran_ns - (now.threads.ran_ns - before.threads.ran_ns)
    if unsampled_ns > max(
        (1 - _SAMPLED_SHARE) * ran_ns, _UNSAMPLED_CPUS * (now.at_ns - before.at_ns)
    ):
        return None
    return max(0, now.threads.waited_ns - before.threads.waited_ns)


def _most_throttled(before: HostSnapshot, now: HostSnapshot) -> tuple[int | None, int | None]:
    """Throttled periods and nanoseconds of the cgroup that was throttled longest."""
    throttled = [
        (
            later.throttled_ns - earlier.throttled_ns,
            later.throttled_periods - earlier.throttled_periods,
        )
        for earlier, later in zip(before.throttled, now.throttled, strict=True)
        if earlier is not None and later is not None
    ]
    if not throttled:
        return None, None
    throttled_ns, periods = max(throttled)
    return periods, throttled_ns


_PACKAGE = "pynvml"  # the package in the distribution `nvidia-ml-py`


class GpuSampler:
    """Samples the GPUs of a host.

    Attributes:
        reason: Why GPUs cannot be sampled; None if they can.
    """

    def __init__(self, nvml: Any = None, *, reason: str | None = None) -> None:
        """Find the GPUs.

        Args:
            nvml: The package `pynvml`; None if it is not used, with a `reason`.
            reason: Why `nvml` is None.
        """
        self.reason = reason
        self._nvml = nvml
        self._handles: Sequence[Any] = ()
        if nvml is None:
            return
        try:
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
            self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        except nvml.NVMLError as error:
            self.reason = f"NVML: {error}"
        if not self._handles and self.reason is None:
            self.reason = "NVML shows no GPU"

    def sample(self) -> tuple[GpuUse, ...]:
        """The current use of each GPU, by index; empty if there is a `reason`."""
        return tuple(self._use(str(index), handle) for index, handle in enumerate(self._handles))

    def _use(self, gpu_id: str, handle: Any) -> GpuUse:
        nvml = self._nvml
        busy_share = memory_bytes = None
        # A GPU partition (MIG) reports its memory, but not its utilization.
        with contextlib.suppress(nvml.NVMLError):
            busy_share = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        with contextlib.suppress(nvml.NVMLError):
            memory_bytes = nvml.nvmlDeviceGetMemoryInfo(handle).used
        return GpuUse(id=gpu_id, busy_share=busy_share, memory_bytes=memory_bytes)


# For launches that do not compute on GPUs.
NO_GPUS = GpuSampler(reason="the launch computes on no GPU")


def gpu_sampler(*, gpus: int, load: Callable[[str], Any] = importlib.import_module) -> GpuSampler:
    """Create the sampler of this host's GPUs; loads NVIDIA's library only if there are any.

    Args:
        gpus: The number of GPUs of the host.
        load: Imports a package by name.
    """
    if not gpus:
        return GpuSampler(reason="this host shows no NVIDIA GPU")
    try:
        return GpuSampler(load(_PACKAGE))
    except ImportError:
        return GpuSampler(reason="nvidia-ml-py is not installed (pip install nvidia-ml-py)")


# The kernel reports idle time in hundredths of a second, so within 0.5 s a tenth of a CPU is
# five ticks.
SHORTEST_S = 0.5
# Longer launches are sampled less often, so that records stay small: about 40 windows, plus
# 40 more for each factor of e in duration.
WINDOWS = 40
# The maximum cost of sampling, as a share of one CPU. Reading /proc/stat takes 0.1 ms on two
# CPUs, and grows with the number of CPUs and interrupts.
MAX_COST_SHARE = 0.001

# The kernel counts pages by node by walking every page table. That takes milliseconds and
# blocks threads that map memory, so it is done rarely, and only with several NUMA nodes.
PAGES_INTERVAL_S = 10.0
MAX_PAGES_SHARE = 0.0005

# CPU clock frequencies are read one by one; this many CPUs are a sufficient sample.
_CLOCKS = 4
_PRESSURE = ("cpu", "memory", "io")


@dataclasses.dataclass(slots=True)
class HostSampler:
    """Samples the host, limited to the CPUs of one launch.

    Attributes:
        own_processes: Lists corebound's own processes on these CPUs, which do not count as foreign.
        threads: Returns the totals of the launch's threads so far; None where unknown.
        suspended_ns: Returns how long the launch's processes were suspended so far.
    """

    cpus: tuple[CpuId, ...]
    processes: Callable[[], Iterable[int]]
    own_processes: Callable[[], Iterable[int]]
    threads: Callable[[], ThreadTotals | None]
    suspended_ns: Callable[[], int]
    gpus: GpuSampler = NO_GPUS
    _stat: int = dataclasses.field(default=-1, init=False)
    _pressure: list[int | None] = dataclasses.field(default_factory=list, init=False)
    _cpu_stats: list[int] = dataclasses.field(default_factory=list, init=False)
    _clocks: list[int] = dataclasses.field(default_factory=list, init=False)
    _previous: HostSnapshot | None = dataclasses.field(default=None, init=False)
    _windows: list[HostWindow] = dataclasses.field(default_factory=list, init=False)
    _started_ns: int = dataclasses.field(default=0, init=False)
    _due_ns: int = dataclasses.field(default=0, init=False)
    _pages_due_ns: float = dataclasses.field(default=math.inf, init=False)
    _host_suspended_before_ns: int = dataclasses.field(default=0, init=False)
    looks: int = dataclasses.field(default=0, init=False)
    look_ns: int = dataclasses.field(default=0, init=False)

    def __post_init__(self) -> None:
        self._host_suspended_before_ns = _host_suspension_ns()
        self._stat = os.open("/proc/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._pressure = [_open_readable(f"/proc/pressure/{kind}") for kind in _PRESSURE]
        self._cpu_stats = _cpu_stats()
        stride = math.ceil(len(self.cpus) / _CLOCKS)
        clocks = (
            _open_readable(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
            for cpu in self.cpus[::stride]
        )
        self._clocks = [clock for clock in clocks if clock is not None]

    def start(self) -> None:
        """Start counting. This first sample disturbs no measurement; its cost is not counted."""
        if _has_nodes():
            self._pages_due_ns = time.monotonic_ns() + PAGES_INTERVAL_S * 1e9
        self._previous = self._snapshot()
        self._started_ns = self._previous.at_ns
        self._schedule_next()

    @property
    def is_due(self) -> bool:
        """Whether the next sample is due."""
        return self._previous is not None and time.monotonic_ns() >= self._due_ns

    def sample(self) -> None:
        """Take a sample: close the current window and open the next."""
        if self._previous is None:
            raise ValueError("the sampler has not been started")
        began_ns = time.thread_time_ns()
        now = self._snapshot()
        self._windows.append(
            window_between(self._previous, now, origin_ns=self._started_ns, cpus=len(self.cpus))
        )
        self._previous = now
        self.looks += 1
        self.look_ns += time.thread_time_ns() - began_ns
        self._schedule_next()

    def close(self) -> HostOverTime:
        """Stop sampling; returns all windows."""
        for descriptor in (self._stat, *self._pressure, *self._cpu_stats, *self._clocks):
            if descriptor is not None:
                os.close(descriptor)
        return HostOverTime(
            cpus=self.cpus,
            windows=tuple(self._windows),
            looks=self.looks,
            look_ns=self.look_ns,
            unavailable=self._unavailable(),
        )

    def _schedule_next(self) -> None:
        now_ns = time.monotonic_ns()
        cost_ns = self.look_ns / max(self.looks, 1)
        pause_ns = max(
            SHORTEST_S * 1e9, cost_ns / MAX_COST_SHARE, (now_ns - self._started_ns) / WINDOWS
        )
        self._due_ns = now_ns + round(pause_ns)

    def _snapshot(self) -> HostSnapshot:
        launch, own = resource_usage(self.processes), resource_usage(self.own_processes)
        return HostSnapshot(
            at_ns=time.monotonic_ns(),
            ticks=procfs.cpu_ticks(_read(self._stat), self.cpus),
            tick_ns=procfs.TICK_NS,
            launch=launch,
            own_ns=own.cpu_ns,
            threads=self.threads(),
            suspended_ns=self.suspended_ns() + self._host_suspended_ns(),
            pressure_us=tuple(
                None if descriptor is None else _total_us(descriptor)
                for descriptor in self._pressure
            ),
            throttled=tuple(
                throttling(_read(group).decode(errors="replace")) for group in self._cpu_stats
            ),
            frequency_hz=_mean_hz(self._clocks),
            node_bytes=self._node_bytes(),
            gpus=self.gpus.sample(),
        )

    def _host_suspended_ns(self) -> int:
        """How long the host was suspended since this sampler was created, rounded to 1 ms."""
        return round((_host_suspension_ns() - self._host_suspended_before_ns) / 1e6) * 1_000_000

    def _node_bytes(self) -> dict[int, int]:
        """Memory by node if it is due, else empty; a slow reading delays the next one."""
        began_ns = time.monotonic_ns()
        if began_ns < self._pages_due_ns:
            return {}
        by_node = procfs.node_bytes(self.processes())
        took_ns = time.monotonic_ns() - began_ns
        self._pages_due_ns = began_ns + max(PAGES_INTERVAL_S * 1e9, took_ns / MAX_PAGES_SHARE)
        return by_node

    def _unavailable(self) -> dict[str, str]:
        reasons = {}
        if not self._clocks:
            reasons["frequency"] = "the kernel shows no scaling_cur_freq"
        if not self._cpu_stats:
            reasons["throttling"] = "no cgroup of the launch limits CPU time"
        for kind, descriptor in zip(_PRESSURE, self._pressure, strict=True):
            if descriptor is None:
                reasons[f"{kind} pressure"] = "the kernel has no PSI, or it is switched off"
        if any(window.waited_ns is None for window in self._windows):
            reasons["waiting"] = "threads started or ended, or the kernel has no schedstat"
        if any(window.migrations is None for window in self._windows):
            reasons["migrations"] = "the kernel shows no /proc/PID/sched"
        if not _has_nodes():
            reasons["memory by node"] = "the host has one node"
        if self.gpus.reason is not None:
            reasons["GPU use"] = self.gpus.reason
        elif not any(window.to_ms >= GPU_PERIODS_MS for window in self._windows):
            reasons["GPU use"] = f"the launch was timed for less than {GPU_PERIODS_MS // 1000} s"
        return reasons


def _host_suspension_ns() -> int:
    """How long the host was suspended since boot, accurate to about 100 ns.

    One clock includes suspended time and the other does not. A delay between the two readings
    makes their difference too small, so the largest of several differences is the most accurate.
    """
    return max(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns() for _ in range(3))


def _open_readable(path: str) -> int | None:
    """The descriptor of a readable file, else None; PSI files are unreadable if disabled."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.pread(descriptor, 1, 0)
        except OSError:
            os.close(descriptor)
        else:
            return descriptor
    return None


def _read(descriptor: int) -> bytes:
    """The current content of a file in /proc or /sys."""
    parts: list[bytes] = []
    while part := os.pread(descriptor, 1 << 16, sum(map(len, parts))):
        parts.append(part)
        if len(part) < 4096:
            break
    return b"".join(parts)


def _total_us(descriptor: int) -> int | None:
    """The total stall time in a PSI file."""
    pressure = procfs.pressure(_read(descriptor))
    return None if pressure is None else pressure.total_us


def _cpu_stats() -> list[int]:
    """Descriptors of cpu.stat of this process's cgroup and its ancestors that have a quota."""
    descriptors = (_open_readable(f"/{quota.folder}/cpu.stat") for quota in quotas(LIVE).known)
    return [descriptor for descriptor in descriptors if descriptor is not None]


def _has_nodes() -> bool:
    """Whether this host has more than one NUMA node."""
    return len(read_cpu_list(LIVE, "sys/devices/system/node/online") or ()) > 1


def _mean_hz(clocks: Iterable[int]) -> int | None:
    values_hz = []
    for clock in clocks:
        with contextlib.suppress(OSError, ValueError):
            values_hz.append(int(_read(clock)) * 1000)
    return sum(values_hz) // len(values_hz) if values_hz else None
