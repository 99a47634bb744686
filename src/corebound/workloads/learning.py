"""Whether a training step trained, in whichever framework. Standard library only."""

from __future__ import annotations

import math

from corebound.worker.workload import WorkloadError


def require_learning(before: float, after: float) -> None:
    """Refuse a step that did not train.

    Raises:
        WorkloadError: a loss is not finite, or it did not fall.
    """
    if not (math.isfinite(before) and math.isfinite(after) and after < before):
        raise WorkloadError(
            what=f"the loss went from {before:g} to {after:g} over a training step.",
            mend="Timings of a wrong result mean nothing: check the framework's build.",
        )
