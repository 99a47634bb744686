"""Samples the threads of a launch from outside: current CPU, affinity and CPU time."""

import contextlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from corebound.launch.host_sampler import ThreadTotals
from corebound.machine import cgroups, procfs
from corebound.machine.procfs import (
    ProcessStat,
    descendants,
    line_number,
    processes_below,
    thread_ids,
)
from corebound.machine.sysfs import LIVE
from corebound.machine.topology import CpuId
from corebound.records.launch_record import Stay, ThreadEvidence
from corebound.records.telemetry import sum_known

# The maximum cost of sampling, as a share of one CPU; the next sample is delayed accordingly.
# With context switches and the samples of the host, the total must stay below 0.5 % of an
# iteration (benchmarks/telemetry_cost.py). On a busy host, a sample takes twice as long.
MAX_COST_SHARE = 0.002
SHORTEST_S, LONGEST_S = 0.010, 0.250
# Threads that migrate may be on another CPU at each sample, so a record grows with the number
# of samples. A launch longer than about 100 s is sampled less often: about this many samples,
# plus as many again for each factor of e in duration.
TARGET_SAMPLES = 400
# Finding new processes costs more than sampling known ones, so it is done less often.
SEARCH_INTERVAL_S = 0.5
# A sample is this late only if this process was not running either. On a busy host, this
# process may wait that long for a CPU; the kernel reports such waits.
_LATE_NS = 1_000_000_000
# A process that runs or waits for a CPU for less than this share of an interval counts as idle.
_IDLE_SHARE = 0.1
# After a launch has been idle this long, its cgroup is checked for being frozen, and again
# after each such interval.
_FROZEN_CHECK_NS = 250_000_000


@dataclass(slots=True, kw_only=True)
class _Thread:
    """The observations of one thread so far."""

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
    state: str = ""

    def close(self) -> None:
        os.close(self.stat)
        if self.schedstat is not None:
            os.close(self.schedstat)


