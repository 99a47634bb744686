"""What a setting came to on a host: two that came to the same can only differ by noise."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.model.record import Launch


def came_to(launches: Iterable[Launch]) -> object:
    """What a cell came to on this host, but for whether it was bound; None if unknown.

    Args:
        launches: Of the cell.
    """
    for launch in launches:
        placement = launch.placement
        if launch.status != "ok" or placement is None:
            continue
        cell = launch.cell
        return (
            placement.slots,
            placement.memory,
            placement.moment,
            # It binds each thread by itself, the others a whole process.
            placement.backend == "openmp",
            tuple(worker.threads_used or placement.threads for worker in launch.workers),
            cell.workers,
            cell.environment,
            cell.framework,
            cell.parameters,
            cell.env,
            tuple(pair for pair in cell.axes if pair[0] not in {"binding", "threads", "smt"}),
        )
    return None
