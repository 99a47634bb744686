"""The evidence on a running service, as the rules of a scenario's cells take it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal

from msgspec import Struct

from corebound.diagnosis.evidence import Disturbed, Finding, FindingTone, Loss
from corebound.machine.topology import CpuId, NodeId, Topology
from corebound.records.service_use import GroupUse, ProcessUse, ServiceUse, ThreadUse
from corebound.records.telemetry import Cause, QuotaUse
from corebound.records.thread_use import LEAST_BUSY_SHARE
from corebound.scenario.runtimes import LIBRARY_THREADS
from corebound.units import percent, significant

# `certain`: counters show the condition and its harm. `likely`: one of the two is inferred.
# `possible`: nothing is lost now, or another explanation is as good.
Certainty = Literal["certain", "likely", "possible"]

# A service that uses less than this share of a CPU is idle.
LEAST_ACTIVE = 0.05
# A thread that is ready for a smaller share of the interval does not compute.
_LEAST_COMPUTING = 0.02
# A thread that wakes up, looks and sleeps again runs for 5 to 20 µs each time. On a busy host it
# may wait for seconds in all, without any work to do.
_SHORTEST_SLICE_NS, _WAKING_SHARE = 30_000, 0.005
# A process that is ready for less than this share of the busiest one is no worker.
_LEAST_WORKING = 0.2
# On a busy host, one that only wakes up may wait as long as those that work, but runs less.
_LEAST_RUNNING = 0.1
# Run-queue wait, as a share of ready time, from which others on its CPUs cost a service time.
LEAST_WAIT = 0.2
# Others that use less than this share of its CPUs, and a hypervisor that takes less, cost little.
_LEAST_LOST = 0.1
# Threads of one pool are started in a loop, in much less than this many clock ticks (30 ms).
_POOL_TICKS = 3
# A core is free if its CPUs are idle for at least this share of the interval.
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
    def assignment(self) -> tuple[str, str] | None:
        """The variable that its line sets, and the value; None if it sets none."""
        name, sign, value = self.line.partition(" ")[0].partition("=")
        is_variable = bool(sign) and re.fullmatch(r"[A-Z_]+", name) is not None
        return (name, value) if is_variable and name != "LD_PRELOAD" else None


class ServiceEvidence:
    """A running service, with the properties of a `Subject`."""

    unit = "iteration"
    over: str
    involuntary = cpu_time_ns = wall_time_ns = stops_hidden = None
    is_late = has_default_threads = False
    quota_setting = ""

    def __init__(self, use: ServiceUse) -> None:
        self.use = use
        self.over = f"in {significant(use.duration_ns / 1e9, 2)} s"

    @cached_property
    def active(self) -> tuple[ProcessUse, ...]:
        """The processes that work, busiest first."""
        most_ns = max(map(ready_ns, self.use.processes), default=0)
        least_ns = max(_LEAST_WORKING * most_ns, _LEAST_COMPUTING * self.use.duration_ns)
        most_cpu_ns = max((one.cpu_ns for one in self.use.processes), default=0)
        working = [
            one
            for one in self.use.processes
            if ready_ns(one) >= least_ns and one.cpu_ns >= _LEAST_RUNNING * most_cpu_ns
        ]
        return tuple(sorted(working, key=ready_ns, reverse=True))

    def computing(self, process: ProcessUse) -> tuple[ThreadUse, ...]:
        """The threads that it computes with, busiest first."""
        if is_serial_python(process, self.use.duration_ns):
            return process.threads[:1]
        most_ns = process.threads[0].ready_ns if process.threads else 0
        least_ns = max(LEAST_BUSY_SHARE * most_ns, _LEAST_COMPUTING * self.use.duration_ns)
        return tuple(
            thread
            for thread in process.threads
            if thread.ready_ns >= least_ns and not self._only_wakes_up(thread)
        )

    def _only_wakes_up(self, thread: ThreadUse) -> bool:
        is_short = thread.run_ns < _SHORTEST_SLICE_NS * thread.slices
        return is_short and thread.run_ns < _WAKING_SHARE * self.use.duration_ns

    @property
    def busy_cpus(self) -> float:
        """The CPUs that the service kept busy."""
        return sum(one.cpu_ns for one in self.use.processes) / self.use.duration_ns

    @property
    def major_faults_per_s(self) -> float:
        """Page faults that waited for a disk."""
        faults = sum(one.major_faults for one in self.use.processes)
        return faults / self.use.duration_ns * 1e9

    @property
    def minor_faults_per_s(self) -> float:
        """The other page faults."""
        faults = sum(one.minor_faults for one in self.use.processes)
        return faults / self.use.duration_ns * 1e9

    @property
    def is_idle(self) -> bool:
        """Whether it had too little to do for any conclusion."""
        ready = self.ready_cpus(self.use.processes)
        is_throttled = (self.throttled_share or 0) > 0
        return max(ready, self.busy_cpus) < LEAST_ACTIVE and (
            not is_throttled and self.major_faults_per_s < 1
        )

    @cached_property
    def _allowed(self) -> Mapping[int, frozenset[CpuId]]:
        return {one.process.pid: allowed_cpus(one) for one in self.use.processes}

    def affinity(self, process: ProcessUse) -> frozenset[CpuId]:
        """The CPUs that a process may use."""
        return self._allowed[process.process.pid]

    @property
    def cpus(self) -> frozenset[CpuId]:
        """The CPUs that its working processes may use."""
        return frozenset(cpu for one in self.active for cpu in self._allowed[one.process.pid])

    @property
    def room(self) -> int | None:
        """CPUs of the process with most threads."""
        largest = self._largest
        return len(self._allowed[largest.process.pid]) or None if largest else None

    @property
    def workers(self) -> int:
        """The number of its processes that work."""
        return max(1, len(self.active))

    @cached_property
    def _largest(self) -> ProcessUse | None:
        return max(self.active, key=lambda one: len(self.computing(one)), default=None)

    @property
    def threads(self) -> int | None:
        """Threads that its largest process computes with."""
        return len(self.computing(self._largest)) if self._largest else None

    @property
    def reported_threads(self) -> int | None:
        """Those that compute at once: if others make them wait, only as many as are ready."""
        threads, largest = self.threads, self._largest
        if largest is None or threads is None or self.foreign_share < LEAST_WAIT:
            return threads
        if self.ready_cpus(self.active) > len(self.cpus):
            return threads
        return min(threads, math.floor(self.ready_cpus((largest,)) + 0.5))

    def ready_cpus(self, processes: Iterable[ProcessUse]) -> float:
        """How many threads that compute were ready on average."""
        threads = (thread for one in processes for thread in self.computing(one))
        return sum(thread.ready_ns for thread in threads) / self.use.duration_ns

    @property
    def wait_share(self) -> float | None:
        """Run-queue wait of the threads that compute, as a share of their ready time."""
        threads = [thread for one in self.active for thread in self.computing(one)]
        all_ns = sum(thread.ready_ns for thread in threads)
        return sum(thread.wait_ns for thread in threads) / all_ns if all_ns else None

    @property
    def migrations(self) -> float | None:
        """Moves of its busiest threads between CPUs, as sampled."""
        return sum(before != after for before, after in self._moves())

    def node_moves(self, topology: Topology) -> float:
        """Those between nodes."""
        nodes = {cpu.id: cpu.node for cpu in topology.cpus}
        return sum(nodes.get(before) != nodes.get(after) for before, after in self._moves())

    def _moves(self) -> Iterable[tuple[CpuId, CpuId]]:
        for one in self.active:
            for thread in one.threads:
                yield from pairwise(thread.visited)

    def remote_share(self, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
        """Share of its memory on nodes that none of its CPUs belongs to."""
        if len(set(nodes.values())) < 2:
            return None
        remote = total = 0
        for one in self.active:
            own = {nodes.get(cpu) for cpu in self._allowed[one.process.pid]}
            total += sum(one.process.node_bytes.values())
            remote += sum(size for node, size in one.process.node_bytes.items() if node not in own)
        return remote / total if total else None

    @property
    def node_bytes(self) -> Mapping[int, int]:
        """Its memory by node."""
        by_node: Counter[int] = Counter()
        for one in self.active:
            by_node.update(one.process.node_bytes)
        return by_node

    @property
    def affinities(self) -> tuple[tuple[frozenset[CpuId], ...], ...]:
        """The CPUs that each working process may use."""
        return (tuple(self._allowed[one.process.pid] for one in self.active),)

    def spare_cores(self, topology: Topology) -> int:
        """Idle cores that its group may use and its affinity excludes."""
        allowed = self.use.group_cpus or frozenset(self.use.cpus)
        cores: dict[object, list[CpuId]] = {}
        for cpu in topology.cpus:
            cores.setdefault(cpu.core, []).append(cpu.id)
        return sum(
            allowed.issuperset(cpus) and self.cpus.isdisjoint(cpus) and all(map(self.is_free, cpus))
            for cpus in cores.values()
        )

    def is_free(self, cpu: CpuId) -> bool:
        """Whether a CPU was idle for most of the interval."""
        use = self.use.cpus.get(cpu)
        return use is not None and use.idle_ns >= _FREE * self.use.duration_ns

    def of_launches(self, number: int) -> tuple[str, ...]:
        """Nothing: it was started once."""
        del number
        return ()

    @property
    def is_pinned(self) -> bool:
        """Whether its one working process may use one CPU although its group has more."""
        allowed = self.use.group_cpus or frozenset(self.use.cpus)
        return self.workers == 1 and self.room == 1 and len(allowed) > 1

    @property
    def is_kept_waiting(self) -> bool:
        """Whether its threads wait for CPUs for a good part of their ready time."""
        return (self.wait_share or 0) >= LEAST_WAIT

    @property
    def group(self) -> GroupUse | None:
        """The group whose quota stopped threads most often; the tightest, if none did."""
        return max(
            self.use.quotas,
            key=lambda one: (_throttled_share(one.quota) or 0, -one.quota.cpus),
            default=None,
        )

    @property
    def quota(self) -> QuotaUse | None:
        """The quota of that group."""
        return self.group.quota if self.group else None

    @property
    def quota_is_own(self) -> bool:
        """Whether that group is its own."""
        return self.group is None or self.group.is_own

    @property
    def throttled_share(self) -> float | None:
        """The share of periods in which that quota stopped threads."""
        return None if self.quota is None else _throttled_share(self.quota)

    @property
    def throttled_cpus_share(self) -> float:
        """For how long, as a share of its CPUs."""
        throttled_ns = self.quota.throttled_ns or 0 if self.quota else 0
        return throttled_ns / (self.use.duration_ns * max(1, len(self.cpus)))

    @property
    def foreign_share(self) -> float:
        """The share of its CPUs that others used."""
        cpus = [self.use.cpus[cpu] for cpu in self.cpus if cpu in self.use.cpus]
        all_ns = self.use.duration_ns * len(cpus)
        used_ns = sum(one.cpu_ns for one in self.use.processes) + self.use.own_ns
        rest_ns = sum(cpu.idle_ns + cpu.steal_ns for cpu in cpus)
        return max(0.0, (all_ns - rest_ns - used_ns) / all_ns) if all_ns else 0.0

    @property
    def steal_share(self) -> float:
        """The share of its CPUs that the hypervisor gave to others."""
        stolen = [self.use.cpus[cpu].steal_ns for cpu in self.cpus if cpu in self.use.cpus]
        return sum(stolen) / (self.use.duration_ns * len(stolen)) if stolen else 0.0

    def disturbed(self, cause: Cause) -> Disturbed | None:
        """Whether others, or a hypervisor, took its CPUs."""
        wait, cpus = self.wait_share or 0.0, len(self.cpus)
        lines: tuple[str, ...] = (f"run-queue wait: {percent(wait, 0)} of ready time",)
        if cause == "foreign load" and self.is_kept_waiting and self.foreign_share >= _LEAST_LOST:
            used = significant(self.foreign_share * cpus, 2)
            lines = (*lines, f"others used {used} of its {cpus} CPUs")
            return Disturbed(share=wait, when=self.over, lines=lines)
        if cause == "steal" and self.steal_share >= _LEAST_LOST:
            lines = (f"steal: {percent(self.steal_share, 0)} of its {cpus} CPUs",)
            return Disturbed(share=self.steal_share, when=self.over, lines=lines)
        return None

    def binding_advice(self) -> str:
        """How to give each process its own CPUs."""
        return ", or `taskset -c CPUS command` for each"

    def setting(self, own: str, outside: str) -> str:
        """What to set: only a scenario has settings of its own."""
        del own
        return outside

    def thread_setting(self, own: str, number: int, each: str = "") -> tuple[str, str]:
        """What sets the threads of its largest process: an option, a library, or a variable."""
        del own
        setting, line = what_sets_threads(self._largest, number, each)
        reading = self._largest.process if self._largest else None
        if (
            reading is None
            or self.foreign_share < LEAST_WAIT
            or "OMP_WAIT_POLICY" in reading.variables
            or not any(map(_OPENMP.match, reading.libraries))
        ):
            return setting, line
        # A pool that fits spins at its barriers, also while others hold the CPU it waits for.
        passive = "OMP_WAIT_POLICY=passive"
        return f"{setting} and {passive}, as others use its CPUs", f"{line} {passive}".lstrip()

    @property
    def runnable_cpus(self) -> float | None:
        """The tightest quota."""
        return min((one.quota.cpus for one in self.use.quotas), default=None)

    def finding(
        self,
        *,
        rule: str,
        what: str,
        evidence: tuple[str, ...],
        fix: str,
        line: str = "",
        loss: Loss | None = None,
        tone: FindingTone = "warn",
        times_ratio: float = 1.0,
        certainty: Certainty | None = None,
        processes: Iterable[ProcessUse] = (),
    ) -> ServiceFinding:
        """A finding about the service; without `processes`, about all that work."""
        del loss
        affected = tuple(processes) or self.active or self.use.processes
        return ServiceFinding(
            rule=rule,
            tone=tone,
            what=what,
            evidence=evidence,
            fix=fix,
            cells=(),
            times_ratio=times_ratio,
            line=line,
            certainty=certainty or ("certain" if rule in _CERTAIN else "likely"),
            pids=tuple(one.process.pid for one in affected),
        )


class Pool(Struct, frozen=True, kw_only=True):
    """Threads of a process that were started together, after its main thread."""

    threads: tuple[ThreadUse, ...]

    @property
    def size(self) -> int:
        """Its threads, with the one that gives them work and computes too."""
        return len(self.threads) + 1


def pools(process: ProcessUse, threads: Iterable[ThreadUse]) -> tuple[Pool, ...]:
    """The pools that some threads of a process belong to, largest first."""
    others = [one for one in threads if one.tid != process.process.pid]
    others.sort(key=lambda one: one.started)
    found: list[list[ThreadUse]] = []
    for one in others:
        if found and one.started - found[-1][-1].started <= _POOL_TICKS:
            found[-1].append(one)
        else:
            found.append([one])
    return tuple(Pool(threads=tuple(each)) for each in sorted(found, key=len, reverse=True))


def named_threads(process: ProcessUse) -> dict[str, tuple[ThreadUse, ...]]:
    """The threads of a process by name, without the numbers in names."""
    ordered = sorted(process.threads, key=lambda one: base_name(one.name))
    return {name: tuple(each) for name, each in groupby(ordered, lambda one: base_name(one.name))}


def base_name(name: str) -> str:
    """A thread's name without its number: `worker-7` becomes `worker`."""
    return name.rstrip("0123456789").rstrip(" -_#:/[(") or name


