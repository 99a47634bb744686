"""Runs one launch of a cell: starts its workers, monitors them and collects their replies."""

from __future__ import annotations

import math
import os
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.errors import LaunchError
from corebound.launch import cpu_quota, process_settings, verification
from corebound.launch.interleaving import Participant
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.launch.worker_connection import WorkerConnection
from corebound.launch.worker_environment import worker_environment
from corebound.machine.procfs import processes_below
from corebound.planning.budget import LEAST_ITERATIONS
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import Served, Status, Worker
from corebound.records.telemetry import Counters, HostOverTime, Pauses, QuotaUse
from corebound.records.thread_use import timed_ns
from corebound.scenario.cell import Cell
from corebound.worker import protocol

LOG_TAIL_BYTES = 8_192
_DEVIATED_FIX = (
    "Find what rebinds its threads, sets their number or moves them to another cgroup. Remove it,"
    " or adapt the cell."
)
# What a share leaves for iterations, and at least, in seconds: the start may have used it up. The
# rest is for an iteration that has begun, and for the end of the launch.
_ITERATING_SHARE = 0.9
_ENDING_S = 0.2
_LEAST_LEFT_S = 0.5
# How long a worker may take to exit after its work: atexit handlers, pools.
EXIT_S = 10.0
# How often to check whether the run has been interrupted while others have their turn, and whether
# memory is short while all import.
_TICK_S = 1.0
_IMPORT_TICK_S = 0.1
# Grace period for processes that end by themselves, such as a helper whose parent just exited.
GRACE_S = 0.2


class LaunchResult(Struct, frozen=True, kw_only=True):
    """The result of a launch; fields have the meaning they have in `launch_record.Launch`.

    `trace` is the path of the file that the first worker's profiler wrote to the
    launch's scratch folder, or of the place it has been moved to since. `served`
    holds a server's results, if the launch started one.
    """

    status: Status
    reason: str | None
    fix: str | None
    evidence: tuple[str, ...] = ()
    duration_ns: int = 0
    overhead_ns: int = 0
    looks: int = 0
    look_ns: int = 0
    workers: tuple[Worker, ...] = ()
    leftover_processes: tuple[str, ...] = ()
    log: str = ""
    trace: Path | None = None
    served: Served | None = None
    host: HostOverTime | None = None
    counters: Counters | None = None
    pauses: Pauses | None = None
    wait: Pauses | None = None
    quota: QuotaUse | None = None
    ended_by: protocol.EndedBy | None = None
    share_s: float | None = None
    least_iteration_ns: int | None = None


class AnyLaunchSpec(Struct, frozen=True, kw_only=True):
    """Everything that any kind of launch needs, fully resolved: no lookups happen later.

    Attributes:
        placement: The slots, one per worker.
        threads_asked: The thread count each worker's pool must have; None accepts any.
        timeout_s: Deadline for the whole launch, counted from its start.
        share_s: The time that a budget leaves for it; it then counts with the iterations that it
            has, if they are enough. None: it has no budget.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: An empty folder, which the caller removes.
        cpu_quota: The CPU time that its processes together may use, in CPUs; None: no quota.
    """

    placement: Placement
    threads_asked: int | None
    timeout_s: float
    python_path: Path
    scratch: Path
    share_s: float | None = None
    counting: CounterSupport = field(default_factory=CounterSupport)
    cpu_quota: float | None = None


class LaunchSpec(AnyLaunchSpec, frozen=True, kw_only=True):
    """Everything that one launch of workers needs.

    Attributes:
        commands: The command that starts each worker.
        requests: The request sent to each worker.
        looks: Whether to sample the launch while it is timed. Turn this off to measure the
            cost of sampling.
        role: This launch's role among those that start with it. None: it starts by itself.
        other_supervisors: Process ids of the supervisors of the launches that start with it.
        cell: The cell, whose settings the workers must have; None: any.
        files: What to link in the working directory, by its path there.
        working_directory: The workers' working directory; None: a new and empty one.
    """

    commands: tuple[Command, ...]
    requests: tuple[protocol.Request, ...]
    looks: bool = True
    role: Participant | None = None
    other_supervisors: tuple[int, ...] = ()
    cell: Cell | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    working_directory: Path | None = None


