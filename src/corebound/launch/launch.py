"""Runs one launch of a cell: starts its workers, monitors them and collects their replies."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from corebound.errors import LaunchError
from corebound.launch import verification, worker_environment
from corebound.launch.interleaving import InterleaveRole
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.launch.worker_connection import WorkerConnection
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import Served, Status, Worker
from corebound.records.telemetry import Counters, HostOverTime
from corebound.worker import protocol

LOG_TAIL_BYTES = 8_192


def tail(file: Path) -> str:
    """The last `LOG_TAIL_BYTES` of a launch's log; empty if there is no log."""
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - LOG_TAIL_BYTES))
            return stream.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


class LaunchResult(Struct, frozen=True, kw_only=True):
    """The outcome of a launch; fields have the meaning they have in `launch_record.Launch`.

    `trace` is the path of the file that the first worker's profiler wrote to the
    launch's scratch folder, or of the place it has been moved to since. `served`
    holds a server's results, if the launch started one.
    """

    status: Status
    reason: str | None
    fix: str | None
    evidence: tuple[str, ...]
    duration_ns: int
    overhead_ns: int
    looks: int
    look_ns: int
    workers: tuple[Worker, ...]
    strays: tuple[str, ...]
    log: str
    trace: Path | None = None
    served: Served | None = None
    host: HostOverTime | None = None
    counters: Counters | None = None


class AnyLaunchSpec(Struct, frozen=True, kw_only=True):
    """Everything that any kind of launch needs, fully resolved: no lookups happen later.

    Attributes:
        placement: The slots, one per worker.
        threads_asked: The thread count each worker's pool must have; None accepts any.
        timeout_s: Deadline for the whole launch, counted from its start.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: An empty folder, which the caller removes.
        counting: The hardware counters to collect.
    """

    placement: Placement
    threads_asked: int | None
    timeout_s: float
    python_path: Path
    scratch: Path
    counting: CounterSupport = field(default_factory=CounterSupport)


# How long a worker may take to exit after its work: atexit handlers, pools.
LEAVE_S = 10.0
# Grace period for processes that end by themselves, such as a helper whose parent just exited.
GRACE_S = 0.2


class LaunchSpec(AnyLaunchSpec, frozen=True, kw_only=True):
    """Everything that one launch of workers needs.

    Attributes:
        commands: The command that starts each worker.
        requests: The request sent to each worker.
        looks: Whether to sample the launch while it is timed. Turn this off to measure the
            cost of sampling.
        place: This launch's role in an alternation; it then has one worker. None: the launch
            does not alternate.
        company: Process ids of the supervisors of the launches it alternates with.
    """

    commands: tuple[Command, ...]
    requests: tuple[protocol.Request, ...]
    looks: bool = True
    place: InterleaveRole | None = None
    company: tuple[int, ...] = ()


def launch(order: LaunchSpec, supervision: Supervision, tick: Callable[[], None]) -> LaunchResult:
    """Run one launch until it completes, fails or times out.

    Args:
        order: What to launch.
        supervision: Starts the workers and ends any processes they leave behind.
        tick: Called from time to time while the workers run, to update progress.

    Raises:
        LaunchError: the supervisor has ended, so the outcome of the launch is unknown.
    """
    return _Session(order, supervision, tick).run()


class _LateError(Exception):
    """The launch has passed its deadline."""


class _BrokenError(Exception):
    """A worker failed; its connection holds the failure."""


