"""What a cell gets done in a second, where its workload says what an iteration does."""

from __future__ import annotations

from corebound.report.view.study import CellStudy
from corebound.units import significant

# What is counted in billions; anything else is counted by the piece.
_FLOP = "flop"


def throughput(cell: CellStudy) -> str:
    """All its workers' work over its median iteration, such as `512 images/s`.

    Empty where nothing was measured, or the workload does not count its work.
    """
    median_ns = cell.summary.median_ns
    work = next((launch.workers[0].work for launch in cell.launches if launch.status == "ok"), {})
    if median_ns is None:
        return ""
    rates = {unit: each * cell.cell.workers / median_ns * 1e9 for unit, each in work.items()}
    return ", ".join(
        f"{significant(rate / 1e9)} GFLOP/s" if unit == _FLOP else f"{significant(rate)} {unit}/s"
        for unit, rate in rates.items()
    )
