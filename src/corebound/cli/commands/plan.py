"""`corebound topology`, `check`, `plan` and `schema`: the commands that launch nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from corebound.cli.options import Config, Files, Json, Only, ProjectPython
from corebound.cli.output.json import indented
from corebound.cli.output.topology import describe
from corebound.machine import discovery
from corebound.machine.identity import gpus
from corebound.machine.topology import Topology, cpu_list
from corebound.planning.models import Placement
from corebound.planning.placement import TOOLS
from corebound.planning.plan import HostCapabilities, PlannedCell
from corebound.records.run_record import ScenarioSource
from corebound.scenario.json_schema import schema_text
from corebound.scenario.models import ProfileName
from corebound.workflow import projects, scenarios

Sysfs = Annotated[
    Path | None,
    typer.Option("--sysfs", help="A saved machine: a folder that holds sys/, or a copy of /sys."),
]


def _topology(sysfs: Path | None) -> Topology:
    return discovery.live() if sysfs is None else discovery.probe(sysfs)


def topology(*, sysfs: Sysfs = None, as_json: Json = False) -> None:
    """Show the machine as the planner sees it."""
    host = _topology(sysfs)
    if as_json:
        typer.echo(indented(host))
    else:
        typer.echo(describe(host))


def check(files: Files) -> None:
    """Name everything that is wrong with scenario files."""
    loaded = scenarios.load_all(files, ())
    scenarios.environments_of(loaded, Path.cwd())
    for one in loaded:
        typer.echo(
            f"{scenarios.shown(one.path)}: {one.scenario.name}, {len(one.cells)} cells, sound"
        )


def schema() -> None:
    """Print the JSON Schema of scenario files."""
    typer.echo(schema_text(), nl=False)


def plan(
    files: Files,
    *,
    sysfs: Sysfs = None,
    only: Only = None,
    profile: Annotated[ProfileName | None, typer.Option("--profile")] = None,
    config: Config = projects.CONFIG,
    project_python: ProjectPython = None,
    as_json: Json = False,
) -> None:
    """Show cells and exact commands, and launch nothing.

    Those of this host, or of a saved one.
    """
    loaded = scenarios.load_all(files, only or (), profile)
    cells = scenarios.cells_of(loaded)
    if project_python is None:
        project = projects.found(cells, config)
    else:
        project = projects.given(cells, project_python)
    made = scenarios.environments_of(loaded, Path.cwd(), project)
    live = scenarios.live_means(made)
    means = HostCapabilities(
        topology=_topology(sysfs),
        tools=live.tools if sysfs is None else TOOLS | {scenarios.JAVA},
        # The command of a cell is known before its environment exists.
        pythons={name: str(scenarios.python_of(name, one)) for name, one in made.items()},
        gpus=live.gpus if sysfs is None else tuple(gpu.id for gpu in gpus(sysfs, None)),
    )
    planned = [
        (one, cell)
        for one in loaded
        for cell in scenarios.task_of(one, means, profile=profile, seed=0).planned
    ]
    if as_json:
        typer.echo(indented([_document(cell, one.source) for one, cell in planned]))
        return
    for _, cell in planned:
        typer.echo("\n".join(_lines(cell)))
    # `run` builds the project under test itself.
    for name in (name for name, one in made.items() if one is None and name not in project.made):
        why = live.build_failures[name]
        typer.echo(f"\n`run` would skip cells: {why.what}\n  {why.fix}")


def _document(planned: PlannedCell, source: ScenarioSource) -> dict[str, Any]:
    return {
        "id": planned.cell.id,
        "key": planned.cell.key,
        "file": source.path,
        "sha256": source.sha256,
        "where": planned.cell.where,
        "cell": planned.cell,
        "measure": planned.measure.model_dump(mode="json"),
        "placement": planned.placement,
        "commands": [
            {"argv": command.argv, "env": dict(command.env)} for command in planned.commands
        ],
        "skipped": planned.unfit,
    }


def _lines(planned: PlannedCell) -> list[str]:
    lines = [planned.cell.id]
    if planned.unfit is not None:
        return [*lines, f"  skipped: {planned.unfit.what}", f"  {planned.unfit.fix}"]
    if planned.placement is not None:
        lines.append(f"  {_placed(planned.placement)}")
    for command in planned.commands:
        words = [f"{name}={value}" for name, value in command.env]
        lines.append(f"  {shlex.join((*words, *command.argv))}")
    return lines


def _placed(placement: Placement) -> str:
    slots = "; ".join(cpu_list(slot.cpus) for slot in placement.slots)
    nodes = sorted({node for slot in placement.slots for node in slot.memory_nodes})
    parts = [f"CPUs {slots}", f"threads {placement.threads or 'as the framework likes'}"]
    if nodes:
        parts.append(f"memory {placement.memory} on node {cpu_list(nodes)}")
    if placement.moment == "after-start":
        parts.append("bound once ready")
    elif not placement.bound:
        parts.append("not bound")
    return ", ".join(parts)
