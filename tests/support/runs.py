"""Runs whose launches have planted results."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from corebound.analysis.forecast import TimeLeft
from corebound.launch.launch import LaunchResult
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import plan_cells
from corebound.records.launch_record import Launch, Status
from corebound.records.telemetry import Pauses
from corebound.runner import Clock, Job, Observer, Runner, Task
from corebound.scenario.matrix import expand
from corebound.scenario.models import Alternating
from corebound.worker.protocol import EndedBy
from support.build import a_host, a_host_over_time, a_run, a_scenario, a_window, a_worker


class Silent:
    """Watches nothing."""

    def started(self, job: Job, *, left: Mapping[str, int]) -> None: ...
    def ended(self, launch: Launch) -> None: ...
    def tick(self) -> None: ...


def an_outcome(
    status: Status = "ok", *, median_ns: int = 1_000_000, ended_by: EndedBy | None = None
) -> LaunchResult:
    return LaunchResult(
        ended_by=ended_by,
        status=status,
        reason=None if status == "ok" else "it was so",
        fix=None,
        evidence=(),
        duration_ns=1,
        overhead_ns=0,
        looks=0,
        look_ns=0,
        workers=(a_worker(wall_ns=(median_ns,) * 20),) if status == "ok" else (),
        leftover_processes=(),
        log="",
    )


def a_task(
    *,
    name: str = "a-scenario",
    bindings: Sequence[object] = ("none", "one-cpu"),
    least: int = 3,
    most: int = 3,
    operators: int | None = None,
    environment: str = "host",
    relaunch_disturbed: int | None = None,
    alternate: Alternating = "never",
    sides: Sequence[str] = (),
) -> Task:
    scenario = a_scenario(
        name=name,
        environment=environment,
        workload="steps:short",
        matrix={
            "binding": list(bindings),
            **({"parameters": {"side": list(sides)}} if sides else {}),
        },
        **({"baseline": {"parameters": {"side": sides[0]}}} if sides else {}),
        measure={
            "alternate": alternate,
            "launches": {"min": least, "max": most},
            **({"operators": operators} if operators else {}),
            **({} if relaunch_disturbed is None else {"relaunch_disturbed": relaunch_disturbed}),
        },
    )
    means = HostCapabilities(
        topology=a_host(),
        tools=frozenset({"taskset", "numactl"}),
        pythons={environment: "/usr/bin/python3"},
    )
    cells = expand(scenario, "a.yaml")
    return Task(
        scenario=scenario,
        planned=plan_cells(scenario, cells, means, folder="/suite", profile=None, seed=1),
    )


def one_by_one(
    launch: Callable[[Job], LaunchResult],
) -> Callable[[Sequence[Job]], tuple[LaunchResult, ...]]:
    """Launch each job; those that start at once have waited, and been paused in their turn."""

    def launch_group(jobs: Sequence[Job]) -> tuple[LaunchResult, ...]:
        quiet = Pauses(duration_ns=1_000, cpu_ns=0)
        turns = [job.turn for job in jobs]
        return tuple(
            replace(
                launch(job),
                pauses=quiet if turns.count(job.turn) > 1 else None,
                wait=quiet if len(jobs) > 1 else None,
            )
            for job in jobs
        )

    return launch_group


def a_runner(
    kept: list[Launch],
    *tasks: Task,
    launch: Callable[[Job], LaunchResult] = lambda _job: an_outcome(),
    seed: int = 1,
    budget_s: float | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    operators: bool = True,
    expected_s: Mapping[str, float] | None = None,
    observer: Observer | None = None,
    focuses: bool = False,
) -> Runner:
    return Runner(
        a_run(seed=seed),
        tasks,
        done=tuple(kept),
        append=kept.append,
        launch=one_by_one(launch),
        observer=observer or Silent(),
        clock=Clock(monotonic_s=clock, now=lambda: "2026-01-02T03:04:05Z"),
        time_left=TimeLeft(expected_s or {}),
        budget_s=budget_s,
        operators=operators,
        focuses=focuses,
    )


def launched(kept: Sequence[Launch]) -> list[tuple[int, str]]:
    return [
        (launch.block, launch.cell.key)
        for launch in kept
        if launch.status != "skipped" and launch.kind == "measure"
    ]


def profiled(kept: Sequence[Launch]) -> list[str]:
    return [launch.cell.key for launch in kept if launch.kind == "profile"]


MODES = ("none", "one-cpu", "physical-cores", "logical-cpus", "node")


def a_disturbed_outcome() -> LaunchResult:
    """Twenty iterations of 100 ms on a CPU of which half was stolen."""
    windows = (a_window(from_ms=500 * at, to_ms=500 * at + 500, steal_ms=250) for at in range(4))
    return replace(an_outcome(median_ns=100_000_000), host=a_host_over_time(*windows))


def two_alike(**asked: Any) -> Task:
    """Two cells that differ in a parameter alone, so that they may alternate."""
    return a_task(bindings=("one-cpu",), sides=("a", "b"), **{"alternate": "auto", **asked})