def launch(spec: LaunchSpec, supervision: Supervision, tick: Callable[[], None]) -> LaunchResult:
    """Run one launch until it completes, fails or times out.

    Args:
        supervision: Starts the workers and ends any processes they leave behind.
        tick: Called from time to time while the workers run, to update progress.

    Raises:
        LaunchError: the supervisor has ended, so the outcome of the launch is unknown.
        NoRoomError: there is no memory for it beside the launches that started with it.
    """
    return _Session(spec, supervision, tick).run()


class NoRoomError(Exception):
    """There is no memory for a launch beside those that started with it."""


class _TimedOutError(Exception):
    """The launch has passed its deadline."""


class _WorkerFailedError(Exception):
    """A worker failed; its connection holds the failure."""


class _Session:
    def __init__(
        self, spec: LaunchSpec, supervision: Supervision, tick: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._supervision = supervision
        self._tick = tick
        self._connections: list[WorkerConnection] = []
        self._monitor = self._new_monitor(())
        self._began_ns = time.monotonic_ns()
        self._began_s = time.monotonic()
        self._waited_s = 0.0
        self._log = spec.scratch / "log"
        self._was_paused = False
        self._is_cut = False
        self._paused_before_ns = 0
        self._settings: list[dict[str, Any]] = []
        self._quota: float | None = None
        self._open = ExitStack()

    def run(self) -> LaunchResult:
        status: Status = "ok"
        reason: str | None = None
        fix: str | None = None
        ended_by: protocol.EndedBy | None = None
        try:
            self._start()
            if self._spec.role is not None:
                self._take_turn_to_set_up(self._spec.role)
            for connection in self._connections:
                connection.set_up()
            self._measure()
            # One that was killed has no end.
            if all(connection.end is not None for connection in self._connections):
                self._dismiss()
        except _TimedOutError:
            self._is_cut = self._has_share
            limit_s = self._spec.share_s if self._is_cut else None
            status = "timed-out"
            reason, fix = timed_out(self._phase(), limit_s or self._spec.timeout_s)
            if self._is_cut:
                status = "dropped"
                reason, fix = too_slow(reason)
        except _WorkerFailedError:
            failure = self._failure()
            status, reason, fix = "failed", f"in `{failure.during}`: {failure.what}", failure.fix
            ended_by = failure.ended_by
        except LaunchError as error:
            status, reason, fix = "failed", error.what, error.fix
        finally:
            is_ended = status in {"dropped", "timed-out"}
            least_iteration_ns = self._least_iteration_ns() if is_ended else None
            leftovers = self._clean_up()
        elapsed_ns = time.monotonic_ns() - self._began_ns
        role = self._spec.role
        others_ns = round((self._waited_s + (role.others_share_s if role else 0.0)) * 1e9)
        workers = self._workers()
        evidence = self._evidence(workers) if status == "ok" else ()
        if evidence:
            status, reason, fix = "invalid", deviated(evidence), _DEVIATED_FIX
        return LaunchResult(
            status=status,
            reason=reason,
            fix=fix,
            evidence=evidence,
            duration_ns=max(elapsed_ns - others_ns, 0),
            overhead_ns=elapsed_ns - self._worker_span_ns(),
            looks=self._monitor.looks,
            look_ns=self._monitor.look_ns,
            workers=workers,
            # The workers themselves are among those that a share ended.
            leftover_processes=() if self._is_cut else leftovers,
            log=tail(self._log),
            trace=self._trace(),
            host=self._monitor.host,
            counters=self._monitor.counters,
            pauses=self._pauses(),
            wait=role.wait if role else None,
            quota=self._monitor.quota,
            ended_by=ended_by,
            share_s=self._spec.share_s if self._is_cut else None,
            least_iteration_ns=least_iteration_ns,
        )

    def _trace(self) -> Path | None:
        """The first worker's trace; None if the path it reports is outside the scratch folder."""
        reported = self._connections[0].trace if self._connections else None
        if reported is None:
            return None
        file, scratch = Path(reported).resolve(), self._spec.scratch.resolve()
        return file if file.is_relative_to(scratch) and file.is_file() else None

    def _start(self) -> None:
        work = self._spec.scratch / "work"
        link_files(self._spec.files, work)
        with self._log.open("ab") as log:
            limit = self._open.enter_context(cpu_quota.limited(self._spec.cpu_quota))
            self._quota = limit.cpus
            for command, request in zip(self._spec.commands, self._spec.requests, strict=True):
                env = worker_environment(
                    command, python_path=self._spec.python_path, scratch=self._spec.scratch
                )
                connection = WorkerConnection(request)
                self._connections.append(connection)
                connection.started(
                    self._supervision.spawn(
                        (*limit.prefix, *command.argv),
                        env={**env, **limit.env},
                        cwd=self._spec.working_directory or work,
                        cgroup=limit.procs,
                        settings=process_settings.of_process(self._spec.cell),
                        descriptors=(log.fileno(), *connection.child_ends),
                    )
                )

    def _measure(self) -> None:
        self._until(lambda: all(connection.ready is not None for connection in self._connections))
        spec = self._spec
        self._monitor = self._new_monitor([connection.pid for connection in self._connections])
        self._monitor.prepare()
        alternates = spec.role.alternates if spec.role else None
        if spec.role is not None and alternates is not None:
            self._wait_for_others(spec.role)
        if spec.placement.moment == "after-start":
            for sampler, slot in zip(self._monitor.samplers, spec.placement.slots, strict=True):
                sampler.bind(slot.cpus)
        self._monitor.start()
        self._paused_before_ns = self._paused_ns()
        most_ns = None
        if self._has_share:
            self._began_s += max(_LEAST_LEFT_S - self._left_s(), 0.0)
            most_ns = round((self._left_s() * _ITERATING_SHARE - _ENDING_S) * 1e9)
        for connection in self._connections:
            connection.go(alternates, most_ns)
        try:
            self._until(lambda: all(connection.end is not None for connection in self._connections))
        except _TimedOutError:
            if not self._has_share:
                raise
        self._is_cut = self._has_share and any(
            connection.is_cut for connection in self._connections
        )
        if self._is_cut and any(
            connection.iterations < LEAST_ITERATIONS for connection in self._connections
        ):
            raise _TimedOutError
        self._monitor.stop()
        self._settings = [
            process_settings.observed(spec.cell, sampler.processes)
            for sampler in self._monitor.samplers
        ]

    @property
    def _has_share(self) -> bool:
        """Whether the budget ends the launch, rather than its own time limit."""
        share_s = self._spec.share_s
        return share_s is not None and share_s <= self._spec.timeout_s

    def _least_iteration_ns(self) -> int | None:
        """What an iteration takes at least, by the slowest worker; None if none has begun."""
        paused_ns = self._paused_ns() - self._paused_before_ns
        known = [connection.least_iteration_ns(paused_ns) for connection in self._connections]
        return max((least_ns for least_ns in known if least_ns is not None), default=None)

    def _wait_for_others(self, role: Participant) -> None:
        """Pause this launch until the other launches are ready."""
        role.ready(lambda: chain.from_iterable(s.processes for s in self._monitor.samplers))
        self._wait_outside_deadline(role.may_go)

    def _take_turn_to_set_up(self, role: Participant) -> None:
        """Let the workers import with those of other launches, and set up once these do not."""
        self._until(
            lambda: all(connection.has_imported for connection in self._connections),
            every_s=_IMPORT_TICK_S,
        )
        roots = [connection.pid for connection in self._connections]
        role.imported(lambda: chain(roots, *map(processes_below, roots)))
        self._wait_outside_deadline(role.may_set_up)
        if not role.has_room:
            raise NoRoomError

    def _wait_outside_deadline(self, is_over: Callable[[float], bool]) -> None:
        """Wait for other launches; that time is not part of this launch's."""
        waits_since_s = time.monotonic()
        while not is_over(_TICK_S):
            self._tick()
        waited_s = time.monotonic() - waits_since_s
        self._waited_s += waited_s
        self._began_s += waited_s

    def _pauses(self) -> Pauses | None:
        """How it was paused for those that it alternated with; None if it alternated with none."""
        role = self._spec.role
        return role.pauses if role and role.alternates else None

    def _new_monitor(self, pids: Sequence[int]) -> LaunchMonitor:
        return LaunchMonitor(
            pids,
            self._spec.placement,
            self._supervision,
            scratch=self._spec.scratch,
            counting=self._spec.counting,
            other_supervisors=self._spec.other_supervisors,
            paused_ns=self._paused_ns,
        )

    def _paused_ns(self) -> int:
        return self._spec.role.paused_ns if self._spec.role else 0

    def _dismiss(self) -> None:
        """Tell the workers to exit, and wait until they have."""
        for connection in self._connections:
            connection.close_requests()
        exit_by_s = time.monotonic() + min(self._left_s(), EXIT_S)
        while any(self._exit_code(connection) is None for connection in self._connections):
            if time.monotonic() > exit_by_s:
                if self._has_share:
                    return  # it has its iterations
                raise _TimedOutError
            self._wait(exit_by_s - time.monotonic(), receive=False)
        for connection in self._connections:
            connection.exited()

    def _exit_code(self, connection: WorkerConnection) -> int | None:
        return self._supervision.exit_code(connection.pid)

    def _until(self, is_done: Callable[[], bool], *, every_s: float = math.inf) -> None:
        """Receive messages, and sample from time to time, until `is_done` or the deadline."""
        while not is_done():
            left_s = self._left_s()
            if left_s <= 0:
                raise _TimedOutError
            if not self._wait(min(left_s, every_s, self._monitor.pause_s), receive=True):
                if self._spec.looks:
                    self._sample()
                self._tick()
            if any(connection.failure is not None for connection in self._connections):
                raise _WorkerFailedError
            self._require_alive(is_done)

    def _sample(self) -> None:
        """Sample the launch; only once while it is paused."""
        is_paused = self._spec.role is not None and self._spec.role.is_paused
        if not (is_paused and self._was_paused):
            self._monitor.sample()
        self._was_paused = is_paused

    def _left_s(self) -> float:
        """Seconds until the deadline; the other launches' time slices do not count."""
        role = self._spec.role
        limit_s = min(self._spec.timeout_s, self._spec.share_s or math.inf)
        allowed_s = limit_s + (role.others_s if role else 0.0)
        return self._began_s + allowed_s - time.monotonic()

    def _require_alive(self, is_done: Callable[[], bool]) -> None:
        for connection in self._connections:
            code = self._exit_code(connection)
            if code is None:
                continue
            connection.drain()
            if not is_done():
                connection.ended(code)
            if connection.failure is not None:
                raise _WorkerFailedError

    def _wait(self, timeout_s: float, *, receive: bool) -> bool:
        """Wait for a message or an exit; True if there was one."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._supervision, selectors.EVENT_READ)
            for connection in self._connections:
                if receive and connection.open:
                    selector.register(connection, selectors.EVENT_READ)
            ready = selector.select(max(timeout_s, 0.0))
            for key, _ in ready:
                if isinstance(key.fileobj, WorkerConnection):
                    key.fileobj.receive()
        return bool(ready)

    def _clean_up(self) -> tuple[str, ...]:
        """Stop sampling and end all processes; returns the names of those that were left."""
        self._monitor.close()
        for connection in self._connections:
            connection.close()
        leftovers = self._supervision.end(grace_s=GRACE_S)
        self._open.close()
        for connection in self._connections:
            connection.exited()
        return leftovers

    def _phase(self) -> str:
        """The phase of the first worker that has not finished."""
        phases = (connection.phase for connection in self._connections if connection.end is None)
        # Workers whose share ended have finished, with fewer iterations than count.
        has_few = any(connection.iterations < LEAST_ITERATIONS for connection in self._connections)
        return next(phases, "loop" if self._is_cut and has_few else "exit")

    def _failure(self) -> protocol.Failure:
        """Why the launch failed: the end of a killed worker may cause errors of others."""
        failures = filter(None, (connection.failure for connection in self._connections))
        return min(failures, key=lambda failure: failure.ended_by != "kill")

    def _workers(self) -> tuple[Worker, ...]:
        monitor = self._monitor
        observed = dict(enumerate(zip(monitor.samplers, monitor.threads, strict=True)))
        counters = dict(enumerate(monitor.worker_counters))
        settings = dict(enumerate(self._settings))
        return tuple(
            replace(
                connection.worker(
                    slot=slot,
                    threads_asked=self._spec.threads_asked,
                    threads=observed[slot][1] if slot in observed else (),
                    peak_rss_bytes=observed[slot][0].peak_rss_bytes if slot in observed else None,
                    node_bytes=observed[slot][0].node_bytes if slot in observed else {},
                    counters=counters.get(slot),
                ),
                **settings.get(slot, {}),
            )
            for slot, connection in enumerate(self._connections)
        )

    def _evidence(self, workers: Sequence[Worker]) -> tuple[str, ...]:
        affinities = [connection.allowed for connection in self._connections]
        host = self._monitor.host
        of_quota = verification.quota_violations(
            self._quota,
            self._monitor.quota,
            ran_ns=host.total("ran_ns") if host else None,
            timed_ns=timed_ns(host, None),
            cpus=len(host.cpus) if host else 0,
        )
        pauses = self._pauses()
        request = self._spec.requests[0]
        of_binding = verification.binding_violations(
            self._spec.placement,
            self._spec.commands,
            workers,
            affinities,
            pauses=pauses,
            wait=self._spec.role.wait if self._spec.role else None,
            framework=self._spec.cell.framework if self._spec.cell else "none",
            inter_op=request.inter_op,
            # The profiler has threads of its own, and a command its own processes.
            elapsed_ns=0
            if request.operators is not None or request.command is not None
            else timed_ns(host, pauses),
        )
        of_settings = chain.from_iterable(
            process_settings.violations(self._spec.cell, command, worker)
            for command, worker in zip(self._spec.commands, workers, strict=True)
        )
        return (*of_binding, *of_quota, *of_settings)

    def _worker_span_ns(self) -> int:
        """From the first worker's start to the last one's exit, as far as is known."""
        spans = (connection.span_ns for connection in self._connections)
        ends = [span for span in spans if span is not None]
        if not ends:
            return 0
        return max(ended for _, ended in ends) - min(began for began, _ in ends)


def timed_out(phase: str, timeout_s: float) -> tuple[str, str]:
    """The reason and the fix for a launch that passed its deadline."""
    return (
        f"the launch was still in `{phase}` after {round(timeout_s, 2):g} s.",
        "Increase `measure.timeout_s`, or reduce the iterations.",
    )


def too_slow(reason: str) -> tuple[str, str]:
    """The reason and the fix for a launch that timed out because of a budget.

    Args:
        reason: As of `timed_out`.
    """
    return f"too slow for this budget: {reason}", "Use a larger --budget."


def deviated(evidence: Sequence[str]) -> str:
    """The reason for a launch that is invalid because it deviated from its request."""
    return f"the launch did not run as requested: {'; '.join(evidence)}."


def tail(file: Path) -> str:
    """The last `LOG_TAIL_BYTES` of a launch's log; empty if there is no log."""
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - LOG_TAIL_BYTES))
            return stream.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def link_files(files: Mapping[str, str], folder: Path) -> None:
    """Make a working directory with links to files, by their paths in it."""
    folder.mkdir()
    for name, file in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(file)
