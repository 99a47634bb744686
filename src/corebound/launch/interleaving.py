"""Launches that alternate, and keeping off the CPUs that are measured."""

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
from pathlib import Path
from typing import Self

from msgspec import Struct

from corebound.machine.topology import CpuId
from corebound.worker import protocol

# Launches that alternate are made by threads of one process, and a process is moved as a whole:
# the first of them to end must not move it back onto CPUs that another still measures on.
_lock = threading.Lock()
_held: list[frozenset[CpuId]] = []
_home: frozenset[int] = frozenset()


@contextlib.contextmanager
def keep_off_cpus(cpus: Collection[CpuId]) -> Iterator[bool]:
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


# So often it is looked whether a worker that has not called yet has ended instead.
_PATIENCE_S = 0.1


class Alternation:
    """Hands out stints to the workers of several launches, one at a time, in turn.

    Each launch has a place and is made in a thread of its own; this has one more. A launch
    that ends, however it does, is out of it, and the others go on.
    """

    def __init__(self, places: int) -> None:
        """Begin to listen for so many workers."""
        self.name = f"corebound-{secrets.token_hex(16)}"
        self._places = range(places)
        # An abstract name: no file, no limit by the scratch folder's path.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(places)
        self._listener.settimeout(_PATIENCE_S)
        self._changed = threading.Condition()
        self._ready: set[int] = set()
        self._left: set[int] = set()
        self._held_s = dict.fromkeys(self._places, 0.0)
        # Whose stint it is, and since when.
        self._holder: tuple[int, float] | None = None
        self._thread = threading.Thread(target=self._hand_out, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        for place in self._places:
            self.leave(place)
        self._thread.join()
        self._listener.close()

    def wait_for_others(self, place: int, timeout_s: float) -> None:
        """Wait until every other launch is ready too, or has ended, or time is up."""
        with self._changed:
            self._ready.add(place)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._ready | self._left >= set(self._places), timeout=timeout_s
            )

    def leave(self, place: int) -> None:
        """A launch is over; nobody waits for it any more."""
        with self._changed:
            self._left.add(place)
            self._changed.notify_all()

    def others_s(self, place: int) -> float:
        """How long the stints of all others took so far, in seconds."""
        with self._changed:
            held_s = sum(held for other, held in self._held_s.items() if other != place)
            if self._holder is not None and self._holder[0] != place:
                held_s += time.monotonic() - self._holder[1]
            return held_s

    def _hand_out(self) -> None:
        callers = self._callers()
        try:
            waiting = deque(sorted(callers))
            # Who is left alone is told nothing more, and goes on without a break.
            while len(waiting) > 1:
                place = waiting.popleft()
                began_s = time.monotonic()
                self._holder = (place, began_s)
                goes_on = _stint(callers[place])
                with self._changed:
                    self._holder = None
                    self._held_s[place] += time.monotonic() - began_s
                if goes_on:
                    waiting.append(place)
        finally:
            for caller in callers.values():
                caller.close()

    def _callers(self) -> dict[int, socket.socket]:
        """The connection of every worker that came to where it alternates."""
        callers: dict[int, socket.socket] = {}
        while set(self._places) - callers.keys() - self._left:
            with contextlib.suppress(TimeoutError):
                caller, _ = self._listener.accept()
                place = caller.recv(1)
                if place and place[0] in self._places:
                    callers[place[0]] = caller
                else:
                    caller.close()
        return callers


def _stint(caller: socket.socket) -> bool:
    """Let a worker have its stint, and wait until it is over; False if it was its last."""
    try:
        caller.send(protocol.YOURS)
        return caller.recv(1) == protocol.DONE
    except OSError:
        return False


class InterleaveRole(Struct, frozen=True, kw_only=True):
    """One launch's part in an alternation."""

    alternation: Alternation
    number: int

    def asked(self, request: protocol.Request) -> protocol.Request:
        """What its worker is asked, to alternate."""
        return replace(request, baton=self.alternation.name, place=self.number)

    def wait_for_others(self, timeout_s: float) -> None:
        """Wait until every other launch is ready too, or has ended, or time is up."""
        self.alternation.wait_for_others(self.number, timeout_s)

    @property
    def others_s(self) -> float:
        """How long it waited for the others' stints, in seconds."""
        return self.alternation.others_s(self.number)