class ThreadSampler:
    """Samples the threads of one worker's process tree.

    Values count from the call of `start`, just before the workers start their timed loop.
    For a thread that starts later, they count from its start.
    """

    def __init__(self, root: int, *, paused_ns: Callable[[], int] = lambda: 0) -> None:
        """Create a sampler.

        Args:
            root: The process at the root of the tree.
            paused_ns: For how long the tree has been paused because its launch alternates.
        """
        self.root = root
        self._paused_ns, self._paused_before_ns = paused_ns, 0
        self._threads: dict[int, _Thread] = {}
        self._ended: list[_Thread] = []
        self._processes: set[int] = {root}
        self._searched_s = float("-inf")
        self._started_ns: int | None = None
        self._sampled_ms = 0
        self._sampled_ns = 0
        # Work before the first sample, such as starting perf, has no deadline.
        self._due_ns = math.inf
        self._own_wait_ns = 0
        self._was_stopped = self._was_frozen = False
        self._idle_since_ns = 0
        self.suspended_ns = 0
        self.looks = 0
        self.look_ns = 0
        self.peak_rss_bytes: int | None = None
        self.node_bytes: dict[int, int] = {}

    def sample(self, *, search: bool = False) -> None:
        """Sample every thread once: its CPU, its affinity and whether it has run since.

        Args:
            search: Search for new processes first, and read values that are expensive
                to read. Do this only before the workers start their timed loop and
                after they finish it, so that it disturbs no measurement. Its cost
                is not counted.
        """
        began_ns = time.thread_time_ns()
        now_s = time.monotonic()
        if search or now_s - self._searched_s >= SEARCH_INTERVAL_S:
            processes = processes_below(self.root) if search else descendants(self.root)
            self._processes = {self.root, *processes}
            self._searched_s = now_s
        now_ms = self._now_ms()
        active_ns = self._active_ns()
        # A list of threads may miss a live thread if its neighbour ends at that moment.
        unlisted = dict(self._threads)
        for pid in self._processes:
            for tid in thread_ids(pid):
                unlisted.pop(tid, None)
                self._sample_thread(pid, tid, now_ms, thorough=search)
        for tid, thread in unlisted.items():
            self._sample_thread(thread.pid, tid, now_ms, thorough=search)
        if search and self._started_ns is not None:
            # Only at the end: reading this blocks the worker for milliseconds.
            self.peak_rss_bytes = _peak_rss_bytes(self._processes)
            self.node_bytes = procfs.node_bytes(self._processes)
        self._sampled_ms = now_ms
        if self._started_ns is not None:
            self._note_suspension(time.monotonic_ns(), self._active_ns() - active_ns)
        if not search:
            self.looks += 1
            self.look_ns += time.thread_time_ns() - began_ns

    @property
    def pause_s(self) -> float:
        """How long to wait before the next sample, to limit the cost of sampling."""
        cost_s = self.look_ns / max(self.looks, 1) / 1e9
        cheap_s = min(LONGEST_S, max(SHORTEST_S, cost_s / MAX_COST_SHARE))
        return max(cheap_s, self._now_ms() / 1000 / TARGET_SAMPLES)

    @property
    def started_ns(self) -> int | None:
        """When counting started, on the monotonic clock; None before."""
        return self._started_ns

    @property
    def processes(self) -> frozenset[int]:
        """The processes found by the latest sample."""
        return frozenset(self._processes)

    @property
    def threads(self) -> ThreadTotals | None:
        """Totals over all its threads, including ended ones; None where unknown."""
        known = [thread for thread in self._all_threads() if "run_ns" in thread.last]
        totals = [thread.last for thread in known]
        if not totals:
            return None
        return ThreadTotals(
            ran_ns=sum(last["run_ns"] for last in totals),
            waited_ns=sum(last["wait_ns"] for last in totals),
            waited_by_thread={thread.tid: thread.last["wait_ns"] for thread in known},
            voluntary=sum_known(total.get("voluntary") for total in totals),
            involuntary=sum_known(total.get("involuntary") for total in totals),
            migrations=sum_known(total.get("migrations") for total in totals),
        )

    def read_counts(self) -> None:
        """Read the expensive counts of every thread: context switches and migrations.

        The cost is not included in `look_ns`; call this rarely.
        """
        self._own_wait_ns = _own_wait_ns()
        for thread in self._threads.values():
            thread.last.update(_read_counts(thread.pid, thread.tid))

    def start(self) -> None:
        """Start counting; usage up to this moment counts as setup."""
        self._started_ns = self._sampled_ns = self._idle_since_ns = time.monotonic_ns()
        self._sampled_ms = 0
        self._own_wait_ns = _own_wait_ns()
        for thread in self._threads.values():
            thread.base = dict(thread.last)

    def bind(self, cpus: tuple[CpuId, ...]) -> None:
        """Bind every existing thread to `cpus`, as `taskset -ap` does."""
        for pid in self._processes:
            for tid in thread_ids(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(tid, cpus)
        for thread in self._threads.values():
            thread.allowed.clear()

    def close(self) -> tuple[ThreadEvidence, ...]:
        """Stop sampling; returns the observations of each thread."""
        for thread in self._threads.values():
            thread.close()
        return tuple(map(_evidence, sorted(self._all_threads(), key=lambda thread: thread.tid)))

    def _all_threads(self) -> tuple[_Thread, ...]:
        """Every thread seen so far, including ended ones."""
        return (*self._ended, *self._threads.values())

    def _now_ms(self) -> int:
        if self._started_ns is None:
            return 0
        return (time.monotonic_ns() - self._started_ns) // 1_000_000

    def _sample_thread(self, pid: int, tid: int, now_ms: int, *, thorough: bool) -> None:
        try:
            thread = self._threads.get(tid)
            if thread is None:
                thread = self._threads[tid] = _open(pid, tid)
            allowed = tuple(CpuId(cpu) for cpu in sorted(os.sched_getaffinity(tid)))
            if allowed not in thread.allowed:
                thread.allowed.append(allowed)
            stat = _read_stat(thread.stat)
            thread.state, cpu = stat.state, CpuId(stat.cpu)
            if thread.schedstat is not None:
                times_ns = procfs.schedstat(os.pread(thread.schedstat, 128, 0))
                if times_ns is not None:
                    thread.last["run_ns"], thread.last["wait_ns"] = times_ns
            if thorough:
                thread.last.update(_read_counts(pid, tid))
        except (OSError, ValueError):
            self._note_end(tid)  # it ended in the meantime
            return
        if self._started_ns is not None:
            _add_stay(thread, cpu, self._sampled_ms, now_ms)
        thread.active_ns = thread.last.get("run_ns")

    def _active_ns(self) -> int:
        """Total run and run-queue wait time of the live threads so far."""
        return sum(
            thread.last["run_ns"] + thread.last["wait_ns"]
            for thread in self._threads.values()
            if "run_ns" in thread.last
        )

    def _note_suspension(self, now_ns: int, active_ns: int) -> None:
        """Add the time since the last sample if the processes were suspended during it.

        Being idle is no evidence by itself: an iteration may sleep, or wait for a disk or
        another process. The processes count as suspended in each of these cases:

        - A thread was stopped at both samples.
        - Their cgroup was frozen.
        - This process did not run either, although it was due and not waiting for a CPU.
        """
        since_ns = now_ns - self._sampled_ns
        paused_ns = self._paused_ns()
        was_paused, self._paused_before_ns = paused_ns > self._paused_before_ns, paused_ns
        is_stopped = not was_paused and any(map(self._is_stopped, self._threads.values()))
        if was_paused or active_ns > _IDLE_SHARE * since_ns:
            self._idle_since_ns = now_ns
        elif is_stopped and self._was_stopped:
            self.suspended_ns += since_ns
        elif now_ns - self._due_ns >= _LATE_NS and (
            _own_wait_ns() - self._own_wait_ns <= _IDLE_SHARE * since_ns
        ):
            self.suspended_ns += since_ns
            self._idle_since_ns = now_ns
        elif now_ns - self._idle_since_ns >= _FROZEN_CHECK_NS:
            is_frozen = any(cgroups.is_frozen(LIVE, pid) for pid in self._processes)
            if is_frozen and self._was_frozen:
                self.suspended_ns += now_ns - self._idle_since_ns
            self._was_frozen, self._idle_since_ns = is_frozen, now_ns
        self._was_stopped = is_stopped
        self._sampled_ns = now_ns
        self._due_ns = now_ns + self.pause_s * 1e9

    def _is_stopped(self, thread: _Thread) -> bool:
        """Whether a signal, or a tracer outside the launch, has stopped the thread."""
        if thread.state != "t":
            return thread.state == "T"
        tracer = line_number(_thread_file(thread.pid, thread.tid, "status"), b"TracerPid")
        return tracer is not None and tracer not in self._processes

    def _note_end(self, tid: int) -> None:
        """Note that a thread has ended and close its files: there may be a thousand of them."""
        if (thread := self._threads.pop(tid, None)) is not None:
            thread.close()
            self._ended.append(thread)


def _add_stay(thread: _Thread, cpu: CpuId, before_ms: int, now_ms: int) -> None:
    run_ns = thread.last.get("run_ns")
    if run_ns is not None and run_ns == (thread.active_ns or 0):
        return  # idle since the last sample, so it used no CPU
    latest = thread.stays[-1] if thread.stays else None
    if latest is not None and latest.cpu == cpu and latest.to_ms >= before_ms:
        thread.stays[-1] = Stay(cpu=cpu, from_ms=latest.from_ms, to_ms=now_ms)
    else:
        thread.stays.append(Stay(cpu=cpu, from_ms=before_ms, to_ms=now_ms))


def _open(pid: int, tid: int) -> _Thread:
    folder = f"/proc/{pid}/task/{tid}"
    stat = os.open(f"{folder}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        schedstat: int | None = os.open(f"{folder}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        schedstat = None  # the kernel was built without it
    return _Thread(tid=tid, pid=pid, name=_read_stat(stat).name, stat=stat, schedstat=schedstat)


def _read_stat(descriptor: int) -> ProcessStat:
    return ProcessStat(os.pread(descriptor, 1024, 0))


def _own_wait_ns() -> int:
    """Run-queue wait of the sampling thread; 0 where unknown."""
    times_ns = procfs.schedstat(procfs.read("/proc/thread-self/schedstat"))
    return times_ns[1] if times_ns else 0


def _read_counts(pid: int, tid: int) -> dict[str, int]:
    """The expensive counts: context switches, and migrations if the kernel shows them."""
    status, sched = _thread_file(pid, tid, "status"), _thread_file(pid, tid, "sched")
    counts = {
        "voluntary": line_number(status, b"voluntary_ctxt_switches"),
        "involuntary": line_number(status, b"nonvoluntary_ctxt_switches"),
        "migrations": line_number(sched, b"se.nr_migrations "),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _thread_file(pid: int, tid: int, name: str) -> bytes:
    return procfs.read(f"/proc/{pid}/task/{tid}/{name}")


def _peak_rss_bytes(processes: set[int]) -> int | None:
    """The sum of the processes' peaks: an upper bound of the process tree's peak."""
    peaks_kb = (line_number(procfs.read(f"/proc/{pid}/status"), b"VmHWM") for pid in processes)
    peak_kb = sum_known(peaks_kb)
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
