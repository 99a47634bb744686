"""Builders of domain objects: each has a default for everything a test is not about."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.machine.doctor.result import HostCheck
from corebound.machine.identity import Host
from corebound.machine.peak_flops import Peak
from corebound.machine.topology import Cache, CoreKey, Cpu, CpuId, Node, NodeId, Topology
from corebound.planning.models import Command, Placement, Slot
from corebound.records import jsonl
from corebound.records.calibration import CALIBRATION_SCHEMA, Calibration, Noise
from corebound.records.history import HistoryPoint, HistoryPoints, Series
from corebound.records.launch_record import (
    Launch,
    OperatorProfile,
    Served,
    Status,
    Stay,
    ThreadEvidence,
    Worker,
)
from corebound.records.run_record import SCHEMA, Commit, EnvironmentLock, Run, ScenarioSource
from corebound.records.telemetry import HostOverTime, HostWindow, QuotaUse
from corebound.scenario.cell import Binding, Cell, Threads
from corebound.scenario.models import Scenario
from corebound.scenario.traffic import (
    Answered,
    Client,
    GeneratorOrder,
    Lengths,
    Shape,
    Streaming,
    Traffic,
    Warmed,
)
from corebound.stats import latency
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import CONFIDENCE, Interval
from corebound.worker.operator_table import Operator


def a_host(
    *,
    nodes: int = 1,
    cores_per_node: int = 2,
    cpus_per_core: int = 1,
    adjacent_siblings: bool = False,
    allowed: frozenset[int] | None = None,
) -> Topology:
    """A regular machine: one package and one cache a node.

    Siblings are far apart (0 and 2 of a 2-core machine) unless `adjacent_siblings`.
    """
    cores = nodes * cores_per_node
    cpus = []
    for core in range(cores):
        for thread in range(cpus_per_core):
            number = core * cpus_per_core + thread if adjacent_siblings else thread * cores + core
            node = core // cores_per_node
            cpus.append(
                Cpu(
                    id=CpuId(number),
                    core=CoreKey(package=node, die=0, core=core % cores_per_node),
                    node=NodeId(node),
                    cache=node,
                    kind=None,
                    allowed=allowed is None or number in allowed,
                )
            )
    cpus.sort(key=lambda cpu: cpu.id)
    on = [tuple(cpu.id for cpu in cpus if cpu.node == node) for node in range(nodes)]
    return Topology(
        cpus=tuple(cpus),
        offline=(),
        nodes=tuple(
            Node(
                id=NodeId(node),
                cpus=on[node],
                memory_bytes=8 << 30,
                distances=tuple((NodeId(to), 10 if to == node else 21) for to in range(nodes)),
                allowed=True,
            )
            for node in range(nodes)
        ),
        caches=tuple(Cache(level=3, size_bytes=32 << 20, cpus=cpus_) for cpus_ in on),
        memory_bytes=nodes * (8 << 30),
    )


def a_cell(
    *,
    scenario: str = "a-scenario",
    axes: tuple[tuple[str, str], ...] = (),
    binding: Binding | None = None,
    threads: Threads | None = None,
    workers: int = 1,
) -> Cell:
    """A cell of plain Python, unbound, default threads."""
    return Cell(
        scenario=scenario,
        axes=axes,
        binding=binding or Binding(),
        threads=threads or Threads(),
        workers=workers,
        framework="none",
        environment="host",
        parameters=(),
        env=(),
        where="a-scenario.yaml:1",
    )


def a_scenario(**document: Any) -> Scenario:
    """A scenario of two bindings of a command; whatever is given replaces that."""
    return Scenario.model_validate(
        {
            "schema": 1,
            "name": "a-scenario",
            "title": "A scenario",
            "question": "Does binding pay?",
            "workload": {"command": ["true"]},
            "matrix": {"binding": ["none", "one-cpu"]},
            **document,
        }
    )


def a_machine(*, topology: Topology | None = None, name: str = "a-host") -> Host:
    """A host as the records know it, of two cores."""
    return Host(
        id=f"{name}-0123456789ab",
        name=name,
        cpu_model="A CPU of 2 GHz",
        kernel="6.1.0",
        os="Debian GNU/Linux 12",
        memory_bytes=8 << 30,
        topology=topology or a_host(),
        gpus=(),
        peak=a_peak(),
    )


def a_peak(*, clock_hz: int | None = 2_000_000_000) -> Peak:
    """Cores of 2 × 16 × 2 × 2 GHz = 128 GFLOP/s each in float32."""
    return Peak(
        core="Zen 5",
        simd="AVX-512",
        simd_bits=512,
        fma_units=2,
        clock_hz=clock_hz,
        assumptions=("the clock is the nominal one",),
    )


def a_run(
    *,
    scenarios: tuple[Scenario, ...] | None = None,
    run_id: str = "r1",
    started_at: str = "2026-01-02T03:04:05Z",
    host: Host | None = None,
    seed: int = 1,
    commit: Commit | None = None,
    environments: tuple[EnvironmentLock, ...] = (),
) -> Run:
    """A run of scenarios with no profile, in no repository."""
    return Run(
        schema=SCHEMA,
        id=run_id,
        started_at=started_at,
        corebound="0.1.0",
        argv=("corebound", "run", "scenarios/a-scenario.yaml"),
        seed=seed,
        profile=None,
        only=(),
        host=host or a_machine(),
        commit=commit,
        scenarios=tuple(
            ScenarioSource(
                path=f"scenarios/{scenario.name}.yaml",
                sha256="0" * 64,
                document=scenario.document(),
            )
            for scenario in (scenarios if scenarios is not None else (a_scenario(),))
        ),
        environments=environments,
    )


def write_records(folder: Path, run: Run, *launches: Launch) -> Path:
    """Store a run below a folder of records; returns its file."""
    file = jsonl.file_of(run, folder)
    appender = jsonl.begin(run, file)
    for launch in launches:
        appender.append(launch)
    appender.publish()
    appender.close()
    return file


def repeated(launches: Sequence[Launch], run: str, factor: float) -> list[Launch]:
    """The launches as if another run had measured so many times their durations."""
    return [
        replace(
            launch,
            run=run,
            workers=tuple(
                replace(worker, wall_ns=tuple(round(factor * ns) for ns in worker.wall_ns))
                for worker in launch.workers
            ),
        )
        for launch in launches
    ]


def a_thread(
    *,
    tid: int = 100,
    allowed: tuple[int, ...] = (0, 1),
    stays: tuple[tuple[int, int, int], ...] = ((0, 0, 1000),),
    migrations: int | None = 0,
    run_ns: int | None = 1_000_000_000,
    wait_ns: int | None = 0,
    involuntary: int | None = 0,
    name: str = "worker",
) -> ThreadEvidence:
    """A thread that stayed on CPU 0 for a second; stays are (cpu, from_ms, to_ms)."""
    return ThreadEvidence(
        tid=tid,
        pid=100,
        name=name,
        allowed=(tuple(CpuId(cpu) for cpu in allowed),),
        stays=tuple(Stay(cpu=CpuId(cpu), from_ms=begin, to_ms=end) for cpu, begin, end in stays),
        run_ns=run_ns,
        wait_ns=wait_ns,
        migrations=migrations,
        voluntary=0,
        involuntary=involuntary,
    )


def a_worker(
    *,
    slot: int = 0,
    wall_ns: tuple[int, ...] = (1_000_000,) * 30,
    cpu_ns: tuple[int, ...] | None = None,
    threads: tuple[ThreadEvidence, ...] | None = None,
    threads_asked: int | None = None,
    threads_used: int | None = None,
) -> Worker:
    """A worker of thirty iterations of a millisecond, with one thread."""
    return Worker(
        slot=slot,
        wall_ns=wall_ns,
        cpu_ns=wall_ns if cpu_ns is None else cpu_ns,
        phases={"import": 1_000_000, "setup": 1_000_000, "first": 1_000_000},
        threads_asked=threads_asked,
        threads_used=threads_used,
        inter_op_used=None,
        python="3.11.2",
        versions={},
        blas=None,
        environment={},
        threads=(a_thread(),) if threads is None else threads,
        peak_rss_bytes=64 << 20,
    )


def a_placement(
    *, cpus: tuple[int, ...] = (0, 1), bound: bool = True, threads: int | None = None
) -> Placement:
    """A placement of one worker on CPUs, by taskset where it is bound."""
    return Placement(
        slots=(Slot(cpus=tuple(CpuId(cpu) for cpu in cpus)),),
        threads=threads,
        backend="taskset" if bound else "none",
        memory="default",
        moment="before-start",
        bound=bound,
    )


def a_comparison(
    speedup_ratio: float,
    ends: tuple[float, float] | None = None,
    *,
    verdict: Verdict = "inconclusive",
    pairs: int = 4,
    p_value: float | None = None,
) -> Comparison:
    """A comparison with this ratio, and the interval with these ends."""
    return Comparison(
        speedup_ratio=speedup_ratio,
        interval=Interval(low=ends[0], high=ends[1], confidence=CONFIDENCE) if ends else None,
        verdict=verdict,
        pairs=pairs,
        per_block=(),
        p_value=p_value,
        launches_needed=None,
    )


def a_launch(
    *,
    cell: Cell | None = None,
    run: str = "r1",
    block: int = 0,
    position: int = 0,
    status: Status = "ok",
    reason: str | None = None,
    fix: str | None = None,
    evidence: tuple[str, ...] = (),
    placement: Placement | None = None,
    workers: tuple[Worker, ...] | None = None,
    leftover_processes: tuple[str, ...] = (),
    log: str = "",
) -> Launch:
    """A launch that went well, of one worker; skipped ones have no worker."""
    skipped = status == "skipped"
    if workers is None:
        workers = () if skipped else (a_worker(),)
    return Launch(
        id=f"{block}-{position}",
        run=run,
        block=block,
        position=position,
        cell=cell or a_cell(),
        status=status,
        reason=reason,
        fix=fix,
        evidence=evidence,
        placement=placement or (None if skipped else a_placement()),
        commands=() if skipped else (Command(argv=("true",), env=()),),
        started_at="2026-01-02T03:04:06Z",
        duration_ns=1_000_000_000,
        overhead_ns=10_000_000,
        looks=10,
        look_ns=500_000,
        workers=workers,
        leftover_processes=leftover_processes,
        log=log,
    )


def timed(ms: float, **of_launch: Any) -> Launch:
    """A launch of thirty iterations of so many milliseconds."""
    return a_launch(workers=(a_worker(wall_ns=(round(ms * 1e6),) * 30),), **of_launch)


def timed_blocks(cell: Cell, ms: float, blocks: int = 6, **of_launch: Any) -> list[Launch]:
    """Launches of a cell, half a per cent about a time, so that there is a spread at all."""
    return [
        timed(ms * (1 + 0.005 * (-1) ** block), cell=cell, block=block, **of_launch)
        for block in range(blocks)
    ]


def a_window(
    *,
    from_ms: int = 0,
    to_ms: int = 500,
    foreign_ms: int | None = 0,
    waited_ms: int | None = 0,
    rested_ms: int | None = 0,
    steal_ms: int | None = 0,
    throttled_ms: int | None = 0,
    most_waited_ms: int | None = None,
    most_stolen_ms: int | None = None,
    **changes: Any,
) -> HostWindow:
    """Half a second in which nothing disturbed a launch."""

    def ns(ms: int | None) -> int | None:
        return None if ms is None else ms * 1_000_000

    return HostWindow(
        from_ms=from_ms,
        to_ms=to_ms,
        steal_ns=ns(steal_ms),
        foreign_ns=ns(foreign_ms),
        rested_ns=ns(rested_ms),
        waited_ns=ns(waited_ms),
        throttled_ns=ns(throttled_ms),
        most_waited_ns=ns(most_waited_ms),
        most_stolen_ns=ns(most_stolen_ms),
        **changes,
    )


def a_quota_use(
    *, cpus: float = 0.5, periods: int | None = 100, throttled: int | None = 80
) -> QuotaUse:
    """A CPU quota of half a CPU that stopped threads for 40 ms in each throttled period."""
    return QuotaUse(
        cpus=cpus,
        period_us=100_000,
        periods=periods,
        throttled_periods=throttled,
        throttled_ns=None if throttled is None else throttled * 40_000_000,
    )


def a_host_over_time(*windows: HostWindow, cpus: tuple[int, ...] = (0,)) -> HostOverTime:
    """What was seen of one CPU's host; the rest it does not tell."""
    return HostOverTime(
        cpus=tuple(CpuId(cpu) for cpu in cpus),
        windows=windows,
        looks=len(windows),
        look_ns=100_000 * len(windows),
    )


