"""Times each iteration separately, without interruption or in turns with other workers."""

from __future__ import annotations

import contextlib
import math
import mmap
import socket
from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol

from corebound.worker import protocol

_VALUE_BYTES = 8


class Timings:
    """Stores the timings of a loop outside the heap; create it before the workload is set up.

    Arrays that grow between iterations move blocks of the heap. That decides whether its top is
    free at the end of a step, so that glibc returns it to the kernel and takes it again: eight
    convolutions in PyTorch had 1,840 page faults an iteration without such arrays, 1,522 with
    those of a loop without time slices and 1,765 with those of time slices. Nothing here is
    allocated while a loop runs, unless its iterations are long enough to be reported one by one.
    """

    def __init__(self, iterations: int) -> None:
        """Reserve memory for this many iterations; none of it is used until it is written."""
        self._walls, self._cpus = _reserved(iterations), _reserved(iterations)
        self._lengths, self._began_us = _reserved(iterations), _reserved(iterations)
        self._iterations = self._time_slices = 0

    def __len__(self) -> int:
        """The number of iterations so far."""
        return self._iterations

    @property
    def walls(self) -> memoryview[int]:
        """The wall time of each iteration, in nanoseconds."""
        return self._walls[: self._iterations]

    @property
    def cpus(self) -> memoryview[int]:
        """The CPU time of each iteration, in nanoseconds."""
        return self._cpus[: self._iterations]

    @property
    def lengths(self) -> memoryview[int]:
        """The number of iterations in each time slice; empty if there are none."""
        return self._lengths[: self._time_slices]

    @property
    def began_us(self) -> memoryview[int]:
        """The start of each time slice, in microseconds since the start of the loop."""
        return self._began_us[: self._time_slices]

    def add_time_slice(self, *, iterations: int, began_us: int) -> None:
        """Note a time slice of the last `iterations`."""
        self._lengths[self._time_slices] = iterations
        self._began_us[self._time_slices] = began_us
        self._time_slices += 1

    def measure(
        self,
        step: Callable[[], object],
        *,
        iterations: int,
        wall_ns: Callable[[], int],
        cpu_ns: Callable[[], int],
        prepare: Callable[[], object] | None = None,
        least_ns: int | None = None,
        least_iterations: int = 1,
        most_ns: int | None = None,
        report: Callable[[], None] | None = None,
    ) -> int:
        """Time each call separately; keep every sample, because warm-up is detected later.

        The CPU clock is read outside the timed interval, once per iteration. It needs a system
        call (about 0.4 µs), which the wall clock does not (about 0.04 µs). CPU times therefore
        include the cost of the loop itself: up to 2 µs, see `LEAST_FOR_CPU_NS`.

        Args:
            iterations: The number of calls.
            wall_ns: A monotonic clock in nanoseconds.
            cpu_ns: CPU time used so far, in nanoseconds.
            prepare: Called before each call of the step; not timed.
            least_ns: Stop once the calls have taken this long in total; None: after all calls.
            least_iterations: If `least_ns` is given, stop after this many calls at the earliest.
            most_ns: Stop once the calls have taken this long in total, however few they are.
            report: Called after each call that takes `protocol.LONG_NS`; not timed.

        Returns:
            The total duration of the calls in nanoseconds.

        Raises:
            IndexError: there are more iterations than memory was reserved for.
        """
        walls, cpus = self._walls, self._cpus
        enough_ns = math.inf if least_ns is None else least_ns
        too_long_ns = math.inf if most_ns is None else most_ns
        total_ns = 0
        first = self._iterations
        cpu_before_ns = cpu_ns()
        for number in range(first, first + iterations):
            if prepare is not None:
                prepare()
                cpu_before_ns = cpu_ns()
            start_ns = wall_ns()
            step()
            end_ns = wall_ns()
            cpu_after_ns = cpu_ns()
            walls[number] = end_ns - start_ns
            cpus[number] = cpu_after_ns - cpu_before_ns
            self._iterations = number + 1
            cpu_before_ns = cpu_after_ns
            total_ns += end_ns - start_ns
            is_enough = total_ns >= enough_ns and number + 1 - first >= least_iterations
            if is_enough or total_ns >= too_long_ns:
                break
            if report is not None and end_ns - start_ns >= protocol.LONG_NS:
                report()
                cpu_before_ns = cpu_ns()
        return total_ns


