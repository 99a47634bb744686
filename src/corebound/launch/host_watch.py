"""Looks at the host while a launch is timed: seldom, for each look is a disturbance too."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from corebound.launch import host_text
from corebound.launch.processes import Used, used
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

# Clocks of CPUs are read one by one; so many tell the range.
_CLOCKS = 4
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Waiting is known of threads that were seen; where they account for less than this share
# of the CPU time, too many came and went between two looks.
_SEEN_SHARE = 0.9

_PRESSURE = ("cpu", "memory", "io")


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """CPU time and waiting of the threads that are being watched, since they began."""

    ran_ns: int
    waited_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """All counts at one moment, each since it began."""

    at_ns: int
    ticks: host_text.Ticks | None
    launch: Used
    own_ns: int
    threads: Threads | None
    pressure_us: tuple[int | None, ...]
    throttled: tuple[tuple[int, int] | None, ...]
    frequency_hz: int | None


@dataclass(slots=True)
class HostWatch:
    """The host as one launch's CPUs see it, look by look.

    Attributes:
        cpus: What the launch was given.
        processes: Lists the launch's processes.
        ours: Processes of corebound that run on these CPUs too: not foreign.
    """

    cpus: tuple[CpuId, ...]
    processes: Callable[[], Iterable[int]]
    ours: Collection[int]
    _stat: int = field(default=-1, init=False)
    _pressure: list[int | None] = field(default_factory=list, init=False)
    _groups: list[int] = field(default_factory=list, init=False)
    _clocks: list[int] = field(default_factory=list, init=False)
    _last: _Look | None = field(default=None, init=False)
    _windows: list[HostWindow] = field(default_factory=list, init=False)
    _marked_ns: int = field(default=0, init=False)
    _due_ns: int = field(default=0, init=False)
    looks: int = field(default=0, init=False)
    look_ns: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._stat = os.open("/proc/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._pressure = [_opened(f"/proc/pressure/{kind}") for kind in _PRESSURE]
        self._groups = _quotas()
        step = math.ceil(len(self.cpus) / _CLOCKS)
        clocks = (
            _opened(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
            for cpu in self.cpus[::step]
        )
        self._clocks = [clock for clock in clocks if clock is not None]

    def mark(self, threads: Threads | None) -> None:
        """Count from here; this first look disturbs no sample and does not count."""
        self._last = self._look(threads)
        self._marked_ns = self._last.at_ns
        self._put_off()

    @property
    def due(self) -> bool:
        """Whether it is time for the next look."""
        return self._last is not None and time.monotonic_ns() >= self._due_ns

    def look(self, threads: Threads | None) -> None:
        """Close a window, and open the next."""
        if self._last is None:
            raise ValueError("a host is marked before it is looked at")
        began_ns = time.thread_time_ns()
        now = self._look(threads)
        self._windows.append(self._window(self._last, now))
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

    def _look(self, threads: Threads | None) -> _Look:
        launch, own = used(self.processes), used(lambda: self.ours)
        return _Look(
            at_ns=time.monotonic_ns(),
            ticks=host_text.cpu_ticks(_read(self._stat), self.cpus),
            launch=launch,
            own_ns=own.cpu_ns,
            threads=threads,
            pressure_us=tuple(
                None if one is None else host_text.pressure_us(_read(one)) for one in self._pressure
            ),
            throttled=tuple(host_text.throttled(_read(one)) for one in self._groups),
            frequency_hz=_mean_hz(self._clocks),
        )

    def _window(self, before: _Look, now: _Look) -> HostWindow:
        pressure = [
            _since(earlier, later)
            for earlier, later in zip(before.pressure_us, now.pressure_us, strict=True)
        ]
        cpu, memory, io = (None if one is None else one * 1000 for one in pressure)
        periods, throttled_ns = _most_throttled(before, now)
        return HostWindow(
            from_ms=(before.at_ns - self._marked_ns) // 1_000_000,
            to_ms=(now.at_ns - self._marked_ns) // 1_000_000,
            steal_ns=_steal_ns(before, now),
            foreign_ns=self._foreign_ns(before, now),
            rested_ns=_rested_ns(before, now),
            waited_ns=_waited_ns(before, now),
            throttled_ns=throttled_ns,
            throttled_periods=periods,
            cpu_pressure_ns=cpu,
            memory_pressure_ns=memory,
            io_pressure_ns=io,
            frequency_hz=now.frequency_hz,
            minor_faults=max(0, now.launch.minor_faults - before.launch.minor_faults),
            major_faults=max(0, now.launch.major_faults - before.launch.major_faults),
        )

    def _foreign_ns(self, before: _Look, now: _Look) -> int | None:
        """What the CPUs did beside the launch, corebound, interrupts and resting.

        From what the CPUs did not rest, not from their user and system time: idle time
        is measured, while time at work may be guessed from where timer ticks fell.
        """
        if before.ticks is None or now.ticks is None:
            return None
        rested = _rested_ns(before, now) or 0
        stolen = _steal_ns(before, now) or 0
        known = now.launch.cpu_ns - before.launch.cpu_ns + now.own_ns - before.own_ns
        elapsed = (now.at_ns - before.at_ns) * len(self.cpus)
        return max(0, elapsed - rested - stolen - known)

    def _unavailable(self) -> dict[str, str]:
        reasons = {}
        if not self._clocks:
            reasons["frequency"] = "the kernel shows no scaling_cur_freq"
        if not self._groups:
            reasons["throttling"] = "no cgroup above the launch rations CPU time"
        for kind, descriptor in zip(_PRESSURE, self._pressure, strict=True):
            if descriptor is None:
                reasons[f"{kind} pressure"] = "the kernel has no PSI, or it is switched off"
        if any(window.waited_ns is None for window in self._windows):
            reasons["waiting"] = "threads came and went, or the kernel has no schedstat"
        return reasons


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
    folders = [Path(folder) for folder in host_text.cpu_groups(mounts, cgroup)]
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


def _since(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)


def _rested_ns(before: _Look, now: _Look) -> int | None:
    if before.ticks is None or now.ticks is None:
        return None
    return max(0, now.ticks.resting - before.ticks.resting) * _TICK_NS


def _steal_ns(before: _Look, now: _Look) -> int | None:
    if before.ticks is None or now.ticks is None:
        return None
    return max(0, now.ticks.steal - before.ticks.steal) * _TICK_NS


def _waited_ns(before: _Look, now: _Look) -> int | None:
    if before.threads is None or now.threads is None:
        return None
    ran_ns = now.launch.cpu_ns - before.launch.cpu_ns
    if now.threads.ran_ns - before.threads.ran_ns < _SEEN_SHARE * ran_ns:
        return None
    return max(0, now.threads.waited_ns - before.threads.waited_ns)


def _most_throttled(before: _Look, now: _Look) -> tuple[int | None, int | None]:
    """Of the cgroup that stopped threads longest: periods and nanoseconds."""
    each = [
        (later[1] - earlier[1], later[0] - earlier[0])
        for earlier, later in zip(before.throttled, now.throttled, strict=True)
        if earlier is not None and later is not None
    ]
    if not each:
        return None, None
    throttled_ns, periods = max(each)
    return periods, throttled_ns
