"""Counts the threads that a library has started, from this process's own task list.

Uses only the standard library. Libraries that compute with OpenMP report the number of threads
that they were asked for, whether or not they start them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

# A thread computed if it used this share of the CPU time of the busiest one. Threads of a pool have
# equal parts of the work; those that only wait for requests use next to nothing.
_LEAST_SHARE = 0.1


class PoolCounter:
    """Counts the pool that a library creates in this thread after the counter.

    Create it once everything is imported: NumPy's BLAS has started its threads by then.
    """

    def __init__(self) -> None:
        self._before = _native_threads()

    @property
    def size(self) -> int:
        """The threads of the pool, including the thread that uses it: 1 if none was started."""
        return len(_native_threads() - self._before) + 1


def _native_threads() -> set[int]:
    """The kernel's numbers of the threads that Python did not start."""
    tasks = {int(task.name) for task in Path("/proc/self/task").iterdir()}
    return tasks - {thread.native_id for thread in threading.enumerate()}


def cpu_ns_by_thread() -> dict[str, int]:
    """The CPU time of each thread of this process so far, by the kernel's number."""
    files = Path("/proc/self/task").glob("*/schedstat")
    return {file.parent.name: int(file.read_text(encoding="ascii").split()[0]) for file in files}


def computing_threads(
    run: Callable[[], object], cpu_ns: Callable[[], dict[str, int]] = cpu_ns_by_thread
) -> int:
    """The number of threads of this process that computed while a function ran.

    For a library that starts its pool together with threads that only wait. Let the function run
    for some hundredths of a second or longer.
    """
    before_ns = cpu_ns()
    run()
    used_ns = [time_ns - before_ns.get(task, 0) for task, time_ns in cpu_ns().items()]
    return sum(time_ns >= _LEAST_SHARE * max(used_ns) for time_ns in used_ns)
