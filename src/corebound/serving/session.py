"""Runs one launch of a server: starts it, sends requests, monitors it and stops it."""

import os
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec.structs import replace

from corebound.errors import CoreboundError
from corebound.launch import cpu_quota, launch, verification
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.supervisor_client import Supervision
from corebound.launch.worker_connection import ChildConnection
from corebound.machine.procfs import cpu_ns_by_process, descendants, processes_below
from corebound.machine.topology import CpuId
from corebound.planning.models import Command
from corebound.records.launch_record import Served, Status, Worker
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Traffic, Warmed
from corebound.serving import checks, processes
from corebound.serving.own_server import NEW_CONNECTIONS, DeclaredServer
from corebound.serving.served_model import Execute, ServedModel, ServerError
from corebound.units import counted
from corebound.worker import protocol

# How long a server may take to stop when asked to. TorchServe takes 3 to 8 s.
STOP_S = 20.0
# The launch fails if more than this share of requests fails: throughput is then meaningless.
MOST_ERRORS = 0.01
# The share of a launch's time that a search for a rate may take, warm-up included.
_SEARCH_SHARE = 0.9
# The errors of a server that closes a connection before it answers.
_CLOSED = {"closed", "reset"}

GENERATOR = ("-m", "corebound.serving.generator")


class ServingSpec(launch.AnyLaunchSpec, frozen=True, kw_only=True):
    """Everything that one launch of a server and its load generator needs.

    Attributes:
        command: The command that starts the server; None: it is a service that runs already.
        model: Finds or creates the served model, given a function that executes commands; None
            for a server of the user's own.
        server: Creates the server, given the model and the folder for the workers' reports.
        reports_itself: Whether each worker of the server reports its threads and variables.
        generator: The interpreter of the load generator.
        generator_cpus: The CPUs that the load generator may use.
        files, working_directory: As in `launch.LaunchSpec`.
    """

    command: Command | None
    model: Callable[[Execute], ServedModel | None]
    server: Callable[[ServedModel | None, Path], DeclaredServer]
    traffic: Traffic
    reports_itself: bool = True
    generator: Path
    generator_cpus: tuple[CpuId, ...]
    files: Mapping[str, str] = {}
    working_directory: Path | None = None


def serve(
    spec: ServingSpec, supervision: Supervision, tick: Callable[[], None]
) -> launch.LaunchResult:
    """Run one launch of a server until it completes, fails or times out.

    Args:
        supervision: Starts the processes and ends any that they leave behind.
        tick: Called from time to time, to update progress.

    Raises:
        LaunchError: the supervisor has ended, so the outcome of the launch is unknown.
    """
    return _Session(spec, supervision, tick).run()


def why_dropped(served: Served) -> str | None:
    """Why a race drops a server whose search for a rate ended early; None if it stays."""
    least_per_s, search = served.traffic.least_per_s, served.answered.search
    if least_per_s is None or search is None or not served.answered.ok:
        return None
    known = (search.capacity_per_s, search.over_per_s)
    most_per_s = min((rate for rate in known if rate is not None), default=least_per_s)
    if most_per_s >= least_per_s:
        return None
    most, least = counted(most_per_s), counted(least_per_s)
    return f"it reaches at most {most} requests per second, and needs {least} to stay in the race."


