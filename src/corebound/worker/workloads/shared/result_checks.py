"""Checks of results, for workloads of any framework. Uses only the standard library."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corebound.worker.workload import WorkloadError

# The loss must be lower after this many steps; fewer steps are not checked.
CHECKED_STEPS = 3
# The cosine between the outputs of int8 and float32; about 0.9999 for the networks here.
LEAST_COSINE = 0.99


def wrong_result(what: str, *, check: str = "the framework's build") -> WorkloadError:
    """The error for a step whose result is wrong.

    Args:
        what: What is wrong, in a sentence.
        check: What the user should check, such as "the build of torch".
    """
    return WorkloadError(
        what=what, fix=f"The timings of a wrong result are meaningless. Check {check}."
    )


def require_learning(before: float, after: float) -> None:
    """Reject a training step that did not lower the loss.

    Raises:
        WorkloadError: a loss is not finite, or it did not fall.
    """
    if not (math.isfinite(before) and math.isfinite(after) and after < before):
        raise wrong_result(f"the loss went from {before:g} to {after:g} in a training step.")


def training_fault(losses: Sequence[float]) -> str | None:
    """What is wrong with the first training steps; None if nothing is, or if there are too few.

    Args:
        losses: The loss before each step, starting with the first.
    """
    first = losses[:CHECKED_STEPS]
    # A comparison with NaN is false.
    if len(first) < CHECKED_STEPS or first[-1] < first[0]:
        return None
    return f"its loss went from {first[0]} to {first[-1]}"
