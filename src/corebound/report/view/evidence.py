"""What was seen of launches, added up over their threads; None where nobody could say."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Literal

from corebound.model.record import Launch
from corebound.model.topology import CpuId, NodeId
from corebound.report.view.study import CellStudy

Counted = Literal["migrations", "voluntary", "involuntary", "run_ns", "wait_ns"]


def total(launch: Launch, field: Counted) -> int | None:
    """A count of every thread of a launch, taken together."""
    values = [getattr(thread, field) for worker in launch.workers for thread in worker.threads]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def migrations(launch: Launch) -> int | None:
    """Moves between CPUs of all threads of a launch."""
    return total(launch, "migrations")


def switches(launch: Launch) -> int | None:
    """Context switches of all threads of a launch, wanted and unwanted."""
    counted = [total(launch, "voluntary"), total(launch, "involuntary")]
    known = [number for number in counted if number is not None]
    return sum(known) if known else None


def threads(launch: Launch) -> int | None:
    """Threads in all processes of a launch, idle ones too."""
    return sum(len(worker.threads) for worker in launch.workers) or None


def whole_ns(launch: Launch) -> int | None:
    """All iterations of a launch, warm-ups included: of the worker that took longest."""
    if launch.served is not None:
        return launch.served.answered.duration_ns
    return max((sum(worker.wall_ns) for worker in launch.workers), default=0) or None


def median_of(cell: CellStudy, count: Callable[[Launch], int | None]) -> float | None:
    """The median of a count over the cell's `ok` launches."""
    counted = [count(launch) for launch in cell.launches if launch.status == "ok"]
    known = [number for number in counted if number is not None]
    return statistics.median(known) if known else None


def remote_share(launch: Launch, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
    """Share of the workers' memory that is on a node none of their CPUs belongs to.

    None where nobody could say, and on a host of one node, where it means nothing.

    Args:
        launch: The launch.
        nodes: The node of each CPU of its host.
    """
    if launch.placement is None or len(set(nodes.values())) < 2:
        return None
    own = all_bytes = 0
    for worker in launch.workers:
        mine = {nodes.get(cpu) for cpu in launch.placement.slots[worker.slot].cpus}
        own += sum(size for node, size in worker.node_bytes.items() if node in mine)
        all_bytes += sum(worker.node_bytes.values())
    return 1 - own / all_bytes if all_bytes else None
