"""`corebound topology`, `check`, `schema` and `plan`: inspect everything, launch nothing."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Annotated, Literal

import typer

from corebound import units
from corebound.analysis.wording import count
from corebound.cli.options import Output
from corebound.cli.output.plan_notes import forecast_lines, plan_notes
from corebound.fleet.file import schema as fleet_schema
from corebound.machine.topology import cpu_list
from corebound.planning.models import Placement
from corebound.planning.plan import PlannedCell
from corebound.scenario.json_schema import schema_text
from corebound.workflow import plan as workflow
from corebound.workflow.options import Files, Option
from corebound.workflow.plan import CheckedScenario, PlanRequest, RunPlan, Sysfs


def topology(*, sysfs: Sysfs = None) -> Output:
    """Show the CPU topology of this machine.

    Examples:
        corebound topology
        corebound topology --sysfs saved-host/
    """
    host = workflow.topology(sysfs)
    return Output(host, lambda: typer.echo(str(host)))


def check(files: Files) -> Output:
    """Validate scenario files, and report every error.

    Examples:
        corebound check scenarios/
        corebound check hashing.yaml
    """
    checked = workflow.check(*files)
    return Output(checked, partial(_show_checked, checked))


def _show_checked(checked: Sequence[CheckedScenario]) -> None:
    for scenario in checked:
        same = (
            f", {scenario.duplicates} the same as another on this host"
            if scenario.duplicates
            else ""
        )
        typer.echo(f"OK: {scenario.scenario}, {count(scenario.cells, 'cell')}{same}")
        if scenario.missing is not None:
            typer.echo(f"  `corebound run` would skip cells: {scenario.missing.what}")
            typer.echo(f"  {scenario.missing.fix}")


def schema(
    *,
    of: Annotated[Literal["scenario", "fleet"], Option("Kind of file.")] = "scenario",
) -> None:
    """Print the JSON Schema of scenario files, or of fleet files.

    Examples:
        corebound schema > scenario.schema.json
        corebound schema --of fleet > fleet.schema.json
    """
    typer.echo(schema_text(fleet_schema() if of == "fleet" else None), nl=False)


def plan(request: PlanRequest) -> Output:
    """Show cells, commands and the expected time.

    Nothing is launched.

    Examples:
        corebound plan hashing.yaml
        corebound plan hashing.yaml --sysfs saved-host/ --only threads=4
        corebound plan scenarios/ --budget 10m
    """
    suite = workflow.plan_suite(request, request.sysfs)
    return Output(suite, partial(_show_plan, suite, request))


def _show_plan(suite: RunPlan, request: PlanRequest) -> None:
    for _, cell in suite.cells:
        typer.echo("\n".join(_lines(cell)))
    by_name = groupby(suite.cells, key=lambda pair: pair[0].scenario.name)
    for note in plan_notes([(name, [cell for _, cell in pairs]) for name, pairs in by_name]):
        typer.echo(f"\n{note}")
    if suite.forecasts:
        lines = forecast_lines(
            suite.forecasts, budget_s=request.budget_s, focuses=request.profile != "nightly"
        )
        typer.echo("\n" + "\n".join(lines))
    for reason in suite.missing:
        typer.echo(f"\n`corebound run` would skip cells: {reason.what}\n  {reason.fix}")


def _lines(planned: PlannedCell) -> Iterator[str]:
    yield planned.cell.id
    if planned.unfit is not None:
        yield f"  skipped: {planned.unfit.what}"
        yield f"  {planned.unfit.fix}"
        return
    if planned.placement is not None:
        quota = planned.cell.cpu_quota
        limit = "" if quota is None else f", CPU quota of {units.cpu_quota(quota)}"
        yield f"  {_placement_text(planned.placement)}{limit}"
        yield from (f"  note: {note}" for note in planned.placement.notes)
    if planned.duplicate_of is not None:
        yield f"  same as {planned.duplicate_of.key} on this host, which is measured"
        return
    for command in planned.commands:
        variables = [f"{name}={value}" for name, value in command.env]
        yield f"  {shlex.join((*variables, *command.argv))}"
    programs = (shlex.join(request.command) for request in planned.requests if request.command)
    yield from (f"  starts: {program}" for program in dict.fromkeys(programs))


def _placement_text(placement: Placement) -> str:
    if placement.is_unknown:
        return "CPUs and threads unknown"
    slots = "; ".join(cpu_list(slot.cpus) for slot in placement.slots)
    nodes = sorted({node for slot in placement.slots for node in slot.memory_nodes})
    parts = [f"CPUs {slots}", f"threads {placement.threads or '(framework default)'}"]
    if nodes:
        parts.append(f"memory {placement.memory} on node {cpu_list(nodes)}")
    if placement.moment == "after-start":
        parts.append("bound after start")
    elif not placement.bound:
        parts.append("not bound")
    return ", ".join(parts)
