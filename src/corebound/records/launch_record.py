"""The record of one launch: its workers, their telemetry and its outcome."""

from typing import Literal, NamedTuple

from msgspec import Struct, field

from corebound.bounded_numbers import Amount, Count, OffsetMs, Positive, Signed
from corebound.machine.topology import CpuId
from corebound.planning.models import Command, Placement
from corebound.records import telemetry
from corebound.scenario.cell import Cell
from corebound.scenario.traffic import Answered, Traffic, Warmed
from corebound.worker.operator_table import Operator
from corebound.worker.protocol import EndedBy

# The schema of imported profiles, which are files of their own.
PROFILE_SCHEMA = 1


class OperatorProfile(Struct, frozen=True, kw_only=True):
    """Where an iteration's time goes; the fields are those of `wire.Profile`.

    A launch's profile has all of them; an imported one has what its files contain.

    Attributes:
        iterations: None if the start of iterations is unknown. Every value then covers
            everything profiled instead of one iteration.
        step_ns, outside_ns: None if the start and end of the iterations are unknown.
    """

    iterations: Count | None
    step_ns: Count | None
    outside_ns: Count | None
    operators: tuple[Operator, ...]
    phases: dict[str, Count]


class ImportedProfile(Struct, frozen=True, kw_only=True):
    """An operator profile made by another tool.

    Attributes:
        schema: `PROFILE_SCHEMA` of the corebound that wrote it.
        name: The name from the user or from its files.
        source: The profiler that made it, and the files it was read from, in words.
        device: The device that its files name; None if they name none.
        files: Names of the files it was read from, without their folders.
    """

    schema: int
    name: str
    source: str
    device: str | None
    files: tuple[str, ...]
    profile: OperatorProfile


class Served(Struct, frozen=True, kw_only=True):
    """One launch of a server under one kind of traffic.

    Attributes:
        startup_ns: From its start until all workers were ready.
        stop_ns: From the stop request until its last process exited.
        generator_cpus: The CPUs that the generator was allowed to use.
        apart: Whether none of them is one of the server's.
        warmed, answered: The outcome of the warm-up requests and of the measured ones.
        cpu_ns: CPU time of all of the server's processes during the measurement.
        restarts: Worker processes that were new at the end of the measurement.
        began_us: When `answered.began_ns` was, since the start of monitoring, from which the times
            of threads count. None in older records.
    """

    startup_ns: Count
    stop_ns: Count
    traffic: Traffic
    generator_cpus: tuple[CpuId, ...]
    apart: bool
    warmed: Warmed
    answered: Answered
    cpu_ns: Signed
    restarts: Count
    began_us: Signed | None = None


Status = Literal["ok", "dropped", "failed", "timed-out", "invalid", "skipped"]
Kind = Literal["measure", "profile"]

# The start of the fix text of a discarded launch: true while its run is in progress.
CONTINUES = "It is launched again."


class Stay(Struct, frozen=True, kw_only=True):
    """A period in which a thread was on one CPU, between two readings.

    Times are milliseconds since the workers' start signal, so earlier
    times are negative. Only periods in which the thread used CPU time count.
    """

    cpu: CpuId
    from_ms: OffsetMs
    to_ms: OffsetMs


class TimeSlice(NamedTuple):
    """Iterations of a worker that alternated with others, between two hand-overs.

    `began_us` is in microseconds since the workers' start signal.
    """

    iterations: Count
    began_us: Signed


class ThreadEvidence(Struct, frozen=True, kw_only=True):
    """One thread of a worker's process tree, as observed from outside.

    Attributes:
        tid, pid: The kernel's numbers of the thread and of its process.
        name: The thread's name (comm).
        allowed: Every distinct set of allowed CPUs that was observed, in the order
            of first observation.
        stays: The CPUs it was observed on, in order.
        run_ns: Its CPU time; wait_ns: time it was runnable but waiting
            (schedstat). None if the kernel does not report it.
        migrations: Moves between CPUs counted by the kernel, or None.
        voluntary, involuntary: Context switches, or None.
    """

    tid: Count
    pid: Count
    name: str
    allowed: tuple[tuple[CpuId, ...], ...]
    stays: tuple[Stay, ...]
    run_ns: Count | None
    wait_ns: Count | None
    migrations: Count | None
    voluntary: Count | None
    involuntary: Count | None


class HugePages(Struct, frozen=True, kw_only=True):
    """The transparent huge pages of a worker's own memory at the end of its iterations.

    Attributes:
        disabled: Whether they are disabled for it altogether; None if the kernel does not say.
        size_bytes: Its memory in huge pages.
        unadvised_bytes: The part of it for which the program has not asked for huge pages.
    """

    disabled: bool | None
    size_bytes: Count
    unadvised_bytes: Count


