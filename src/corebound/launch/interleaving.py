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
from typing import Self

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


class Participant:
    """One launch of an alternation, with all its workers.

    The launch's own thread calls `imported`, `may_set_up`, `ready`, `may_go` and `leave`, in
    this order.
    """

    def __init__(self, alternation: Alternation, workers: int) -> None:
        self.workers = workers
        self.connections: list[socket.socket] = []
        self.finished: list[socket.socket] = []
        self.has_imported = self.is_ready = self.has_ended = False
        self.slices_s = 0.0
        self._alternation = alternation
        self._processes: Callable[[], Iterable[int]] = tuple
        self._paused_ns = self._paused_cpu_ns = 0
        # Since when its processes are stopped, and their CPU clocks at that moment.
        self._stopped: tuple[int, dict[int, int]] | None = None

    @property
    def alternates(self) -> protocol.Alternates:
        """How its workers alternate."""
        number = self._alternation.participants.index(self)
        return protocol.Alternates(turn_signal=self._alternation.name, turn_number=number)

    def imported(self) -> None:
        """Note that the launch has imported what it needs."""
        with self._alternation.changed:
            self.has_imported = True
            self._alternation.changed.notify_all()

    def may_set_up(self, timeout_s: float) -> bool:
        """Whether all launches have imported and all before it are ready, within the timeout.

        All import at the same time, which takes most of a short launch. One launch sets up at a
        time, so that none disturbs the set-up of another: two pools that spin would take many
        times as long. Launches that have ended do not count.
        """
        participants = self._alternation.participants
        before = participants[: participants.index(self)]
        return self._alternation.wait_until(
            lambda: (
                all(one.has_imported or one.has_ended for one in participants)
                and all(one.is_ready or one.has_ended for one in before)
            ),
            timeout_s,
        )

    @property
    def has_room(self) -> bool:
        """Whether there is memory for one more launch; the first one always has room."""
        return self is self._alternation.participants[0] or self._alternation.has_room()

    def ready(self, processes: Callable[[], Iterable[int]]) -> None:
        """Note that the launch is ready, and pause it.

        Args:
            processes: Lists its processes.
        """
        with self._alternation.changed:
            self._processes, self.is_ready = processes, True
            self.pause()
            self._alternation.changed.notify_all()

    def may_go(self, timeout_s: float) -> bool:
        """Whether all launches are ready or have ended, within the timeout; it then continues."""
        participants = self._alternation.participants
        if not self._alternation.wait_until(
            lambda: all(one.is_ready or one.has_ended for one in participants), timeout_s
        ):
            return False
        with self._alternation.changed:
            self.resume()
        return True

    def leave(self) -> None:
        """Note that the launch has ended, so that the others stop waiting for it."""
        with self._alternation.changed:
            # Their numbers may soon belong to other processes, which must not be stopped.
            self._processes, self.has_ended = tuple, True
            self._alternation.changed.notify_all()

    @property
    def others_s(self) -> float:
        """The total duration of the other launches' time slices so far, in seconds."""
        return self._alternation.slices_s_except(self)

    @property
    def pauses(self) -> Pauses:
        """For how long it was paused, and the CPU time that it used nevertheless."""
        return Pauses(duration_ns=self._paused_ns, cpu_ns=self._paused_cpu_ns)

    @property
    def paused_ns(self) -> int:
        """For how long it has been paused, including the current pause."""
        stopped = self._stopped
        return self._paused_ns + (time.monotonic_ns() - stopped[0] if stopped else 0)

    @property
    def is_paused(self) -> bool:
        """Whether it is paused now."""
        return self._stopped is not None

    def pause(self) -> None:
        """Stop its processes."""
        if self._stopped is None:
            self._signal(signal.SIGSTOP)
            self._wait_until_stopped()
            self._stopped = (time.monotonic_ns(), cpu_clocks_ns(self._processes()))

    def resume(self) -> None:
        """Let its processes continue, and note what they used in the meantime."""
        if self._stopped is None:
            return
        since_ns, before_ns = self._stopped
        after_ns = cpu_clocks_ns(before_ns)
        self._paused_cpu_ns += sum(used - before_ns[pid] for pid, used in after_ns.items())
        self._paused_ns += time.monotonic_ns() - since_ns
        self._stopped = None
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Let its processes continue, and close the connections to its workers."""
        self.resume()
        for connection in (*self.connections, *self.finished):
            connection.close()

    def _wait_until_stopped(self) -> None:
        """Wait until its processes have stopped, or the patience ends.

        One thread of a process handles the signal, and may first have to wait for a CPU on which
        others of its threads spin. Once the main thread has stopped, none runs any more.
        """
        deadline_s = time.monotonic() + _MOST_STOPPING_S
        while time.monotonic() < deadline_s:
            stats = map(process_stat, self._processes())
            if all(stat is None or stat.state in _STOPPED for stat in stats):
                return
            time.sleep(_STOPPING_S)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process groups, which reaches children that are not known yet, too."""
        groups = set()
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                groups.add(os.getpgid(pid))
        for group in groups - {os.getpgrp()}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)


