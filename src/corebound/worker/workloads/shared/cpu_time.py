"""CPU time of a workload that starts its own processes."""

from __future__ import annotations

import time
from collections.abc import Iterable


def cpu_time_with_children_ns(children: Iterable[int]) -> int:
    """CPU time of this process and of living children, with all their threads.

    Args:
        children: Their process ids; processes that have ended are not counted.

    Source: clock_getcpuclockid(3): a process's clock is named by the inverse of
    its id, shifted, with 2 for the scheduler's own count.
    """
    total_ns = time.process_time_ns()
    for pid in children:
        try:
            total_ns += time.clock_gettime_ns((~pid << 3) | 2)
        except OSError:
            continue  # it has ended
    return total_ns