class _Session:
    def __init__(
        self, order: LaunchSpec, supervision: Supervision, tick: Callable[[], None]
    ) -> None:
        self._order = order
        self._supervision = supervision
        self._tick = tick
        self._talks: list[WorkerConnection] = []
        self._watching = self._watch(())
        self._began_ns = time.monotonic_ns()
        self._began_s = time.monotonic()
        self._log = order.scratch / "log"

    def run(self) -> LaunchResult:
        status: Status = "ok"
        reason: tuple[str | None, str | None] = (None, None)
        try:
            self._start()
            self._measure()
            self._part()
        except _LateError:
            status, reason = "timed-out", self._late()
        except _BrokenError:
            status, reason = "failed", self._failure()
        except LaunchError as error:
            status, reason = "failed", (error.what, error.fix)
        finally:
            strays = self._clear_up()
        ended_ns = time.monotonic_ns()
        workers = self._workers()
        evidence = self._evidence(workers) if status == "ok" else ()
        if evidence:
            status = "invalid"
            reason = (
                "it did not run as it was asked to: " + "; ".join(evidence) + ".",
                "Find what re-binds its threads or sets their number, or ask for what it does.",
            )
        return LaunchResult(
            status=status,
            reason=reason[0],
            fix=reason[1],
            evidence=evidence,
            duration_ns=ended_ns - self._began_ns,
            overhead_ns=ended_ns - self._began_ns - self._alive_ns(),
            looks=self._watching.looks,
            look_ns=self._watching.look_ns,
            workers=workers,
            strays=strays,
            log=tail(self._log),
            trace=self._trace(),
            host=self._watching.host,
            counters=self._watching.counters,
        )

    def _trace(self) -> Path | None:
        """The first worker's trace; None if the path it reports is outside the scratch folder."""
        told = self._talks[0].trace if self._talks else None
        if told is None:
            return None
        file, ours = Path(told).resolve(), self._order.scratch.resolve()
        return file if file.is_relative_to(ours) and file.is_file() else None

    def _start(self) -> None:
        work = self._order.scratch / "work"
        work.mkdir()
        with self._log.open("ab") as log:
            place = self._order.place
            for command, request in zip(self._order.commands, self._order.requests, strict=True):
                env = worker_environment.environment(
                    command, python_path=self._order.python_path, scratch=self._order.scratch
                )
                talk = WorkerConnection(place.asked(request) if place else request)
                self._talks.append(talk)
                talk.started(
                    self._supervision.spawn(
                        command.argv,
                        env=env,
                        cwd=work,
                        descriptors=(log.fileno(), *talk.theirs),
                    )
                )

    def _measure(self) -> None:
        self._until(lambda: all(talk.ready is not None for talk in self._talks))
        order = self._order
        self._watching = self._watch([talk.pid for talk in self._talks])
        self._watching.begin()
        if order.place is not None:
            order.place.wait_for_others(self._left_s())
        if order.placement.moment == "after-start":
            for watch, slot in zip(self._watching.watches, order.placement.slots, strict=True):
                watch.bind(slot.cpus)
        self._watching.mark()
        for talk in self._talks:
            talk.go()
        self._until(lambda: all(talk.end is not None for talk in self._talks))
        self._watching.end()

    def _watch(self, pids: Sequence[int]) -> LaunchMonitor:
        placement, scratch = self._order.placement, self._order.scratch
        counting = self._order.counting
        return LaunchMonitor(
            pids,
            placement,
            self._supervision,
            scratch=scratch,
            counting=counting,
            company=self._order.company,
        )

    def _part(self) -> None:
        """Tell the workers to exit, and wait until they have."""
        for talk in self._talks:
            talk.part()
        leave_by_s = time.monotonic() + min(self._left_s(), LEAVE_S)
        while any(self._supervision.exit_code(talk.pid) is None for talk in self._talks):
            if time.monotonic() > leave_by_s:
                raise _LateError
            self._wait(leave_by_s - time.monotonic(), heard=False)
        for talk in self._talks:
            talk.left()

    def _until(self, done: Callable[[], bool]) -> None:
        """Receive messages, and sample from time to time, until `done` or the deadline."""
        while not done():
            left_s = self._left_s()
            if left_s <= 0:
                raise _LateError
            if not self._wait(min(left_s, self._watching.pause_s), heard=True):
                if self._order.looks:
                    self._watching.look()
                self._tick()
            if any(talk.failure is not None for talk in self._talks):
                raise _BrokenError
            self._require_alive(done)

    def _left_s(self) -> float:
        """Seconds until the deadline; the other launches' time slices do not count."""
        place = self._order.place
        allowed_s = self._order.timeout_s + (place.others_s if place else 0.0)
        return self._began_s + allowed_s - time.monotonic()

    def _require_alive(self, done: Callable[[], bool]) -> None:
        for talk in self._talks:
            code = self._supervision.exit_code(talk.pid)
            if code is None:
                continue
            talk.hear_out()
            if talk.failure is None and not done():
                talk.died(code)
            if talk.failure is not None:
                raise _BrokenError

    def _wait(self, timeout_s: float, *, heard: bool) -> bool:
        """Wait for a message or an exit; True if there was one."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._supervision, selectors.EVENT_READ)
            for talk in self._talks:
                if heard and talk.open:
                    selector.register(talk, selectors.EVENT_READ)
            ready = selector.select(max(timeout_s, 0.0))
            for key, _ in ready:
                if isinstance(key.fileobj, WorkerConnection):
                    key.fileobj.hear()
        return bool(ready)

    def _clear_up(self) -> tuple[str, ...]:
        self._watching.close()
        for talk in self._talks:
            talk.close()
        strays = self._supervision.end(grace_s=GRACE_S)
        for talk in self._talks:
            talk.left()
        return strays

    def _late(self) -> tuple[str, str]:
        doing = next((talk.doing for talk in self._talks if talk.end is None), "leaving")
        return (
            f"it was still in `{doing}` after {self._order.timeout_s:g} s.",
            "Raise `measure.timeout_s`, or ask for fewer iterations.",
        )

    def _failure(self) -> tuple[str, str]:
        failure = next(talk.failure for talk in self._talks if talk.failure is not None)
        fix = failure.fix or "The launch's log holds what it wrote, and its traceback."
        return f"in `{failure.during}`: {failure.what}", fix

    def _workers(self) -> tuple[Worker, ...]:
        watching = self._watching
        seen = dict(enumerate(zip(watching.watches, watching.threads, strict=True)))
        counted = dict(enumerate(watching.of_workers))
        return tuple(
            talk.worker(
                slot=slot,
                threads_asked=self._order.threads_asked,
                threads=seen[slot][1] if slot in seen else (),
                peak_rss_bytes=seen[slot][0].peak_rss_bytes if slot in seen else None,
                node_bytes=seen[slot][0].node_bytes if slot in seen else {},
                counters=counted.get(slot),
            )
            for slot, talk in enumerate(self._talks)
        )

    def _evidence(self, workers: Sequence[Worker]) -> tuple[str, ...]:
        allowed = [talk.allowed for talk in self._talks]
        return verification.binding_violations(
            self._order.placement, self._order.commands, workers, allowed
        )

    def _alive_ns(self) -> int:
        """From the first worker's start to the last one's exit, as far as is known."""
        spans = [talk.span_ns for talk in self._talks if talk.span_ns is not None]
        if not spans:
            return 0
        return max(ended for _, ended in spans) - min(began for began, _ in spans)
