"""What scenarios would launch on this host, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

from corebound.api.arguments import Budget
from corebound.records.jsonl import RECORDS
from corebound.scenario.models import ProfileName
from corebound.workflow.options import request_of
from corebound.workflow.plan import PlanRequest, RunPlan, plan_suite
from corebound.workflow.projects import CONFIG


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
    return plan_suite(request, request.sysfs)
