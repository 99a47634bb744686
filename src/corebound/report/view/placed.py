"""Where a setting's threads may run, drawn on the machine."""

from __future__ import annotations

from msgspec import Struct

from corebound.model.topology import cpu_list
from corebound.report.charts.topology import Box
from corebound.report.view.command import CommandLine, plan_command
from corebound.report.view.page import Label
from corebound.report.view.study import CellStudy, Study
from corebound.report.view.topology_boxes import boxes_of
from corebound.report.view.words import count, label


class Placed(Struct, frozen=True, kw_only=True):
    """A setting on the machine: `says` are its CPUs in words, of each worker.

    `command` shows where it would be placed, and launches nothing.
    """

    label: Label
    boxes: tuple[Box, ...]
    says: str
    command: CommandLine


def placed(study: Study) -> tuple[Placed, ...]:
    """The fastest rival and its baseline on the machine; empty where no placement was recorded."""
    best = study.leader
    chosen = [best.cell, best.baseline] if best else [study.baseline]
    drawn = (_placed(study, one) for one in chosen if one is not None)
    return tuple(one for one in drawn if one is not None)


def _placed(study: Study, cell: CellStudy) -> Placed | None:
    placement = cell.placement
    if placement is None:
        return None
    cpus = frozenset(cpu for slot in placement.slots for cpu in slot.cpus)
    slots = "; ".join(dict.fromkeys(cpu_list(slot.cpus) for slot in placement.slots))
    workers = f", {count(len(placement.slots), 'worker')}" if len(placement.slots) > 1 else ""
    threads = "" if placement.threads is None else f", {count(placement.threads, 'thread')} each"
    return Placed(
        label=label(cell.cell),
        boxes=boxes_of(study.run.host.topology, taken=cpus),
        says=f"CPUs {slots}{workers}{threads}",
        command=plan_command(study, cell.cell),
    )