def _reserved(values: int) -> memoryview[int]:
    """Memory for this many integers; at least one, because an empty mapping is an error."""
    return memoryview(mmap.mmap(-1, max(values, 1) * _VALUE_BYTES)).cast("q")


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

    def close(self) -> None:
        """Disconnect, which ends this worker's part in the alternation."""
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


def iterate(
    step: Callable[[], object],
    timings: Timings,
    *,
    iterations: int,
    wall_ns: Callable[[], int],
    cpu_ns: Callable[[], int],
    prepare: Callable[[], object] | None = None,
    enough_ns: int | None = None,
    least_iterations: int = 1,
    most_ns: int | None = None,
    report: Callable[[], None] | None = None,
    turn_signal: TurnSignal | None = None,
) -> None:
    """Time up to `iterations` calls: without interruption, or in time slices.

    A time slice has at least `protocol.TIME_SLICE_ITERATIONS` calls and takes at least
    `protocol.TIME_SLICE_NS`.

    Args:
        step: The function to time.
        timings: Stores the timings, after those that it has.
        iterations: The number of calls.
        wall_ns: A monotonic clock in nanoseconds.
        cpu_ns: CPU time used so far, in nanoseconds.
        prepare: Called before each call of the step; not timed.
        enough_ns: Stop earlier, once the calls have taken this long in total; with time slices,
            at the end of one. None: after all calls.
        least_iterations: If `enough_ns` is given, stop after this many calls at the earliest.
        most_ns: Stop once the calls have taken this long in total, however few they are; with time
            slices, at the end of one. None: no limit.
        report: Called after each call that takes `protocol.LONG_NS`; with time slices, after the
            first one that ends so long after the last report, and after the last one.
        turn_signal: Signals the start of each time slice. None: there are no time slices.
    """
    time_calls = partial(timings.measure, step, wall_ns=wall_ns, cpu_ns=cpu_ns, prepare=prepare)
    if turn_signal is None:
        time_calls(
            iterations=iterations,
            least_ns=enough_ns,
            least_iterations=least_iterations,
            most_ns=most_ns,
            report=report,
        )
        return
    origin_ns = reported_ns = wall_ns()
    first = len(timings)
    spent_ns = done = 0
    is_enough = iterations == 0
    while not is_enough:
        is_last = turn_signal.awaited() == "last"
        began_us = (wall_ns() - origin_ns) // 1000
        if is_last:
            least_ns = None if enough_ns is None else max(enough_ns - spent_ns, 0)
            least = max(least_iterations - done, 1)
        else:
            least_ns, least = protocol.TIME_SLICE_NS, protocol.TIME_SLICE_ITERATIONS
        spent_ns += time_calls(
            iterations=iterations - done,
            least_ns=least_ns,
            least_iterations=least,
            most_ns=None if most_ns is None else max(most_ns - spent_ns, 0),
        )
        timings.add_time_slice(iterations=len(timings) - first - done, began_us=began_us)
        done = len(timings) - first
        is_enough = (
            done == iterations
            or (enough_ns is not None and spent_ns >= enough_ns and done >= least_iterations)
            or (most_ns is not None and spent_ns >= most_ns)
        )
        # The launch may be ended while it waits for the others.
        if report is not None and (is_enough or wall_ns() - reported_ns >= protocol.LONG_NS):
            report()
            reported_ns = wall_ns()
        if not is_enough:
            turn_signal.hand_over()
    turn_signal.finish()
