"""Alternates the time slices of several launches; moves this process off the measured CPUs."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Self

from msgspec import Struct

from corebound.machine.procfs import thread_ids
from corebound.machine.topology import CpuId
from corebound.worker import protocol

# Threads of one process make the launches that alternate, and the process is moved as a whole.
# The first launch to end must not move it back onto CPUs that another launch still measures on.
_lock = threading.Lock()
_avoided: list[frozenset[CpuId]] = []
_own_cpus: frozenset[int] = frozenset()


@contextlib.contextmanager
def keep_off_cpus(cpus: Collection[CpuId]) -> Iterator[bool]:
    """Keep every thread of this process off `cpus` within the context.

    Several threads may enter at once and leave in any order. The process avoids the CPUs of
    every open context, and returns to its own CPUs when the last one closes.

    Yields:
        True if the process was moved. False if no allowed CPU would be left; the process then
        stays where it is.
    """
    global _own_cpus  # noqa: PLW0603  # the affinity belongs to the process, so does its memory
    measured = frozenset(cpus)
    with _lock:
        if not _avoided:
            _own_cpus = frozenset(os.sched_getaffinity(0))
        is_room = bool(_own_cpus.difference(measured, *_avoided))
        if is_room:
            _avoid(before=_avoided.copy(), after=[*_avoided, measured])
    if not is_room:
        yield False
        return
    try:
        yield True
    finally:
        with _lock:
            remaining = _avoided.copy()
            remaining.remove(measured)
            _avoid(before=_avoided.copy(), after=remaining)


def _avoid(*, before: list[frozenset[CpuId]], after: list[frozenset[CpuId]]) -> None:
    """Replace the avoided CPU sets, and move this process if its allowed CPUs change."""
    _avoided[:] = after
    if _own_cpus.difference(*after) != _own_cpus.difference(*before):
        _move(_own_cpus.difference(*after))


def _move(cpus: Collection[int]) -> None:
    for tid in thread_ids(os.getpid()):
        with contextlib.suppress(OSError):  # it ended in the meantime
            os.sched_setaffinity(tid, cpus)


# How often to check whether a worker that has not connected yet has ended.
_PATIENCE_S = 0.1


class Alternation:
    """Grants time slices to the workers of several launches in turn, one at a time.

    Each launch has a place number and runs in its own thread; granting runs in one more thread.
    A launch that ends for any reason drops out, and the others continue.
    """

    def __init__(self, workers: int) -> None:
        """Start to listen for `workers` workers."""
        self.name = f"corebound-{secrets.token_hex(16)}"
        self._numbers = range(workers)
        # An abstract socket name: it needs no file, so the scratch folder's path sets no limit.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(workers)
        self._listener.settimeout(_PATIENCE_S)
        self._changed = threading.Condition()
        self._ready: set[int] = set()
        self._ended: set[int] = set()
        self._slices_s = dict.fromkeys(self._numbers, 0.0)
        # The place that has the time slice, and since when.
        self._holder: tuple[int, float] | None = None
        self._thread = threading.Thread(target=self._grant_time_slices, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        for number in self._numbers:
            self.leave(number)
        self._thread.join()
        self._listener.close()

    def wait_for_others(self, number: int, timeout_s: float) -> None:
        """Wait until every other launch is ready or has ended, or the timeout passes."""
        with self._changed:
            self._ready.add(number)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._ready | self._ended >= set(self._numbers), timeout=timeout_s
            )

    def leave(self, number: int) -> None:
        """Note that a launch has ended, so that the others stop waiting for it."""
        with self._changed:
            self._ended.add(number)
            self._changed.notify_all()

    def others_s(self, number: int) -> float:
        """The total duration of the other launches' time slices so far, in seconds."""
        with self._changed:
            total_s = sum(slice_s for other, slice_s in self._slices_s.items() if other != number)
            if self._holder is not None and self._holder[0] != number:
                total_s += time.monotonic() - self._holder[1]
            return total_s

    def _grant_time_slices(self) -> None:
        connections = self._accept_workers()
        try:
            waiting = deque(sorted(connections))
            # The last remaining worker gets no more messages and runs without interruption.
            while len(waiting) > 1:
                number = waiting.popleft()
                began_s = time.monotonic()
                self._holder = (number, began_s)
                continues = _grant_time_slice(connections[number])
                with self._changed:
                    self._holder = None
                    self._slices_s[number] += time.monotonic() - began_s
                if continues:
                    waiting.append(number)
        finally:
            for connection in connections.values():
                connection.close()

    def _accept_workers(self) -> dict[int, socket.socket]:
        """The connection of every worker that reached the start of the alternation."""
        connections: dict[int, socket.socket] = {}
        while set(self._numbers) - connections.keys() - self._ended:
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                number = connection.recv(1)
                if number and number[0] in self._numbers:
                    connections[number[0]] = connection
                else:
                    connection.close()
        return connections


def _grant_time_slice(connection: socket.socket) -> bool:
    """Grant a worker a time slice and wait until it ends; False if it was the last."""
    try:
        connection.send(protocol.YOURS)
        return connection.recv(1) == protocol.HAND_OVER
    except OSError:
        return False


class InterleaveRole(Struct, frozen=True, kw_only=True):
    """One launch's role in an alternation."""

    alternation: Alternation
    number: int

    def request(self, request: protocol.Request) -> protocol.Request:
        """The worker's request, with the keys that make it alternate."""
        return replace(request, turn_signal=self.alternation.name, turn_number=self.number)

    def wait_for_others(self, timeout_s: float) -> None:
        """Wait until every other launch is ready or has ended, or the timeout passes."""
        self.alternation.wait_for_others(self.number, timeout_s)

    @property
    def others_s(self) -> float:
        """How long it waited for the other launches' time slices, in seconds."""
        return self.alternation.others_s(self.number)
