"""Whose operators can be profiled, and why not where they cannot."""

from __future__ import annotations

from collections.abc import Mapping

from corebound.model.plan import Cell, Framework, Unfit
from corebound.model.scenario import CommandWorkload, Scenario

# Why an adapter has no `profile`; those that are not named here have one.
WITHOUT_PROFILER: Mapping[Framework, str] = {
    "none": "plain Python has no operators to tell apart.",
    "numpy": "NumPy has no profiler of its own.",
    "torchserve": "a server's workers are its own: profile the model by itself.",
    "litserve": "a server's workers are its own: profile the model by itself.",
}


def unprofiled(scenario: Scenario, cell: Cell) -> Unfit | None:
    """Why a cell's operators cannot be profiled; None where they can."""
    mend = "Its figures stand; only where its time goes is not told."
    if isinstance(scenario.workload, CommandWorkload):
        return Unfit(what="a command is timed whole, whatever runs within it.", mend=mend)
    reason = WITHOUT_PROFILER.get(cell.framework)
    return None if reason is None else Unfit(what=reason, mend=mend)
