"""A run as it could have been: fifteen cells of a network on four CPUs of two nodes.

Nothing here was measured; the noise comes from a seeded generator, so that the
pages made of it are the same every time.
"""

import dataclasses
import functools
import gzip
import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.host_records import Record
from corebound.analysis.run_comparison import PastResults, past_results
from corebound.analysis.scenario_result import ScenarioResult
from corebound.machine.doctor.result import HostCheck, State
from corebound.planning.commands import command
from corebound.planning.models import Placement
from corebound.records.calibration import Calibration
from corebound.records.history import HistoryPoint, HistoryPoints, Series
from corebound.records.launch_record import (
    PROFILE_SCHEMA,
    ImportedProfile,
    Launch,
    OperatorProfile,
    ThreadEvidence,
    Worker,
)
from corebound.records.run_record import Commit, EnvironmentLock, Run
from corebound.records.telemetry import Counters, HostOverTime
from corebound.report import site
from corebound.report.elements import Page
from corebound.report.inputs import PageContext, RequestedComparison, SiteInputs
from corebound.report.pages.benchmark import ImportedBenchmark
from corebound.report.render import Kind, Renderer
from corebound.report.scenario.page import scenario_page
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.scenario.traffic import SampledRequest
from corebound.stats.history.series import series_of_run
from corebound.stats.noise_floor import lock_digest
from support.build import (
    a_calibration,
    a_host,
    a_host_check,
    a_host_over_time,
    a_launch,
    a_machine,
    a_placement,
    a_point,
    a_profiled_launch,
    a_run,
    a_scenario,
    a_series,
    a_served,
    a_thread,
    a_window,
    a_worker,
    an_answered,
    an_operator,
)
from support.paths import ROOT

NOW = "2026-03-14T09:26:53+00:00"
BLOCKS = 6
ITERATIONS = 120

# binding: (CPUs, whether bound, milliseconds an iteration with two threads)
_BINDINGS: dict[str, tuple[tuple[int, ...], bool, float]] = {
    "none": ((0, 1, 2, 3), False, 42.3),
    "one-cpu": ((1,), True, 71.0),
    "physical-cores": ((0, 1, 2, 3), True, 31.2),
    "logical-cpus": ((0, 1, 2, 3), True, 31.2),
    "node": ((0, 1), True, 33.9),
}
_THREADS = {"default": None, "2": 2, "per-core": 4}


def a_network() -> Scenario:
    """The scenario of the sample, with two claims."""
    return a_scenario(
        name="resnet50-inference",
        title="ResNet-50, one image at a time",
        question="Does leaving the SMT siblings idle beat using every logical CPU?",
        workload="resnet50-inference",
        parameters={"batch": 1, "image": 224, "dtype": "float32"},
        environment="pytorch",
        matrix={"binding": [*_BINDINGS, "smt-siblings"], "threads": ["default", 2, "per-core"]},
        baseline={"binding": "none", "threads": "default"},
        claims=[
            {
                "says": "two threads on two physical cores beat two on one core's siblings",
                "faster": {"binding": "physical-cores", "threads": 2},
                "than": {"binding": "smt-siblings", "threads": 2},
                "published_ratio": 1.39,
                "needs": {"smt": True},
            },
            {
                "says": "one node's cores beat leaving threads to roam over both",
                "faster": {"binding": "node", "threads": 2},
                "than": {"binding": "none", "threads": 2},
                "published_ratio": 1.5,
            },
        ],
    )


def a_sample_run(*scenarios: Scenario) -> Run:
    """The run of the sample."""
    host = a_machine(topology=a_host(nodes=2, cores_per_node=2), name="bench-01")
    return replace(
        a_run(
            scenarios=scenarios or (a_network(),),
            host=host,
            seed=20260314,
            commit=Commit(
                sha="4e1d9c7a0b5f6d2c3e8f9a1b2c3d4e5f60718293",
                subject="Fuse <batch norm> & ReLU",
                committed_at="2026-03-13T18:00:00Z",
                dirty=False,
            ),
            environments=(
                EnvironmentLock(
                    name="pytorch",
                    sha256="9b1f04c2e77d51ae30f8" * 3 + "0000",
                    python="3.11.2",
                    packages=("numpy==2.2.1", "torch==2.13.0", "torchvision==0.28.0"),
                ),
            ),
        ),
        profile="quick",
        started_at="2026-03-14T08:00:00Z",
    )


