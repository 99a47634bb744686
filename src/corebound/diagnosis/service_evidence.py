"""The evidence on a running service, as the rules of a scenario's cells take it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Literal

from corebound.diagnosis.evidence import Disturbed, Finding
from corebound.machine.topology import CpuId, NodeId, Topology
from corebound.planning.placement import threads_within_quota
from corebound.records.service_use import GroupUse, ProcessUse, ServiceUse, ThreadUse
from corebound.records.telemetry import Cause
from corebound.records.thread_use import LEAST_BUSY_SHARE
from corebound.scenario.runtimes import LIBRARY_THREADS
from corebound.units import cpu_quota, percent, significant

# `certain`: counters show the condition and its harm. `likely`: one of the two is inferred.
# `possible`: nothing is lost now, or another explanation is as good.
Certainty = Literal["certain", "likely", "possible"]

# A service that uses less than this share of a CPU is idle.
_LEAST_ACTIVE = 0.05
# A thread that is ready for a smaller share of the interval does not compute.
_LEAST_COMPUTING = 0.02
# A thread that wakes up, looks and sleeps again runs for 5 to 20 µs each time. On a busy host it
# may wait for seconds in all, without any work to do.
_SHORTEST_SLICE_NS, _WAKING_SHARE = 30_000, 0.005
# A process that is ready for less than this share of the busiest one is no worker.
_LEAST_WORKING = 0.2
# Where CPUs are scarce, one that only wakes up may wait as long as those that work, but runs less:
# threads as well as processes.
_LEAST_RUNNING = 0.1
# Run-queue wait, as a share of ready time, from which others on its CPUs cost a service time.
LEAST_WAIT = 0.2
# Others that use less than this share of its CPUs, and a hypervisor that takes less, cost little.
_LEAST_LOST = 0.1
# Threads of one pool are started in a loop, in much less than this many clock ticks (30 ms).
_POOL_TICKS = 3
# Threads that take turns also use CPU time to wake up: up to a quarter more, when emulated.
_LOCKED_CPUS = 1.25
# The thread that hands work to a pool is ready a little longer than the pool waits: 0.01 CPUs with
# TensorFlow. One thread too many is ready for a whole CPU.
_AT_HAND_OVER = 0.2
# A CPU is free if it is idle for at least this share of the interval.
_FREE = 0.8
# With fewer periods, a single one that was throttled would already be a tenth of them.
_LEAST_PERIODS = 10
_CERTAIN = {
    "throttled",
    "throttled-by-parent",
    "more-threads-than-quota",
    "more-threads-than-cpus",
    "processes-with-all-threads",
    "workers-overlap",
    "pinned-to-one-cpu",
    "foreign-load",
    "steal",
    "swapping",
    "major-faults",
}


class ServiceFinding(Finding, frozen=True, kw_only=True):
    """A likely cause found in a running service.

    Attributes:
        certainty: How sure it is.
        pids: The processes that it affects.
    """

    certainty: Certainty
    pids: tuple[int, ...]

    @property
    def assignments(self) -> dict[str, str]:
        """The variables that its line sets, with their values; empty if it is no such line."""
        words = [word.partition("=") for word in self.line.split(" ")]
        if not all(sign and re.fullmatch(r"[A-Z_]+", name) for name, sign, _ in words):
            return {}
        return {name: value for name, _, value in words if name != "LD_PRELOAD"}


class ServiceEvidence:
    """A running service, with the properties of a `Subject`: those of its processes that work.

    Attributes:
        use: What was seen of it.
        active: The processes that work, busiest first; largest: the one with most threads that
            compute, if any does.
        computing: The threads that each process computes with, by its id, busiest first.
        threads: Those of `largest`; reported_threads: those that are ready at once, if others make
            them wait; room: its CPUs.
        busy_cpus: The CPUs that the service kept busy.
        foreign_share, steal_share: The shares of its CPUs that others, and the hypervisor, used.
        free_cpus: The idle time of its CPUs, in CPUs.
        is_kept_waiting: Whether its threads wait for CPUs for a good part of their ready time;
            waiting_line: how long, in words; waiting_ratio: how many times as long it takes.
        group_cpus: The CPUs that its cgroup allows.
        is_pinned: Whether its one process that works may use a single one of several.
        group: The quota that stopped threads most often; the tightest, if none did;
            throttled_share: of its periods; throttled_cpus_share: of its CPUs.
        swap_bytes: Its memory in swap; major_faults_per_s: its page faults that waited for a disk.
        is_idle: Whether it had too little to do for any conclusion.
    """

    unit = "iteration"
    involuntary = cpu_time_ns = wall_time_ns = stops_hidden = None
    is_late = has_default_threads = False
    quota_setting = ""

    def __init__(self, use: ServiceUse) -> None:
        """Compute what rules take of a service."""
        self.use, duration_ns = use, use.duration_ns
        self.over = f"in {significant(duration_ns / 1e9, 2)} s"
        self.active = _active(use)
        self.computing = {
            process.pid: _computing(process, duration_ns) for process in use.processes
        }
        self.workers = max(1, len(self.active))
        self.wait_share = waited(
            [thread for process in self.active for thread in self.computing[process.pid]]
        )
        waited_share = self.wait_share or 0
        self.is_kept_waiting = waited_share >= LEAST_WAIT
        self.waiting_line = f"run-queue wait: {percent(waited_share, 0)} of ready time"
        self.waiting_ratio = 1 / (1 - min(waited_share, 0.9))
        self.affinities = (tuple(process.cpus for process in self.active),)
        self.group_cpus = use.group_cpus or frozenset(use.cpus)
        self.cpus = frozenset(cpu for process in self.active for cpu in process.cpus)
        spent = [use.cpus[cpu] for cpu in self.cpus if cpu in use.cpus]
        all_ns = max(1, duration_ns * len(spent))
        idle_ns, steal_ns = sum(cpu.idle_ns for cpu in spent), sum(cpu.steal_ns for cpu in spent)
        used_ns = sum(process.cpu_ns for process in use.processes)
        foreign_ns = all_ns - idle_ns - steal_ns - used_ns - use.own_ns if spent else 0
        self.busy_cpus, self.free_cpus = used_ns / duration_ns, idle_ns / duration_ns
        self.foreign_share, self.steal_share = max(0.0, foreign_ns / all_ns), steal_ns / all_ns
        self.largest = max(
            self.active, key=lambda process: len(self.computing[process.pid]), default=None
        )
        self.threads: int | None = None
        self.reported_threads: int | None = None
        self.room: int | None = None
        if self.largest is not None:
            self.room = len(self.largest.cpus) or None
            self.threads = self.reported_threads = len(self.computing[self.largest.pid])
            is_shared = self.foreign_share >= LEAST_WAIT
            if is_shared and self._ready_cpus(self.active) <= len(self.cpus) + _AT_HAND_OVER:
                at_once = math.floor(self._ready_cpus((self.largest,)) + 0.5)
                self.reported_threads = min(self.threads, at_once)
        self.is_pinned = self.workers == 1 and self.room == 1 and len(self.group_cpus) > 1
        self.group = max(
            use.quotas,
            key=lambda group: (_throttled_share(group) or 0, -group.quota.cpus),
            default=None,
        )
        self.throttled_share = _throttled_share(self.group) if self.group else None
        self.quota = self.group.quota if self.group else None
        self.quota_is_own = self.group is None or self.group.is_own
        throttled_ns = (self.quota.throttled_ns or 0) if self.quota else 0
        self.throttled_cpus_share = throttled_ns / (duration_ns * max(1, len(self.cpus)))
        self.runnable_cpus = min((group.quota.cpus for group in use.quotas), default=None)
        self.swap_bytes = sum(process.swap_bytes or 0 for process in use.processes)
        faults = sum(process.major_faults for process in use.processes)
        self.major_faults_per_s = faults / duration_ns * 1e9
        self.node_bytes = sum(
            (Counter(process.node_bytes) for process in self.active), Counter[int]()
        )
        self.is_idle = (
            max(self._ready_cpus(use.processes), self.busy_cpus) < _LEAST_ACTIVE
            and not self.throttled_share
            and self.major_faults_per_s < 1
        )

    def _ready_cpus(self, processes: Iterable[ProcessUse]) -> float:
        """How many threads that compute were ready on average."""
        threads = (thread for process in processes for thread in self.computing[process.pid])
        return sum(thread.ready_ns for thread in threads) / self.use.duration_ns

    @property
    def pooled(self) -> tuple[int, int]:
        """The usual number of threads of its processes that have several, and how many have."""
        sizes = [
            number for process in self.active if (number := len(self.computing[process.pid])) > 1
        ]
        return (max(sizes, key=sizes.count) if sizes else 1), len(sizes)

    @property
    def migrations(self) -> float | None:
        """Moves of its busiest threads between CPUs, as sampled."""
        return sum(before != after for before, after in self._moves())

    def node_moves(self, topology: Topology) -> float:
        """Those between nodes."""
        nodes = {cpu.id: cpu.node for cpu in topology.cpus}
        return sum(nodes.get(before) != nodes.get(after) for before, after in self._moves())

    def _moves(self) -> Iterable[tuple[CpuId, CpuId]]:
        return (
            move
            for process in self.active
            for thread in process.threads
            for move in pairwise(thread.visited)
        )

    def remote_share(self, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
        """Share of its memory on nodes that none of its CPUs belongs to."""
        total = sum(self.node_bytes.values())
        if len(set(nodes.values())) < 2 or not total:
            return None
        remote = 0
        for process in self.active:
            own = {nodes.get(cpu) for cpu in process.cpus}
            remote += sum(size for node, size in process.node_bytes.items() if node not in own)
        return remote / total

    def spare_cores(self, topology: Topology) -> int:
        """Idle cores that its group may use and its affinity excludes."""
        cores: dict[object, set[CpuId]] = {}
        for cpu in topology.cpus:
            cores.setdefault(cpu.core, set()).add(cpu.id)
        free = {
            cpu
            for cpu, use in self.use.cpus.items()
            if cpu in self.group_cpus - self.cpus and use.idle_ns >= _FREE * self.use.duration_ns
        }
        return sum(cpus <= free for cpus in cores.values())

    def disturbed(self, cause: Cause) -> Disturbed | None:
        """Whether others, or a hypervisor, took its CPUs."""
        cpus = len(self.cpus)
        if cause == "foreign load" and self.is_kept_waiting and self.foreign_share >= _LEAST_LOST:
            used = significant(self.foreign_share * cpus, 2)
            lines = (self.waiting_line, f"others used {used} of its {cpu_quota(cpus)}")
            return Disturbed(share=self.wait_share or 0, when=self.over, lines=lines)
        if cause == "steal" and self.steal_share >= _LEAST_LOST:
            line = f"steal: {percent(self.steal_share, 0)} of its {cpu_quota(cpus)}"
            return Disturbed(share=self.steal_share, when=self.over, lines=(line,))
        return None

    def binding_advice(self) -> str:
        """How to give each process its own CPUs."""
        return ", or `taskset -c CPUS command` for each"

    def setting(self, own: str, outside: str) -> str:
        """What to set: only a scenario has settings of its own."""
        del own
        return outside

    def thread_setting(self, own: str, number: int, each: str = "") -> tuple[str, str]:
        """What sets the threads of its largest process, or of each that has several."""
        del own
        usual = (each for each in self.active if len(self.computing[each.pid]) == self.pooled[0])
        process = next(usual, None) if each else self.largest
        if process is None:
            return f"{number} threads", ""
        setting, line = what_sets_threads(process, len(self.computing[process.pid]), number, each)
        if (
            not line
            or self.foreign_share < LEAST_WAIT
            or "OMP_WAIT_POLICY" in process.variables
            or not any(map(_OPENMP.match, process.libraries))
        ):
            return setting, line
        # A pool that fits spins at its barriers, also while others hold the CPU it waits for.
        passive = "OMP_WAIT_POLICY=passive"
        return f"{setting} and {passive}, as others use its CPUs", f"{line} {passive}"

    def capacity(self, process: ProcessUse) -> int:
        """The threads that a process can run at once, by its CPUs and by the tightest quota."""
        cpus = len(process.cpus) or 1
        return max(1, min(cpus, math.ceil(self.runnable_cpus or cpus)))

    def fitting(self, process: ProcessUse) -> int:
        """The threads for a process that leave room for the others on its CPUs and in its quota."""
        sharing = max(1, sum(not other.cpus.isdisjoint(process.cpus) for other in self.active))
        cpus = max(1, len(process.cpus) // sharing)
        return threads_within_quota(self.runnable_cpus, cpus=cpus, workers=self.workers)

    def finding(
        self,
        *,
        rule: str,
        certainty: Certainty | None = None,
        processes: Iterable[ProcessUse] = (),
        loss: object = None,
        **fields: Any,
    ) -> ServiceFinding:
        """A finding about some processes, or else about all that work; `loss` is always None."""
        del loss
        affected = tuple(processes) or self.active or self.use.processes
        usual: dict[str, Any] = {"tone": "warn", "cells": (), "times_ratio": 1.0}
        return ServiceFinding(
            rule=rule,
            certainty=certainty or ("certain" if rule in _CERTAIN else "likely"),
            pids=tuple(process.pid for process in affected),
            **(usual | fields),
        )


def _active(use: ServiceUse) -> tuple[ProcessUse, ...]:
    processes = sorted(use.processes, key=lambda process: process.ready_ns, reverse=True)
    most_cpu_ns = max((process.cpu_ns for process in processes), default=0)
    return tuple(
        process
        for process in processes
        if process.ready_ns >= _LEAST_WORKING * processes[0].ready_ns
        and process.ready_ns >= _LEAST_COMPUTING * use.duration_ns
        and process.cpu_ns >= _LEAST_RUNNING * most_cpu_ns
    )


def _computing(process: ProcessUse, duration_ns: int) -> tuple[ThreadUse, ...]:
    if is_serial_python(process, duration_ns):
        return process.threads[:1]
    most_ns = process.threads[0].ready_ns if process.threads else 0
    most_run_ns = max((thread.run_ns for thread in process.threads), default=0)
    least_ns = max(LEAST_BUSY_SHARE * most_ns, _LEAST_COMPUTING * duration_ns)
    return tuple(
        thread
        for thread in process.threads
        if thread.ready_ns >= least_ns
        and thread.run_ns >= _LEAST_RUNNING * most_run_ns
        and (
            thread.run_ns >= _SHORTEST_SLICE_NS * thread.slices
            or thread.run_ns >= _WAKING_SHARE * duration_ns
        )
    )


def is_serial_python(process: ProcessUse, duration_ns: int) -> bool:
    """Whether one of its threads can run at a time, because of the interpreter's lock.

    Libraries that compute release the lock, and an interpreter without it uses more than a CPU.
    """
    program = process.command[0].rpartition("/")[2] if process.command else ""
    is_python = program.startswith("python") and not process.libraries
    return is_python and process.cpu_ns <= _LOCKED_CPUS * duration_ns


def pools(process: ProcessUse, threads: Iterable[ThreadUse]) -> tuple[tuple[ThreadUse, ...], ...]:
    """The pools that some threads of a process belong to, without its main thread, largest first.

    Threads of a pool are started together.
    """
    others = sorted(
        (thread for thread in threads if thread.tid != process.pid),
        key=lambda thread: thread.started,
    )
    found: list[list[ThreadUse]] = []
    for thread in others:
        if found and thread.started - found[-1][-1].started <= _POOL_TICKS:
            found[-1].append(thread)
        else:
            found.append([thread])
    return tuple(map(tuple, sorted(found, key=len, reverse=True)))


def waited(threads: Sequence[ThreadUse]) -> float | None:
    """Run-queue wait of threads, as a share of their ready time; None if they were never ready."""
    all_ns = sum(thread.ready_ns for thread in threads)
    return sum(thread.wait_ns for thread in threads) / all_ns if all_ns else None


def named_threads(process: ProcessUse) -> dict[str, tuple[ThreadUse, ...]]:
    """The threads of a process by name."""
    ordered = sorted(process.threads, key=base_name)
    return {name: tuple(each) for name, each in groupby(ordered, base_name)}


def base_name(thread: ThreadUse) -> str:
    """A thread's name without its number: `worker` of `worker-7`."""
    return thread.name.rstrip("0123456789").rstrip(" -_#:/[(") or thread.name


