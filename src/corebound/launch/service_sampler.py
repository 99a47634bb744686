"""Watches a running service over an interval, from /proc and cgroupfs only.

All threads are read at both ends of the interval, with one file each, and those that ran with
another. In between, only the busiest threads are looked at, so the cost hardly grows with the
number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

from msgspec import Struct

from corebound.errors import HostError
from corebound.machine.cgroups import (
    Quotas,
    Throttling,
    cpuset,
    group_of,
    lowest_weight,
    quotas,
    throttling,
)
from corebound.machine.find_processes import with_descendants
from corebound.machine.process_readings import (
    MOST_IDLE,
    ProcessFiles,
    ProcessTotals,
    Schedule,
    what_would_allow,
)
from corebound.machine.procfs import TICK_NS
from corebound.machine.sysfs import Files, read_cpu_list, read_integer, read_text, selected
from corebound.machine.topology import CpuId
from corebound.records.service_use import (
    CpuUse,
    GroupUse,
    Hidden,
    ProcessUse,
    ServiceUse,
    ThreadUse,
)
from corebound.records.telemetry import QuotaUse

# Moves between CPUs are counted on this many threads, and as often as this in any interval.
_TRACKED = 32
_LOOKS, _SHORTEST_S = 40, 0.4


class _Moment(Struct, frozen=True):
    """The counters of a service at one end of the interval."""

    at_ns: int
    boot_ticks: int
    totals: dict[int, ProcessTotals]
    schedules: dict[int, dict[int, Schedule]]
    throttled: dict[str, Throttling | None]
    cpus: dict[CpuId, tuple[int, int]]


class ServiceSampler:
    """Watches the processes below some roots."""

    def __init__(
        self,
        roots: Collection[int],
        *,
        root: Path = Path("/"),
        pause: Callable[[float], None] = time.sleep,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Create a sampler.

        Args:
            roots: The processes whose descendants belong to the service, too.
            root: The folder that contains proc/ and sys/.
            pause: Waits for seconds.
            clock_ns: The time since any moment.
        """
        self._roots, self._pause, self._clock_ns = tuple(roots), pause, clock_ns
        self._root, self._tree, self._files = root, Files(root), ProcessFiles(str(root))
        self._started = {pid: self._files.started(pid) for pid in roots}
        self._visited: dict[int, list[CpuId]] = {}

    def watch(self, duration_s: float) -> ServiceUse:
        """Watch the service for some seconds.

        Raises:
            HostError: All of its processes ended meanwhile.
        """
        own_ns = time.thread_time_ns()
        limits = {pid: quotas(self._tree, process=str(pid)) for pid in self._roots}
        before = self._moment(limits)
        end_ns = before.at_ns + duration_s * 1e9
        tracked = _busiest(before.schedules, _TRACKED)
        looks = 2
        while (left_s := (end_ns - self._clock_ns()) / 1e9) > 0:
            self._pause(min(left_s, max(_SHORTEST_S, duration_s / _LOOKS)))
            self._look(tracked)
            looks += 1
        after = self._moment(limits)
        processes = tuple(
            one for pid in sorted(after.totals) if (one := self._process(pid, before, after))
        )
        if not processes:
            raise HostError(
                what="it ended while it was watched.",
                where=f"process {', '.join(map(str, self._roots))}",
                fix="Inspect a service that is running, or use a shorter --seconds.",
            )
        first = str(processes[0].process.pid)
        weight = lowest_weight(self._tree, process=first)
        return ServiceUse(
            duration_ns=max(1, after.at_ns - before.at_ns),
            processes=processes,
            quotas=_quotas(limits, before, after),
            weight=weight,
            group=group_of(self._tree, process=first),
            group_cpus=cpuset(self._tree, process=first).cpus,
            cpus=_cpu_use(before, after),
            own_ns=time.thread_time_ns() - own_ns,
            samples=looks,
            huge_pages=self._huge_pages(),
            autogroups=read_integer(self._tree, "proc/sys/kernel/sched_autogroup_enabled") == 1,
            hidden=tuple(_hidden(processes, limits)),
        )

    def _members(self) -> set[int]:
        """The processes of the service; one that took over the id of a root is none of them."""
        running = self._files.processes()
        roots = [pid for pid in self._roots if pid in running]
        roots = [pid for pid in roots if running[pid][1] == self._started[pid]]
        return with_descendants(roots, {pid: parent for pid, (parent, _, _) in running.items()})

    def _moment(self, limits: dict[int, Quotas]) -> _Moment:
        members = self._members()
        totals = {pid: found for pid in members if (found := self._files.totals(pid))}
        folders = {quota.folder for known in limits.values() for quota in known.known}
        return _Moment(
            at_ns=self._clock_ns(),
            boot_ticks=time.clock_gettime_ns(time.CLOCK_BOOTTIME) // TICK_NS,
            totals=totals,
            schedules={pid: self._files.schedules(pid) for pid in totals},
            throttled={
                folder: throttling(self._tree.read(f"{folder}/cpu.stat") or "")
                for folder in folders
            },
            cpus=_cpu_ticks(self._tree.read("proc/stat") or ""),
        )

    def _look(self, tracked: Collection[tuple[int, int]]) -> None:
        for pid, tid in tracked:
            seen = self._files.thread_cpu(pid, tid)
            if seen is not None and seen[0] == "R":
                self._visited.setdefault(tid, []).append(seen[1])

    def _process(self, pid: int, before: _Moment, after: _Moment) -> ProcessUse | None:
        """A process over the interval; None if it has ended."""
        several_nodes = len(read_cpu_list(self._tree, "sys/devices/system/node/online") or ()) > 1
        process = self._files.process(
            pid, by_node=several_nodes, huge=self._huge_pages() == "madvise"
        )
        now, then = after.totals[pid], before.totals.get(pid)
        if process is None or process.started != now.started:
            return None
        if then is None or then.started != now.started:
            then = ProcessTotals(started=0, parent=0, cpu_ticks=0, minor_faults=0, major_faults=0)
        base = before.schedules.get(pid, {}) if then.started else {}
        threads = self._threads(pid, base, after.schedules[pid], before.boot_ticks)
        # What children that have ended used before the interval is now part of their parent's.
        ended = sum(
            child.cpu_ticks
            for child_pid, child in before.totals.items()
            if child.parent == pid and child_pid not in after.totals
        )
        cpu_ns = (now.cpu_ticks - then.cpu_ticks - ended) * TICK_NS
        return ProcessUse(
            process=process,
            threads=threads,
            thread_count=len(after.schedules[pid]),
            cpu_ns=max(cpu_ns, sum(thread.run_ns for thread in threads)),
            minor_faults=now.minor_faults - then.minor_faults,
            major_faults=now.major_faults - then.major_faults,
        )

    def _threads(
        self, pid: int, before: dict[int, Schedule], after: dict[int, Schedule], begin_ticks: int
    ) -> tuple[ThreadUse, ...]:
        """The threads that ran or waited, busiest first, and a limited number of the others."""
        active: list[tuple[int, Schedule, Schedule]] = []
        idle: list[tuple[int, Schedule, Schedule]] = []
        for tid, now in after.items():
            then = before.get(tid, Schedule(0, 0, 0))
            (idle if now == then else active).append((tid, then, now))
        threads = []
        for tid, then, now in (*active, *idle[:MOST_IDLE]):
            reading = self._files.thread(pid, tid, with_cpus=now != then)
            if reading is None:
                continue
            is_new = reading.started > begin_ticks or now.run_ns < then.run_ns
            base = Schedule(0, 0, 0) if is_new else then  # another thread had this id
            threads.append(
                ThreadUse(
                    tid=tid,
                    name=reading.name,
                    started=reading.started,
                    run_ns=now.run_ns - base.run_ns,
                    wait_ns=max(0, now.wait_ns - base.wait_ns),
                    slices=max(0, now.slices - base.slices),
                    nice=reading.nice,
                    policy=reading.policy,
                    allowed=reading.allowed,
                    visited=tuple(self._visited.get(tid, ())),
                )
            )
        return tuple(sorted(threads, key=lambda thread: (-thread.ready_ns, thread.tid)))

    def _huge_pages(self) -> str | None:
        text = read_text(self._tree, "sys/kernel/mm/transparent_hugepage/enabled")
        return None if text is None else selected(text)


