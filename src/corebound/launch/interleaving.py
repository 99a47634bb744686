"""Lets launches start at once and take turns; moves this process off the measured CPUs."""

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

from corebound.machine.procfs import cpu_clocks_ns, process_stat, readable, thread_ids
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
# Beside eight busy processes on two CPUs, stopping took up to 56 ms; on an emulated machine beside
# them 440 ms, in which this process itself could look once.
_MOST_STOPPING_S = 2.0
# How often to ask a kernel that may not say where threads wait.
_MOST_LOOKS = 20


def _stopped_threads(processes: Iterable[int]) -> list[str] | None:
    """The threads of processes, as `PID/task/TID`, if all have stopped or ended; else None."""
    stopped = []
    for pid in processes:
        for thread in (f"{pid}/task/{tid}" for tid in thread_ids(pid)):
            stat = process_stat(thread)
            if stat is None or stat.state in "ZX":
                continue
            if stat.state not in "Tt":
                return None
            stopped.append(thread)
    return stopped


def _have_left_cpus(threads: Iterable[str]) -> bool:
    """Whether the kernel says where each waits: none of one that may still be on a CPU."""
    return not any(readable(f"/proc/{thread}/wchan", is_short=True) == b"0" for thread in threads)


class Participant:
    """One launch among several that start at once, with all its workers.

    The launch's own thread calls `imported`, `may_set_up` and `leave`, in this order. If it
    alternates with others, it calls `ready` and `may_go` before `leave`.

    Attributes:
        has_no_room: Whether memory became short while it imported.
        wait: How it was stopped between its import and its measurement; None before its turn.
    """

    def __init__(self, alternation: Alternation, workers: int) -> None:
        self.workers = workers
        self.connections: list[socket.socket] = []
        self.finished: list[socket.socket] = []
        self.has_imported = self.is_ready = self.has_ended = self.has_no_room = False
        self.wait: Pauses | None = None
        self.slices_s = 0.0
        self._alternation = alternation
        self._began_s, self._import_s = time.monotonic(), 0.0
        self._processes: Callable[[], Iterable[int]] = tuple
        self._paused_ns = self._paused_cpu_ns = 0
        # Since when its processes are stopped, and their CPU clocks at that moment.
        self._stopped: tuple[int, dict[int, int]] | None = None

    @property
    def alternates(self) -> protocol.Alternates | None:
        """How its workers alternate; None if they have one turn, without interruption."""
        participants = self._alternation.participants
        if len(participants) == 1:
            return None
        return protocol.Alternates(
            turn_signal=self._alternation.name, turn_number=participants.index(self)
        )

    def imported(self, processes: Callable[[], Iterable[int]]) -> None:
        """Note that the launch has imported what it needs, and pause it."""
        with self._alternation.changed:
            self._import_s = time.monotonic() - self._began_s
            self._processes, self.has_imported = processes, True
            self.pause()
            self._alternation.changed.notify_all()

    def may_set_up(self, timeout_s: float) -> bool:
        """Whether it is this launch's turn to set up, within the timeout; it then continues.

        All import at the same time, which takes most of a short launch. Then those that alternate
        with it have the same turn, and one of them sets up at a time, so that none disturbs the
        set-up of another: two pools that spin would take many times as long. Launches that have
        ended do not count.
        """
        start, own = self._alternation.start, self._alternation.participants
        at = start.alternations.index(self._alternation)
        before = [each for earlier in start.alternations[:at] for each in earlier.participants]
        siblings = own[: own.index(self)]
        is_turn = self._alternation.wait_until(
            lambda: (
                not start.is_importing
                and all(each.has_ended for each in before)
                and all(each.is_ready or each.has_ended for each in siblings)
            ),
            timeout_s,
        )
        if is_turn:
            self._end_wait()
        return is_turn

    def _end_wait(self) -> None:
        """Continue. It has not been observed so far, so its pauses count apart from later ones."""
        with self._alternation.changed:
            self.resume()
            before, now = self.wait or Pauses(duration_ns=0, cpu_ns=0), self.pauses
            self.wait = Pauses(
                duration_ns=before.duration_ns + now.duration_ns, cpu_ns=before.cpu_ns + now.cpu_ns
            )
            self._paused_ns = self._paused_cpu_ns = 0

    @property
    def has_room(self) -> bool:
        """Whether there is memory for one more launch; the first one always has room."""
        return self is self._alternation.participants[0] or self._alternation.has_room()

    def ready(self, processes: Callable[[], Iterable[int]]) -> None:
        """Note that the launch is ready, and pause it."""
        with self._alternation.changed:
            self._processes, self.is_ready = processes, True
            self.pause()
            self._alternation.changed.notify_all()

    def may_go(self, timeout_s: float) -> bool:
        """Whether all that it alternates with are ready or have ended, within the timeout.

        It then continues.
        """
        participants = self._alternation.participants
        if not self._alternation.wait_until(
            lambda: all(each.is_ready or each.has_ended for each in participants), timeout_s
        ):
            return False
        self._end_wait()
        return True

    def leave(self) -> None:
        """Note that the launch has ended, so that the others stop waiting for it."""
        with self._alternation.changed:
            # Their numbers may soon belong to other processes, which must not be stopped.
            self._processes, self.has_ended = tuple, True
            self._alternation.changed.notify_all()

    @property
    def others_s(self) -> float:
        """How long it has been kept waiting so far, in seconds, by launches of its own turn.

        While all import, that is what they take longer because they share the CPUs.
        """
        import_s = self._import_s or time.monotonic() - self._began_s
        share_s = import_s / self._alternation.start.launches_per_cpu
        return import_s - share_s + self._alternation.slices_s_except(self)

    @property
    def others_share_s(self) -> float:
        """How much of its time so far counts as that of others, in seconds.

        They share the time in which all import, however many CPUs there are.
        """
        launches = sum(len(turn.participants) for turn in self._alternation.start.alternations)
        others_s = self._import_s * (1 - 1 / launches)
        return others_s + self._alternation.slices_s_except(self)

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
            clocks_ns = self._clocks_when_stopped()
            self._stopped = (time.monotonic_ns(), clocks_ns)

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

    def _clocks_when_stopped(self) -> dict[int, int]:
        """Its CPU clocks once all its threads have stopped, or the patience ends.

        Each thread handles the signal itself, and may first have to wait for a CPU. It says that it
        has stopped before it leaves its CPU, where it may tell its parent and a hypervisor may take
        the CPU away, which counts as its time: until two readings of the clocks are equal, and the
        kernel, which adds to the clock of a running thread at ticks only, says where it waits.
        """
        deadline_s, looks = time.monotonic() + _MOST_STOPPING_S, 0
        while True:
            clocks_ns = cpu_clocks_ns(self._processes())
            if (threads := _stopped_threads(clocks_ns)) is not None:
                looks += 1
                have_left = looks > _MOST_LOOKS or _have_left_cpus(threads)
                if have_left and cpu_clocks_ns(clocks_ns) == clocks_ns:
                    return clocks_ns
            if time.monotonic() > deadline_s:
                return cpu_clocks_ns(self._processes())
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


