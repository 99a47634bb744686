"""Apply a function to many items in parallel, on all available CPUs, unless a run is measuring."""

import gc
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from typing import Any, TypeVar

from corebound.errors import HostError
from corebound.launch.supervisor import end_with_parent
from corebound.machine.cgroups import quota_cpus
from corebound.machine.lock import is_held
from corebound.machine.sysfs import LIVE

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

# With fewer items for each process, starting it takes longer than it saves.
_MIN_ITEMS_PER_PROCESS = 8
# How many results of each process may be pending; pending results are held in memory.
_MAX_PENDING_PER_PROCESS = 4


def forked_map(function: Callable[[_Item], _Made], items: Sequence[_Item], /) -> Generator[_Made]:
    """Apply a function as a `Mapper` does, in as many processes as this one may use CPUs.

    The processes are forks, so they already have the function and the items; only the results
    are sent. A short list is processed here, as is any list while a run measures on this host.

    Raises:
        HostError: A process was killed, as the kernel does when memory runs out.
    """
    workers = min(_cpus(), len(items) // _MIN_ITEMS_PER_PROCESS)
    pool = _start_pool(workers, function, items) if workers > 1 and not is_held() else None
    if pool is None:
        yield from map(function, items)
        return
    waiting: deque[Future[_Made]] = deque()
    try:
        for index in range(len(items)):
            waiting.append(pool.submit(_apply, index))
            if len(waiting) > workers * _MAX_PENDING_PER_PROCESS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        pool.shutdown()
    except BrokenProcessPool as broken:
        raise HostError(
            what="one of its processes was killed, probably because memory ran out.",
            where="corebound",
            fix="Allow fewer CPUs, since each has a process: `taskset -c 0 corebound ...`.",
        ) from broken
    finally:
        # A second interrupt must not leave processes that wait for work either.
        _kill_all()
        pool.shutdown(wait=False, cancel_futures=True)


def _kill_all() -> None:
    for child in multiprocessing.active_children():
        child.kill()
        child.join()


def _cpus() -> int:
    # A container sees all CPUs, but is often limited to the time of a few.
    cpus, quota = len(os.sched_getaffinity(0)), quota_cpus(LIVE)
    return cpus if quota is None else int(min(cpus, quota))


def _start_pool(
    workers: int, function: Callable[[Any], Any], items: Sequence[Any]
) -> ProcessPoolExecutor | None:
    """Start a pool's processes; None if the host allows no more processes."""
    # Collecting garbage writes to every object, and so would copy the memory that forks share.
    gc.freeze()
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("fork"),
        initializer=_initialise_process,
        initargs=(function, items),
    )
    try:
        pool.submit(int)
    except (OSError, RuntimeError):
        # The processes already started would otherwise never end.
        _kill_all()
        return None
    return pool


# The function and the items of a pool process.
_WORK: ContextVar[tuple[Callable[[Any], Any], Sequence[Any]]] = ContextVar("work")


def _initialise_process(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    _WORK.set((function, items))
    # Printing to the parent's console takes a lock, which one of its threads may have held.
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    # An interrupt is handled by the parent, which ends these processes. If the parent were killed,
    # they would otherwise wait for work forever.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(signal.SIGKILL)


def _apply(index: int) -> Any:
    function, items = _WORK.get()
    return function(items[index])
