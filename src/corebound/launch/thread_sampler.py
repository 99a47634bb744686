"""Looks at the threads of a launch from outside: where they are, where they may be."""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass, field

from corebound.launch import procfs
from corebound.launch.host_sampler import Threads
from corebound.launch.procfs import below, threads_of
from corebound.launch.supervisor import processes_below
from corebound.machine.topology import CpuId
from corebound.records.launch_record import Stay, ThreadEvidence
from corebound.records.telemetry import known_sum

# A look may cost this share of one CPU at most; the next is put off accordingly. With the
# switch to it and back, and the host's own looks, all of it has to stay below 0.5 % of a
# step (benchmarks/telemetry_cost.py), on a busy host too, where a look takes twice as long.
MOST_SHARE = 0.002
SHORTEST_S, LONGEST_S = 0.010, 0.250
# Threads that wander are elsewhere at each look, so a record grows with the looks: beyond
# some hundred seconds they become as seldom as gives so many, and so many more for each
# time that the launch takes e times as long.
LOOKS = 400
# Finding new processes costs more than looking at known ones, so it is done less often.
SEARCH_EVERY_S = 0.5
# Looks come this much later than they were due only if this process did not run either. On a
# busy host it may wait for a CPU so long, which the kernel tells.
_LATE_NS = 1_000_000_000
# What runs or waits for a CPU less than this share of a time hardly ran in it.
_HARDLY = 0.1
# A launch that has not run for so long is asked whether its cgroup is frozen, and so often again.
_FROZEN_EVERY_NS = 250_000_000


@dataclass(slots=True, kw_only=True)
class _Thread:
    """What has been seen of one thread so far."""

    tid: int
    pid: int
    name: str
    stat: int
    schedstat: int | None
    allowed: list[tuple[CpuId, ...]] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)
    base: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    active_ns: int | None = None
    state: bytes = b""

    def close(self) -> None:
        os.close(self.stat)
        if self.schedstat is not None:
            os.close(self.schedstat)


