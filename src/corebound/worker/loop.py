"""Timing: one call at a time, every duration kept."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable


def measure(
    step: Callable[[], object],
    *,
    iterations: int,
    wall_ns: Callable[[], int],
    cpu_ns: Callable[[], int],
    least_ns: int | None = None,
) -> tuple[array[int], array[int]]:
    """Time each call alone; keep every sample, for warm-up is judged later.

    The CPU clock is read outside the timed stretch, once an iteration: it is a
    system call (some 0.4 µs) where the wall clock is not (some 0.04 µs). Its
    differences therefore hold the loop's own cost too: up to 2 µs, see `LEAST_FOR_CPU_NS`.

    Args:
        step: What is timed.
        iterations: How often.
        wall_ns: A monotonic clock in nanoseconds.
        cpu_ns: CPU time used so far, in nanoseconds.
        least_ns: Stop once the calls took so long together; None: only after all.

    Returns:
        Wall time and CPU time of each call, in nanoseconds, one for one.
    """
    walls, cpus = array("q"), array("q")
    left_ns = math.inf if least_ns is None else least_ns
    cpu_before_ns = cpu_ns()
    for _ in range(iterations):
        began_ns = wall_ns()
        step()
        ended_ns = wall_ns()
        cpu_after_ns = cpu_ns()
        walls.append(ended_ns - began_ns)
        cpus.append(cpu_after_ns - cpu_before_ns)
        cpu_before_ns = cpu_after_ns
        left_ns -= ended_ns - began_ns
        if left_ns <= 0:
            break
    return walls, cpus
