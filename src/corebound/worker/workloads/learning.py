"""Checks that a training step of any framework lowers the loss. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corebound.worker.workload import WorkloadError

# The loss is to be lower after so many steps; fewer are not judged.
STEPS_JUDGED = 3


def require_learning(before: float, after: float) -> None:
    """Refuse a step that did not train.

    Raises:
        WorkloadError: a loss is not finite, or it did not fall.
    """
    if not (math.isfinite(before) and math.isfinite(after) and after < before):
        raise WorkloadError(
            what=f"the loss went from {before:g} to {after:g} over a training step.",
            fix="Timings of a wrong result mean nothing: check the framework's build.",
        )


def setback(losses: Sequence[float]) -> str | None:
    """Describe what is wrong with the first training steps; None if fine, or too few to judge.

    Args:
        losses: The loss before each step, from the first on.
    """
    first = losses[:STEPS_JUDGED]
    # NaN is lower than nothing.
    if len(first) < STEPS_JUDGED or first[-1] < first[0]:
        return None
    return f"its loss went from {first[0]} to {first[-1]}"