def an_operator(type_: str = "conv", total_ns: int = 600_000, *, calls: float = 2) -> Operator:
    """A type of operator whose calls are all as long as one another."""
    call_ns = round(total_ns / calls)
    return Operator(
        type=type_,
        calls=calls,
        total_ns=total_ns,
        quiet_ns=round(total_ns * 0.9),
        min_ns=round(call_ns * 0.9),
        max_ns=round(call_ns * 1.1),
    )


def a_profiled_launch(
    *operators: Operator,
    cell: Cell | None = None,
    position: int = 0,
    outside_ns: int = 100_000,
    phases: dict[str, int] | None = None,
    trace: str | None = None,
) -> Launch:
    """A launch that profiled ten iterations, whose operators and the rest add up to a step."""
    listed = operators or (an_operator(), an_operator("add", 300_000))
    profile = OperatorProfile(
        iterations=10,
        step_ns=sum(one.total_ns for one in listed) + outside_ns,
        outside_ns=outside_ns,
        operators=listed,
        phases=phases or {},
    )
    launch = a_launch(
        cell=cell, position=position, workers=(replace(a_worker(wall_ns=()), profile=profile),)
    )
    launch_id = f"{launch.cell.scenario}-profile-{position}"
    return replace(launch, id=launch_id, kind="profile", trace=trace)


