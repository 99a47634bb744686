"""From a planned server to the order that launches it."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from corebound.launch.own_folder import own_folder
from corebound.model.plan import Cell, Placement
from corebound.model.topology import CpuId
from corebound.planning.assemble import Planned
from corebound.planning.choose import hands_out
from corebound.serving.litserve import LitServe
from corebound.serving.models import served_model
from corebound.serving.order import ServingOrder
from corebound.serving.server import ServedModel, Server
from corebound.serving.torchserve import TorchServe


def serving_order(planned: Planned, python_path: Path, scratch: Path) -> ServingOrder:
    """Resolve a planned server.

    Args:
        planned: A cell with traffic, which this host can hold.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: An empty folder for the launch.
    """
    cell, placement, traffic = planned.cell, planned.placement, planned.traffic
    if placement is None or traffic is None or planned.python is None:
        raise ValueError("an unfit cell is skipped, and a server has traffic and an interpreter")
    python = Path(planned.python)
    parameters = dict(cell.parameters)
    return ServingOrder(
        placement=placement,
        command=planned.commands[0],
        model=lambda execute: served_model(
            own_folder() / "models",
            model=str(parameters["model"]),
            image=int(parameters["image"]),
            python=python,
            archived=cell.framework == "torchserve",
            execute=execute,
        ),
        server=partial(_server, cell, placement, python),
        traffic=traffic,
        generator=Path(sys.executable),
        generator_cpus=_spare(placement),
        threads_asked=placement.threads,
        timeout_s=planned.measure.timeout_s,
        python_path=python_path,
        scratch=scratch,
    )


def _server(
    cell: Cell, placement: Placement, python: Path, model: ServedModel, reports: Path
) -> Server:
    workers = len(placement.slots)
    if cell.framework == "litserve":
        return LitServe(model, workers=workers, reports=reports)
    pinned = tuple(slot.cpus for slot in placement.slots) if hands_out(cell) else None
    return TorchServe(model, workers=workers, pinned=pinned, python=python)


def _spare(placement: Placement) -> tuple[CpuId, ...]:
    """Where the generator runs: apart from the server where the host has room for that."""
    allowed = {CpuId(cpu) for cpu in os.sched_getaffinity(0)}
    taken = {cpu for slot in placement.slots for cpu in slot.cpus}
    return tuple(sorted(allowed - taken or allowed))
