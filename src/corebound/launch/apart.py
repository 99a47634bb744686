"""Keeps this process off the CPUs that are being measured, where the host has room for that."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from corebound.model.topology import CpuId

# Launches that alternate are made by threads of one process, and a process is moved as a whole:
# the first of them to end must not move it back onto CPUs that another still measures on.
_lock = threading.Lock()
_held: list[frozenset[CpuId]] = []
_home: frozenset[int] = frozenset()


@contextlib.contextmanager
def apart(cpus: Collection[CpuId]) -> Iterator[bool]:
    """Run every thread of this process on other CPUs than `cpus` meanwhile.

    May be entered by several threads at once, and left in any order: the process stays off
    the CPUs of all that have not left yet, and returns once the last one has.

    Yields:
        Whether there was room: False if no CPU that it may use would be left, and it stays
        where it is.
    """
    global _home  # noqa: PLW0603
    own = frozenset(cpus)
    with _lock:
        if not _held:
            _home = frozenset(os.sched_getaffinity(0))
        is_room = bool(_home.difference(own, *_held))
        if is_room:
            _settle(before=_held.copy(), after=[*_held, own])
    if not is_room:
        yield False
        return
    try:
        yield True
    finally:
        with _lock:
            rest = _held.copy()
            rest.remove(own)
            _settle(before=_held.copy(), after=rest)


def _settle(*, before: list[frozenset[CpuId]], after: list[frozenset[CpuId]]) -> None:
    """Hold these instead, and move every thread of this process if that changes its CPUs."""
    _held[:] = after
    if _home.difference(*after) != _home.difference(*before):
        _move(_home.difference(*after))


def _move(cpus: Collection[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended under our eyes
            os.sched_setaffinity(int(thread.name), cpus)