class Alternation:
    """Grants time slices to several launches in turn; the processes of all others are stopped.

    Signals stop them (SIGSTOP, SIGCONT), because thread pools spin for a while after an
    iteration, background threads continue, and data loaders prefetch. A launch with several
    workers has one time slice for all of them, which ends when the last has handed over.

    Each launch runs in its own thread; granting runs in one more thread. A launch that ends for
    any reason drops out, and the others continue.

    Attributes:
        name: The abstract socket to which the workers connect.
        participants: The launches, in the order in which they set up.
        changed: Notified when a launch has imported, is ready or has ended.
        has_room: Whether there is memory for one more launch.
    """

    def __init__(
        self, workers: Sequence[int], *, has_room: Callable[[], bool] = lambda: True
    ) -> None:
        """Start to listen.

        Args:
            workers: The number of workers of each launch.
            has_room: Whether there is memory for one more launch.
        """
        self.has_room = has_room
        self.name = f"corebound-{secrets.token_hex(16)}"
        self.participants = tuple(Participant(self, number) for number in workers)
        self.changed = threading.Condition()
        # An abstract socket name: it needs no file, so the scratch folder's path sets no limit.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(sum(workers))
        self._listener.settimeout(_PATIENCE_S)
        # The launch that has the time slice, and since when.
        self._holder: tuple[Participant, float] | None = None
        self._thread = threading.Thread(target=self._grant_time_slices, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        for participant in self.participants:
            participant.leave()
        self._thread.join()
        self._listener.close()

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Whether the launches come to meet a condition, within the timeout."""
        with self.changed:
            return self.changed.wait_for(condition, timeout=timeout_s)

    def slices_s_except(self, participant: Participant) -> float:
        """The total duration of all other launches' time slices so far, in seconds."""
        with self.changed:
            total_s = sum(other.slices_s for other in self.participants if other is not participant)
            if self._holder is not None and self._holder[0] is not participant:
                total_s += time.monotonic() - self._holder[1]
            return total_s

    def _grant_time_slices(self) -> None:
        self._accept_workers()
        waiting = deque(one for one in self.participants if one.connections)
        try:
            for participant in waiting:
                participant.pause()
            while waiting:
                participant = waiting.popleft()
                if self._grant_time_slice(participant, is_last=not waiting):
                    waiting.append(participant)
        finally:
            # Only now may any of them exit: tearing down would disturb the others.
            for participant in self.participants:
                participant.close()

    def _grant_time_slice(self, participant: Participant, *, is_last: bool) -> bool:
        """Grant a launch a time slice and wait until it ends; whether it needs more of them."""
        began_s = time.monotonic()
        self._holder = (participant, began_s)
        participant.resume()
        for connection in participant.connections:
            with contextlib.suppress(OSError):
                connection.send(protocol.ALL_YOURS if is_last else protocol.YOURS)
        replies = [_receive(connection) for connection in participant.connections]
        # It is paused even if it needs no more: all exit together.
        participant.pause()
        with self.changed:
            self._holder = None
            participant.slices_s += time.monotonic() - began_s
        for connection, reply in zip(tuple(participant.connections), replies, strict=True):
            if reply != protocol.HAND_OVER:
                participant.connections.remove(connection)
                participant.finished.append(connection)
        return bool(participant.connections)

    def _accept_workers(self) -> None:
        """Accept a connection of every worker that reaches the start of the alternation."""
        while any(
            len(one.connections) < one.workers and not one.has_ended for one in self.participants
        ):
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                number = connection.recv(1)
                if number and number[0] < len(self.participants):
                    self.participants[number[0]].connections.append(connection)
                else:
                    connection.close()


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1)
    except OSError:
        return b""
