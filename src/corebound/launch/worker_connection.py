"""The runner's side of the connection to a child process, in particular a worker."""

import math
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from corebound.machine.topology import CpuId
from corebound.records.launch_record import OperatorProfile, ThreadEvidence, TimeSlice, Worker
from corebound.records.telemetry import Counters
from corebound.worker import operator_table, protocol


class Pipes:
    """Our ends of two pipes to a process.

    The process has its ends as `protocol.REQUEST_FD` and `protocol.REPLY_FD`. Subclasses
    define what the lines mean.

    Attributes:
        child_ends: The process's ends, until it has been started.
        open: Whether the process may still send something.
    """

    def __init__(self) -> None:
        """Open both pipes."""
        request_read, self._requests = os.pipe()
        self._reply, reply_write = os.pipe()
        os.set_blocking(self._reply, False)
        self.child_ends = (request_read, reply_write)
        self.open = True
        self._incomplete = b""

    def fileno(self) -> int:
        """The descriptor that is readable when the process has sent something."""
        return self._reply

    def close_child_ends(self) -> None:
        """Close the process's ends in this process, after it has been started."""
        descriptors, self.child_ends = self.child_ends, (-1, -1)
        _close(descriptors)

    def send(self, line: bytes) -> bool:
        """Send a line; False if the process has ended and will not read it."""
        try:
            os.write(self._requests, line)
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
            self._incomplete += data
            *lines, self._incomplete = self._incomplete.split(b"\n")
            yield from lines

    def close_requests(self) -> None:
        """Tell the process that no more requests follow, by closing the request pipe."""
        requests, self._requests = self._requests, -1
        _close((requests,))

    def close(self) -> None:
        """Close every descriptor, which also tells the process to exit."""
        self.close_requests()
        self.close_child_ends()
        reply, self._reply, self.open = self._reply, -1, False
        _close((reply,))


def _close(descriptors: Iterable[int]) -> None:
    """Close open descriptors.

    Callers clear their own copies first, so that none is closed twice after an interrupt.
    """
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


class ChildConnection(Pipes, ABC):
    """The connection to a child process that reports its own failures.

    A subclass knows the messages of its child.

    Attributes:
        pid: Its process id; 0 before it has been started.
        failure: Why it failed; None if it has not.
    """

    name: str

    def __init__(self) -> None:
        """Open the pipes."""
        super().__init__()
        self.pid = 0
        self.failure: protocol.Failure | None = None

    @property
    @abstractmethod
    def phase(self) -> str:
        """The child's current phase, as far as is known."""

    @abstractmethod
    def _decode(self, line: bytes) -> object:
        """Decode one line that the child sent."""

    @abstractmethod
    def _take(self, message: object) -> None:
        """Act on a decoded message."""

    def receive(self) -> None:
        """Process the messages received so far."""
        for line in self.lines():
            try:
                message = self._decode(line)
            except protocol.WireError as error:
                self._fail(f"the {self.name}'s reply is {error}.")
                continue
            if isinstance(message, protocol.Failure):
                self.failure = message
            else:
                self._take(message)

    def ended(self, code: int) -> None:
        """Record a failure for a child that ended without reporting one."""
        if self.failure is None:
            ending = (
                f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit code {code}"
            )
            self._fail(f"the {self.name} ended with {ending}.", protocol.ended_by(code))

    def _fail(self, what: str, ended_by: protocol.EndedBy = "error") -> None:
        self.failure = protocol.Failure(during=self.phase, what=what, fix=None, ended_by=ended_by)