def thread_variables(process: ProcessUse) -> dict[str, int]:
    """The variables that set its number of threads, with the number of the outermost level."""
    names = {
        name: value.partition(",")[0].strip()
        for name, value in process.variables.items()
        if _THREAD_VARIABLE.fullmatch(name)
    }
    return {name: int(value) for name, value in names.items() if value.isdecimal() and int(value)}


_THREAD_VARIABLE = re.compile(
    r"\w+_NUM_THREADS|GOMAXPROCS|(NUMEXPR|POLARS)_MAX_THREADS|TF_NUM_INTRAOP_THREADS"
    r"|VECLIB_MAXIMUM_THREADS"
)
_READS_OPENMP = re.compile(r"lib(g|i)?omp|libmkl|mkl_|.*openblas|libblis|libtorch")
_OPENMP = re.compile(r"lib(g|i)?omp")
_THREAD_OPTION = re.compile(
    r"(?<!\S)(-t|--?(?:n|num|nb|max)?[-_]?(?:threads|jobs|thread[-_]?count))(=|\s+)(\d{1,9})(?!\S)"
)


def what_sets_threads(
    process: ProcessUse, threads: int, number: int, each: str = ""
) -> tuple[str, str]:
    """What sets the number of threads of a process, in words, and the line to copy.

    What already has such a value did not set it, so it is not named.

    Args:
        process: The process.
        threads: The number that it has.
        number: The number to set.
        each: What to append to a variable, such as ` for each process`.
    """
    words = " ".join(process.command)
    for option, _, value in _THREAD_OPTION.findall(words):
        # `--threads` of a server may be those that take requests.
        if max(number, threads - 2) < int(value) <= threads + 1:
            line = f"{option} {number}"
            return f"its option `{line}`", line
    if "joblib" in words and (line := f"inner_max_num_threads={number}") not in words:
        return f"`joblib.parallel_config({line})`, which sets the variables of its workers", line
    variables = thread_variables(process)
    for part, (setting, of) in LIBRARY_THREADS.items():
        line = setting.format(number)
        name, _, _ = line.partition("=")
        is_set = line in process.command or variables.get(name, number + 1) <= number
        if any(part in library for library in process.libraries) and not is_set:
            return f"{line}{of}{each}", line
    larger = [name for name, value in variables.items() if value > number]
    if not variables and any(map(_READS_OPENMP.match, process.libraries)):
        larger = ["OMP_NUM_THREADS"]
    if larger:
        line = " ".join(f"{name}={number}" for name in larger)
        return f"{line}{each}", line
    if variables:
        calls = "torch.set_num_threads, omp_set_num_threads"
        return f"{number} in its code ({calls}), which its variables do not limit{each}", ""
    return f"{number} in its own option for the number of threads{each}", ""


def _throttled_share(group: GroupUse) -> float | None:
    return group.quota.throttled_share if (group.quota.periods or 0) >= _LEAST_PERIODS else None
