"""The same work for many things on all CPUs that are ours, where nothing is being measured."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from corebound.errors import HostError
from corebound.launch.supervisor import end_with_parent
from corebound.machine.cgroups import cpus_worth
from corebound.machine.discovery import Files
from corebound.machine.lock import is_held

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

# With fewer for each process, starting it takes longer than it saves.
_LEAST_EACH = 8
# For each process so many results may wait to be taken: they are in memory meanwhile.
_AHEAD = 4


def forked(function: Callable[[_Item], _Made], items: Sequence[_Item], /) -> Generator[_Made]:
    """A `Mapper`, in as many processes as this one may use CPUs, and their time.

    They are forks: function and items are theirs already, and only what comes of an item is
    sent. Few items are done here, and all while a run is measuring on this host.

    Raises:
        HostError: a process was killed, as the kernel does where memory runs out.
    """
    workers = min(_cpus(), len(items) // _LEAST_EACH)
    pool = _started(workers, function, items) if workers > 1 and not is_held() else None
    if pool is None:
        yield from map(function, items)
        return
    waiting: deque[Future[_Made]] = deque()
    try:
        for index in range(len(items)):
            waiting.append(pool.submit(_one, index))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        pool.shutdown()
    except BrokenProcessPool as broken:
        raise HostError(
            what="one of its processes was killed, as the kernel does where memory runs out.",
            where="corebound",
            mend="Give it fewer CPUs, each of which has a process: `taskset -c 0 corebound ...`.",
        ) from broken
    finally:
        # Of a second interrupt too nothing is left that would wait for work.
        _kill_all()
        pool.shutdown(wait=False, cancel_futures=True)


def _kill_all() -> None:
    for child in multiprocessing.active_children():
        child.kill()
        child.join()


def _cpus() -> int:
    # A container sees all CPUs, and often has a few ones' time.
    return int(min(len(os.sched_getaffinity(0)), cpus_worth(Files(Path("/")))))


def _started(
    workers: int, function: Callable[[Any], Any], items: Sequence[Any]
) -> ProcessPoolExecutor | None:
    """A pool with its processes; None where the host allows no more of them."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(function, items),
    )
    try:
        pool.submit(int)
    except (OSError, RuntimeError):
        # Those that it has started nobody would ever tell to end.
        _kill_all()
        return None
    return pool


# What a process of the pool does, and with what.
_WORK: ContextVar[tuple[Callable[[Any], Any], Sequence[Any]]] = ContextVar("work")


def _begin(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    _WORK.set((function, items))
    # A console of the parent's takes a lock to print, which a thread of it may have held.
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    # Who interrupts means us: we end them. Were we killed, they would wait for work for ever.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(signal.SIGKILL)


def _one(index: int) -> Any:
    function, items = _WORK.get()
    return function(items[index])
