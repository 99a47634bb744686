"""What is kept: the run, then one record a launch, whatever became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from corebound.model.host_check import HostCheck
from corebound.model.plan import Cell, Command, Placement
from corebound.model.serving import Served
from corebound.model.telemetry import Counters, Disturbance, HostOverTime, Marked
from corebound.model.topology import CpuId, Topology
from corebound.model.wire import Operator

SCHEMA = 1
# Of imported profiles, which are files of their own.
PROFILE_SCHEMA = 1

Status = Literal["ok", "failed", "timed-out", "invalid", "skipped"]
Kind = Literal["measure", "profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU that CUDA could use: what CUDA_VISIBLE_DEVICES calls it, and its model's name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What bounds the floating-point throughput of a core; None where it is not known.

    Attributes:
        core: Name of the core's design, such as `Zen 4`.
        simd: The widest instructions it has, such as `AVX-512`.
        simd_bits: Their width.
        fma_units: Fused multiply-adds of that width that a core begins in a cycle.
        clock_hz: Its clock.
        assumptions: What of this was not read from the host but taken to hold, in words.
    """

    core: str | None
    simd: str | None
    simd_bits: int | None
    fma_units: int | None
    clock_hz: int | None
    assumptions: tuple[str, ...]

    def flop_per_s(self, *, cores: int, bits: int) -> float | None:
        """Of so many cores, with numbers of so many bits; None where a factor is not known.

        Cores × units × lanes × 2 × clock, for a fused multiply-add is two operations.
        """
        if self.simd_bits is None or self.fma_units is None or self.clock_hz is None:
            return None
        return float(cores * self.fma_units * (self.simd_bits // bits) * 2 * self.clock_hz)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine.

    `id` is stable: machine-id, CPU model and topology hashed, so that a renamed
    host stays itself and a resized one is another. `gpus` and `peak` are None in
    records of a corebound that did not look for them.
    """

    id: str
    name: str
    cpu_model: str
    kernel: str
    os: str
    memory_bytes: int | None
    topology: Topology
    gpus: tuple[Gpu, ...] | None = None
    peak: Peak | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentLock:
    """What an environment held: interpreter and `name==version` of every package.

    `sha256` hashes its requirements file; it is empty for `host`, corebound's own.
    `commit` is the one that it holds of the project under test, where it does; the
    project itself is then none of `packages`.
    """

    name: str
    sha256: str
    python: str
    packages: tuple[str, ...]
    commit: Commit | None = None


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

    Times are ISO 8601 in UTC, to the second. `preflight` is what `corebound doctor`
    saw of the host when the run began; None in records of a corebound that did not look.
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
    preflight: tuple[HostCheck, ...] | None = None


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
    """Where an iteration's time goes; the fields are those of `wire.Profile`.

    A launch's profile has all of them; one made elsewhere has what its files tell.

    Attributes:
        iterations: None: where iterations begin is not told, and every figure is of
            all that was profiled instead of an iteration.
        step_ns, outside_ns: None: when the iterations began and ended is not told.
    """

    iterations: int | None
    step_ns: int | None
    outside_ns: int | None
    operators: tuple[Operator, ...]
    phases: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedProfile:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What one worker said, and what was seen of it.

    `wall_ns` and `cpu_ns` hold every iteration, warm-ups included, one for one;
    the first iteration ran before the worker was told to go. Both are empty, and
    `profile` is not None, where its operators were profiled. `work` is what one
    iteration does, counted by unit; empty where the workload does not say.
    `node_bytes` is its own memory by node, as its iterations ended; empty where the
    kernel does not say. `disturbed` are the iterations that something outside disturbed.
    `counters` is what the hardware counted of it and what it started; None where it did
    not, for which the launch's counters have the reason.
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
    node_bytes: dict[int, int] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    disturbed: tuple[Marked, ...] = ()
    counters: Counters | None = None


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
        served: What requests came to, where the workload is a server; its workers
            then have no samples.
        attempt: How many launches of this cell in this block were refused before it,
            for they were disturbed.
        host: The host while the workers were timed, and disturbance: what that did to
            the launch. None where it was not watched, or not disturbed.
        counters: What its processes were counted to do meanwhile, or None.
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
    served: Served | None = None
    attempt: int = 0
    host: HostOverTime | None = None
    disturbance: Disturbance | None = None
    counters: Counters | None = None
