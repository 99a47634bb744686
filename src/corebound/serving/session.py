"""Runs one launch of a server: starts it, sends requests, monitors it and stops it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence

from corebound.errors import CoreboundError
from corebound.launch.launch import GRACE_S, LaunchResult, tail
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.supervisor_client import Supervision
from corebound.launch.worker_connection import Pipes
from corebound.machine.procfs import cpu_ns_by_process, processes_below
from corebound.planning.models import Command
from corebound.records.launch_record import Served, Status, Worker
from corebound.scenario import traffic
from corebound.scenario.traffic import Answered, GeneratorOrder, Warmed
from corebound.serving import checks
from corebound.serving.launch_spec import ServingOrder
from corebound.serving.processes import (
    ASK_EVERY_S,
    LateError,
    Processes,
    await_workers,
    require_right_answer,
)
from corebound.serving.server import (
    LOOPBACK,
    Server,
    ServerError,
    ServerWorker,
)
from corebound.worker import protocol

# How long a server may take to stop when asked to. TorchServe takes 3 to 8 s.
STOP_S = 20.0
# The launch fails if more than this share of requests fails: throughput is then meaningless.
MOST_ERRORS = 0.01

GENERATOR = ("-m", "corebound.serving.generator")


def serve(order: ServingOrder, supervision: Supervision, tick: Callable[[], None]) -> LaunchResult:
    """Run one launch of a server until it completes, fails or times out.

    Args:
        order: What to launch.
        supervision: Starts the processes and ends any that they leave behind.
        tick: Called from time to time, to update progress.

    Raises:
        LaunchError: the supervisor has ended, so the outcome of the launch is unknown.
    """
    return _Session(order, supervision, tick).run()


class _Session:
    def __init__(
        self, order: ServingOrder, supervision: Supervision, tick: Callable[[], None]
    ) -> None:
        self._order = order
        self._supervision = supervision
        self._began_ns = time.monotonic_ns()
        self._alive_ns = 0
        self._doing = "start"
        self._reports = order.scratch / "reports"
        self._processes = Processes(
            supervision,
            tick,
            scratch=order.scratch,
            python_path=order.python_path,
            timeout_s=order.timeout_s,
        )
        self._talk = GeneratorTalk()
        self._watching = self._watch(())
        self._served: Served | None = None

    def run(self) -> LaunchResult:
        status: Status = "ok"
        reason: tuple[str | None, str | None] = (None, None)
        try:
            self._serve()
        except LateError:
            status, reason = "timed-out", self._late()
        except CoreboundError as error:
            status, reason = "failed", (f"in `{self._doing}`: {error.what}", error.fix)
        finally:
            self._watching.close()
            self._talk.close()
            strays = self._supervision.end(grace_s=GRACE_S)
        workers = self._workers()
        against: tuple[str, ...] = ()
        if status == "ok" and self._served is not None:
            against, fix = checks.held_against(self._order, self._served, workers)
        if against:
            status = "invalid"
            reason = ("it did not run as it was asked to: " + "; ".join(against) + ".", fix)
        duration_ns = time.monotonic_ns() - self._began_ns
        return LaunchResult(
            status=status,
            reason=reason[0],
            fix=reason[1],
            evidence=against,
            duration_ns=duration_ns,
            overhead_ns=duration_ns - self._alive_ns,
            looks=self._watching.looks,
            look_ns=self._watching.look_ns,
            workers=workers,
            strays=strays,
            log=tail(self._processes.log),
            served=self._served,
            host=self._watching.host,
            counters=self._watching.counters,
        )

    def _serve(self) -> None:
        self._processes.folder.mkdir()
        self._reports.mkdir()
        self._doing = "model"
        model = self._order.model(self._processes.execute)
        server = self._order.server(model, self._reports)
        self._doing = "startup"
        needs = {
            protocol.SERVED_REPORTS: str(self._reports),
            **server.write(self._processes.folder),
        }
        started_ns = time.monotonic_ns()
        root = self._processes.spawn(self._order.command, needs=needs)
        try:
            ready = await_workers(
                server, self._processes, root=root, wanted=len(self._order.placement.slots)
            )
            startup_ns = time.monotonic_ns() - started_ns
            self._doing = "check"
            require_right_answer(server, model)
            self._doing = "requests"
            self._warm_up(server)
            cpu_ns = self._measure(root, ready)
            before = {one.pid for one in ready}
            restarts = sum(one.pid not in before for one in server.workers())
            self._doing = "stop"
            stop_ns = self._stop(server, root)
        finally:
            self._alive_ns = time.monotonic_ns() - started_ns
        self._keep(startup_ns=startup_ns, stop_ns=stop_ns, cpu_ns=cpu_ns, restarts=restarts)
        self._doing = "requests"
        self._require_answers(server)

    def _keep(self, *, startup_ns: int, stop_ns: int, cpu_ns: int, restarts: int) -> None:
        warmed, answered = self._talk.warmed, self._talk.answered
        if warmed is None or answered is None:
            raise ValueError("a server is told to end once its requests are answered")
        of_server = {cpu for slot in self._order.placement.slots for cpu in slot.cpus}
        self._served = Served(
            startup_ns=startup_ns,
            stop_ns=stop_ns,
            traffic=self._order.traffic,
            generator_cpus=self._order.generator_cpus,
            apart=of_server.isdisjoint(self._order.generator_cpus),
            warmed=warmed,
            answered=answered,
            cpu_ns=cpu_ns,
            restarts=restarts,
        )

    def _require_answers(self, server: Server) -> None:
        answered = self._served.answered if self._served else None
        lost = sum(answered.errors.values()) if answered else 0
        if answered is None or lost <= MOST_ERRORS * (answered.ok + lost):
            return
        kinds = ", ".join(f"{kind}: {count}" for kind, count in answered.errors.items())
        raise ServerError(
            what=f"{lost} of {answered.ok + lost} requests had no good answer ({kinds}).",
            where=server.distribution,
            fix="The launch's log holds what the server said.",
        )

    def _warm_up(self, server: Server) -> None:
        """Start the load generator, and have it warm up the server."""
        order = self._order
        command = Command(argv=(str(order.generator), *GENERATOR), env=())
        pid = self._processes.spawn(command, pipes=self._talk.theirs)
        # Set this before its first thread starts, so that all its threads inherit it.
        os.sched_setaffinity(pid, order.generator_cpus)
        self._talk.started(
            pid,
            GeneratorOrder(
                traffic=order.traffic,
                host=LOOPBACK,
                port=server.port,
                path=server.path,
                content_type=server.content_type,
                body_file=str(server.body),
            ),
        )
        self._listen(lambda: self._talk.warmed is not None)

    def _measure(self, root: int, ready: Sequence[ServerWorker]) -> int:
        """Have the load generator measure, and monitor; returns the server's CPU time."""

        def tree() -> Collection[int]:
            return (root, *processes_below(root))

        self._watching = self._watch([one.pid for one in ready if one.pid is not None], tree)
        self._watching.begin()
        before_ns = cpu_ns_by_process(tree())
        self._watching.mark()
        self._talk.go()
        self._listen(lambda: self._talk.answered is not None)
        after_ns = cpu_ns_by_process(tree())
        self._watching.end()
        return sum(time_ns - before_ns.get(pid, 0) for pid, time_ns in after_ns.items())

    def _watch(
        self, pids: Sequence[int], beside: Callable[[], Collection[int]] = tuple
    ) -> LaunchMonitor:
        """Monitor the workers; the server's other processes, `beside`, are counted too."""
        return LaunchMonitor(
            pids,
            self._order.placement,
            self._supervision,
            scratch=self._order.scratch,
            counting=self._order.counting,
            beside=beside,
        )

    def _listen(self, done: Callable[[], bool]) -> None:
        """Receive the generator's messages, and sample from time to time, until `done`."""
        while not done():
            pause_s = self._watching.pause_s if self._watching.watches else ASK_EVERY_S
            if not self._processes.wait(pause_s, self._talk):
                self._watching.look()
            code = self._processes.exit_code(self._talk.pid)
            if code is not None:
                self._talk.hear()
                if not done():
                    self._talk.died(code)
            if (failure := self._talk.failure) is not None:
                raise ServerError(
                    what=failure.what,
                    where="load generator",
                    fix=failure.fix or "The launch's log holds its traceback.",
                )

    def _stop(self, server: Server, root: int) -> int:
        """Ask the server to stop and wait up to `STOP_S`; the rest is killed later."""
        began_ns = time.monotonic_ns()
        pids = (root, *processes_below(root))
        server.stop(pids)
        leave_by_s = time.monotonic() + STOP_S
        while cpu_ns_by_process(pids) and time.monotonic() < leave_by_s:
            self._processes.wait(ASK_EVERY_S / 5)
        return time.monotonic_ns() - began_ns

    def _late(self) -> tuple[str, str]:
        return (
            f"it was still in `{self._doing}` after {self._order.timeout_s:g} s.",
            "Raise `measure.timeout_s`, or ask for fewer iterations.",
        )

    def _workers(self) -> tuple[Worker, ...]:
        order = self._order
        return checks.workers(self._watching, order.placement, self._reports, order.threads_asked)