# What each shape of traffic has to have.
OF_A_SHAPE: dict[Shape, dict[str, Any]] = {
    "closed": {"concurrency": 4},
    "constant": {"rate_per_s": 100.0},
    "poisson": {"rate_per_s": 100.0},
    "single-stream": {},
    "multi-stream": {"samples_a_query": 4},
    "server": {"rate_per_s": 100.0, "bound_ms": 50.0},
    "offline": {},
    "rate-search": {"bound_ms": 50.0},
}


def a_traffic(
    *,
    shape: Shape = "closed",
    requests: int = 100,
    warmup_requests: int = 0,
    client: Client = "corebound",
    seed: int = 1,
    timeout_s: float = 30.0,
    **of_the_shape: Any,
) -> Traffic:
    """A traffic that lacks nothing its shape has to have."""
    return Traffic(
        shape=shape,
        requests=requests,
        warmup_requests=warmup_requests,
        client=client,
        seed=seed,
        timeout_s=timeout_s,
        **{**OF_A_SHAPE[shape], **of_the_shape},
    )


def a_streaming(**changes: Any) -> Streaming:
    """Short prompts and answers, without bounds."""
    streaming = Streaming(
        prompt_tokens=Lengths(median=32, spread=0.5, most=128),
        output_tokens=Lengths(median=8, spread=0.5, most=32),
        vocabulary=1_000,
    )
    return replace(streaming, **changes)


