"""Steps that measure corebound itself: what they import is the commit's, not the worker's."""

from __future__ import annotations

import random
from collections.abc import Callable


def steady_state(*, iterations: int) -> Callable[[], object]:
    """Judge a launch whose first tenth is a warm-up, the same one every time."""
    # Here, for only the environment of the commit has it.
    from corebound.stats.warmup import steady_state as judge  # noqa: PLC0415  # as said

    chance = random.Random(1)  # noqa: S311  # a sequence to work on, no secret
    samples_ns = tuple(
        round((1.5e6 if index < iterations // 10 else 1e6) * (1 + chance.gauss(0, 0.01)))
        for index in range(iterations)
    )
    return lambda: judge(samples_ns)