class GeneratorTalk(Pipes):
    """The connection to one load generator, and everything received over it."""

    def __init__(self) -> None:
        """Open the pipes."""
        super().__init__()
        self.pid = 0
        self.warmed: Warmed | None = None
        self.answered: Answered | None = None
        self.failure: protocol.Failure | None = None

    def started(self, pid: int, order: GeneratorOrder) -> None:
        """Note that the generator has started, close its pipe ends here and send the order."""
        self.pid = pid
        self.keep_ours()
        self._order(traffic.encode(order))

    def go(self) -> None:
        """Tell the generator to start measuring."""
        self._order(protocol.GO)

    def hear(self) -> None:
        """Process the messages received so far."""
        for line in self.lines():
            self._take(line)

    def died(self, code: int) -> None:
        """Record a failure for a generator that ended without reporting one."""
        self.failure = self.failure or protocol.Failure(
            during="requests", what=f"the load generator ended with {code}.", fix=None
        )

    def _order(self, line: bytes) -> None:
        if not self.send(line):
            self.hear()  # it has ended: its last message holds the reason

    def _take(self, line: bytes) -> None:
        try:
            message = traffic.decode_message(line)
        except protocol.WireError as error:
            self.failure = protocol.Failure(
                during="requests", what=f"the load generator said {error}", fix=None
            )
            return
        if isinstance(message, Warmed):
            self.warmed = message
        elif isinstance(message, Answered):
            self.answered = message
        else:
            self.failure = message