def an_order(*, traffic: Traffic | None = None, **changes: Any) -> GeneratorOrder:
    """An order to send to a server that is not there."""
    order = GeneratorOrder(
        traffic=traffic or a_traffic(), host="127.0.0.1", port=8080, path="/predictions/model"
    )
    return replace(order, **changes)


def an_answered(
    *,
    latencies_ns: Sequence[int] = (20_000_000,) * 100,
    lateness_ns: Sequence[int] = (10_000,) * 100,
    **changes: Any,
) -> Answered:
    """What came of a hundred requests, four at a time, that went well."""
    answered = Answered(
        began_ns=1_000_000_000,
        duration_ns=500_000_000,
        ok=len(latencies_ns),
        errors={},
        latencies=latency.encode(latencies_ns),
        lateness=latency.encode(lateness_ns),
        waited=0,
        window_ns=100_000_000,
        windows=(),
        cpu_ns=10_000_000,
        wall_ns=500_000_000,
        connections=4,
        opened=0,
    )
    return replace(answered, **changes)


def a_served(
    *, answered: Answered | None = None, shape: Shape = "closed", apart: bool = True
) -> Served:
    """A launch of a server that went well, beside a generator on CPU 0."""
    return Served(
        startup_ns=10**9,
        stop_ns=10**9,
        traffic=a_traffic(shape=shape),
        generator_cpus=(CpuId(0),),
        apart=apart,
        warmed=Warmed(ok=10, errors={}),
        answered=answered or an_answered(),
        cpu_ns=400_000_000,
        restarts=0,
    )


