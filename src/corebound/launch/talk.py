"""The runner's side of the talk with one worker."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

from corebound.model import wire
from corebound.model.record import OperatorProfile, ThreadEvidence, Worker
from corebound.model.topology import CpuId


class Talk:
    """Two pipes to one worker, and all that it has said."""

    def __init__(self, request: wire.Request) -> None:
        """Open the pipes; the request is in them before the worker starts."""
        request_read, self._orders = os.pipe()
        self._reply, reply_write = os.pipe()
        os.set_blocking(self._reply, False)
        self.theirs = (request_read, reply_write)
        self._request = request
        self._rest = b""
        self._began_ns: int | None = None
        self._left_ns: int | None = None
        self._wall_ns: list[int] = []
        self._cpu_ns: list[int] = []
        self._phases: dict[str, int] = {}
        self._profile: wire.Profile | None = None
        self.pid = 0
        self.open = True
        self.ready: wire.Ready | None = None
        self.end: wire.End | None = None
        self.failure: wire.Failure | None = None

    def fileno(self) -> int:
        """Readable when the worker has spoken."""
        return self._reply

    def started(self, pid: int) -> None:
        """The worker runs: give it its request, and keep our own ends only."""
        self.pid = pid
        self._began_ns = time.monotonic_ns()
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = (-1, -1)
        self._order(wire.encode(self._request))

    def go(self) -> None:
        """Tell it to start its loop."""
        self._order(wire.GO)

    def part(self) -> None:
        """Tell it that nothing more is wanted."""
        if self._orders >= 0:
            os.close(self._orders)
            self._orders = -1

    def left(self) -> None:
        """It has been seen to end; only the first time counts."""
        self._left_ns = self._left_ns or time.monotonic_ns()

    def hear(self) -> None:
        """Take in what it has said so far."""
        while self.open:
            try:
                data = os.read(self._reply, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(data)
            self._rest += data
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._take(line)

    def hear_out(self) -> None:
        """Take in all it said before it ended."""
        self.hear()
        self.left()

    def died(self, code: int) -> None:
        """It ended without a word: say how."""
        how = f"exit code {code}" if code >= 0 else f"signal {-code} ({signal.strsignal(-code)})"
        self.failure = wire.Failure(
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
    ) -> Worker:
        """All that was said and seen, as it is kept."""
        known = described(
            self.ready,
            slot=slot,
            threads_asked=threads_asked,
            threads=threads,
            peak_rss_bytes=peak_rss_bytes,
            node_bytes=node_bytes,
        )
        return replace(
            known,
            wall_ns=tuple(self._wall_ns),
            cpu_ns=tuple(self._cpu_ns),
            phases=dict(self._phases),
            profile=_kept(self._profile) if self._profile else None,
        )

    def close(self) -> None:
        """Give back every descriptor; the worker hears that it is to leave."""
        self.part()
        for descriptor in (self._reply, *self.theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self._reply, self.theirs, self.open = -1, (-1, -1), False

    def _order(self, data: bytes) -> None:
        try:
            os.write(self._orders, data)
        except BrokenPipeError:
            return  # it has ended, which its exit will tell

    def _take(self, line: bytes) -> None:
        try:
            message = wire.decode_message(line)
        except wire.WireError as error:
            self.failure = wire.Failure(
                during=self.doing, what=f"the worker's reply is {error}.", mend=None
            )
            return
        match message:
            case wire.Phase():
                self._phases[message.name] = message.duration_ns
            case wire.Ready():
                self.ready = message
            case wire.Samples():
                self._wall_ns += message.wall_ns
                self._cpu_ns += message.cpu_ns
            case wire.Profile():
                self._profile = message
            case wire.End():
                self.end = message
            case wire.Failure():
                self.failure = message


def described(
    ready: wire.Ready | None,
    *,
    slot: int,
    threads_asked: int | None,
    threads: tuple[ThreadEvidence, ...],
    peak_rss_bytes: int | None,
    node_bytes: dict[int, int],
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
    )


def _kept(profile: wire.Profile) -> OperatorProfile:
    return OperatorProfile(
        iterations=profile.iterations,
        step_ns=profile.step_ns,
        outside_ns=profile.outside_ns,
        operators=tuple(profile.operators),
        phases=profile.phases,
    )
