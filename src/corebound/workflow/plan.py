"""`corebound plan` without a terminal: the cells of a suite on this host, or on a saved one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.analysis.forecast import Forecast
from corebound.launch.existing_environments import is_existing
from corebound.machine import discovery, identity
from corebound.machine.sysfs import Files
from corebound.machine.topology import Topology
from corebound.planning.host_support import HostCapabilities
from corebound.planning.models import CannotRun
from corebound.planning.placement import TOOLS
from corebound.planning.plan import PlannedCell
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


class PlannedSuite(Struct, frozen=True, kw_only=True):
    """The planned cells of a suite.

    Attributes:
        cells: The cells with their scenarios.
        missing: Why environments do not exist yet.
        forecasts: What a run is expected to reach; empty if a scenario was never measured here.
    """

    cells: tuple[tuple[LoadedScenario, PlannedCell], ...]
    missing: tuple[CannotRun, ...]
    forecasts: tuple[Forecast, ...] = ()

    @property
    def document(self) -> list[dict[str, Any]]:
        """The cells as plain data, as `--json` prints them."""
        forecasts = {forecast.scenario: forecast for forecast in self.forecasts}
        return [
            _cell_document(cell, scenario.source, forecasts.get(scenario.scenario.name))
            for scenario, cell in self.cells
        ]


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


def plan_suite(request: RunRequest, sysfs: Path | None = None) -> PlannedSuite:
    """Plan the cells of scenarios; launch, build and store nothing.

    Args:
        request: The scenarios.
        sysfs: A saved machine; None is this one.

    Raises:
        ScenarioFaults: The files have errors.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    plan = _plan(request, sysfs)
    return PlannedSuite(
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

    `missing` says what its project or an environment of the user's lacks; None if nothing.
    """

    scenario: str
    cells: int
    duplicates: int
    missing: CannotRun | None = None


def check_suite(files: Sequence[Path]) -> tuple[CheckedScenario, ...]:
    """Plan scenarios on this host to find every error in them.

    Raises:
        ScenarioFaults: The files have errors.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    return tuple(
        CheckedScenario(
            scenario=task.scenario.name,
            cells=len(task.planned),
            duplicates=len(task.duplicates),
            missing=next((one.unfit for one in task.planned if _lacks_environment(one)), None),
        )
        for task in _plan(RunRequest(files=tuple(files)), None).tasks
    )


def _lacks_environment(planned: PlannedCell) -> bool:
    return planned.unfit is not None and planned.unfit.cause == "environment"


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
        topology=read_topology(sysfs),
        tools=TOOLS | RUNTIME_PROGRAMS,
        pythons=pythons,
        gpus=tuple(gpu.id for gpu in identity.gpus(sysfs, None)),
        build_failures=unmade,
        instructions=discovery.instructions(Files(sysfs)),
        openmp=dict.fromkeys(pythons, preloaded),
    )


def read_topology(sysfs: Path | None) -> Topology:
    """The topology of a saved machine; None is this one."""
    return discovery.live_topology() if sysfs is None else discovery.saved_topology(sysfs)