class ThreadSampler:
    """The threads of one worker's process tree, look by look.

    Figures count from `mark`, which the runner calls as it tells the workers to
    go; a thread that is new afterwards counts from its start.
    """

    def __init__(self, root: int) -> None:
        self.root = root
        self._threads: dict[int, _Thread] = {}
        self._ended: list[_Thread] = []
        self._processes: set[int] = {root}
        self._searched_s = float("-inf")
        self._marked_ns: int | None = None
        self._looked_ms = 0
        self._looked_ns = 0
        # What comes before the first look, such as perf's start, may take its time.
        self._due_ns = math.inf
        self._own_wait_ns = 0
        self._was_stopped = self._was_frozen = False
        self._idle_since_ns = 0
        self.suspended_ns = 0
        self.looks = 0
        self.look_ns = 0
        self.peak_rss_bytes: int | None = None
        self.node_bytes: dict[int, int] = {}

    def look(self, *, search: bool = False) -> None:
        """See every thread once: its CPU, its affinity, whether it has run since.

        Args:
            search: Look for new processes first, and read what costs more to
                read. Such a look is taken before the workers are told to go and
                after they are through, so it disturbs no sample and its cost
                does not count.
        """
        began_ns = time.thread_time_ns()
        now_s = time.monotonic()
        if search or now_s - self._searched_s >= SEARCH_EVERY_S:
            found = processes_below(self.root) if search else below(self.root)
            self._processes = {self.root, *found}
            self._searched_s = now_s
        now_ms = self._now_ms()
        active_ns = self._active_ns()
        # A list of threads may miss one that lives, if its neighbour ends just then.
        unlisted = dict(self._threads)
        for pid in self._processes:
            for tid in threads_of(pid):
                unlisted.pop(tid, None)
                self._see(pid, tid, now_ms, thorough=search)
        for tid, thread in unlisted.items():
            self._see(thread.pid, tid, now_ms, thorough=search)
        if search and self._marked_ns is not None:
            # Of the end alone: reading it holds the worker up for milliseconds.
            self.peak_rss_bytes = _peak_rss_bytes(self._processes)
            self.node_bytes = procfs.node_bytes(self._processes)
        self._looked_ms = now_ms
        if self._marked_ns is not None:
            self._note_suspension(time.monotonic_ns(), self._active_ns() - active_ns)
        if not search:
            self.looks += 1
            self.look_ns += time.thread_time_ns() - began_ns

    @property
    def pause_s(self) -> float:
        """How long to leave the launch alone, so that looking stays cheap."""
        cost_s = self.look_ns / max(self.looks, 1) / 1e9
        cheap_s = min(LONGEST_S, max(SHORTEST_S, cost_s / MOST_SHARE))
        return max(cheap_s, self._now_ms() / 1000 / LOOKS)

    @property
    def processes(self) -> frozenset[int]:
        """The processes that it last saw."""
        return frozenset(self._processes)

    @property
    def threads(self) -> Threads | None:
        """What its threads used and waited, those that ended included; None where unknown."""
        counted = [one.last for one in self._seen() if "run_ns" in one.last]
        if not counted:
            return None
        return Threads(
            ran_ns=sum(last["run_ns"] for last in counted),
            waited_ns=sum(last["wait_ns"] for last in counted),
            voluntary=known_sum(one.get("voluntary") for one in counted),
            involuntary=known_sum(one.get("involuntary") for one in counted),
            migrations=known_sum(one.get("migrations") for one in counted),
        )

    def count(self) -> None:
        """Read what costs more to read of every thread: switches, and moves between CPUs.

        Its cost is the caller's, who does it seldom.
        """
        self._own_wait_ns = _own_wait_ns()
        for thread in self._threads.values():
            thread.last.update(_counted(thread.pid, thread.tid))

    def mark(self) -> None:
        """Count from here: what was used and counted before is set-up."""
        self._marked_ns = self._looked_ns = self._idle_since_ns = time.monotonic_ns()
        self._looked_ms = 0
        self._own_wait_ns = _own_wait_ns()
        for thread in self._threads.values():
            thread.base = dict(thread.last)

    def bind(self, cpus: tuple[CpuId, ...]) -> None:
        """Move every thread there is onto `cpus`, as `taskset -ap` does."""
        for pid in self._processes:
            for tid in threads_of(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(tid, cpus)
        for thread in self._threads.values():
            thread.allowed.clear()

    def close(self) -> tuple[ThreadEvidence, ...]:
        """All that was seen, by thread; no more looks."""
        for thread in self._threads.values():
            thread.close()
        return tuple(map(_evidence, sorted(self._seen(), key=lambda thread: thread.tid)))

    def _seen(self) -> tuple[_Thread, ...]:
        """Every thread so far, those that ended included."""
        return (*self._ended, *self._threads.values())

    def _now_ms(self) -> int:
        if self._marked_ns is None:
            return 0
        return (time.monotonic_ns() - self._marked_ns) // 1_000_000

    def _see(self, pid: int, tid: int, now_ms: int, *, thorough: bool) -> None:
        try:
            thread = self._threads.get(tid)
            if thread is None:
                thread = self._threads[tid] = _open(pid, tid)
            allowed = tuple(CpuId(cpu) for cpu in sorted(os.sched_getaffinity(tid)))
            if allowed not in thread.allowed:
                thread.allowed.append(allowed)
            thread.state, cpu = _state_and_cpu(thread.stat)
            if thread.schedstat is not None:
                run, wait = os.pread(thread.schedstat, 128, 0).split()[:2]
                thread.last["run_ns"], thread.last["wait_ns"] = int(run), int(wait)
            if thorough:
                thread.last.update(_counted(pid, tid))
        except (OSError, ValueError):
            self._leave(tid)  # it ended under our eyes
            return
        if self._marked_ns is not None:
            _stay(thread, cpu, self._looked_ms, now_ms)
        thread.active_ns = thread.last.get("run_ns")

    def _active_ns(self) -> int:
        """What the threads that live ran and waited for a CPU so far."""
        return sum(
            one.last["run_ns"] + one.last["wait_ns"]
            for one in self._threads.values()
            if "run_ns" in one.last
        )

    def _note_suspension(self, now_ns: int, active_ns: int) -> None:
        """Add the time since the last look if the processes were kept from running in it.

        That they did not run is no evidence by itself, for a step may sleep, or wait for a disk
        or another process. Being stopped is, as seen at both looks; so is a frozen cgroup; and
        that this process did not run either, though it was due and not waiting for a CPU.

        Args:
            now_ns: When this look was.
            active_ns: What the threads ran and waited for a CPU since the last one.
        """
        since_ns = now_ns - self._looked_ns
        is_stopped = any(map(self._is_stopped, self._threads.values()))
        if active_ns > _HARDLY * since_ns:
            self._idle_since_ns = now_ns
        elif is_stopped and self._was_stopped:
            self.suspended_ns += since_ns
        elif now_ns - self._due_ns >= _LATE_NS and (
            _own_wait_ns() - self._own_wait_ns <= _HARDLY * since_ns
        ):
            self.suspended_ns += since_ns
            self._idle_since_ns = now_ns
        elif now_ns - self._idle_since_ns >= _FROZEN_EVERY_NS:
            is_frozen = any(map(_is_frozen, self._processes))
            if is_frozen and self._was_frozen:
                self.suspended_ns += now_ns - self._idle_since_ns
            self._was_frozen, self._idle_since_ns = is_frozen, now_ns
        self._was_stopped = is_stopped
        self._looked_ns = now_ns
        self._due_ns = now_ns + self.pause_s * 1e9

    def _is_stopped(self, thread: _Thread) -> bool:
        """Whether a signal stopped it, or a tracer that is not of the launch itself."""
        if thread.state != b"t":
            return thread.state == b"T"
        tracer = _number(_content(f"/proc/{thread.pid}/task/{thread.tid}/status"), b"TracerPid:")
        return tracer is not None and tracer not in self._processes

    def _leave(self, tid: int) -> None:
        """A thread has ended: its files are closed, for there may be a thousand such."""
        if (thread := self._threads.pop(tid, None)) is not None:
            thread.close()
            self._ended.append(thread)


def _stay(thread: _Thread, cpu: CpuId, before_ms: int, now_ms: int) -> None:
    run_ns = thread.last.get("run_ns")
    if run_ns is not None and run_ns == (thread.active_ns or 0):
        return  # idle since the last look: it was nowhere
    latest = thread.stays[-1] if thread.stays else None
    if latest is not None and latest.cpu == cpu and latest.to_ms >= before_ms:
        thread.stays[-1] = Stay(cpu=cpu, from_ms=latest.from_ms, to_ms=now_ms)
    else:
        thread.stays.append(Stay(cpu=cpu, from_ms=before_ms, to_ms=now_ms))


def _open(pid: int, tid: int) -> _Thread:
    place = f"/proc/{pid}/task/{tid}"
    stat = os.open(f"{place}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        schedstat: int | None = os.open(f"{place}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        schedstat = None  # a kernel built without it
    name = os.pread(stat, 1024, 0).partition(b"(")[2].rpartition(b")")[0]
    return _Thread(
        tid=tid, pid=pid, name=name.decode(errors="replace"), stat=stat, schedstat=schedstat
    )


def _state_and_cpu(stat: int) -> tuple[bytes, CpuId]:
    # Fields 3 and 39 of proc(5)'s stat; the 1st and 37th after the name, which may hold anything.
    words = os.pread(stat, 1024, 0).rpartition(b")")[2].split()
    return words[0], CpuId(int(words[36]))


def _own_wait_ns() -> int:
    """How long the thread that looks was ready and waited for a CPU; 0 where unknown."""
    words = _content("/proc/thread-self/schedstat").split()
    return int(words[1]) if len(words) > 1 else 0


def _is_frozen(pid: int) -> bool:
    """Whether a cgroup above a process keeps it from running."""
    mounts, cgroup = _content("/proc/self/mountinfo"), _content(f"/proc/{pid}/cgroup")
    folders = procfs.cgroup_folders(
        mounts.decode(errors="replace"), cgroup.decode(errors="replace"), "freezer"
    )
    return any(
        procfs.is_frozen(_content(f"{folder}/{name}"))
        for folder in folders
        for name in ("cgroup.events", "freezer.state")
    )


def _counted(pid: int, tid: int) -> dict[str, int]:
    """Counts that cost more to read: context switches, and migrations where shown."""
    place = f"/proc/{pid}/task/{tid}"
    status, sched = _content(f"{place}/status"), _content(f"{place}/sched")
    told = {
        "voluntary": _number(status, b"voluntary_ctxt_switches:"),
        "involuntary": _number(status, b"nonvoluntary_ctxt_switches:"),
        "migrations": _number(sched, b"se.nr_migrations "),
    }
    return {name: count for name, count in told.items() if count is not None}


def _content(path: str) -> bytes:
    """All of a file; nothing where it is gone, or the kernel does not show it."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as stream:
        return stream.read()
    return b""


def _number(text: bytes, begin: bytes) -> int | None:
    r"""The number on the line that begins so; of many lines, so that no other is taken apart.

    >>> _number(b"name (1)\nse.nr_migrations   :   12\n", b"se.nr_migrations ")
    12
    """
    _, found, rest = text.partition(b"\n" + begin)
    return int(rest.lstrip(b" :\t").split(maxsplit=1)[0]) if found else None


def _peak_rss_bytes(processes: set[int]) -> int | None:
    """The sum of the processes' peaks: no less than the tree's own peak."""
    peaks_kb = (_number(_content(f"/proc/{pid}/status"), b"VmHWM:") for pid in processes)
    peak_kb = known_sum(peaks_kb)
    return None if peak_kb is None else peak_kb * 1024


def _evidence(thread: _Thread) -> ThreadEvidence:
    def since_mark(name: str) -> int | None:
        return thread.last[name] - thread.base.get(name, 0) if name in thread.last else None

    return ThreadEvidence(
        tid=thread.tid,
        pid=thread.pid,
        name=thread.name,
        allowed=tuple(thread.allowed),
        stays=tuple(thread.stays),
        run_ns=since_mark("run_ns"),
        wait_ns=since_mark("wait_ns"),
        migrations=since_mark("migrations"),
        voluntary=since_mark("voluntary"),
        involuntary=since_mark("involuntary"),
    )
