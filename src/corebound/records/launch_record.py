"""One record a launch: its workers, what was seen of them, and what became of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct, field

from corebound.bounds import Amount, Count, OffsetMs, Signed
from corebound.machine.topology import CpuId
from corebound.planning.slots import Command, Placement
from corebound.records.telemetry import Counters, Disturbance, HostOverTime, Marked
from corebound.scenario.cell import Cell
from corebound.scenario.traffic import Answered, Traffic, Warmed
from corebound.worker.protocol import Operator

# Of imported profiles, which are files of their own.
PROFILE_SCHEMA = 1


class OperatorProfile(Struct, frozen=True, kw_only=True):
    """Where an iteration's time goes; the fields are those of `wire.Profile`.

    A launch's profile has all of them; one made elsewhere has what its files tell.

    Attributes:
        iterations: None: where iterations begin is not told, and every figure is of
            all that was profiled instead of an iteration.
        step_ns, outside_ns: None: when the iterations began and ended is not told.
    """

    iterations: Count | None
    step_ns: Count | None
    outside_ns: Count | None
    operators: tuple[Operator, ...]
    phases: dict[str, Count]


class ImportedProfile(Struct, frozen=True, kw_only=True):
    """An operator profile that was made elsewhere.

    Attributes:
        schema: `PROFILE_SCHEMA` of the corebound that wrote it.
        name: As the user or its files call it.
        source: The profiler that made it, and the files it was read from, in words.
        device: The device that its files name; None where they name none.
        files: Names of the files it was read from, without their folders.
    """

    schema: int
    name: str
    source: str
    device: str | None
    files: tuple[str, ...]
    profile: OperatorProfile


class Served(Struct, frozen=True, kw_only=True):
    """One launch of a server under one traffic.

    Attributes:
        startup_ns: From its start until all workers were ready.
        stop_ns: From being told to end until its last process was gone.
        traffic: What was sent.
        generator_cpus: Where the generator was allowed to run.
        apart: Whether none of them is one of the server's.
        warmed, answered: What came of the requests.
        cpu_ns: CPU time of all of the server's processes while it was measured.
        restarts: Processes of workers that were new at the end of the measurement.
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


Status = Literal["ok", "failed", "timed-out", "invalid", "skipped"]
Kind = Literal["measure", "profile"]

# What the mend of a launch that was refused begins with: true while its run goes on.
GOES_ON = "It is launched again."


class Stay(Struct, frozen=True, kw_only=True):
    """A thread was on one CPU from one look to a later one.

    Times are milliseconds since the launch's workers were told to go, so the
    time before is negative. Only stretches in which the thread used CPU time count.
    """

    cpu: CpuId
    from_ms: OffsetMs
    to_ms: OffsetMs


class TimeSlice(NamedTuple):
    """Iterations of a worker that alternated with others, between two hand-overs.

    `began_us` is in microseconds since the launch's workers were told to go.
    """

    iterations: Count
    began_us: Signed


class ThreadEvidence(Struct, frozen=True, kw_only=True):
    """One thread of a worker's process tree, as seen from outside.

    Attributes:
        tid, pid: The kernel's numbers of the thread and of its process.
        name: The thread's name (comm).
        allowed: Every different set of CPUs it was seen to be allowed, in the
            order they were seen.
        stays: Where it was seen, in order.
        run_ns: Its CPU time; wait_ns: time it was runnable but waiting
            (schedstat). None where the kernel does not say.
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


class Worker(Struct, frozen=True, kw_only=True):
    """What one worker said, and what was seen of it.

    `wall_ns` and `cpu_ns` hold every iteration, warm-ups included, one for one;
    the first iteration ran before the worker was told to go. Both are empty, and
    `profile` is not None, where its operators were profiled. `work` is what one
    iteration does, counted by unit; empty where the workload does not say.
    `node_bytes` is its own memory by node, as its iterations ended; empty where the
    kernel does not say. `disturbed` are the iterations that something outside disturbed.
    `counters` is what the hardware counted of it and what it started; None where it did
    not, for which the launch's counters have the reason. `stints` hold the iterations after
    the first, in their order; empty where the launch did not alternate with others.
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
    disturbed: tuple[Marked, ...] = ()
    counters: Counters | None = None
    stints: tuple[TimeSlice, ...] = ()


class Launch(Struct, frozen=True, kw_only=True):
    """One launch of a cell, whatever became of it.

    Attributes:
        id: `scenario-block-position`, unique within the run.
        kind: What it was for; one that profiles has no samples, and enters no
            statistic.
        block, position: Which block, and the place in its random order; 0 and
            the cell's place in the scenario where it profiles.
        status: Only `ok` launches enter a statistic.
        reason, mend: Why it is not `ok`, and what the user may do; else None.
        evidence: Each thing that makes it `invalid`, in words.
        placement, commands: What was launched; None and empty if skipped
            before there was any.
        started_at: ISO 8601 in UTC.
        duration_ns: From start to the end of the last process.
        overhead_ns: The part of it that no worker was alive.
        looks: How often the threads were looked at while the workers were
            timed; look_ns: CPU time of that.
        strays: Names of processes that outlived their worker and were ended.
        log: The tail of what the workers wrote to stdout and stderr.
        trace: Name of the Chrome trace that is kept beside the records, gzipped;
            of the first worker.
        served: What requests came to, where the workload is a server; its workers
            then have no samples.
        attempt: How many launches of this cell in this block were refused before it,
            for they were disturbed.
        host: The host while the workers were timed, and disturbance: what that did to
            the launch. None where it was not watched, or not disturbed.
        counters: What its processes were counted to do meanwhile, or None.
        alternated: The ids of the launches that it alternated with, stint by stint.
    """

    id: str
    run: str
    block: Count
    position: Count
    cell: Cell
    status: Status
    reason: str | None
    mend: str | None
    evidence: tuple[str, ...]
    placement: Placement | None
    commands: tuple[Command, ...]
    started_at: str
    duration_ns: Count
    overhead_ns: Signed
    looks: Count
    look_ns: Count
    workers: tuple[Worker, ...]
    strays: tuple[str, ...]
    log: str
    kind: Kind = "measure"
    trace: str | None = None
    served: Served | None = None
    attempt: Count = 0
    host: HostOverTime | None = None
    disturbance: Disturbance | None = None
    counters: Counters | None = None
    alternated: tuple[str, ...] = ()
