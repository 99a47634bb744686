"""Keeps this process off the CPUs that are being measured, where the host has room for that."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from corebound.model.topology import CpuId


@contextlib.contextmanager
def apart(cpus: Collection[CpuId]) -> Iterator[bool]:
    """Run every thread of this process on other CPUs than `cpus` meanwhile.

    Yields:
        Whether there was room: False if every CPU that it may use is among `cpus`,
        and it stays where it is.
    """
    before = os.sched_getaffinity(0)
    spare = before - set(cpus)
    if not spare:
        yield False
        return
    if spare != before:
        _move(spare)
    try:
        yield True
    finally:
        if spare != before:
            _move(before)


def _move(cpus: Collection[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended under our eyes
            os.sched_setaffinity(int(thread.name), cpus)
