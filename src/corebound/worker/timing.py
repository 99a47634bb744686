"""Times each iteration separately, without interruption or in turns with other workers."""

from __future__ import annotations

import contextlib
import math
import socket
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from corebound.worker import protocol


def measure(
    step: Callable[[], object],
    *,
    iterations: int,
    wall_ns: Callable[[], int],
    cpu_ns: Callable[[], int],
    prepare: Callable[[], object] | None = None,
    least_ns: int | None = None,
    least_iterations: int = 1,
) -> tuple[array[int], array[int]]:
    """Time each call separately; keep every sample, because warm-up is detected later.

    The CPU clock is read outside the timed interval, once per iteration. It needs a system
    call (about 0.4 µs), which the wall clock does not (about 0.04 µs). CPU times therefore
    include the cost of the loop itself: up to 2 µs, see `LEAST_FOR_CPU_NS`.

    Args:
        step: The function to time.
        iterations: The number of calls.
        wall_ns: A monotonic clock in nanoseconds.
        cpu_ns: CPU time used so far, in nanoseconds.
        prepare: Called before each call of the step; not timed.
        least_ns: Stop once the calls have taken this long in total; None: after all calls.
        least_iterations: If `least_ns` is given, stop after this many calls at the earliest.

    Returns:
        Wall time and CPU time of each call, in nanoseconds, in two arrays of equal length.
    """
    walls, cpus = array("q"), array("q")
    remaining_ns = math.inf if least_ns is None else least_ns
    cpu_before_ns = cpu_ns()
    for _ in range(iterations):
        if prepare is not None:
            prepare()
            cpu_before_ns = cpu_ns()
        start_ns = wall_ns()
        step()
        end_ns = wall_ns()
        cpu_after_ns = cpu_ns()
        walls.append(end_ns - start_ns)
        cpus.append(cpu_after_ns - cpu_before_ns)
        cpu_before_ns = cpu_after_ns
        remaining_ns -= end_ns - start_ns
        if remaining_ns <= 0 and len(walls) >= least_iterations:
            break
    return walls, cpus


TimeSliceKind = Literal["slice", "last"]


class TurnSignal(Protocol):
    """Signals the start of a worker's time slices."""

    def awaited(self) -> TimeSliceKind:
        """Wait for a time slice; the last one takes all remaining iterations."""
        ...

    def hand_over(self) -> None:
        """End the time slice, so that the next worker can start."""
        ...

    def finish(self) -> None:
        """End the last time slice, and wait until the other workers have finished."""
        ...


class SocketTurnSignal:
    """The worker's end of the socket that signals its time slices."""

    def __init__(self, name: str, number: int) -> None:
        """Connect, and send the number of this worker's launch.

        Raises:
            OSError: there is no listener at that socket.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(f"\0{name}")
            self._socket.send(bytes([number]))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> SocketTurnSignal:  # noqa: PYI034  # Python 3.10 has no `Self`
        return self

    def __exit__(self, *_exc: object) -> None:
        self._socket.close()

    def awaited(self) -> TimeSliceKind:
        """Wait for a time slice; the last one takes all remaining iterations."""
        return "slice" if self._receive() == protocol.YOURS else "last"

    def hand_over(self) -> None:
        """End the time slice, so that the next worker can start."""
        self._send(protocol.HAND_OVER)

    def finish(self) -> None:
        """End the last time slice, and wait until the other workers have finished."""
        self._send(protocol.FINISHED)
        self._receive()

    def _send(self, message: bytes) -> None:
        # If the listener has closed, the next `_receive` returns nothing.
        with contextlib.suppress(OSError):
            self._socket.send(message)

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(1)
        except OSError:
            return b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """The timings of a loop.

    `walls` and `cpus` hold the wall and CPU time of each iteration in nanoseconds. `lengths`
    and `began_us` hold the values of `protocol.TimeSlices` for each time slice.
    """

    walls: array[int] = field(default_factory=lambda: array("q"))
    cpus: array[int] = field(default_factory=lambda: array("q"))
    lengths: array[int] = field(default_factory=lambda: array("q"))
    began_us: array[int] = field(default_factory=lambda: array("q"))


def iterate(
    step: Callable[[], object],
    *,
    iterations: int,
    wall_ns: Callable[[], int],
    cpu_ns: Callable[[], int],
    prepare: Callable[[], object] | None = None,
    enough_ns: int | None = None,
    least_iterations: int = 1,
    turn_signal: TurnSignal | None = None,
) -> Timings:
    """Time up to `iterations` calls: without interruption, or in time slices.

    A time slice has at least `protocol.TIME_SLICE_ITERATIONS` calls and takes at least
    `protocol.TIME_SLICE_NS`.

    Args:
        step: The function to time.
        iterations: The number of calls.
        wall_ns: A monotonic clock in nanoseconds.
        cpu_ns: CPU time used so far, in nanoseconds.
        prepare: Called before each call of the step; not timed.
        enough_ns: Stop earlier, once the calls have taken this long in total; with time slices,
            at the end of one. None: after all calls.
        least_iterations: If `enough_ns` is given, stop after this many calls at the earliest.
        turn_signal: Signals the start of each time slice. None: there are no time slices.
    """
    time_calls = partial(measure, step, wall_ns=wall_ns, cpu_ns=cpu_ns, prepare=prepare)
    if turn_signal is None:
        walls, cpus = time_calls(
            iterations=iterations, least_ns=enough_ns, least_iterations=least_iterations
        )
        return Timings(walls=walls, cpus=cpus)
    timings = Timings()
    origin_ns = wall_ns()
    spent_ns = 0
    is_enough = iterations == 0
    while not is_enough:
        is_last = turn_signal.awaited() == "last"
        timings.began_us.append((wall_ns() - origin_ns) // 1000)
        done = len(timings.walls)
        if is_last:
            least_ns = None if enough_ns is None else max(enough_ns - spent_ns, 0)
            least = max(least_iterations - done, 1)
        else:
            least_ns, least = protocol.TIME_SLICE_NS, protocol.TIME_SLICE_ITERATIONS
        walls, cpus = time_calls(
            iterations=iterations - done, least_ns=least_ns, least_iterations=least
        )
        timings.walls.extend(walls)
        timings.cpus.extend(cpus)
        timings.lengths.append(len(walls))
        spent_ns += sum(walls)
        done += len(walls)
        is_enough = done == iterations or (
            enough_ns is not None and spent_ns >= enough_ns and done >= least_iterations
        )
        if not is_enough:
            turn_signal.hand_over()
    turn_signal.finish()
    return timings