class JointStart:
    """Launches that start at once, and then take turns.

    All import at the same time. Then each, or each group of those that alternate, is set up,
    measured and ended in its turn, while the processes of those after it are stopped.

    Attributes:
        alternations: The launches in the order of their turns; those that alternate together.
        changed: Notified when a launch has imported, is ready or has ended.
    """

    def __init__(
        self,
        workers: Sequence[Sequence[int]],
        *,
        cpus: int,
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        """Start to listen.

        Args:
            workers: The number of workers of each launch, by turn.
            cpus: On how many CPUs they import.
            has_room: Whether there is memory for one more launch in the same turn.
        """
        self.changed = threading.Condition()
        self.alternations = tuple(Alternation(self, turn, has_room=has_room) for turn in workers)
        self.launches_per_cpu = max(sum(map(sum, workers)) / cpus, 1.0)

    def __enter__(self) -> Self:
        for alternation in self.alternations:
            alternation.open()
        return self

    def __exit__(self, *_exc: object) -> None:
        for alternation in self.alternations:
            alternation.close()

    @property
    def participants(self) -> tuple[Participant, ...]:
        """All launches, in the order of their turns."""
        return tuple(each for turn in self.alternations for each in turn.participants)

    @property
    def is_importing(self) -> bool:
        """Whether some launch still imports."""
        return not all(each.has_imported or each.has_ended for each in self.participants)

    def give_up_imports(self) -> None:
        """Have the launches that still import end, because memory is short."""
        for participant in self.participants:
            participant.has_no_room |= not participant.has_imported


class Alternation:
    """Grants time slices to several launches in turn; the processes of all others are stopped.

    A launch that alternates with none is set up and iterates in one turn.

    Signals stop them (SIGSTOP, SIGCONT), because thread pools spin for a while after an
    iteration, background threads continue, and data loaders prefetch. A launch with several
    workers has one time slice for all of them, which ends when the last has handed over.

    Each launch runs in its own thread; granting runs in one more thread. A launch that ends for
    any reason drops out, and the others continue.

    Attributes:
        name: The abstract socket to which the workers connect.
        start: All launches that started with these.
        participants: The launches, in the order in which they set up.
        changed: Notified when a launch has imported, is ready or has ended.
        has_room: Whether there is memory for one more launch.
    """

    def __init__(
        self, start: JointStart, workers: Sequence[int], *, has_room: Callable[[], bool]
    ) -> None:
        """Start to listen.

        Args:
            start: All launches that start with these.
            workers: The number of workers of each launch.
            has_room: Whether there is memory for one more launch.
        """
        self.start = start
        self.has_room = has_room
        self.name = f"corebound-{secrets.token_hex(16)}"
        self.participants = tuple(Participant(self, number) for number in workers)
        self.changed = start.changed
        # An abstract socket name: it needs no file, so the scratch folder's path sets no limit.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(f"\0{self.name}")
        self._listener.listen(sum(workers))
        self._listener.settimeout(_PATIENCE_S)
        # The launch that has the time slice, and since when.
        self._holder: tuple[Participant, float] | None = None
        self._thread = threading.Thread(target=self._grant_time_slices, daemon=True)

    def open(self) -> None:
        """Start to grant time slices."""
        self._thread.start()

    def close(self) -> None:
        """Note that all launches have ended, and close the socket."""
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
        with self.changed:
            self.changed.wait_for(
                lambda: all(each.is_ready or each.has_ended for each in self.participants)
            )
        self._accept_workers()
        waiting = deque(each for each in self.participants if each.connections)
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
            len(each.connections) < each.workers and not each.has_ended
            for each in self.participants
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