def a_point(value: float | None = 100.0, *, day: int = 0, **changes: Any) -> HistoryPoint:
    """A night's figure, so many days after the first of January, each of a commit of its own."""
    at = f"{date(2026, 1, 1) + timedelta(days=day)}T02:00:00Z"
    sha = f"{day:040x}"
    point = HistoryPoint(
        at=at,
        run=f"run{day}",
        commit=Commit(sha=sha, subject=f"change {day}", committed_at=at, dirty=False),
        value=value,
        bounds=None,
        launches=(),
        missing=None if value is not None else "failed: no reason",
        environment_key=(("kernel", "6.1"),),
    )
    return replace(point, **changes)


def a_series(values: Sequence[float | None], **changes: Any) -> Series:
    """A night for every figure."""
    series = Series(
        project=None,
        host="h0",
        host_name="host",
        scenario="matmul",
        title="Matrix product",
        cell="default",
        unit="ns",
        margin=0.02,
        reproduce=("corebound", "run", "matmul.yaml"),
        points=HistoryPoints.of(a_point(value, day=day) for day, value in enumerate(values)),
    )
    return replace(series, **changes)


def a_calibration(**changes: Any) -> Calibration:
    """Two copies of a cell that varied by 2 % a pair, over thirty pairs."""
    made = Calibration(
        schema=CALIBRATION_SCHEMA,
        run="c1",
        at="2026-01-01T00:00:00Z",
        host="a-host",
        host_name="a-host",
        kernel="6.1.0",
        environment="host",
        lock="",
        scenario="a-scenario",
        sha256="",
        profile=None,
        cell="binding=none",
        blocks=30,
        pair_spread_ratio=0.02,
        launch_spread_ratio=0.015,
        speedup_ratio=1.0,
        interval=(0.99, 1.01),
        verdict="equivalent",
        noise=(
            Noise(launches=6, floor_ratio=0.021, false_alarm_rate=0.03, detectable_ratio=0.04),
            Noise(launches=30, floor_ratio=0.007, false_alarm_rate=0.0, detectable_ratio=None),
        ),
    )
    return replace(made, **changes)


def a_host_check(**changes: Any) -> HostCheck:
    """What a doctor saw: nothing to mind."""
    made = HostCheck(
        check="load", group="load", state="ok", value="0.1", why="it is busy.", fix=None, undo=None
    )
    return replace(made, **changes)