def _busiest(schedules: dict[int, dict[int, Schedule]], most: int) -> list[tuple[int, int]]:
    """The threads with most CPU time so far: process and thread id."""
    threads = [
        (times.run_ns, pid, tid) for pid, each in schedules.items() for tid, times in each.items()
    ]
    return [(pid, tid) for _, pid, tid in sorted(threads, reverse=True)[:most]]


def _quotas(limits: dict[int, Quotas], before: _Moment, after: _Moment) -> tuple[GroupUse, ...]:
    """Each quota of a root process once, the tightest first."""
    found: dict[str, GroupUse] = {}
    for known in limits.values():
        for quota in known.known:
            periods, throttled_periods, throttled_ns = _increases(
                before.throttled[quota.folder], after.throttled[quota.folder]
            )
            found[quota.folder] = GroupUse(
                quota=QuotaUse(
                    cpus=quota.cpus,
                    period_us=quota.period_us,
                    periods=periods,
                    throttled_periods=throttled_periods,
                    throttled_ns=throttled_ns,
                ),
                folder=quota.folder,
                is_own=quota.folder == known.own,
            )
    return tuple(sorted(found.values(), key=lambda group: group.quota.cpus))


def _increases(
    before: Throttling | None, after: Throttling | None
) -> tuple[int | None, int | None, int | None]:
    """The periods, the throttled ones, and for how long, between two moments."""
    if before is None or after is None:
        return None, None, None
    return (
        max(0, after.periods - before.periods),
        max(0, after.throttled_periods - before.throttled_periods),
        max(0, after.throttled_ns - before.throttled_ns),
    )


