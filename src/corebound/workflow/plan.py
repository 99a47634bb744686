"""`corebound plan` without a terminal: the cells of a suite on this host, or on a saved one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.analysis.forecast import Forecast
from corebound.analysis.wording import count, total_time
from corebound.launch.existing_environments import is_existing
from corebound.machine import discovery, identity
from corebound.machine.sysfs import Files
from corebound.machine.topology import Topology
from corebound.planning.host_support import HostCapabilities
from corebound.planning.models import CannotRun
from corebound.planning.placement import TOOLS
from corebound.planning.plan import PlannedCell
from corebound.present.shown import Shown
from corebound.records.run_record import ScenarioSource
from corebound.runner import Task
from corebound.scenario.cell import cell_identity
from corebound.scenario.runtimes import RUNTIME_PROGRAMS
from corebound.scenario.settings import OPENMP_LIBRARIES
from corebound.workflow import projects, scenarios
from corebound.workflow.forecast import forecast_tasks
from corebound.workflow.options import Option
from corebound.workflow.prepare import RunRequest
from corebound.workflow.scenarios import LoadedScenario

Sysfs = Annotated[
    Path | None, Option("Use a saved machine: a folder with sys/, or a copy of /sys.")
]


class PlannedConfiguration(Shown, frozen=True, kw_only=True):
    """One configuration, ready for launches or skipped.

    Attributes:
        scenario: The scenario.
        cell: The configuration, such as `binding=none,threads=2`.
        axes: The same by axis; values are text.
        commands: The argument list of each of its processes; empty if it is skipped.
        skipped: Why it cannot be launched here; None if it can.
        duplicate_of: The configuration that is the same on this host and is measured instead; None
            if there is none.
    """

    shown: ClassVar = ("scenario", "cell", "commands", "skipped", "duplicate_of")

    scenario: str
    cell: str
    axes: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]
    skipped: str | None
    duplicate_of: str | None


class RunPlan(Shown, frozen=True, kw_only=True):
    """What a run would launch.

    Attributes:
        cells: The cells with their scenarios.
        missing: Why environments do not exist yet.
        forecasts: What a run is expected to reach; empty if a scenario was never measured here.
    """

    shown: ClassVar = ("scenario", "cell", "skipped", "duplicate_of")

    cells: tuple[tuple[LoadedScenario, PlannedCell], ...]
    missing: tuple[CannotRun, ...]
    forecasts: tuple[Forecast, ...] = ()

    @property
    def configurations(self) -> tuple[PlannedConfiguration, ...]:
        """The configurations of all scenarios."""
        return tuple(
            PlannedConfiguration(
                scenario=planned.cell.scenario,
                cell=planned.cell.key,
                axes=dict(planned.cell.axes),
                commands=tuple(command.argv for command in planned.commands),
                skipped=planned.unfit.what if planned.unfit is not None else None,
                duplicate_of=planned.duplicate_of.key if planned.duplicate_of else None,
            )
            for _, planned in self.cells
        )

    @property
    def duration_s(self) -> float:
        """How long the run is expected to take, in seconds; 0 if that is unknown."""
        return sum(forecast.duration_s for forecast in self.forecasts)

    @property
    def document(self) -> list[dict[str, Any]]:
        """The cells as plain data, as `corebound plan --json` prints them."""
        forecasts = {forecast.scenario: forecast for forecast in self.forecasts}
        return [
            _cell_document(cell, scenario.source, forecasts.get(scenario.scenario.name))
            for scenario, cell in self.cells
        ]

    def heading(self) -> str:
        """The number of configurations, and how long they take."""
        return f"{count(len(self), 'configuration')}, {total_time(self.duration_s * 1e9)}"

    def __len__(self) -> int:
        """The number of configurations."""
        return len(self.cells)

    def __iter__(self) -> Iterator[PlannedConfiguration]:
        """Every configuration."""
        return iter(self.configurations)


def _cell_document(
    planned: PlannedCell, source: ScenarioSource, forecast: Forecast | None
) -> dict[str, Any]:
    return {
        **cell_identity(planned.cell.scenario, planned.cell.key),
        "file": source.path,
        "sha256": source.sha256,
        "where": planned.cell.where,
        "settings": to_builtins(planned.cell),
        "measure": planned.measure.model_dump(mode="json"),
        "placement": to_builtins(planned.placement),
        "commands": [
            {"argv": command.argv, "env": dict(command.env)} for command in planned.commands
        ],
        "skipped": to_builtins(planned.unfit),
        "expected": to_builtins(forecast),
        "duplicate_of": planned.duplicate_of.id if planned.duplicate_of is not None else None,
    }


class PlanRequest(RunRequest, frozen=True, kw_only=True):
    """What `corebound plan` plans, for this machine or a saved one."""

    options: ClassVar = (
        "files", "sysfs", "only", "env", "profile", "budget_s", "config", "project_python",
        "records",
    )  # fmt: skip

    sysfs: Sysfs = None


def plan_suite(request: RunRequest, sysfs: Path | None = None) -> RunPlan:
    """Plan the cells of scenarios; launch, build and store nothing.

    Args:
        sysfs: A saved machine; None is this one.

    Raises:
        ScenarioFaults: The files have errors.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    plan = _plan(request, sysfs)
    return RunPlan(
        cells=tuple(
            (scenario, cell)
            for scenario, task in zip(plan.loaded, plan.tasks, strict=True)
            for cell in task.planned
        ),
        forecasts=forecast_tasks(
            plan.tasks, identity.host(plan.topology).id, request.records, request.budget_s
        )
        if sysfs is None
        else (),
        missing=plan.missing,
    )


