"""Find the cells of a scenario that are the same on a host, so that one of them is measured."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from corebound.machine.topology import Topology
from corebound.planning.commands import without_cpu_binding
from corebound.planning.plan import PlannedCell
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import baselines_of
from corebound.scenario.models import Scenario
from corebound.worker.protocol import fields


def mark_duplicates(
    scenario: Scenario, planned: Sequence[PlannedCell], host: Topology
) -> tuple[PlannedCell, ...]:
    """Set `duplicate_of` of the cells that need no launches of their own.

    Cells are duplicates if their launches would differ at most in how the same CPUs are
    bound: with taskset, with numactl, or not at all because these are all allowed CPUs. Of such
    cells a baseline is measured, or else the first one.

    Args:
        scenario: The scenario. With `measure.duplicates: each` it has no duplicates.
    """
    groups: dict[bytes, list[PlannedCell]] = {}
    for each in planned:
        if each.measure.duplicates == "once" and (launch := _launch_of(each, host)) is not None:
            groups.setdefault(launch, []).append(each)
    cells = [each.cell for each in planned]
    baselines = {cell.key for cell in baselines_of(cells, cells, scenario) if cell is not None}
    measured_cells = {
        each.cell.key: next(
            (each.cell for each in same if each.cell.key in baselines), same[0].cell
        )
        for same in groups.values()
        for each in same
    }
    return tuple(
        replace(each, duplicate_of=measured)
        if (measured := measured_cells.get(each.cell.key, each.cell)) != each.cell
        else each
        for each in planned
    )


# The fields of a cell that distinguish its launches, but those that its placement and commands
# show, those that only name it, and its parameters, whose order does not matter.
_SETTINGS = [
    name
    for name in Cell.__struct_fields__
    if name not in {"binding", "threads", "env", "parameters"}
    and name not in {"scenario", "axes", "where", "hidden_axes"}
]


def _launch_of(planned: PlannedCell, host: Topology) -> bytes | None:
    """Everything that distinguishes the cell's launches on a host; None if it has none."""
    placement, cell = planned.placement, planned.cell
    if placement is None:
        return None
    allowed = {cpu.id for cpu in host.allowed}
    binds_nothing = all(set(slot.cpus) == allowed for slot in placement.slots)
    parts = (
        [slot.cpus for slot in placement.slots],
        "before-start" if binds_nothing else placement.moment,
        placement.threads,
        cell.binding.mode == "launcher",
        [
            (without_cpu_binding(command, placement, slot), dict(command.env))
            for slot, command in enumerate(planned.commands)
        ],
        [fields(request) for request in planned.requests],
        planned.traffic,
        [getattr(cell, name) for name in _SETTINGS],
        dict(cell.parameters),
    )
    # Equal Python values may differ in type: 1, 1.0 and True.
    return msgspec.json.encode(parts, order="deterministic")