def _hidden(processes: Collection[ProcessUse], limits: dict[int, Quotas]) -> list[Hidden]:
    found = []
    names = {file for one in processes for file in one.process.hidden}
    if names:
        what, fix = what_would_allow(sorted(names))
        pids = [str(one.process.pid) for one in processes if one.process.hidden]
        listed = ", ".join(pids[:3]) + (f" and {len(pids) - 3} more" if len(pids) > 3 else "")
        found.append(Hidden(what=f"of process {listed}: {what}", fix=fix))
    for known in limits.values():
        if known.unknown is not None and not known.known:
            found.append(
                Hidden(
                    what=f"its CPU quota ({known.unknown})",
                    fix="Run corebound on the host, outside of containers.",
                )
            )
            break
    return found


def _cpu_ticks(stat: str) -> dict[CpuId, tuple[int, int]]:
    """The idle and the stolen ticks of each CPU, from /proc/stat; interrupts count as idle."""
    ticks = {}
    for line in stat.splitlines():
        fields = line.split()
        if len(fields) > 8 and fields[0].startswith("cpu") and fields[0] != "cpu":
            numbers = list(map(int, fields[1:9]))
            ticks[CpuId(int(fields[0][3:]))] = (sum(numbers[3:7]), numbers[7])
        elif not line.startswith("cpu"):
            break
    return ticks


def _cpu_use(before: _Moment, after: _Moment) -> dict[CpuId, CpuUse]:
    return {
        cpu: CpuUse(
            *((late - early) * TICK_NS for early, late in zip(before.cpus[cpu], now, strict=True))
        )
        for cpu, now in after.cpus.items()
        if cpu in before.cpus
    }