class WorkerConnection(ChildConnection):
    """The connection to one worker, and everything received over it."""

    name = "worker"

    def __init__(self, request: protocol.Request) -> None:
        """Open the pipes."""
        super().__init__()
        self._request = request
        self._began_ns: int | None = None
        self._exited_ns: int | None = None
        self._wall_ns: list[int] = []
        self._cpu_ns: list[int] = []
        self._metrics: list[tuple[tuple[float, ...], ...]] = []
        self._time_slices: list[tuple[int, int]] = []
        self._iterating_since_ns: int | None = None
        self._went_ns: int | None = None
        self._most_ns: int | None = None
        self._phases: dict[str, int] = {}
        self._profile: operator_table.Profile | None = None
        self.ready: protocol.Ready | None = None
        self.end: protocol.End | None = None

    def started(self, pid: int) -> None:
        """Note that the worker has started, close its pipe ends here and send the request."""
        self.pid = pid
        self._began_ns = time.monotonic_ns()
        self.close_child_ends()
        self.send(protocol.encode(self._request))

    @property
    def has_imported(self) -> bool:
        """Whether the worker has imported the framework and the workload."""
        return bool(self._phases)

    def set_up(self) -> None:
        """Tell the worker to set up the workload once it has imported."""
        self.send(protocol.SET_UP)

    def go(self, alternates: protocol.Alternates | None, most_ns: int | None) -> None:
        """Tell the worker to start its loop, as in `protocol.encode_go`."""
        self._went_ns, self._most_ns = time.monotonic_ns(), most_ns
        self.send(protocol.encode_go(alternates, most_ns))

    def exited(self) -> None:
        """Note that the worker has ended; only the first call counts."""
        self._exited_ns = self._exited_ns or time.monotonic_ns()

    def drain(self) -> None:
        """Process the messages that the worker sent before it ended."""
        self.receive()
        self.exited()

    @property
    def phase(self) -> str:
        """The worker's current phase, as far as is known."""
        if self.ready is not None:
            return "loop" if self._request.operators is None else "profile"
        order = ("import", "setup", "first")
        return order[min(len(self._phases), len(order) - 1)]

    @property
    def iterations(self) -> int:
        """The iterations that it has reported, with the first."""
        return len(self._wall_ns)

    @property
    def is_cut(self) -> bool:
        """Whether it iterated less than requested, because a budget left no more time."""
        request, spent_ns = self._request, sum(self._wall_ns[1:])
        if self.end is None:
            return True
        if self._most_ns is None or spent_ns < min(self._most_ns, request.most_ns or math.inf):
            return False
        is_enough = request.enough_ns is not None and spent_ns >= request.enough_ns
        is_enough &= self.iterations >= request.least_iterations
        return self.iterations < request.iterations and not is_enough

    def least_iteration_ns(self, paused_ns: int) -> int | None:
        """What the shortest iteration so far took at least; None before the first one.

        The one that has not ended counts with the time that it has had.

        Args:
            paused_ns: For how long the worker was paused since its start signal.
        """
        if "setup" not in self._phases or self._iterating_since_ns is None:
            return None
        has_had_ns = time.monotonic_ns() - self._iterating_since_ns
        if (first_ns := self._phases.get("first")) is None:
            return has_had_ns
        if self._went_ns is None or self.end is not None:
            return min((first_ns, *self._wall_ns))
        has_had_ns = time.monotonic_ns() - self._went_ns - paused_ns - sum(self._wall_ns[1:])
        return max(min(first_ns, has_had_ns, *self._wall_ns), 0)

    @property
    def allowed(self) -> tuple[tuple[CpuId, ...], ...]:
        """The CPU affinity sets seen of the external command; empty if it ran none."""
        affinities = self.end.allowed if self.end is not None else None
        return tuple(tuple(CpuId(cpu) for cpu in cpus) for cpus in affinities or ())

    @property
    def trace(self) -> str | None:
        """The path of the trace that the worker's profiler wrote."""
        return self._profile.trace if self._profile else None

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """When the worker started and when its end was noticed (monotonic clock)."""
        if self._began_ns is None or self._exited_ns is None:
            return None
        return self._began_ns, self._exited_ns

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
        worker = described(
            self.ready,
            slot=slot,
            threads_asked=threads_asked,
            threads=threads,
            peak_rss_bytes=peak_rss_bytes,
            node_bytes=node_bytes,
            counters=counters,
        )
        return replace(
            worker,
            wall_ns=tuple(self._wall_ns),
            cpu_ns=tuple(self._cpu_ns),
            metrics=tuple(self._metrics),
            time_slices=tuple(
                TimeSlice(iterations=iterations, began_us=began_us)
                for iterations, began_us in self._time_slices
            ),
            phases=dict(self._phases),
            profile=_recorded(self._profile) if self._profile else None,
            threads_after=self.end.threads_after if self.end else None,
        )

    def _decode(self, line: bytes) -> object:
        return protocol.decode_message(line)

    def _take(self, message: object) -> None:
        match message:
            case protocol.Phase():
                self._phases[message.name] = message.duration_ns
                self._iterating_since_ns = time.monotonic_ns()
            case protocol.Ready():
                self.ready = message
            case protocol.Samples():
                self._wall_ns += message.wall_ns
                self._cpu_ns += message.cpu_ns
                self._metrics += (tuple(map(tuple, each)) for each in message.metrics or ())
            case protocol.TimeSlices():
                self._time_slices += zip(message.iterations, message.began_us, strict=True)
            case operator_table.Profile():
                self._profile = message
            case protocol.End():
                self.end = message


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
        pins_threads=ready.pins_threads if ready else False,
        threads=threads,
        peak_rss_bytes=peak_rss_bytes,
        node_bytes=node_bytes,
        counters=counters,
    )


def _recorded(profile: operator_table.Profile) -> OperatorProfile:
    return OperatorProfile(
        iterations=profile.iterations,
        step_ns=profile.step_ns,
        outside_ns=profile.outside_ns,
        operators=tuple(profile.operators),
        phases=profile.phases,
    )
