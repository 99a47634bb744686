"""The runner's side of the connection to one worker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from corebound.machine.topology import CpuId
from corebound.records.launch_record import OperatorProfile, ThreadEvidence, TimeSlice, Worker
from corebound.records.telemetry import Counters
from corebound.worker import protocol


class Pipes:
    """Our ends of two pipes to a process.

    The process has its ends as `protocol.REQUEST_FD` and `protocol.REPLY_FD`. Subclasses
    define what the lines mean.

    Attributes:
        theirs: The process's ends, until it has been started.
        open: Whether the process may still send something.
    """

    def __init__(self) -> None:
        """Open both pipes."""
        request_read, self._orders = os.pipe()
        self._reply, reply_write = os.pipe()
        os.set_blocking(self._reply, False)
        self.theirs = (request_read, reply_write)
        self.open = True
        self._rest = b""

    def fileno(self) -> int:
        """The descriptor that is readable when the process has sent something."""
        return self._reply

    def keep_ours(self) -> None:
        """Close the process's ends in this process, after it has been started."""
        theirs, self.theirs = self.theirs, (-1, -1)
        _close(theirs)

    def send(self, line: bytes) -> bool:
        """Send a line; False if the process has ended and will not read it."""
        try:
            os.write(self._orders, line)
        except BrokenPipeError:
            return False
        return True

    def lines(self) -> Iterator[bytes]:
        """Every complete line received since the last call, without waiting."""
        while self.open:
            try:
                data = os.read(self._reply, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(data)
            self._rest += data
            *lines, self._rest = self._rest.split(b"\n")
            yield from lines

    def part(self) -> None:
        """Tell the process that no more requests follow, by closing the request pipe."""
        orders, self._orders = self._orders, -1
        _close((orders,))

    def close(self) -> None:
        """Close every descriptor, which also tells the process to exit."""
        self.part()
        self.keep_ours()
        reply, self._reply, self.open = self._reply, -1, False
        _close((reply,))


def _close(descriptors: Iterable[int]) -> None:
    """Close open descriptors.

    Callers clear their own copies first, so that none is closed twice after an interrupt.
    """
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


class WorkerConnection(Pipes):
    """The connection to one worker, and everything received over it."""

    def __init__(self, request: protocol.Request) -> None:
        """Open the pipes."""
        super().__init__()
        self._request = request
        self._began_ns: int | None = None
        self._left_ns: int | None = None
        self._wall_ns: list[int] = []
        self._cpu_ns: list[int] = []
        self._stints: list[tuple[int, int]] = []
        self._phases: dict[str, int] = {}
        self._profile: protocol.Profile | None = None
        self.pid = 0
        self.ready: protocol.Ready | None = None
        self.end: protocol.End | None = None
        self.failure: protocol.Failure | None = None

    def started(self, pid: int) -> None:
        """Note that the worker has started, close its pipe ends here and send the request."""
        self.pid = pid
        self._began_ns = time.monotonic_ns()
        self.keep_ours()
        self.send(protocol.encode(self._request))

    def go(self) -> None:
        """Tell the worker to start its loop."""
        self.send(protocol.GO)

    def left(self) -> None:
        """Note that the worker has ended; only the first call counts."""
        self._left_ns = self._left_ns or time.monotonic_ns()

    def hear(self) -> None:
        """Process the messages received so far."""
        for line in self.lines():
            self._take(line)

    def hear_out(self) -> None:
        """Process the messages that the worker sent before it ended."""
        self.hear()
        self.left()

    def died(self, code: int) -> None:
        """Record a failure for a worker that ended without reporting one."""
        how = f"exit code {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
        self.failure = protocol.Failure(
            during=self.doing, what=f"the worker ended with {how}.", fix=None
        )

    @property
    def doing(self) -> str:
        """The worker's current phase, as far as is known."""
        if self.ready is not None:
            return "loop" if self._request.operators is None else "profile"
        order = ("import", "setup", "first")
        return order[min(len(self._phases), len(order) - 1)]

    @property
    def allowed(self) -> tuple[tuple[CpuId, ...], ...]:
        """The CPU affinity sets seen of the external command; empty if it ran none."""
        seen = self.end.allowed if self.end is not None else None
        return tuple(tuple(CpuId(cpu) for cpu in cpus) for cpus in seen or ())

    @property
    def trace(self) -> str | None:
        """The path of the trace that the worker's profiler wrote."""
        return self._profile.trace if self._profile else None

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """When the worker started and when its end was noticed (monotonic clock)."""
        if self._began_ns is None or self._left_ns is None:
            return None
        return self._began_ns, self._left_ns

    def worker(
        self,
        *,
        slot: int,
        threads_asked: int | None,
        threads: tuple[ThreadEvidence, ...],
        peak_rss_bytes: int | None,
        node_bytes: dict[int, int],
        counters: Counters | None,
    ) -> Worker:
        """The worker's record: its own messages and the observations passed in."""
        known = described(
            self.ready,
            slot=slot,
            threads_asked=threads_asked,
            threads=threads,
            peak_rss_bytes=peak_rss_bytes,
            node_bytes=node_bytes,
            counters=counters,
        )
        return replace(
            known,
            wall_ns=tuple(self._wall_ns),
            cpu_ns=tuple(self._cpu_ns),
            stints=tuple(TimeSlice(iterations=many, began_us=at) for many, at in self._stints),
            phases=dict(self._phases),
            profile=_kept(self._profile) if self._profile else None,
        )

    def _take(self, line: bytes) -> None:
        try:
            message = protocol.decode_message(line)
        except protocol.WireError as error:
            self.failure = protocol.Failure(
                during=self.doing, what=f"the worker's reply is {error}.", fix=None
            )
            return
        match message:
            case protocol.Phase():
                self._phases[message.name] = message.duration_ns
            case protocol.Ready():
                self.ready = message
            case protocol.Samples():
                self._wall_ns += message.wall_ns
                self._cpu_ns += message.cpu_ns
            case protocol.Stints():
                self._stints += zip(message.iterations, message.began_us, strict=True)
            case protocol.Profile():
                self._profile = message
            case protocol.End():
                self.end = message
            case protocol.Failure():
                self.failure = message


def described(
    ready: protocol.Ready | None,
    *,
    slot: int,
    threads_asked: int | None,
    threads: tuple[ThreadEvidence, ...],
    peak_rss_bytes: int | None,
    node_bytes: dict[int, int],
    counters: Counters | None,
) -> Worker:
    """A worker's record without samples: its `Ready` message and the observations of it."""
    return Worker(
        slot=slot,
        wall_ns=(),
        cpu_ns=(),
        phases={},
        threads_asked=threads_asked,
        threads_used=ready.threads_used if ready else None,
        inter_op_used=ready.inter_op_used if ready else None,
        python=ready.python if ready else None,
        versions=ready.versions if ready else {},
        blas=ready.blas if ready else None,
        environment=ready.environment if ready else {},
        work=ready.work if ready else {},
        threads=threads,
        peak_rss_bytes=peak_rss_bytes,
        node_bytes=node_bytes,
        counters=counters,
    )


def _kept(profile: protocol.Profile) -> OperatorProfile:
    return OperatorProfile(
        iterations=profile.iterations,
        step_ns=profile.step_ns,
        outside_ns=profile.outside_ns,
        operators=tuple(profile.operators),
        phases=profile.phases,
    )
