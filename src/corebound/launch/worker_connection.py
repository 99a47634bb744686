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
    """Our ends of two pipes; the process finds its own as `wire.REQUEST_FD` and `wire.REPLY_FD`.

    Who talks over them derives from this, and says what a line means.

    Attributes:
        theirs: Its ends, until it has been started.
        open: Whether it may still say something.
    """

    def __init__(self) -> None:
        """Open both."""
        request_read, self._orders = os.pipe()
        self._reply, reply_write = os.pipe()
        os.set_blocking(self._reply, False)
        self.theirs = (request_read, reply_write)
        self.open = True
        self._rest = b""

    def fileno(self) -> int:
        """Readable when the process has spoken."""
        return self._reply

    def keep_ours(self) -> None:
        """It has its ends: close them here."""
        theirs, self.theirs = self.theirs, (-1, -1)
        _close(theirs)

    def send(self, line: bytes) -> bool:
        """Tell it something; False if it has ended and will not read it."""
        try:
            os.write(self._orders, line)
        except BrokenPipeError:
            return False
        return True

    def lines(self) -> Iterator[bytes]:
        """Every whole line that it has said since it was last asked, without waiting."""
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
        """Tell it that nothing more is wanted."""
        orders, self._orders = self._orders, -1
        _close((orders,))

    def close(self) -> None:
        """Give back every descriptor; the process hears that it is to leave."""
        self.part()
        self.keep_ours()
        reply, self._reply, self.open = self._reply, -1, False
        _close((reply,))


def _close(descriptors: Iterable[int]) -> None:
    """Close what is open; forgotten before, so that none is closed twice after an interrupt."""
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


class WorkerConnection(Pipes):
    """All that one worker has said, over two pipes to it."""

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
        """The worker runs: give it its request, and keep our own ends only."""
        self.pid = pid
        self._began_ns = time.monotonic_ns()
        self.keep_ours()
        self.send(protocol.encode(self._request))

    def go(self) -> None:
        """Tell it to start its loop."""
        self.send(protocol.GO)

    def left(self) -> None:
        """It has been seen to end; only the first time counts."""
        self._left_ns = self._left_ns or time.monotonic_ns()

    def hear(self) -> None:
        """Take in what it has said so far."""
        for line in self.lines():
            self._take(line)

    def hear_out(self) -> None:
        """Take in all it said before it ended."""
        self.hear()
        self.left()

    def died(self, code: int) -> None:
        """It ended without a word: say how."""
        how = f"exit code {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
        self.failure = protocol.Failure(
            during=self.doing, what=f"the worker ended with {how}.", mend=None
        )

    @property
    def doing(self) -> str:
        """The part of its work it is in, as far as is known."""
        if self.ready is not None:
            return "loop" if self._request.operators is None else "profile"
        order = ("import", "setup", "first")
        return order[min(len(self._phases), len(order) - 1)]

    @property
    def allowed(self) -> tuple[tuple[CpuId, ...], ...]:
        """Every set of CPUs its command's process was allowed; empty where it ran none."""
        seen = self.end.allowed if self.end is not None else None
        return tuple(tuple(CpuId(cpu) for cpu in cpus) for cpus in seen or ())

    @property
    def trace(self) -> str | None:
        """The file that its profiler left a trace in."""
        return self._profile.trace if self._profile else None

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """When it was started and when it was seen to have ended (monotonic)."""
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
        """All that was said and seen, as it is kept."""
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
                during=self.doing, what=f"the worker's reply is {error}.", mend=None
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
    """What a worker says of itself and what is seen of it; it has no samples yet."""
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
