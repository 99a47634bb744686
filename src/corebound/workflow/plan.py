"""`corebound plan` without a terminal: the cells of a suite on this host, or on a saved one."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine import discovery
from corebound.machine.identity import gpus
from corebound.machine.topology import Topology
from corebound.planning.models import CannotRun
from corebound.planning.placement import TOOLS
from corebound.planning.plan import PlannedCell
from corebound.workflow import projects, scenarios
from corebound.workflow.prepare import RunRequest
from corebound.workflow.scenarios import LoadedScenario


class PlannedSuite(Struct, frozen=True, kw_only=True):
    """The planned cells with their scenarios, and why environments do not exist yet."""

    cells: tuple[tuple[LoadedScenario, PlannedCell], ...]
    missing: tuple[CannotRun, ...]


def plan_suite(request: RunRequest, sysfs: Path | None) -> PlannedSuite:
    """Plan the cells of scenarios; launch, build and store nothing.

    Args:
        request: The scenarios.
        sysfs: A saved machine; None is this one.

    Raises:
        ScenarioFaults: The files have errors.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    loaded = scenarios.load_scenarios(request.files, request.only, request.profile)
    cells = scenarios.all_cells(loaded)
    if request.python is None:
        project = projects.find(cells, request.config)
    else:
        project = projects.use_existing(cells, request.python)
    environments = scenarios.find_environments(loaded, Path.cwd(), project)
    live = scenarios.host_capabilities(environments)
    # The command of a cell is known before its environment exists.
    pythons = {
        name: str(scenarios.python_of(name, environment))
        for name, environment in environments.items()
    }
    host = replace(live, pythons=pythons)
    if sysfs is not None:
        host = replace(
            host,
            topology=read_topology(sysfs),
            tools=TOOLS | {scenarios.JAVA},
            gpus=tuple(gpu.id for gpu in gpus(sysfs, None)),
        )
    return PlannedSuite(
        cells=tuple(
            (scenario, cell)
            for scenario in loaded
            for cell in scenarios.plan_task(scenario, host, profile=request.profile, seed=0).planned
        ),
        # `run` builds the project under test itself.
        missing=tuple(
            live.build_failures[name]
            for name, environment in environments.items()
            if environment is None and name not in project.made
        ),
    )


def read_topology(sysfs: Path | None) -> Topology:
    """The topology of a saved machine; None is this one."""
    return discovery.live_topology() if sysfs is None else discovery.saved_topology(sysfs)
