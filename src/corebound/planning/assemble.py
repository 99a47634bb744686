"""From scenarios and a host to everything that is to be launched, or why it cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from corebound.model import wire
from corebound.model.catalogue import BUILT_IN
from corebound.model.plan import Cell, Command, Placement, Unfit
from corebound.model.scenario import CommandWorkload, Measure, Scenario, measured
from corebound.model.topology import Topology
from corebound.planning.command import command, inter_op, intra_op
from corebound.planning.place import place
from corebound.planning.profiling import unprofiled

ProfileName = Literal["quick", "nightly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One cell, ready to be launched any number of times, or unfit to be.

    Exactly one of `placement` and `unfit` is None. `unprofiled` says why its
    operators cannot be profiled, where that is so.
    """

    cell: Cell
    measure: Measure
    placement: Placement | None
    commands: tuple[Command, ...]
    requests: tuple[wire.Request, ...]
    unfit: Unfit | None
    unprofiled: Unfit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the host offers to bind with and to run in.

    Attributes:
        topology: The machine, and what of it we are allowed.
        tools: Which of `taskset` and `numactl` are there.
        pythons: For each environment the interpreter's path, or None where it
            has not been made.
    """

    topology: Topology
    tools: frozenset[str]
    pythons: Mapping[str, str | None]


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
    unfit = placement if isinstance(placement, Unfit) else _unmade(cell, python)
    if unfit is not None or isinstance(placement, Unfit) or python is None:
        return Planned(
            cell=cell, measure=measure, placement=None, commands=(), requests=(), unfit=unfit
        )
    return Planned(
        cell=cell,
        measure=measure,
        placement=placement,
        commands=tuple(
            command(cell, placement, slot, python) for slot in range(len(placement.slots))
        ),
        requests=tuple(
            _request(scenario, cell, placement, folder=folder, measure=measure, seed=seed)
            for _ in placement.slots
        ),
        unfit=None,
        unprofiled=unprofiled(scenario, cell),
    )


def _unmade(cell: Cell, python: str | None) -> Unfit | None:
    if python is not None:
        return None
    return Unfit(
        what=f"environment `{cell.environment}` has not been made.",
        mend=f"Make it with `corebound environment make {cell.environment}`.",
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
    )


def _target(workload: str, cell: Cell) -> str:
    built_in = BUILT_IN.get(workload)
    return workload if built_in is None else built_in.targets[cell.framework]