class CheckedScenario(Struct, frozen=True, kw_only=True):
    """A valid scenario: its name, its cells, and how many of them are the same on this host.

    `missing` says what its project or an environment of the user's lacks, or which program is not
    found; None if nothing.
    """

    scenario: str
    cells: int
    duplicates: int
    missing: CannotRun | None = None


def check(*files: str | PathLike[str]) -> tuple[CheckedScenario, ...]:
    """Validate scenario files, as `corebound check` does.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    return tuple(
        CheckedScenario(
            scenario=task.scenario.name,
            cells=len(task.planned),
            duplicates=len(task.duplicates),
            missing=next(
                (
                    planned.unfit
                    for planned in task.planned
                    if planned.unfit is not None and planned.unfit.cause == "environment"
                ),
                None,
            ),
        )
        for task in _plan(RunRequest(files=tuple(Path(file) for file in files)), None).tasks
    )


class _Plan(Struct, frozen=True, kw_only=True):
    """Scenarios with their tasks on a host, and why environments do not exist yet."""

    loaded: tuple[LoadedScenario, ...]
    tasks: tuple[Task, ...]
    topology: Topology
    missing: tuple[CannotRun, ...]


def _plan(request: RunRequest, sysfs: Path | None) -> _Plan:
    loaded = scenarios.load_scenarios(request.files, request.only, request.profile, env=request.env)
    cells = scenarios.all_cells(loaded)
    if request.project_python is None:
        project = projects.find(cells, request.config)
    else:
        project = projects.use_existing(cells, request.project_python)
    environments = scenarios.find_environments(loaded, Path.cwd(), project)
    # The command of a cell is known before its environment is made.
    pythons = {
        name: None
        if name in project.unmade or (made is None and is_existing(name) and sysfs is None)
        else str(scenarios.python_of(name, made, loaded))
        for name, made in environments.items()
    }
    if sysfs is None:
        live = scenarios.host_capabilities(environments, loaded, project.unmade)
        host = replace(live, pythons=pythons)
    else:
        host = _saved_capabilities(sysfs, pythons, project.unmade)
    return _Plan(
        loaded=loaded,
        tasks=tuple(
            scenarios.plan_task(scenario, host, profile=request.profile, seed=0)
            for scenario in loaded
        ),
        topology=host.topology,
        # `run` builds the project under test itself.
        missing=tuple(
            host.build_failures[name]
            for name, environment in environments.items()
            if environment is None and name not in project.made and pythons[name] and sysfs is None
        ),
    )


def _saved_capabilities(
    sysfs: Path, pythons: Mapping[str, str | None], unmade: Mapping[str, CannotRun]
) -> HostCapabilities:
    """A saved machine's capabilities; it is taken to have the programs and libraries."""
    preloaded: dict[str, str] = {name: f"{stem}so" for name, stem in OPENMP_LIBRARIES.items()}
    return HostCapabilities(
        topology=topology(sysfs),
        tools=TOOLS | RUNTIME_PROGRAMS,
        pythons=pythons,
        gpus=tuple(gpu.id for gpu in identity.gpus(sysfs, None)),
        build_failures=unmade,
        instructions=discovery.instructions(Files(sysfs)),
        openmp=dict.fromkeys(pythons, preloaded),
    )


def topology(sysfs: str | PathLike[str] | None = None) -> Topology:
    """The CPUs, caches and memory nodes of this machine, as `corebound topology` shows them.

    Args:
        sysfs: A saved machine: a folder with sys/, or a copy of /sys; None is this one.

    Raises:
        HostError: No CPUs are visible.
    """
    return discovery.live_topology() if sysfs is None else discovery.saved_topology(Path(sysfs))
