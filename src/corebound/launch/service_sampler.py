"""Watches a running service over an interval, from /proc and cgroupfs only.

All threads are read at both ends of the interval, with one file each, and those that ran with
another. In between, only the busiest threads are looked at, so the cost hardly grows with the
number of threads.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from corebound.errors import HostError
from corebound.launch.cpu_quota import use_since
from corebound.machine.cgroups import Quotas, cpuset, group_of, lowest_weight, quotas
from corebound.machine.process_readings import (
    HIDDEN,
    ProcessReading,
    allowed_cpus,
    read_process,
)
from corebound.machine.procfs import (
    TICK_NS,
    ProcessStat,
    below,
    process_stat,
    read,
    readable,
    running,
    thread_ids,
)
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

# Moves between CPUs are counted on this many threads, and as often as this in any interval.
_TRACKED = 32
_LOOKS, _SHORTEST_S = 20, 0.4
# More idle threads than this are not read one by one: their names are not worth the time.
_MOST_IDLE = 500

# CPU time and run-queue wait of a thread since it started, in nanoseconds, and how often it began
# to run: its `schedstat`.
_Schedule = tuple[int, int, int]
_NEW: _Schedule = (0, 0, 0)


class _Moment(Struct, frozen=True):
    """The counters of a service at one end of the interval."""

    at_ns: int
    boot_ticks: int
    stats: dict[int, ProcessStat]
    schedules: dict[int, dict[int, _Schedule]]
    cpus: dict[CpuId, CpuUse]


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
        self._tree, self._proc = Files(root), str(root / "proc")
        self._started = {pid: self._stat(pid) for pid in roots}
        self._visited: defaultdict[int, list[CpuId]] = defaultdict(list)

    def watch(self, duration_s: float) -> ServiceUse:
        """Watch the service for some seconds.

        Raises:
            HostError: All of its processes ended meanwhile.
        """
        own_ns = time.thread_time_ns()
        limits = {pid: quotas(self._tree, process=str(pid)) for pid in self._roots}
        before = self._moment()
        end_ns = before.at_ns + duration_s * 1e9
        tracked = _busiest(before.schedules)
        looks = 2
        while (left_s := (end_ns - self._clock_ns()) / 1e9) > 0:
            self._pause(min(left_s, max(_SHORTEST_S, duration_s / _LOOKS)))
            for pid, tid in tracked:
                stat = self._stat(pid, tid)
                if stat is not None and stat.state == "R":
                    self._visited[tid].append(CpuId(stat.cpu))
            looks += 1
        after = self._moment()
        groups = {
            quota.folder: GroupUse(
                quota=use_since(quota, self._tree),
                folder=quota.folder,
                is_own=quota.folder == known.own,
            )
            for known in limits.values()
            for quota in known.known
        }
        huge_pages = read_text(self._tree, "sys/kernel/mm/transparent_hugepage/enabled")
        mode = selected(huge_pages) if huge_pages else None
        nodes = read_cpu_list(self._tree, "sys/devices/system/node/online") or ()
        processes = tuple(
            self._use(reading, before, after)
            for pid, stat in sorted(after.stats.items())
            if (
                reading := read_process(
                    pid, proc=self._proc, by_node=len(nodes) > 1, huge=mode == "madvise"
                )
            )
            # Neither has it ended, nor has another process taken over its id.
            and reading.started == stat.started
        )
        if not processes:
            raise HostError(
                what="it ended while it was watched.",
                where=f"process {', '.join(map(str, self._roots))}",
                fix="Inspect a service that is running, or use a shorter --seconds.",
            )
        first = str(processes[0].pid)
        return ServiceUse(
            duration_ns=max(1, after.at_ns - before.at_ns),
            processes=processes,
            quotas=tuple(sorted(groups.values(), key=lambda group: group.quota.cpus)),
            weight=lowest_weight(self._tree, process=first),
            group=group_of(self._tree, process=first),
            group_cpus=cpuset(self._tree, process=first).cpus,
            cpus={
                cpu: CpuUse(now.idle_ns - then.idle_ns, now.steal_ns - then.steal_ns)
                for cpu, now in after.cpus.items()
                if (then := before.cpus.get(cpu))
            },
            own_ns=time.thread_time_ns() - own_ns,
            samples=looks,
            huge_pages=mode,
            autogroups=read_integer(self._tree, "proc/sys/kernel/sched_autogroup_enabled") == 1,
            hidden=tuple(_hidden(processes, limits)),
        )

    def _stat(self, pid: int, tid: int | None = None) -> ProcessStat | None:
        return process_stat(pid if tid is None else f"{pid}/task/{tid}", self._proc)

    def _moment(self) -> _Moment:
        stats = running(self._proc)
        # A process that took over the id of one that has ended is another one.
        roots = {
            pid
            for pid, then in self._started.items()
            if then and pid in stats and stats[pid].started == then.started
        }
        members = roots | below(roots, stats)
        return _Moment(
            at_ns=self._clock_ns(),
            boot_ticks=time.clock_gettime_ns(time.CLOCK_BOOTTIME) // TICK_NS,
            stats={pid: stats[pid] for pid in members},
            schedules={pid: self._schedules(pid) for pid in members},
            cpus=_cpus(self._tree.read("proc/stat") or ""),
        )

    def _schedules(self, pid: int) -> dict[int, _Schedule]:
        found = {}
        for tid in thread_ids(pid, self._proc):
            text = readable(f"{self._proc}/{pid}/task/{tid}/schedstat", is_short=True) or b""
            if len(fields := text.split()) == 3:
                found[tid] = (int(fields[0]), int(fields[1]), int(fields[2]))
        return found

    def _use(self, process: ProcessReading, before: _Moment, after: _Moment) -> ProcessUse:
        """A process over the interval, or since its start."""
        pid = process.pid
        now, then = after.stats[pid], before.stats.get(pid)
        if then is not None and then.started != now.started:
            then = None
        base = before.schedules[pid] if then else {}
        threads = self._threads(pid, base, after.schedules[pid], before.boot_ticks)
        minor, major = now.own_faults
        ticks = _ticks(now)
        if then is not None:
            # What children that have ended used before the interval is now part of their parent's.
            ended = sum(
                _ticks(child)
                for other, child in before.stats.items()
                if child.parent == pid and other not in after.stats
            )
            ticks -= _ticks(then) + ended
            minor, major = minor - then.own_faults[0], major - then.own_faults[1]
        return ProcessUse(
            **asdict(process),
            threads=threads,
            thread_count=len(after.schedules[pid]),
            cpu_ns=max(ticks * TICK_NS, sum(thread.run_ns for thread in threads)),
            minor_faults=minor,
            major_faults=major,
        )

    def _threads(
        self, pid: int, before: dict[int, _Schedule], after: dict[int, _Schedule], begin_ticks: int
    ) -> tuple[ThreadUse, ...]:
        """The threads that ran or waited, busiest first, and a limited number of the others."""
        idle = [tid for tid, now in after.items() if before.get(tid, _NEW) == now]
        unread = set(idle[_MOST_IDLE:])
        threads = []
        for tid in after.keys() - unread:
            now, then = after[tid], before.get(tid, _NEW)
            if (stat := self._stat(pid, tid)) is None:
                continue
            if stat.started > begin_ticks or now[0] < then[0]:
                then = _NEW  # another thread had this id
            run_ns, wait_ns, slices = (
                max(0, new - old) for new, old in zip(now, then, strict=True)
            )
            threads.append(
                ThreadUse(
                    tid=tid,
                    name=stat.name,
                    started=stat.started,
                    run_ns=run_ns,
                    wait_ns=wait_ns,
                    slices=slices,
                    nice=stat.nice,
                    policy=stat.policy,
                    allowed=self._allowed(pid, tid) if now != then else (),
                    visited=tuple(self._visited.get(tid, ())),
                )
            )
        return tuple(sorted(threads, key=lambda thread: (-thread.ready_ns, thread.tid)))

    def _allowed(self, pid: int, tid: int) -> tuple[CpuId, ...]:
        if self._proc != "/proc":
            return allowed_cpus(read(f"{self._proc}/{pid}/task/{tid}/status"))
        try:
            return tuple(CpuId(cpu) for cpu in sorted(os.sched_getaffinity(tid)))
        except OSError:
            return ()


def _busiest(schedules: dict[int, dict[int, _Schedule]]) -> list[tuple[int, int]]:
    """The threads with most CPU time so far: process and thread id."""
    threads = [(each[tid], pid, tid) for pid, each in schedules.items() for tid in each]
    return [(pid, tid) for _, pid, tid in sorted(threads, reverse=True)[:_TRACKED]]


def _ticks(stat: ProcessStat) -> int:
    """The CPU time of a process and of the children that it waited for."""
    return sum((*stat.own_ticks, *stat.children_ticks))


def _hidden(processes: Collection[ProcessUse], limits: dict[int, Quotas]) -> Iterator[Hidden]:
    if files := {file for process in processes for file in process.hidden}:
        pids = [str(process.pid) for process in processes if process.hidden]
        listed = ", ".join(pids[:3]) + (f" and {len(pids) - 3} more" if len(pids) > 3 else "")
        what = ", ".join(shows for file, shows in HIDDEN.items() if file in files)
        fix = "Run it as root, or as the user of the process (CAP_SYS_PTRACE)."
        if os.geteuid() == 0:
            fix = "Add CAP_SYS_PTRACE, which root lacks in this container."
        yield Hidden(what=f"of process {listed}: {what}", fix=fix)
    if not any(process.threads for process in processes):
        fix = "Run corebound on the host, outside of a sandbox that has no `schedstat`."
        yield Hidden(what="what its threads do", fix=fix)
    unknown = [quotas.unknown for quotas in limits.values() if quotas.unknown and not quotas.known]
    if unknown:
        fix = "Run corebound on the host, outside of containers."
        yield Hidden(what=f"its CPU quota ({unknown[0]})", fix=fix)


def _cpus(stat: str) -> dict[CpuId, CpuUse]:
    """The idle and the stolen time of each CPU, from /proc/stat; interrupts count as idle."""
    found = {}
    for line in stat.splitlines():
        if line.startswith("cpu") and line[3].isdecimal():
            cpu, *numbers = map(int, line[3:].split()[:9])
            found[CpuId(cpu)] = CpuUse(sum(numbers[3:7]) * TICK_NS, numbers[7] * TICK_NS)
    return found
