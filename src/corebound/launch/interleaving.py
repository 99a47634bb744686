"""Alternates the time slices of several launches; moves this process off the measured CPUs."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Self

from msgspec import Struct

from corebound.machine.procfs import cpu_clocks_ns, process_stat, thread_ids
from corebound.machine.topology import CpuId
from corebound.records.telemetry import Pauses
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
# How often to check whether processes have stopped, and for how long.
_STOPPING_S = 50e-6
_STOPPED = frozenset("TtZX")
_MOST_STOPPING_S = 0.1


class _Member:
    """What an alternation knows of one launch."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.connections: list[socket.socket] = []
        self.finished: list[socket.socket] = []
        self.processes: Callable[[], Iterable[int]] = tuple
        self.is_ready = self.has_ended = False
        self.slices_s = 0.0
        self.paused_ns = self.paused_cpu_ns = 0
        # Since when its processes are stopped, and their CPU clocks at that moment.
        self._stopped: tuple[int, dict[int, int]] | None = None

    @property
    def is_paused(self) -> bool:
        return self._stopped is not None

    @property
    def total_paused_ns(self) -> int:
        stopped = self._stopped
        return self.paused_ns + (time.monotonic_ns() - stopped[0] if stopped else 0)

    def pause(self) -> None:
        """Stop its processes."""
        if self._stopped is None:
            self._signal(signal.SIGSTOP)
            self._wait_until_stopped()
            self._stopped = (time.monotonic_ns(), cpu_clocks_ns(self.processes()))

    def resume(self) -> None:
        """Let its processes continue, and note what they used in the meantime."""
        if self._stopped is None:
            return
        since_ns, before_ns = self._stopped
        after_ns = cpu_clocks_ns(before_ns)
        self.paused_cpu_ns += sum(used - before_ns[pid] for pid, used in after_ns.items())
        self.paused_ns += time.monotonic_ns() - since_ns
        self._stopped = None
        self._signal(signal.SIGCONT)

    def _wait_until_stopped(self) -> None:
        """Wait until its processes have stopped, or the patience ends.

        One thread of a process handles the signal, and may first have to wait for a CPU on which
        others of its threads spin. Once the main thread has stopped, none runs any more.
        """
        deadline_s = time.monotonic() + _MOST_STOPPING_S
        while time.monotonic() < deadline_s:
            stats = map(process_stat, self.processes())
            if all(stat is None or stat.state in _STOPPED for stat in stats):
                return
            time.sleep(_STOPPING_S)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process groups, which reaches children that are not known yet, too."""
        groups = set()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                groups.add(os.getpgid(pid))
        for group in groups - {os.getpgrp()}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def close(self) -> None:
        self.resume()
        for connection in (*self.connections, *self.finished):
            connection.close()


class Alternation:
    """Grants time slices to several launches in turn; the processes of all others are stopped.

    Signals stop them (SIGSTOP, SIGCONT), because thread pools spin for a while after an
    iteration, background threads continue, and data loaders prefetch. A launch with several
    workers has one time slice for all of them, which ends when the last has handed over.

    Each launch has a place number and runs in its own thread; granting runs in one more thread.
    A launch that ends for any reason drops out, and the others continue.
    """

    def __init__(self, workers: Sequence[int]) -> None:
        """Start to listen.

        Args:
            workers: The number of workers of each launch.
        """
        self.name = f"corebound-{secrets.token_hex(16)}"
        self._members = [_Member(number) for number in workers]
        # An abstract socket name: it needs no file, so the scratch folder's path sets no limit.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(sum(workers))
        self._listener.settimeout(_PATIENCE_S)
        self._changed = threading.Condition()
        # The launch that has the time slice, and since when.
        self._holder: tuple[_Member, float] | None = None
        self._thread = threading.Thread(target=self._grant_time_slices, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        for number in range(len(self._members)):
            self.leave(number)
        self._thread.join()
        self._listener.close()

    def may_start(self, number: int, timeout_s: float) -> bool:
        """Whether all launches with lower numbers are ready or have ended.

        One launch sets up at a time, so that none disturbs the set-up of another.

        Args:
            number: The launch.
            timeout_s: How long to wait for it.
        """
        return self._wait_for(self._members[:number], timeout_s)

    def ready(self, number: int, processes: Callable[[], Iterable[int]]) -> None:
        """Note that a launch is ready, and pause it.

        Args:
            number: The launch.
            processes: Lists its processes.
        """
        with self._changed:
            member = self._members[number]
            member.processes, member.is_ready = processes, True
            member.pause()
            self._changed.notify_all()

    def may_go(self, number: int, timeout_s: float) -> bool:
        """Whether every other launch is ready or has ended; the launch then continues.

        Args:
            number: The launch.
            timeout_s: How long to wait for it.
        """
        if not self._wait_for(self._members, timeout_s):
            return False
        with self._changed:
            self._members[number].resume()
        return True

    def _wait_for(self, members: Sequence[_Member], timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: all(member.is_ready or member.has_ended for member in members),
                timeout=timeout_s,
            )

    def leave(self, number: int) -> None:
        """Note that a launch has ended, so that the others stop waiting for it."""
        with self._changed:
            member = self._members[number]
            # Their numbers may soon belong to other processes, which must not be stopped.
            member.processes, member.has_ended = tuple, True
            self._changed.notify_all()

    def others_s(self, number: int) -> float:
        """The total duration of the other launches' time slices so far, in seconds."""
        with self._changed:
            own = self._members[number]
            total_s = sum(member.slices_s for member in self._members if member is not own)
            if self._holder is not None and self._holder[0] is not own:
                total_s += time.monotonic() - self._holder[1]
            return total_s

    def pauses(self, number: int) -> Pauses:
        """For how long a launch has been paused, and the CPU time that it used nevertheless."""
        member = self._members[number]
        return Pauses(duration_ns=member.paused_ns, cpu_ns=member.paused_cpu_ns)

    def paused_ns(self, number: int) -> int:
        """For how long a launch has been paused, including the current pause."""
        return self._members[number].total_paused_ns

    def is_paused(self, number: int) -> bool:
        """Whether a launch is paused now."""
        return self._members[number].is_paused

    def _grant_time_slices(self) -> None:
        self._accept_workers()
        waiting = deque(member for member in self._members if member.connections)
        try:
            for member in waiting:
                member.pause()
            while waiting:
                member = waiting.popleft()
                if self._grant_time_slice(member, is_last=not waiting):
                    waiting.append(member)
        finally:
            # Only now may any of them exit: tearing down would disturb the others.
            for member in self._members:
                member.close()

    def _grant_time_slice(self, member: _Member, *, is_last: bool) -> bool:
        """Grant a launch a time slice and wait until it ends; whether it needs more of them."""
        began_s = time.monotonic()
        self._holder = (member, began_s)
        member.resume()
        for connection in member.connections:
            with contextlib.suppress(OSError):
                connection.send(protocol.ALL_YOURS if is_last else protocol.YOURS)
        replies = [_receive(connection) for connection in member.connections]
        # It is paused even if it needs no more: all exit together.
        member.pause()
        with self._changed:
            self._holder = None
            member.slices_s += time.monotonic() - began_s
        for connection, reply in zip(tuple(member.connections), replies, strict=True):
            if reply != protocol.HAND_OVER:
                member.connections.remove(connection)
                member.finished.append(connection)
        return bool(member.connections)

    def _accept_workers(self) -> None:
        """Accept a connection of every worker that reaches the start of the alternation."""
        while any(
            len(member.connections) < member.workers and not member.has_ended
            for member in self._members
        ):
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                number = connection.recv(1)
                if number and number[0] < len(self._members):
                    self._members[number[0]].connections.append(connection)
                else:
                    connection.close()


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except OSError:
        return b""


class InterleaveRole(Struct, frozen=True, kw_only=True):
    """One launch's role in an alternation."""

    alternation: Alternation
    number: int

    def request(self, request: protocol.Request) -> protocol.Request:
        """The worker's request, with the keys that make it alternate."""
        return replace(request, turn_signal=self.alternation.name, turn_number=self.number)

    def ready(self, processes: Callable[[], Iterable[int]]) -> None:
        """Note that this launch is ready, and pause it."""
        self.alternation.ready(self.number, processes)

    def may_go(self, timeout_s: float) -> bool:
        """Whether every other launch is ready or has ended; this one then continues."""
        return self.alternation.may_go(self.number, timeout_s)

    @property
    def others_s(self) -> float:
        """How long it waited for the other launches' time slices, in seconds."""
        return self.alternation.others_s(self.number)

    @property
    def pauses(self) -> Pauses:
        """For how long it was paused so far."""
        return self.alternation.pauses(self.number)

    @property
    def paused_ns(self) -> int:
        """For how long it has been paused, including the current pause."""
        return self.alternation.paused_ns(self.number)

    @property
    def is_paused(self) -> bool:
        """Whether it is paused now."""
        return self.alternation.is_paused(self.number)
