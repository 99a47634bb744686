"""What is kept: the run, then one record a launch, whatever became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from corebound.model.plan import Cell, Command, Placement
from corebound.model.topology import CpuId, Topology
from corebound.model.wire import Operator

SCHEMA = 1

Status = Literal["ok", "failed", "timed-out", "invalid", "skipped"]
Kind = Literal["measure", "profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine.

    `id` is stable: machine-id, CPU model and topology hashed, so that a renamed
    host stays itself and a resized one is another.
    """

    id: str
    name: str
    cpu_model: str
    kernel: str
    os: str
    memory_bytes: int | None
    topology: Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentLock:
    """What an environment held: interpreter and `name==version` of every package.

    `sha256` hashes its requirements file; it is empty for `host`, corebound's own.
    """

    name: str
    sha256: str
    python: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioSource:
    """A scenario as it was when the run began, so that a page needs no other file.

    `document` is `Scenario.document()`; `sha256` hashes it in canonical JSON.
    """

    path: str
    sha256: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The revision of the project under test."""

    sha: str
    subject: str
    committed_at: str
    dirty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One invocation of `run`: everything that is the same for all its launches.

    Times are ISO 8601 in UTC, to the second.
    """

    schema: int
    id: str
    started_at: str
    corebound: str
    argv: tuple[str, ...]
    seed: int
    profile: Literal["quick", "nightly"] | None
    only: tuple[str, ...]
    host: Host
    commit: Commit | None
    scenarios: tuple[ScenarioSource, ...]
    environments: tuple[EnvironmentLock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A thread was on one CPU from one look to a later one.

    Times are milliseconds since the launch's workers were told to go, so the
    time before is negative. Only stretches in which the thread used CPU time count.
    """

    cpu: CpuId
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEvidence:
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

    tid: int
    pid: int
    name: str
    allowed: tuple[tuple[CpuId, ...], ...]
    stays: tuple[Stay, ...]
    run_ns: int | None
    wait_ns: int | None
    migrations: int | None
    voluntary: int | None
    involuntary: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorProfile:
    """Where an iteration's time goes; the fields are those of `wire.Profile`."""

    iterations: int
    step_ns: int
    outside_ns: int
    operators: tuple[Operator, ...]
    phases: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What one worker said, and what was seen of it.

    `wall_ns` and `cpu_ns` hold every iteration, warm-ups included, one for one;
    the first iteration ran before the worker was told to go. Both are empty, and
    `profile` is not None, where its operators were profiled. `work` is what one
    iteration does, counted by unit; empty where the workload does not say.
    """

    slot: int
    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    phases: dict[str, int]
    threads_asked: int | None
    threads_used: int | None
    inter_op_used: int | None
    python: str | None
    versions: dict[str, str]
    blas: str | None
    environment: dict[str, str]
    threads: tuple[ThreadEvidence, ...]
    peak_rss_bytes: int | None
    profile: OperatorProfile | None = None
    work: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
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
    """

    id: str
    run: str
    block: int
    position: int
    cell: Cell
    status: Status
    reason: str | None
    mend: str | None
    evidence: tuple[str, ...]
    placement: Placement | None
    commands: tuple[Command, ...]
    started_at: str
    duration_ns: int
    overhead_ns: int
    looks: int
    look_ns: int
    workers: tuple[Worker, ...]
    strays: tuple[str, ...]
    log: str
    kind: Kind = "measure"
    trace: str | None = None
