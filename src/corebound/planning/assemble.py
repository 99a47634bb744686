"""From scenarios and a host to everything that is to be launched, or why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from corebound.model import wire
from corebound.model.catalogue import BUILT_IN
from corebound.model.measure import Measure, ProfileName, measured
from corebound.model.plan import Cell, Command, Placement, Unfit
from corebound.model.scenario import CommandWorkload, Scenario
from corebound.model.topology import Topology
from corebound.model.traffic import Traffic
from corebound.planning.command import command, inter_op, intra_op
from corebound.planning.expand import is_project
from corebound.planning.place import place
from corebound.planning.profiling import unprofiled
from corebound.planning.servers import SERVERS, traffic_of


class Planned(Struct, frozen=True, kw_only=True):
    """One cell, ready to be launched any number of times, or unfit to be.

    Exactly one of `placement` and `unfit` is None. `unprofiled` says why its
    operators cannot be profiled, where that is so. Of a server there is one command,
    and instead of requests there are `traffic` and `python`, its environment's interpreter.
    """

    cell: Cell
    measure: Measure
    placement: Placement | None
    commands: tuple[Command, ...]
    requests: tuple[wire.Request, ...]
    unfit: Unfit | None
    unprofiled: Unfit | None = None
    traffic: Traffic | None = None
    python: str | None = None


class Means(Struct, frozen=True, kw_only=True):
    """What the host offers to bind with and to run in.

    Attributes:
        topology: The machine, and what of it we are allowed.
        tools: Which of `taskset`, `numactl` and `java` are there.
        pythons: For each environment the interpreter's path, or None where it
            has not been made.
        gpus: The GPUs that may be used, by CUDA's numbers or names for them.
        unmade: Why an environment has no interpreter, where it could not be made.
    """

    topology: Topology
    tools: frozenset[str]
    pythons: Mapping[str, str | None]
    gpus: tuple[str, ...] = ()
    unmade: Mapping[str, Unfit] = field(default_factory=dict)


def assemble(
    scenario: Scenario,
    cells: tuple[Cell, ...],
    means: Means,
    *,
    folder: str,
    profile: ProfileName | None,
    seed: int,
) -> tuple[Planned, ...]:
    """Plan every cell of one scenario on one host; never raises for an odd host.

    Args:
        scenario: The scenario.
        cells: Those of its cells that are wanted.
        means: What the host offers.
        folder: Where the scenario's own modules are found.
        profile: Which profile changes `measure`, if any.
        seed: For the workers' random numbers: the same in every launch of a run.
    """
    measure = measured(scenario, profile)
    return tuple(
        _planned(scenario, cell, means, folder=folder, measure=measure, seed=seed) for cell in cells
    )


def _planned(
    scenario: Scenario, cell: Cell, means: Means, *, folder: str, measure: Measure, seed: int
) -> Planned:
    placement = place(cell, means.topology, means.tools)
    python = means.pythons[cell.environment]
    unfit = (
        placement
        if isinstance(placement, Unfit)
        else _too_few_gpus(cell, len(means.gpus)) or _lacks(cell, means) or _unmade(cell, means)
    )
    if unfit is not None or isinstance(placement, Unfit) or python is None:
        return Planned(
            cell=cell, measure=measure, placement=None, commands=(), requests=(), unfit=unfit
        )
    if cell.framework in SERVERS:
        return Planned(
            cell=cell,
            measure=measure,
            placement=placement,
            commands=(command(cell, placement, 0, python, gpus=means.gpus),),
            requests=(),
            unfit=None,
            unprofiled=unprofiled(scenario, cell),
            traffic=traffic_of(cell, measure, seed=seed),
            python=python,
        )
    return Planned(
        cell=cell,
        measure=measure,
        placement=placement,
        commands=tuple(
            command(cell, placement, slot, python, gpus=means.gpus)
            for slot in range(len(placement.slots))
        ),
        requests=tuple(
            _request(scenario, cell, placement, folder=folder, measure=measure, seed=seed)
            for _ in placement.slots
        ),
        unfit=None,
        unprofiled=unprofiled(scenario, cell),
    )


def _too_few_gpus(cell: Cell, gpus: int) -> Unfit | None:
    if cell.gpus <= gpus:
        return None
    here = "has none that CUDA could use" if gpus == 0 else f"has {gpus}"
    return Unfit(
        what=f"`gpus: {cell.gpus}` does not fit this host, which {here}.",
        mend="Measure this cell on a host that has them: /dev/nvidia0 and so on, none of"
        " which CUDA_VISIBLE_DEVICES hides.",
    )


def _lacks(cell: Cell, means: Means) -> Unfit | None:
    if cell.framework != "torchserve" or "java" in means.tools:
        return None
    return Unfit(
        what="TorchServe needs Java, which this host does not have.",
        mend="Install it: `apt-get install default-jre-headless`.",
    )


def _unmade(cell: Cell, means: Means) -> Unfit | None:
    if means.pythons[cell.environment] is not None:
        return None
    return means.unmade.get(cell.environment) or Unfit(
        what=f"environment `{cell.environment}` has not been made.",
        mend=f"Make it with `corebound environment make {cell.environment}`.",
        cause="environment",
    )


def _request(
    scenario: Scenario,
    cell: Cell,
    placement: Placement,
    *,
    folder: str,
    measure: Measure,
    seed: int,
) -> wire.Request:
    workload = scenario.workload
    words = list(workload.command) if isinstance(workload, CommandWorkload) else None
    return wire.Request(
        target=None if isinstance(workload, CommandWorkload) else _target(workload, cell),
        command=words,
        parameters=dict(cell.parameters),
        framework=cell.framework,
        intra_op=intra_op(cell, placement),
        inter_op=inter_op(cell),
        iterations=measure.iterations,
        seed=seed,
        path=[folder],
        gpus=cell.gpus,
        project=is_project(cell.environment),
        awaits=scenario.is_async,
    )


def _target(workload: str, cell: Cell) -> str:
    built_in = BUILT_IN.get(workload)
    return workload if built_in is None else built_in.targets[cell.framework]
