"""Looks at the host while a launch is timed: seldom, for each look is a disturbance too."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from corebound.launch import host_text, memory
from corebound.launch.gpu_use import UNUSED, GpuWatch
from corebound.launch.host_window import Look, Threads, window
from corebound.launch.processes import used
from corebound.model.telemetry import HostOverTime, HostWindow
from corebound.model.topology import CpuId

# The kernel tells idle time in hundredths of a second, so in half a second a tenth of a
# CPU is five of its ticks.
SHORTEST_S = 0.5
# Longer launches are looked at less often, so that a record stays small: some forty
# windows, and forty more for each time that it takes e times as long.
WINDOWS = 40
# A look may cost this share of one CPU at most; /proc/stat takes 0.1 ms on two CPUs, and
# as many more as there are CPUs and interrupts.
MOST_SHARE = 0.001

# Pages by node are counted by walking every page table, which takes milliseconds and holds
# up whatever maps memory: seldom, and where there are nodes to tell apart.
PAGES_EVERY_S = 10.0
PAGES_SHARE = 0.0005

# Clocks of CPUs are read one by one; so many tell the range.
_CLOCKS = 4
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PRESSURE = ("cpu", "memory", "io")


@dataclass(slots=True)
class HostWatch:
    """The host as one launch's CPUs see it, look by look.

    Attributes:
        cpus: What the launch was given.
        processes: Lists the launch's processes.
        ours: Lists what else of corebound runs on these CPUs: not foreign.
        threads: Says what the launch's threads have used so far; None where unknown.
        suspended_ns: Says how long the launch's processes were suspended so far.
        gpus: Looks at GPUs.
    """

    cpus: tuple[CpuId, ...]
    processes: Callable[[], Iterable[int]]
    ours: Callable[[], Iterable[int]]
    threads: Callable[[], Threads | None]
    suspended_ns: Callable[[], int]
    gpus: GpuWatch = UNUSED
    _stat: int = field(default=-1, init=False)
    _pressure: list[int | None] = field(default_factory=list, init=False)
    _groups: list[int] = field(default_factory=list, init=False)
    _clocks: list[int] = field(default_factory=list, init=False)
    _last: Look | None = field(default=None, init=False)
    _windows: list[HostWindow] = field(default_factory=list, init=False)
    _marked_ns: int = field(default=0, init=False)
    _due_ns: int = field(default=0, init=False)
    _pages_due_ns: float = field(default=math.inf, init=False)
    _asleep_before_ns: int = field(default=0, init=False)
    looks: int = field(default=0, init=False)
    look_ns: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._asleep_before_ns = _ever_asleep_ns()
        self._stat = os.open("/proc/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._pressure = [_opened(f"/proc/pressure/{kind}") for kind in _PRESSURE]
        self._groups = _quotas()
        step = math.ceil(len(self.cpus) / _CLOCKS)
        clocks = (
            _opened(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
            for cpu in self.cpus[::step]
        )
        self._clocks = [clock for clock in clocks if clock is not None]

    def mark(self) -> None:
        """Count from here; this first look disturbs no sample and does not count."""
        if memory.has_nodes():
            self._pages_due_ns = time.monotonic_ns() + PAGES_EVERY_S * 1e9
        self._last = self._look()
        self._marked_ns = self._last.at_ns
        self._put_off()

    @property
    def due(self) -> bool:
        """Whether it is time for the next look."""
        return self._last is not None and time.monotonic_ns() >= self._due_ns

    def look(self) -> None:
        """Close a window, and open the next."""
        if self._last is None:
            raise ValueError("a host is marked before it is looked at")
        began_ns = time.thread_time_ns()
        now = self._look()
        self._windows.append(
            window(self._last, now, origin_ns=self._marked_ns, cpus=len(self.cpus))
        )
        self._last = now
        self.looks += 1
        self.look_ns += time.thread_time_ns() - began_ns
        self._put_off()

    def close(self) -> HostOverTime:
        """All that was seen; no more looks."""
        for descriptor in (self._stat, *self._pressure, *self._groups, *self._clocks):
            if descriptor is not None:
                os.close(descriptor)
        return HostOverTime(
            cpus=self.cpus,
            windows=tuple(self._windows),
            looks=self.looks,
            look_ns=self.look_ns,
            unavailable=self._unavailable(),
        )

    def _put_off(self) -> None:
        now_ns = time.monotonic_ns()
        cost_ns = self.look_ns / max(self.looks, 1)
        pause_ns = max(SHORTEST_S * 1e9, cost_ns / MOST_SHARE, (now_ns - self._marked_ns) / WINDOWS)
        self._due_ns = now_ns + round(pause_ns)

    def _look(self) -> Look:
        launch, own = used(self.processes), used(self.ours)
        return Look(
            at_ns=time.monotonic_ns(),
            ticks=host_text.cpu_ticks(_read(self._stat), self.cpus),
            tick_ns=_TICK_NS,
            launch=launch,
            own_ns=own.cpu_ns,
            threads=self.threads(),
            suspended_ns=self.suspended_ns() + self._asleep_ns(),
            pressure_us=tuple(
                None if one is None else host_text.pressure_us(_read(one)) for one in self._pressure
            ),
            throttled=tuple(host_text.throttled(_read(one)) for one in self._groups),
            frequency_hz=_mean_hz(self._clocks),
            node_bytes=self._node_bytes(),
            gpus=self.gpus.look(),
        )

    def _asleep_ns(self) -> int:
        """How long the host was suspended since this began, to a millisecond."""
        return round((_ever_asleep_ns() - self._asleep_before_ns) / 1e6) * 1_000_000

    def _node_bytes(self) -> dict[int, int]:
        """Memory by node, if it is time for that; the next time is put off by what it took."""
        began_ns = time.monotonic_ns()
        if began_ns < self._pages_due_ns:
            return {}
        found = memory.node_bytes(self.processes())
        took_ns = time.monotonic_ns() - began_ns
        self._pages_due_ns = began_ns + max(PAGES_EVERY_S * 1e9, took_ns / PAGES_SHARE)
        return found

    def _unavailable(self) -> dict[str, str]:
        reasons = {}
        if not self._clocks:
            reasons["frequency"] = "the kernel shows no scaling_cur_freq"
        if not self._groups:
            reasons["throttling"] = "no cgroup above the launch rations CPU time"
        for kind, descriptor in zip(_PRESSURE, self._pressure, strict=True):
            if descriptor is None:
                reasons[f"{kind} pressure"] = "the kernel has no PSI, or it is switched off"
        if any(one.waited_ns is None for one in self._windows):
            reasons["waiting"] = "threads came and went, or the kernel has no schedstat"
        if any(one.migrations is None for one in self._windows):
            reasons["migrations"] = "the kernel shows no /proc/PID/sched"
        if not memory.has_nodes():
            reasons["memory by node"] = "the host has one node"
        if self.gpus.reason is not None:
            reasons["GPU use"] = self.gpus.reason
        return reasons


def _ever_asleep_ns() -> int:
    """How long the host was suspended since it started, to some 100 ns.

    One clock counts that time and the other does not. Whatever delays this process between
    the two readings makes a difference too small, so the largest is the best.
    """
    return max(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns() for _ in range(3))


def _opened(path: str) -> int | None:
    """A file that is there and can be read: PSI's cannot where it is switched off."""
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
    """All of a file in /proc or /sys, at this moment."""
    parts: list[bytes] = []
    while part := os.pread(descriptor, 1 << 16, sum(map(len, parts))):
        parts.append(part)
        if len(part) < 4096:
            break
    return b"".join(parts)


def _quotas() -> list[int]:
    """The cpu.stat of every cgroup above us that has a quota now."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        cgroup = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    folders = [Path(folder) for folder in host_text.cgroup_folders(mounts, cgroup, "cpu")]
    stats = (_opened(str(folder / "cpu.stat")) for folder in folders if _has_quota(folder))
    return [stat for stat in stats if stat is not None]


def _has_quota(folder: Path) -> bool:
    for name, without in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        with contextlib.suppress(OSError):
            words = (folder / name).read_text(encoding="ascii").split()
            return bool(words) and words[0] != without
    return False


def _mean_hz(clocks: Iterable[int]) -> int | None:
    known = []
    for clock in clocks:
        with contextlib.suppress(OSError, ValueError):
            known.append(int(_read(clock)) * 1000)
    return sum(known) // len(known) if known else None