def ready_ns(process: ProcessUse) -> int:
    """How long its threads ran or waited to run."""
    return max(process.cpu_ns, sum(thread.ready_ns for thread in process.threads))


def allowed_cpus(process: ProcessUse) -> frozenset[CpuId]:
    """The CPUs that its threads may run on."""
    cpus = frozenset(cpu for thread in process.threads for cpu in thread.allowed)
    return cpus or frozenset(process.process.allowed)


def thread_variables(process: ProcessUse) -> dict[str, int]:
    """The variables that set its number of threads, with the number of the outermost level."""
    names = {
        name: value.partition(",")[0].strip()
        for name, value in process.process.variables.items()
        if name.endswith("_NUM_THREADS") or name in _THREAD_VARIABLES
    }
    return {name: int(value) for name, value in names.items() if value.isdecimal() and int(value)}


_THREAD_VARIABLES = {
    "GOMAXPROCS",
    "NUMEXPR_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "VECLIB_MAXIMUM_THREADS",
}


_READS_OPENMP = re.compile(r"lib(g|i)?omp|libmkl|mkl_|.*openblas|libblis|libtorch")
_OPENMP = re.compile(r"lib(g|i)?omp")
_THREAD_OPTION = re.compile(r"(-t|--?(n|num|nb|max)?[-_]?(threads|jobs|thread[-_]?count))(=|$)")


