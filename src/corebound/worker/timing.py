"""Timing: one call at a time, every duration kept; alone or in turns with other workers."""

from __future__ import annotations

import math
import socket
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

from corebound.worker import protocol


def measure(
    step: Callable[[], object],
    *,
    iterations: int,
    wall_ns: Callable[[], int],
    cpu_ns: Callable[[], int],
    least_ns: int | None = None,
) -> tuple[array[int], array[int]]:
    """Time each call alone; keep every sample, for warm-up is judged later.

    The CPU clock is read outside the timed stretch, once an iteration: it is a
    system call (some 0.4 µs) where the wall clock is not (some 0.04 µs). Its
    differences therefore hold the loop's own cost too: up to 2 µs, see `LEAST_FOR_CPU_NS`.

    Args:
        step: What is timed.
        iterations: How often.
        wall_ns: A monotonic clock in nanoseconds.
        cpu_ns: CPU time used so far, in nanoseconds.
        least_ns: Stop once the calls took so long together; None: only after all.

    Returns:
        Wall time and CPU time of each call, in nanoseconds, one for one.
    """
    walls, cpus = array("q"), array("q")
    left_ns = math.inf if least_ns is None else least_ns
    cpu_before_ns = cpu_ns()
    for _ in range(iterations):
        began_ns = wall_ns()
        step()
        ended_ns = wall_ns()
        cpu_after_ns = cpu_ns()
        walls.append(ended_ns - began_ns)
        cpus.append(cpu_after_ns - cpu_before_ns)
        cpu_before_ns = cpu_after_ns
        left_ns -= ended_ns - began_ns
        if left_ns <= 0:
            break
    return walls, cpus


class TurnSignal(Protocol):
    """Says when a worker's stints are."""

    def awaited(self) -> bool:
        """Wait for a stint; False if nobody hands out any more."""
        ...

    def hand_over(self) -> None:
        """Let the next worker begin."""
        ...


class SocketBaton:
    """A baton that comes over a socket: the worker's end of it."""

    def __init__(self, name: str, place: int) -> None:
        """Say which of the workers we are.

        Raises:
            OSError: nobody listens there.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(f"\0{name}")
            self._socket.send(bytes([place]))
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._socket.close()

    def awaited(self) -> bool:
        """Wait for a stint; False if nobody hands out any more."""
        try:
            return bool(self._socket.recv(1))
        except OSError:
            return False

    def hand_over(self) -> None:
        """Let the next worker begin."""
        try:
            self._socket.send(protocol.DONE)
        except OSError:
            return  # nobody is left to hear it, as the next wait will tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Wall and CPU time of each iteration in nanoseconds; of each stint what `wire.Stints` has."""

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
    baton: TurnSignal | None = None,
) -> Timed:
    """Time so many iterations: without a break, or in stints of `wire.STINT_NS`.

    Args:
        step: What is timed.
        iterations: How often.
        wall_ns: A monotonic clock in nanoseconds.
        cpu_ns: CPU time used so far, in nanoseconds.
        baton: Says when a stint may begin; once nobody else has any, the rest is one.
            None: there are no stints.
    """
    if baton is None:
        walls, cpus = measure(step, iterations=iterations, wall_ns=wall_ns, cpu_ns=cpu_ns)
        return Timed(walls=walls, cpus=cpus)
    made = Timed()
    origin_ns = wall_ns()
    while (left := iterations - len(made.walls)) > 0:
        least_ns = protocol.STINT_NS if baton.awaited() else None
        made.began_us.append((wall_ns() - origin_ns) // 1000)
        walls, cpus = measure(
            step, iterations=left, wall_ns=wall_ns, cpu_ns=cpu_ns, least_ns=least_ns
        )
        made.walls.extend(walls)
        made.cpus.extend(cpus)
        made.lengths.append(len(walls))
        if len(walls) < left:
            baton.hand_over()
    return made
