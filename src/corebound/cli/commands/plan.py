"""`corebound topology`, `check`, `schema` and `plan`: inspect everything, launch nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

import typer

from corebound import units
from corebound.analysis.wording import count
from corebound.cli.options import (
    Budget,
    Config,
    Env,
    Files,
    Json,
    Only,
    Profile,
    ProjectPython,
    Records,
    budget_seconds,
    variables,
)
from corebound.cli.output.json import print_json
from corebound.cli.output.plan_notes import forecast_lines, plan_notes
from corebound.fleet.file import schema as fleet_schema
from corebound.machine.topology import CoreKey, Cpu, Topology, cpu_list
from corebound.planning.models import Placement
from corebound.planning.plan import PlannedCell
from corebound.records.jsonl import RECORDS
from corebound.scenario.json_schema import schema_text
from corebound.workflow import projects
from corebound.workflow.plan import check_suite, plan_suite, read_topology
from corebound.workflow.prepare import RunRequest

Sysfs = Annotated[
    Path | None,
    typer.Option("--sysfs", help="Use a saved machine: a folder with sys/, or a copy of /sys."),
]


def topology(*, sysfs: Sysfs = None, as_json: Json = False) -> None:
    """Show the CPU topology of this machine.

    Examples:
        corebound topology
        corebound topology --sysfs saved-host/
    """
    host = read_topology(sysfs)
    if as_json:
        print_json(host)
    else:
        typer.echo(describe(host))


def check(files: Files, *, as_json: Json = False) -> None:
    """Validate scenario files, and report every error.

    Examples:
        corebound check scenarios/
        corebound check hashing.yaml
    """
    checked = check_suite(files)
    if as_json:
        print_json(checked)
        return
    for one in checked:
        same = f", {one.duplicates} the same as another on this host" if one.duplicates else ""
        typer.echo(f"OK: {one.scenario}, {count(one.cells, 'cell')}{same}")
        if one.missing is not None:
            typer.echo(f"  `corebound run` would skip cells: {one.missing.what}")
            typer.echo(f"  {one.missing.fix}")


def schema(
    *,
    of: Annotated[
        Literal["scenario", "fleet"], typer.Option("--of", help="Kind of file.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of scenario files, or of fleet files.

    Examples:
        corebound schema > scenario.schema.json
        corebound schema --of fleet > fleet.schema.json
    """
    typer.echo(schema_text(fleet_schema() if of == "fleet" else None), nl=False)


def plan(
    files: Files,
    *,
    sysfs: Sysfs = None,
    only: Only = None,
    env: Env = None,
    profile: Profile = None,
    budget: Budget = None,
    config: Config = projects.CONFIG,
    project_python: ProjectPython = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Show cells, commands and the expected time.

    Nothing is launched.

    Examples:
        corebound plan hashing.yaml
        corebound plan hashing.yaml --sysfs saved-host/ --only threads=4
        corebound plan scenarios/ --budget 10m
    """
    request = RunRequest(
        files=tuple(files),
        profile=profile,
        only=tuple(only or ()),
        env=variables(env),
        config=config,
        python=project_python,
        records=records,
    )
    suite = plan_suite(request, sysfs, budget_seconds(budget))
    if as_json:
        print_json(suite.document)
        return
    for _, cell in suite.cells:
        typer.echo("\n".join(_lines(cell)))
    by_name = groupby(suite.cells, key=lambda pair: pair[0].scenario.name)
    for note in plan_notes([(name, [cell for _, cell in pairs]) for name, pairs in by_name]):
        typer.echo(f"\n{note}")
    if suite.forecasts:
        typer.echo("\n" + "\n".join(forecast_lines(suite.forecasts, budget_s=None)))
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


def _placement_text(placement: Placement) -> str:
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


def describe(host: Topology) -> str:
    """Render the machine as a tree: packages, nodes, caches, cores with their CPUs."""
    notes = (f"note: {note}" for note in (host.memory_note, *host.notes) if note)
    return "\n".join((_headline(host), *_packages(host), *_without_cpus(host), *notes))


def _headline(host: Topology) -> str:
    parts = [
        count(len({cpu.core.package for cpu in host.cpus}), "package"),
        count(len(host.nodes), "node"),
        count(len({cpu.core for cpu in host.cpus}), "core"),
        count(len(host.cpus), "CPU"),
    ]
    parts.append("SMT" if host.has_smt else "no SMT")
    if host.memory_bytes is not None:
        parts.append(units.size(host.memory_bytes))
    if len(host.allowed) < len(host.cpus):
        parts.append(f"allowed {cpu_list(cpu.id for cpu in host.allowed)}")
    if host.cpu_quota is not None:
        parts.append(f"CPU quota of {units.cpu_quota(host.cpu_quota)}")
    if host.quota_unknown is not None:
        parts.append(f"CPU quota unknown ({host.quota_unknown})")
    return ", ".join(parts)


def _packages(host: Topology) -> Iterator[str]:
    for package in sorted({cpu.core.package for cpu in host.cpus}):
        yield f"package {package}"
        in_package = [cpu for cpu in host.cpus if cpu.core.package == package]
        for node in sorted({cpu.node for cpu in in_package}, key=lambda node: (node is None, node)):
            on_node = [cpu for cpu in in_package if cpu.node == node]
            if node is not None:
                yield f"  node {node}{_memory(host, node)}"
            for cache in dict.fromkeys(cpu.cache for cpu in on_node):
                yield from _cores(host, [cpu for cpu in on_node if cpu.cache == cache], cache)


def _memory(host: Topology, node_id: int) -> str:
    size = next((node.memory_bytes for node in host.nodes if node.id == node_id), None)
    return "" if size is None else f", {units.size(size)}"


def _cores(host: Topology, cpus: list[Cpu], cache_index: int | None) -> Iterator[str]:
    """The cores that share a cache, below the cache if it is known."""
    indent = "    "
    if cache_index is not None:
        cache = host.caches[cache_index]
        size = "" if cache.size_bytes is None else f", {units.size(cache.size_bytes)}"
        yield f"{indent}L{cache.level}{size}"
        indent += "  "
    cores: dict[CoreKey, list[Cpu]] = {}
    for cpu in cpus:
        cores.setdefault(cpu.core, []).append(cpu)
    for key, threads in cores.items():
        kind = f", {threads[0].kind}" if threads[0].kind else ""
        forbidden = [cpu.id for cpu in threads if not cpu.allowed]
        note = f", not allowed: {cpu_list(forbidden)}" if forbidden else ""
        noun = "CPU" if len(threads) == 1 else "CPUs"
        yield f"{indent}core {key.core}: {noun} {cpu_list(cpu.id for cpu in threads)}{kind}{note}"


def _without_cpus(host: Topology) -> Iterator[str]:
    """Memory nodes without CPUs, and CPUs that are offline."""
    for node in host.nodes:
        if not node.cpus:
            yield f"node {node.id}{_memory(host, node.id)}, no CPUs"
    if host.offline:
        yield f"offline: {cpu_list(host.offline)}"
