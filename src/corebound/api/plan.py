"""This host, and what scenarios would launch on it, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from corebound.analysis.wording import count, total_time
from corebound.api.arguments import Budget, path_or_none
from corebound.api.shown import Shown
from corebound.machine.topology import Topology
from corebound.planning.plan import PlannedCell
from corebound.records.jsonl import RECORDS
from corebound.scenario.models import ProfileName
from corebound.workflow.options import request_of
from corebound.workflow.plan import (
    CheckedScenario,
    PlanRequest,
    check_suite,
    plan_suite,
    read_topology,
)
from corebound.workflow.projects import CONFIG


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
        configurations: The configurations of all scenarios.
        duration_s: How long the run is expected to take, in seconds.
        document: The same as plain data, as `corebound plan --json` prints it.
    """

    shown: ClassVar = ("scenario", "cell", "skipped", "duplicate_of")

    configurations: tuple[PlannedConfiguration, ...]
    duration_s: float
    document: Sequence[Mapping[str, Any]]

    def heading(self) -> str:
        """The number of configurations, and how long they take."""
        return f"{count(len(self), 'configuration')}, {total_time(self.duration_s * 1e9)}"

    def __len__(self) -> int:
        """The number of configurations."""
        return len(self.configurations)

    def __iter__(self) -> Iterator[PlannedConfiguration]:
        """Every configuration."""
        return iter(self.configurations)


def topology(sysfs: str | PathLike[str] | None = None) -> Topology:
    """The CPUs, caches and memory nodes of this machine, as `corebound topology` shows them.

    Args:
        sysfs: A saved machine: a folder with sys/, or a copy of /sys; None is this one.

    Raises:
        HostError: No CPUs are visible.
    """
    return read_topology(path_or_none(sysfs))


def check(*files: str | PathLike[str]) -> tuple[CheckedScenario, ...]:
    """Validate scenario files, as `corebound check` does.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    return check_suite([Path(file) for file in files])


def plan(
    *files: str | PathLike[str],
    sysfs: str | PathLike[str] | None = None,
    profile: ProfileName | None = None,
    only: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    budget_s: Budget | None = None,
    config: str | PathLike[str] = CONFIG,
    project_python: str | PathLike[str] | None = None,
    records: str | PathLike[str] = RECORDS,
) -> RunPlan:
    """Plan scenarios on this host without launching anything, as `corebound plan` does.

    Args:
        files: Scenario files, or folders of them.
        sysfs: A saved machine, as for `topology`: then the duration is unknown and 0.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        only: The cells to select, such as `binding=none,threads=2`.
        env: Environment variables of the workloads, by name.
        budget_s: The time limit of the run, in seconds; None is no limit.
        config: The asv.conf.json of the project under test.
        project_python: An interpreter in which the project under test is installed already.
        records: The folder of records; the last run of a scenario tells how long it takes.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    request = request_of(PlanRequest, locals())
    suite = plan_suite(request, request.sysfs)
    return RunPlan(
        configurations=tuple(_configuration(planned) for _, planned in suite.cells),
        duration_s=sum(forecast.duration_s for forecast in suite.forecasts),
        document=suite.document,
    )


def _configuration(planned: PlannedCell) -> PlannedConfiguration:
    return PlannedConfiguration(
        scenario=planned.cell.scenario,
        cell=planned.cell.key,
        axes=dict(planned.cell.axes),
        commands=tuple(command.argv for command in planned.commands),
        skipped=planned.unfit.what if planned.unfit is not None else None,
        duplicate_of=planned.duplicate_of.key if planned.duplicate_of is not None else None,
    )