def what_sets_threads(process: ProcessUse | None, number: int, each: str) -> tuple[str, str]:
    """What sets the number of threads of a process, in words, and the line to copy.

    Args:
        process: The process.
        number: The number to set.
        each: What to append to a variable, such as ` for each process`.
    """
    reading = process.process if process else None
    words = reading.command if reading else ()
    if option := next((word for word in words if _THREAD_OPTION.match(word)), None):
        line = f"{option.partition('=')[0]} {number}"
        return f"its option `{line}`", line
    if "joblib" in " ".join(words):
        line = f"inner_max_num_threads={number}"
        return f"`joblib.parallel_config({line})`, which sets the variables of its workers", line
    names = reading.libraries if reading else ()
    for part, (setting, of) in LIBRARY_THREADS.items():
        if any(part in name for name in names):
            line = setting.format(number)
            return f"{line}{of}{each}", line
    variables = thread_variables(process) if process else {}
    if variables or any(map(_READS_OPENMP.match, names)):
        line = f"{next(iter(variables), 'OMP_NUM_THREADS')}={number}"
        return f"{line}{each}", line
    return f"{number} in its own option for the number of threads{each}", ""


def is_serial_python(process: ProcessUse, duration_ns: int) -> bool:
    """Whether only one of its threads can run at a time, because of the interpreter's lock.

    Libraries that compute release the lock, and an interpreter without it uses more than a CPU.
    """
    program = process.process.command[0].rpartition("/")[2] if process.process.command else ""
    return (
        program.startswith("python")
        and not process.process.libraries
        and process.cpu_ns <= 1.1 * duration_ns
    )


def _throttled_share(quota: QuotaUse) -> float | None:
    if (quota.periods or 0) < _LEAST_PERIODS:
        return None
    return quota.throttled_share