class Worker(Struct, frozen=True, kw_only=True):
    """The results of one worker and its telemetry.

    `wall_ns` and `cpu_ns` hold every iteration, including warm-ups, in the same order.
    The first iteration runs before the worker's start signal. If the worker's operators
    were profiled, both are empty and `profile` is not None. `work` is the work of one
    iteration, counted by unit; empty if the workload does not report it.
    `node_bytes` is its own memory by node at the end of its iterations; empty if the
    kernel does not report it. `disturbed` are the iterations that something outside disturbed.
    `counters` are the hardware counters of it and its child processes. If it is None, the
    launch's counters have the reason. `time_slices` are those of the iterations after the
    first, in order; empty if the launch did not alternate with others. `pins_threads` is
    whether the framework binds each thread to a part of the worker's CPUs. `libraries` are the
    OpenMP runtimes and allocators that it has loaded, by the names of their files. `huge_pages`
    is None if its cell does not set them. `threads_used` and `inter_op_used` are the sizes of
    the framework's pools that it reported after the first iteration, `threads_after` the number
    of threads set at the end; None if it reported none. `metrics` has, for each iteration and each
    of the cell's metrics, the value that its command reported, then its samples, if it has any.
    """

    slot: Count
    wall_ns: tuple[Count, ...]
    cpu_ns: tuple[Count, ...]
    phases: dict[str, Count]
    threads_asked: Count | None
    threads_used: Count | None
    inter_op_used: Count | None
    python: str | None
    versions: dict[str, str]
    blas: str | None
    environment: dict[str, str]
    threads: tuple[ThreadEvidence, ...]
    peak_rss_bytes: Count | None
    profile: OperatorProfile | None = None
    node_bytes: dict[Count, Count] = field(default_factory=dict)
    work: dict[str, Amount] = field(default_factory=dict)
    disturbed: tuple[telemetry.DisturbedIterations, ...] = ()
    counters: telemetry.Counters | None = None
    time_slices: tuple[TimeSlice, ...] = field(default=(), name="stints")
    pins_threads: bool = False
    libraries: tuple[str, ...] = ()
    huge_pages: HugePages | None = None
    threads_after: Count | None = None
    metrics: tuple[tuple[tuple[Positive, ...], ...], ...] = ()


class Launch(Struct, frozen=True, kw_only=True):
    """One launch of a cell, whatever its outcome.

    Attributes:
        id: `scenario-block-position`, unique within the run.
        kind: Its purpose; a profiling launch has no samples and contributes to no
            statistic.
        block, position: The block, and the place in its random order; for a profiling
            launch, 0 and the cell's place in the scenario.
        status: Only `ok` launches contribute to a statistic.
        reason, fix: Why it is not `ok`, and how the user can fix it; else None.
        evidence: Each reason why it is `invalid`, in words.
        placement, commands: What was launched; None and empty if skipped
            before they were determined.
        started_at: ISO 8601 in UTC.
        duration_ns: From start to the end of the last process. Of launches that started at once,
            each its share: its turn, and an equal part of the time in which all import. In records
            without `started_with`, all of the time of those that alternated.
        overhead_ns: The part of it in which no worker was running.
        looks: How often the threads were sampled while the workers were
            timed; look_ns: CPU time of that.
        leftover_processes: Names of processes that outlived their worker and were ended.
        log: The tail of the workers' stdout and stderr.
        trace: Name of the gzipped Chrome trace of the first worker, stored beside the
            records.
        served: The outcome of the requests, if the workload is a server; its workers
            then have no samples.
        attempt: How many launches of this cell in this block were discarded before it
            because of disturbances.
        host: The host's telemetry while the workers were timed; disturbance: its effect on
            the launch. None if it was not monitored, or not disturbed.
        counters: Counters of its processes during that time, or None.
        alternated: The ids of the launches that it alternated with, time slice by time slice.
        pauses: How it was paused while they ran; None if it did not alternate, or in records of
            corebound 0.2.
        started_with: The ids of the launches that it started with, at once, to take turns.
        wait: How it was stopped after its import and before it was measured; None if it started by
            itself.
        quota: The CPU quota of its workers, set for the cell or found on the host; None without
            a quota, or if it was not read.
        ended_by: How a worker failed; None if none did, or in records of earlier versions.
        share_s: The share of the run's budget that ended it, in seconds, so that it has fewer
            iterations than requested; None if it ended by itself.
        least_iteration_ns: What an iteration takes at least, for a launch that its share ended
            before it had enough of them; None otherwise, and if its first one had not begun.
    """

    id: str
    run: str
    block: Count
    position: Count
    cell: Cell
    status: Status
    reason: str | None
    fix: str | None
    evidence: tuple[str, ...]
    placement: Placement | None
    commands: tuple[Command, ...]
    started_at: str
    duration_ns: Count
    overhead_ns: Signed
    looks: Count
    look_ns: Count
    workers: tuple[Worker, ...]
    leftover_processes: tuple[str, ...] = field(name="strays")
    log: str
    kind: Kind = "measure"
    trace: str | None = None
    served: Served | None = None
    attempt: Count = 0
    host: telemetry.HostOverTime | None = None
    disturbance: telemetry.Disturbance | None = None
    counters: telemetry.Counters | None = None
    alternated: tuple[str, ...] = ()
    pauses: telemetry.Pauses | None = None
    started_with: tuple[str, ...] = ()
    wait: telemetry.Pauses | None = None
    quota: telemetry.QuotaUse | None = None
    ended_by: EndedBy | None = None
    share_s: Amount | None = None
    least_iteration_ns: Count | None = None

    @property
    def own_duration_ns(self) -> float:
        """Its duration, without that of the launches that it alternated with."""
        return self.duration_ns / (1 if self.started_with else 1 + len(self.alternated))

    @property
    def peak_rss_bytes(self) -> int | None:
        """The peak memory of all its workers together; None if it is unknown."""
        known = [worker.peak_rss_bytes for worker in self.workers if worker.peak_rss_bytes]
        return sum(known) or None

    @property
    def faults_per_iteration(self) -> float | None:
        """Minor page faults of each timed iteration of each worker; None if they are unknown."""
        faults = self.host.total("minor_faults") if self.host else None
        # The first iteration runs before the host is observed.
        iterations = sum(max(len(worker.wall_ns) - 1, 0) for worker in self.workers)
        return faults / iterations if faults is not None and iterations else None
