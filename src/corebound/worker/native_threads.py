"""Counts the threads that a library has started, from this process's own task list.

Uses only the standard library. Libraries that compute with OpenMP report the number of threads
that they were asked for, whether or not they start them.
"""

from __future__ import annotations

import threading
from pathlib import Path


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