def sample_launches(run: Run, scenario: Scenario) -> tuple[Launch, ...]:
    """Six blocks of every cell: one launch is invalid, one never steady, siblings are skipped."""
    noise = random.Random(3)  # no secret
    launches = []
    cells = expand(scenario, run.scenarios[0].path)
    for block in range(BLOCKS):
        order = list(cells)
        noise.shuffle(order)
        drift = 1 + noise.gauss(0, 0.03)
        for position, cell in enumerate(order):
            if cell.binding.mode == "smt-siblings":
                if block == 0:
                    launches.append(_skipped(cell, position))
                continue
            launches.append(_launch(cell, block, position, drift, noise))
    return tuple(launches)


def _skipped(cell: Cell, position: int) -> Launch:
    return a_launch(
        cell=cell,
        position=position,
        status="skipped",
        reason="no core of this host has two CPUs.",
        fix="Measure it on a host with SMT, or exclude it.",
    )


def _launch(cell: Cell, block: int, position: int, drift: float, noise: random.Random) -> Launch:
    axes = dict(cell.axes)
    cpus, bound, base_ms = _BINDINGS[axes["binding"]]
    threads = _THREADS[axes["threads"]]
    used = threads or 4
    base_ms *= {2: 1.0, 4: 0.97 if axes["binding"] == "none" else 0.93}[used]
    stalls = axes["binding"] == "one-cpu" and used > 1
    if stalls:
        base_ms = 96.0 if used == 2 else 2_050.0
    wobble = 0.05 if axes["binding"] == "none" else 0.012
    base_ms *= drift * (1 + noise.gauss(0, wobble))
    never = axes == {"binding": "none", "threads": "2"} and block == 2
    wall_ns = _walls(base_ms, noise, never=never)
    worker = replace(
        a_worker(
            wall_ns=wall_ns,
            cpu_ns=tuple(round(wall * min(used, len(cpus)) * 0.93) for wall in wall_ns),
            threads=_threads(used, cpus, bound, sum(wall_ns) // 1_000_000, noise),
            threads_asked=threads,
            threads_used=used,
        ),
        versions={"torch": "2.13.0+cpu", "torchvision": "0.28.0"},
        blas="MKL 2024.2",
    )
    launch = a_launch(
        cell=cell,
        block=block,
        position=position,
        placement=_placement(cpus, bound, threads),
        workers=(worker,),
    )
    launch = replace(
        launch,
        commands=(command(cell, launch.placement, 0, "/environments/pytorch/bin/python"),)
        if launch.placement
        else (),
        duration_ns=sum(wall_ns) + 900_000_000,
        host=_host(cpus, sum(wall_ns) // 1_000_000),
        counters=_counters(),
    )
    if axes == {"binding": "node", "threads": "per-core"} and block == 4:
        return _moved(launch, worker)
    return launch


def _host(cpus: tuple[int, ...], end_ms: int) -> HostOverTime:
    """A virtual machine that was left alone but for a little, and shows no clock."""
    half = end_ms // 2
    windows = (
        a_window(
            from_ms=from_ms,
            to_ms=to_ms,
            foreign_ms=(to_ms - from_ms) // 100,
            steal_ms=(to_ms - from_ms) // 250,
            throttled_ms=None,
            cpu_pressure_ns=(to_ms - from_ms) * 20_000,
            memory_pressure_ns=0,
            io_pressure_ns=0,
        )
        for from_ms, to_ms in ((0, half), (half, end_ms))
    )
    host = a_host_over_time(*windows, cpus=cpus)
    return replace(host, unavailable={"throttling": "no cgroup of the launch limits CPU time"})


def _counters() -> Counters:
    return Counters(
        source="perf",
        cycles=20_000_000_000,
        instructions=43_000_000_000,
        slots={
            "retiring": 0.6,
            "bad_speculation": 0.05,
            "frontend_bound": 0.17,
            "backend_bound": 0.18,
            "memory_bound": 0.06,
            "core_bound": 0.12,
        },
    )


def _moved(launch: Launch, worker: Worker) -> Launch:
    return replace(
        launch,
        status="invalid",
        reason="it did not run as it was asked to.",
        fix="Look for what changes the affinity: the workload, or a daemon of the host.",
        evidence=("thread 101 (OMP <worker>) was seen on CPUs 3, outside its slot",),
        log="OMP: Warning #123: <b>affinity</b> & places ignored\n",
    )


def _placement(cpus: tuple[int, ...], bound: bool, threads: int | None) -> Placement:
    placed = a_placement(cpus=cpus, bound=bound, threads=threads)
    # Each thread is bound to a core of its own, or a full mask would be no binding.
    return replace(placed, backend="openmp") if bound else placed


def _walls(base_ms: float, noise: random.Random, *, never: bool) -> tuple[int, ...]:
    walls = []
    for index in range(ITERATIONS):
        warm = 1 + 6.0 * (index == 0) + 0.35 * (index < 14) * (1 - index / 14)
        spike = 1.25 if noise.random() < 0.04 else 1.0
        climb = 1 + 0.012 * index if never else 1.0
        walls.append(round(base_ms * 1e6 * warm * spike * climb * (1 + noise.gauss(0, 0.012))))
    return tuple(walls)


def _threads(
    used: int, cpus: tuple[int, ...], bound: bool, end_ms: int, noise: random.Random
) -> tuple[ThreadEvidence, ...]:
    threads = []
    for index in range(used):
        stays: list[tuple[int, int, int]] = []
        at, cpu = -40, cpus[index % len(cpus)]
        while at < end_ms:
            until = end_ms if bound else min(end_ms, at + noise.randrange(60, 700))
            stays.append((cpu, at, until))
            at, cpu = until, noise.choice(cpus)
        shared = used > len(cpus)
        threads.append(
            a_thread(
                tid=100 + index,
                name="python" if index == 0 else "OMP <worker>",
                allowed=cpus,
                stays=tuple(stays),
                migrations=max(len(stays) - 1, 0),
                run_ns=end_ms * 1_000_000 // (used if shared else 1),
                wait_ns=end_ms * 1_000_000 // 2
                if shared
                else end_ms * (5_000 if bound else 90_000),
                involuntary=4_210 if shared else (12 if bound else 160),
            )
        )
    return tuple(threads)


# Milliseconds an iteration of each type of operator, and how often it is called.
_OPERATORS: dict[str, tuple[float, int]] = {
    "aten::mkldnn_convolution": (33.1, 53),
    "aten::native_batch_norm": (3.4, 53),
    "aten::max_pool2d_with_indices": (1.9, 1),
    "aten::clamp_min_": (1.1, 49),
    "aten::add_": (0.9, 16),
    "aten::addmm": (0.4, 1),
    "aten::empty": (0.23, 424),
    **{f"aten::small_{index}": (0.03, 53) for index in range(9)},
}
_PROFILED = {"none": 1.0, "physical-cores": 0.74, "one-cpu": 2.28}


def sample_profiles(run: Run, scenario: Scenario) -> tuple[Launch, ...]:
    """Three cells by operator, the slowest of which spends its time where the others do not."""
    launches = []
    for position, cell in enumerate(expand(scenario, run.scenarios[0].path)):
        share = _PROFILED.get(cell.binding.mode)
        if share is None or dict(cell.axes)["threads"] != "default":
            continue
        listed = [
            an_operator(name, round(time_ms * share * 1e6), calls=calls)
            for name, (time_ms, calls) in _OPERATORS.items()
        ]
        if cell.binding.mode == "one-cpu":
            listed.insert(0, an_operator("aten::_slow_conv2d_forward", 41_000_000, calls=33))
        launches.append(
            a_profiled_launch(*listed, cell=cell, position=position, outside_ns=1_800_000)
        )
    return tuple(launches)


def sample_imports() -> tuple[ImportedProfile, ...]:
    """Three profiles made elsewhere, each of which tells less than the one before it."""
    listed = tuple(
        an_operator(name, round(time_ms * 1e6), calls=calls)
        for name, (time_ms, calls) in _OPERATORS.items()
    )
    told = sum(one.total_ns for one in listed)
    full = OperatorProfile(
        iterations=4,
        step_ns=told + 1_200_000,
        outside_ns=1_200_000,
        operators=listed,
        phases={"forward": told - 9_000_000, "backward": 9_000_000},
    )
    short = (
        dataclasses.replace(an_operator("Conv2D", 21_000_000, calls=53), quiet_ns=None),
        dataclasses.replace(
            an_operator("MatMul", 2_600_000, calls=1), quiet_ns=None, min_ns=None, max_ns=None
        ),
    )
    summed = OperatorProfile(
        iterations=None, step_ns=None, outside_ns=None, operators=short, phases={}
    )
    counted = replace(summed, iterations=10)
    sources = (
        ("last night", "PyTorch profiler, Chrome trace", None, ("night.pt.trace.json.gz",), full),
        ("NPU", "Ascend msprof, op_statistic", "0", ("op_statistic_20230921103023.csv",), summed),
        (
            "on the CPU",
            "MindSpore profiler, CPU trace",
            None,
            ("cpu_op_type_info_0.csv", "trace_view.json"),
            counted,
        ),
    )
    return tuple(
        ImportedProfile(
            schema=PROFILE_SCHEMA, name=name, source=source, device=device, files=files,
            profile=profile,
        )
        for name, source, device, files, profile in sources
    )  # fmt: skip


def a_sample() -> tuple[Run, tuple[Launch, ...]]:
    """The run and its launches."""
    run = a_sample_run()
    launches = sample_launches(run, a_network())
    return run, (*launches, *sample_profiles(run, a_network()))


# The modes of the baseline's and the cell's launch in each block, F fast and S slow.
TWO_MODES = "SS FS SF SS FF SS FS SF SS SS SF FS SS SF"


def a_sample_of_two_modes() -> tuple[Run, tuple[Launch, ...]]:
    """A cell 3 % slower than its baseline; slow launches take 6.2 ms instead of 5.05 ms.

    Fast launches have more memory.
    """
    scenario = a_scenario(name="pool", title="A pool of threads")
    noise = random.Random(11)  # no secret
    launches = []
    for block, modes in enumerate(TWO_MODES.split()):
        for position, cell in enumerate(expand(scenario, "pool.yaml")):
            is_fast = modes[position] == "F"
            ms = (5.05 if is_fast else 6.2) * (1.03 if position else 1.0) * noise.gauss(1, 0.003)
            worker = a_worker(wall_ns=(round(ms * 1e6),) * 30)
            launches.append(
                a_launch(
                    cell=cell,
                    block=block,
                    position=position,
                    placement=a_placement(cpus=(position,)),
                    workers=(replace(worker, peak_rss_bytes=(96 if is_fast else 64) << 20),),
                )
            )
    return a_run(scenarios=(scenario,), run_id="two-modes"), tuple(launches)


# Set-up: (requests a second, milliseconds of CPU time each)
_SET_UPS = {
    ("none", "default", "default"): (5.0, 270.0),
    ("none", "default", "passive"): (34.0, 47.0),
    ("none", "cores-per-worker", "default"): (36.0, 45.0),
    ("launcher", "default", "default"): (35.0, 44.0),
}


def a_serving_sample() -> tuple[Run, tuple[Launch, ...]]:
    """A server in the study's set-ups: four launches each, latencies with a long tail."""
    scenario = a_scenario(
        name="torchserve",
        title="TorchServe under load, in its set-ups",
        question="What do fewer threads for each worker bring a server?",
        workload="image-serving",
        parameters={"model": "resnet18", "image": 224, "concurrency": 10},
        environment="torchserve",
        workers=2,
        matrix={
            "binding": ["none", "launcher"],
            "threads": ["default", "cores-per-worker"],
            "wait_policy": [None, "passive"],
            "exclude": [
                {"binding": "launcher", "threads": "cores-per-worker"},
                {"binding": "launcher", "wait_policy": "passive"},
                {"threads": "cores-per-worker", "wait_policy": "passive"},
            ],
        },
        baseline={"binding": "none", "threads": "default", "wait_policy": None},
        measure={"launches": {"min": 4, "max": 4}},
    )
    run = a_run(scenarios=(scenario,), run_id="served", started_at="2026-03-14T08:00:00Z")
    noise = random.Random(5)  # no secret
    cells = expand(scenario, run.scenarios[0].path)
    return run, tuple(
        _served(cell, block, position, noise)
        for block in range(4)
        for position, cell in enumerate(cells)
    )


def _served(cell: Cell, block: int, position: int, noise: random.Random) -> Launch:
    values = dict(cell.axes)
    per_s, cpu_ms = _SET_UPS[values["binding"], values["threads"], values["wait_policy"]]
    pace = per_s * noise.lognormvariate(0, 0.04)
    middle_ns = 10 / pace * 1e9
    latencies = [round(middle_ns * noise.lognormvariate(0, 0.3)) for _ in range(160)]
    served = replace(
        a_served(
            answered=an_answered(
                latencies_ns=latencies,
                duration_ns=round(160 / pace * 1e9),
                sampled=_ten_at_a_time(latencies),
            ),
            apart=False,
        ),
        cpu_ns=round(160 * cpu_ms * 1e6),
        began_us=2_000,
    )
    whole_ms = round(served.answered.duration_ns / 1e6)
    wary = values["threads"] != "default" or values["binding"] != "none"
    workers = tuple(
        replace(
            a_worker(
                slot=slot,
                threads_used=1 if wary else 2,
                threads=(
                    a_thread(
                        tid=100 + slot,
                        stays=_wandering(slot, whole_ms, bound=values["binding"] != "none"),
                        run_ns=served.cpu_ns // 2,
                        migrations=0 if values["binding"] != "none" else whole_ms // 700,
                    ),
                ),
            ),
            wall_ns=(),
            cpu_ns=(),
        )
        for slot in range(2)
    )
    slot = a_placement(cpus=(0, 1), bound=False).slots[0]
    placement = replace(a_placement(cpus=(0, 1), bound=False), slots=(slot, slot))
    return replace(
        a_launch(
            cell=cell,
            run="served",
            block=block,
            position=position,
            workers=workers,
            placement=placement,
        ),
        served=served,
        counters=Counters(
            source="proc", unavailable={"hardware counters": "not supported by this host"}
        ),
    )


def _ten_at_a_time(latencies_ns: Sequence[int]) -> tuple[SampledRequest, ...]:
    """Requests of ten connections, each of which sends its next one when it is answered."""
    free_us, sampled = [0] * 10, list[SampledRequest]()
    for latency_ns in latencies_ns:
        arrived_us = min(free_us)
        ended_us = arrived_us + latency_ns // 1000
        free_us[free_us.index(arrived_us)] = ended_us
        sampled.append(SampledRequest(arrived_us, ended_us, None, True))
    return tuple(sampled)


def _wandering(slot: int, whole_ms: int, *, bound: bool) -> tuple[tuple[int, int, int], ...]:
    """Where a worker of one thread was: on a CPU of its own, or on either in turn."""
    if bound:
        return ((slot, 0, whole_ms),)
    pace_ms = 700 + 200 * slot
    return tuple(
        (begin // pace_ms % 2, begin, min(begin + pace_ms, whole_ms))
        for begin in range(0, whole_ms, pace_ms)
    )


# Binding: (the level in milliseconds, share it got slower by at the night, the night)
_COURSES: dict[str, tuple[float, float, int]] = {
    "none": (42.3, 0.0, 0),
    "physical-cores": (29.8, 0.062, 44),
    "node": (33.9, -0.05, 30),
}
_NIGHTS = 60
_KERNEL_NIGHT = 12


def sample_history() -> tuple[Series, ...]:
    """Sixty nights of some cells, the last as the sample's run, and a project's from elsewhere.

    One cell got slower and one faster, the kernel changed once, two nights gave no figure
    and three were left out.
    """
    noise = random.Random(7)  # no secret
    host = a_sample_run().host
    own = [
        replace(
            a_series([]),
            host=host.id,
            host_name=host.name,
            scenario="resnet50-inference",
            title="ResNet-50, one image at a time",
            cell=cell.key,
            reproduce=(
                *("corebound", "run", "scenarios/resnet50-inference.yaml"),
                *("--only", cell.key),
            ),
            points=HistoryPoints.of(_series_of(*_COURSES[cell.binding.mode], noise)),
        )
        for cell in expand(a_network(), "scenarios/resnet50-inference.yaml")
        if cell.binding.mode in _COURSES
    ]
    return (*own, *_a_project(noise))


def _series_of(
    level_ms: float, slower: float, night: int, noise: random.Random
) -> list[HistoryPoint]:
    points = []
    for day in range(_NIGHTS):
        if day in {20, 21, 22}:
            continue
        level = level_ms * 1e6 * (1 + slower * (day >= night))
        level *= 1.03 if day >= _KERNEL_NIGHT else 1.0
        figure = level * noise.gauss(1, 0.006)
        lost = day in {25, 50}
        points.append(
            a_point(
                None if lost else figure,
                day=day + 13,
                bounds=None if lost else (figure * 0.991, figure * 1.01),
                missing="failed: <out> of memory" if lost else None,
                environment_key=(("kernel", "6.2.0" if day >= _KERNEL_NIGHT else "6.1.0"),),
            )
        )
    subject = Commit(
        sha="4e1d9c7a0b5f6d2c3e8f9a1b2c3d4e5f60718293",
        subject="Fuse <batch norm> & ReLU",
        committed_at="2026-02-25T18:00:00Z",
        dirty=False,
    )
    named = [
        replace(point, commit=subject) if index == night - 3 else point
        for index, point in enumerate(points)
    ]
    return [*named[:-2], replace(named[-2], run="r0"), replace(named[-1], run="r1")]


_CODE = """\
class Read:
    params = (["fits"], [10, 100])

    def time_read(self, kind, n):
        assert n < 1000
        read(f"<{kind}>", n)
"""


def _a_project(noise: random.Random) -> tuple[Series, ...]:
    """Two benchmarks of another tool on two machines; one by its parameters."""
    made = []
    for host in ("laptop", "server <2>"):
        for benchmark, cells in (
            ("io.Read.time_read", ("'fits', 10", "'fits', 100")),
            ("m", ("",)),
        ):
            for cell in cells:
                figures = [
                    2.1e6 * (1.3 if commit >= 70 and cell.endswith("0") else 1.0)
                    * noise.gauss(1, 0.01)
                    for commit in range(90)
                ]  # fmt: skip
                made.append(
                    a_series(
                        figures,
                        project="sunpy",
                        host=host,
                        host_name=host,
                        scenario=benchmark,
                        title=benchmark,
                        cell=cell,
                        reproduce=(),
                        code=_CODE if benchmark == "io.Read.time_read" else None,
                    )
                )
    return tuple(made)


# Two commits of that project, between which a third of its series got worse, and their page.
COMMITS = RequestedComparison(project="sunpy", before=f"{10:040x}", after=f"{85:040x}")
COMMITS_PAGE = "compare/sunpy-000000000000-000000000000.html"


def an_earlier_sample() -> tuple[Run, tuple[Launch, ...]]:
    """The sample's run a day before, when an unbound cell took four hundredths less."""
    run = replace(a_sample_run(), id="r0", started_at="2026-03-13T08:00:00Z")
    launches = []
    for launch in sample_launches(run, a_network()):
        quicker = launch.cell.binding.mode == "physical-cores"
        workers = tuple(
            replace(worker, wall_ns=tuple(round(wall * 0.94) for wall in worker.wall_ns))
            if quicker
            else worker
            for worker in launch.workers
        )
        launches.append(replace(launch, run=run.id, workers=workers))
    return run, tuple(launches)


def sample_steady_history() -> PastResults:
    """A week in which each of the sample's cells came to the same every day."""
    said = past_results(series_of_run(*an_earlier_sample()))
    return {
        cell: [
            replace(one, run=(f"2026-03-0{day}T08:00:00Z", f"w{day}"))
            for one in own
            for day in range(1, 8)
        ]
        for cell, own in said.items()
    }


def a_preflight() -> tuple[HostCheck, ...]:
    """What a doctor saw: one of each state."""
    return tuple(
        a_host_check(
            check=check,
            group="processor",
            state=state,
            value=value,
            why="it makes clocks <differ> from launch to launch",
            fix="cpupower frequency-set -g performance" if state == "warning" else None,
        )
        for check, state, value in _CHECKS
    )


def sample_records() -> tuple[tuple[Run, tuple[Launch, ...]], ...]:
    """All of the sample: its two nights, of which the last looked at its host, and a server's."""
    run, launches = a_sample()
    looked = (replace(run, preflight=a_preflight()), launches)
    return (an_earlier_sample(), looked, a_serving_sample())


_CHECKS: tuple[tuple[str, State, str], ...] = (
    ("governor", "warning", "powersave on 4 of 4 CPUs"),
    ("swappiness", "ok", "10"),
    ("turbo", "unavailable", "the kernel shows no switch"),
)


def sample_calibrations() -> tuple[Calibration, ...]:
    """The noise of the sample's host, of its scenario as its runs measured it."""
    run = a_sample_run()
    return (
        a_calibration(
            at="2026-03-01T02:00:00Z",
            host=run.host.id,
            host_name=run.host.name,
            scenario="resnet50-inference",
            sha256=run.scenarios[0].sha256,
            environment="pytorch",
            lock=lock_digest(run.environments, "pytorch"),
            profile=run.profile,
        ),
    )


def a_benchmark(
    all_series: Sequence[Series], history: ChangeHistory | None = None
) -> ImportedBenchmark:
    """A benchmark of project `p` with these series, each with a value."""
    return ImportedBenchmark(
        project="p",
        name=all_series[0].scenario,
        series=tuple(all_series),
        history=history or build_change_history(all_series),
    )


def small_nights(number: int) -> list[Record]:
    """A small scenario on so many days, with six launches of each cell."""
    launches = tuple(
        replace(a_launch(cell=cell, block=block, position=at), id=f"{block}-{at}")
        for block in range(6)
        for at, cell in enumerate(expand(a_scenario(), "a.yaml"))
    )
    return [
        (a_run(run_id=f"r{day}", started_at=f"2026-03-{day:02}T08:00:00Z"), launches)
        for day in range(1, number + 1)
    ]


def page_of(result: ScenarioResult) -> Page:
    """The page of a scenario of which nothing else is known."""
    return scenario_page(result, PageContext(now=NOW), findings=(), records_file="r.jsonl")


def rendered(kind: Kind, page: object) -> str:
    """A page as HTML."""
    templates = (ROOT / "reports" / "templates").iterdir()
    return Renderer({path.name: path.read_text("utf-8") for path in templates}).page(kind, page)


def pages_of(records: Sequence[Record], **known: Any) -> dict[str, str]:
    """Every page and text file by its path in the site; what is packed is unpacked.

    Args:
        records: Every run with its launches, in any order.
        known: What else the site is made of, as `Inputs` has it.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder)
        site.write(SiteInputs(records=records, now=NOW, **known), out)
        return {
            file.relative_to(out).as_posix(): _read_text(file)
            for file in sorted(out.rglob("[!.]*"))
            if file.is_file() and file.parent.name != "assets" and file.suffix != ".png"
        }


@functools.cache
def first_site() -> dict[str, str]:
    """The site of one run: made once, for tests that only read it."""
    return pages_of([a_sample()])


@functools.cache
def site_over_time() -> dict[str, str]:
    """The site of two nights with their past: made once, for tests that only read it."""
    return pages_of(
        [an_earlier_sample(), a_sample()],
        series=sample_history(),
        past=sample_steady_history(),
        compared=[COMMITS],
    )


@functools.cache
def whole_site() -> dict[str, str]:
    """The site of nearly all there can be: made once, for tests that only read it."""
    return pages_of(
        sample_records(), series=sample_history(), profiles=sample_imports(), compared=[COMMITS]
    )


def _read_text(file: Path) -> str:
    data = file.read_bytes()
    return (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
