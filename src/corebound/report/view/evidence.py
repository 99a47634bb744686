"""What was seen of launches, added up over their threads; None where nobody could say."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from corebound.diagnosis.launches import total
from corebound.model.record import Launch
from corebound.report.view.study import CellStudy


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