class _Session:
    def __init__(
        self, spec: ServingSpec, supervision: Supervision, tick: Callable[[], None]
    ) -> None:
        self._spec = spec
        self._supervision = supervision
        self._began_ns = time.monotonic_ns()
        self._alive_ns = 0
        self._phase = "start"
        self._reports = spec.scratch / "reports"
        self._processes = processes.Processes(
            supervision,
            tick,
            scratch=spec.scratch,
            python_path=spec.python_path,
            timeout_s=spec.timeout_s,
        )
        self._connection = GeneratorConnection()
        self._monitor = self._new_monitor(())
        self._served: Served | None = None
        self._root: int | None = None
        self._is_stopped = False
        self._quota: float | None = None
        self._open = ExitStack()

    def run(self) -> launch.LaunchResult:
        status: Status = "ok"
        reason: tuple[str | None, str | None] = (None, None)
        is_killed = False
        try:
            self._serve()
        except processes.TimedOutError:
            status, reason = "timed-out", launch.timed_out(self._phase, self._spec.timeout_s)
        except CoreboundError as error:
            status, reason = "failed", (f"in `{self._phase}`: {error.what}", error.fix)
            # Once it was asked to end, its exit code says nothing.
            if self._root is not None and not self._is_stopped:
                code = self._processes.exit_code(self._root)
                is_killed = code is not None and protocol.ended_by(code) == "kill"
        finally:
            self._monitor.close()
            self._connection.close()
            leftovers = self._supervision.end(grace_s=launch.GRACE_S)
            self._open.close()
        workers = self._workers()
        evidence: tuple[str, ...] = ()
        if status == "ok" and self._served is not None:
            spec = self._spec
            reporting = spec.command if spec.reports_itself else None
            evidence, fix = checks.launch_violations(
                spec.placement, reporting, self._served, workers
            )
            of_quota = self._quota_violations(self._served.cpu_ns)
            fix = fix if evidence else "Find what moves the server's processes to another cgroup."
            evidence += of_quota
        if evidence:
            status = "invalid"
            reason = (launch.deviated(evidence), fix)
        elif status == "ok" and self._served and (why := why_dropped(self._served)):
            status, reason = "dropped", (why, None)
        duration_ns = time.monotonic_ns() - self._began_ns
        return launch.LaunchResult(
            status=status,
            reason=reason[0],
            fix=reason[1],
            evidence=evidence,
            duration_ns=duration_ns,
            overhead_ns=duration_ns - self._alive_ns,
            looks=self._monitor.looks,
            look_ns=self._monitor.look_ns,
            workers=workers,
            leftover_processes=leftovers,
            log=launch.tail(self._processes.log),
            served=self._served,
            host=self._monitor.host,
            counters=self._monitor.counters,
            quota=self._monitor.quota,
            ended_by="kill" if is_killed else None,
        )

    def _quota_violations(self, cpu_ns: int) -> tuple[str, ...]:
        host = self._monitor.host
        return tuple(
            verification.quota_violations(
                self._quota,
                self._monitor.quota,
                ran_ns=cpu_ns,
                timed_ns=host.duration_ms * 1_000_000 if host else 0,
                cpus=len(host.cpus) if host else 0,
            )
        )

    def _serve(self) -> None:
        launch.link_files(self._spec.files, self._processes.folder)
        self._reports.mkdir()
        self._phase = "model"
        model = self._spec.model(self._processes.execute)
        server = self._spec.server(model, self._reports)
        self._phase = "startup"
        needs = {
            protocol.SERVED_REPORTS: str(self._reports),
            **server.write(self._processes.folder),
        }
        started_ns = time.monotonic_ns()
        limit = self._open.enter_context(cpu_quota.limited(self._spec.cpu_quota))
        self._quota = limit.cpus
        if self._spec.command is not None:
            self._root = self._processes.spawn(
                self._spec.command,
                needs=needs,
                cwd=self._spec.working_directory,
                cgroup=limit.procs,
            )
        try:
            server.await_ready(self._processes, self._root)
            startup_ns = time.monotonic_ns() - started_ns
            self._phase = "check"
            server.require_right_answer(self._spec.traffic, self._processes.left_s)
            self._phase = "requests"
            self._warm_up(server)
            ready = server.workers()
            cpu_ns = self._measure(ready)
            gone = {worker.pid for worker in ready} - {worker.pid for worker in server.workers()}
            self._phase = "stop"
            stop_ns = self._stop(server)
        finally:
            self._alive_ns = time.monotonic_ns() - started_ns
        self._keep(startup_ns=startup_ns, stop_ns=stop_ns, cpu_ns=cpu_ns, restarts=len(gone))
        self._phase = "requests"
        self._require_answers(server)

    def _keep(self, *, startup_ns: int, stop_ns: int, cpu_ns: int, restarts: int) -> None:
        warmed, answered = self._connection.warmed, self._connection.answered
        if warmed is None or answered is None:
            raise ValueError("the server is stopped after its requests have been answered")
        started_ns = next((sampler.started_ns for sampler in self._monitor.samplers), None)
        of_server = {cpu for slot in self._spec.placement.slots for cpu in slot.cpus}
        self._served = Served(
            startup_ns=startup_ns,
            stop_ns=stop_ns,
            traffic=self._spec.traffic,
            generator_cpus=self._spec.generator_cpus,
            # Where a running service computes is unknown.
            apart=self._spec.command is not None
            and of_server.isdisjoint(self._spec.generator_cpus),
            warmed=warmed,
            answered=answered,
            cpu_ns=cpu_ns,
            restarts=restarts,
            began_us=None if started_ns is None else (answered.began_ns - started_ns) // 1000,
        )

    def _require_answers(self, server: DeclaredServer) -> None:
        answered = self._served.answered if self._served else None
        if self._served and answered is not None and (search := answered.search) is not None:
            if search.within_per_s is not None or why_dropped(self._served) is not None:
                return
            if not search.trials:
                raise ServerError(
                    what=f"it answers {search.capacity_per_s or 0.0:.3g} requests per second, too"
                    " few to search for a rate in the time of a launch.",
                    where=server.distribution,
                    fix="Use a larger `--budget` or `measure.timeout_s`, or shorter requests.",
                )
            tried = min(trial.rate_per_s for trial in search.trials)
            raise ServerError(
                what=f"even at {tried:.3g} requests per second, more than 1 % of requests took"
                f" longer than {self._spec.traffic.bound_ms:g} ms.",
                where=server.distribution,
                fix="Raise `bound_ms`, or `iterations` for longer trials.",
            )
        failed = sum(answered.errors.values()) if answered else 0
        if answered is None or failed <= MOST_ERRORS * (answered.ok + failed):
            return
        kinds = ", ".join(f"{kind}: {count}" for kind, count in answered.errors.items())
        is_closing = answered.errors.keys() <= _CLOSED
        raise ServerError(
            what=f"{failed} of {answered.ok + failed} requests failed ({kinds}).",
            where=server.distribution,
            fix="See the server's output in the launch's log."
            + (f" If it closes connections after some requests, {NEW_CONNECTIONS}" * is_closing),
        )

    def _warm_up(self, server: DeclaredServer) -> None:
        """Start the load generator, and have it warm up the server."""
        spec = self._spec
        command = Command(argv=(str(spec.generator), *GENERATOR), env=())
        pid = self._processes.spawn(command, pipes=self._connection.child_ends)
        # Set this before its first thread starts, so that all its threads inherit it.
        os.sched_setaffinity(pid, spec.generator_cpus)
        self._connection.started(pid, server.order(self._traffic_in_time()))
        self._listen(lambda: self._connection.warmed is not None)

    def _traffic_in_time(self) -> Traffic:
        """The traffic, of which a search for a rate ends before the launch would time out."""
        asked = self._spec.traffic
        if asked.shape != "rate-search":
            return asked
        most_s = max(_SEARCH_SHARE * self._processes.left_s, processes.POLL_S)
        return replace(asked, search_s=min(most_s, asked.search_s or most_s))

    def _tree(self) -> tuple[int, ...]:
        """The processes of the server, its root first."""
        return () if self._root is None else (self._root, *processes_below(self._root))

    def _measure(self, ready: Sequence[processes.ServerWorker]) -> int:
        """Have the load generator measure, and monitor; returns the server's CPU time."""
        self._monitor = self._new_monitor(
            [worker.pid for worker in ready if worker.pid is not None], self._tree
        )
        self._monitor.prepare()
        before_ns = cpu_ns_by_process(self._tree())
        self._monitor.start()
        self._connection.go()
        self._listen(lambda: self._connection.answered is not None)
        after_ns = cpu_ns_by_process(self._tree())
        self._monitor.stop()
        if self._connection.answered is not None and self._connection.answered.errors:
            self._processes.wait(
                processes.POLL_S
            )  # requests fail a moment before the server's end is known
        self._require_alive()
        return sum(time_ns - before_ns.get(pid, 0) for pid, time_ns in after_ns.items())

    def _new_monitor(
        self, pids: Sequence[int], other_processes: Callable[[], Collection[int]] = tuple
    ) -> LaunchMonitor:
        """Monitor the workers; the server's other processes, `other_processes`, are counted too."""
        return LaunchMonitor(
            pids,
            self._spec.placement,
            self._supervision,
            scratch=self._spec.scratch,
            counting=self._spec.counting,
            other_processes=other_processes,
        )

    def _listen(self, is_done: Callable[[], bool]) -> None:
        """Receive the generator's messages, and sample from time to time, until `is_done`."""
        while not is_done():
            pause_s = self._monitor.pause_s if self._monitor.samplers else processes.POLL_S
            if not self._processes.wait(pause_s, self._connection):
                self._monitor.sample()
            code = self._processes.exit_code(self._connection.pid)
            if code is not None:
                self._connection.receive()
                if not is_done():
                    self._connection.ended(code)
            self._require_alive()
            if (failure := self._connection.failure) is not None:
                raise ServerError(
                    what=failure.what,
                    where="load generator",
                    fix=failure.fix or "See its traceback in the launch's log.",
                )

    def _require_alive(self) -> None:
        code = None if self._root is None else self._processes.exit_code(self._root)
        if code is not None:
            # Its complaint about the end would hide the server's last output in the log.
            with suppress(ProcessLookupError):
                os.kill(self._connection.pid, signal.SIGKILL)
            raise processes.ended(code, "while requests were sent")

    def _stop(self, server: DeclaredServer) -> int:
        """Ask the server to stop, and require that nothing is left of it after `STOP_S`."""
        began_ns = time.monotonic_ns()
        self._is_stopped = True
        if pids := self._tree():
            server.stop(pids)
        stop_by_s = time.monotonic() + STOP_S
        while (left := self._left()) and time.monotonic() < stop_by_s:
            self._phase = f"stop of {', '.join(left)}"
            self._processes.wait(processes.POLL_S / 5)
        self._phase = "stop"
        if left:
            raise ServerError(
                what=f"it left {', '.join(left)} running {STOP_S:g} s after it was asked to end.",
                where="server",
                fix="Let it end all that it started, or write the signal that it ends on, such as"
                " `stop: SIGINT`.",
            )
        return time.monotonic_ns() - began_ns

    def _left(self) -> list[str]:
        """The names of what is left of a server, also of what it started and left alone."""
        supervised = processes_below(self._supervision.pid)
        ours = self._supervision.spawned - {self._root}
        ours |= {below for pid in ours for below in descendants(pid)}
        return sorted(name for pid, name in supervised.items() if pid not in ours)

    def _workers(self) -> tuple[Worker, ...]:
        spec = self._spec
        return checks.server_workers(
            self._monitor, spec.placement, self._reports, spec.threads_asked
        )


class GeneratorConnection(ChildConnection):
    """The connection to one load generator, and everything received over it."""

    name = "load generator"
    phase = "requests"

    def __init__(self) -> None:
        """Open the pipes."""
        super().__init__()
        self.warmed: Warmed | None = None
        self.answered: Answered | None = None

    def started(self, pid: int, order: GeneratorOrder) -> None:
        """Note that the generator has started, close its pipe ends here and send the order."""
        self.pid = pid
        self.close_child_ends()
        self._request(traffic.encode(order))

    def go(self) -> None:
        """Tell the generator to start measuring."""
        self._request(protocol.GO)

    def _request(self, line: bytes) -> None:
        if not self.send(line):
            self.receive()  # it has ended: its last message holds the reason

    def _decode(self, line: bytes) -> object:
        return traffic.decode_message(line)

    def _take(self, message: object) -> None:
        match message:
            case Warmed():
                self.warmed = message
            case Answered():
                self.answered = message
