"""Starts the processes of a server launch, and waits until the server can be measured."""

import os
import selectors
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from corebound.launch.supervisor_client import Supervision
from corebound.launch.worker_connection import ChildConnection
from corebound.launch.worker_environment import worker_environment
from corebound.planning.models import Command
from corebound.scenario.fault_wording import printable
from corebound.serving.served_model import ServerError

# The polling interval for states that cannot be waited for.
POLL_S = 0.25


class ServerWorker(Struct, frozen=True, kw_only=True):
    """One of a server's worker processes, which answer requests.

    Attributes:
        id: The server's own name for the worker; a restarted worker keeps it.
        pid: The worker's process id, or None while it has no process.
        ready: Whether the server would send it a request.
    """

    id: str
    pid: int | None
    ready: bool


class TimedOutError(Exception):
    """The launch has passed its deadline."""


class Processes:
    """Starts the processes of one launch, and waits for them until the launch's deadline."""

    def __init__(
        self,
        supervision: Supervision,
        tick: Callable[[], None],
        *,
        scratch: Path,
        python_path: Path,
        timeout_s: float,
    ) -> None:
        self.folder = scratch / "work"
        self.log = scratch / "log"
        self._supervision = supervision
        self._tick = tick
        self._scratch = scratch
        self._python_path = python_path
        self.deadline_s = time.monotonic() + timeout_s

    def spawn(
        self,
        command: Command,
        *,
        needs: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        cgroup: Path | None = None,
        pipes: tuple[int, int] | None = None,
    ) -> int:
        """Start a process, with its output in the log; returns its process id.

        Args:
            needs: Environment variables in addition to those of the command.
            cwd: The working directory; None: the launch's own folder.
            cgroup: As for `Supervision.spawn`.
            pipes: Its descriptors 3 and 4; None: the null device.

        Raises:
            LaunchError: the process could not be started.
        """
        inherited = worker_environment(
            command, python_path=self._python_path, scratch=self._scratch
        )
        with ExitStack() as files:
            log = files.enter_context(self.log.open("ab"))
            if pipes is None:
                nothing = files.enter_context(Path(os.devnull).open("r+b", buffering=0)).fileno()
                pipes = (nothing, nothing)
            return self._supervision.spawn(
                command.argv,
                env={**inherited, **(needs or {})},
                cwd=cwd or self.folder,
                cgroup=cgroup,
                descriptors=(log.fileno(), *pipes),
            )

    @property
    def left_s(self) -> float:
        """The time that the launch has left."""
        return self.deadline_s - time.monotonic()

    def execute(self, argv: Sequence[str], folder: Path) -> int:
        """Run a command in a folder until it ends; returns its exit code.

        Raises:
            TimedOutError: the launch has passed its deadline.
            LaunchError: the command could not be started.
        """
        pid = self.spawn(Command(argv=tuple(argv), env=()), cwd=folder)
        while (code := self.exit_code(pid)) is None:
            self.wait(POLL_S)
        return code

    def exit_code(self, pid: int) -> int | None:
        """A process's exit code (negative: the signal that ended it), or None while it runs."""
        return self._supervision.exit_code(pid)

    def wait(self, timeout_s: float, connection: ChildConnection | None = None) -> bool:
        """Wait until the timeout, until a process ends, or until a message arrives.

        Returns:
            Whether anything happened; received messages have been processed.

        Raises:
            TimedOutError: the launch has passed its deadline.
        """
        left_s = self.left_s
        if left_s <= 0:
            raise TimedOutError
        with selectors.DefaultSelector() as selector:
            selector.register(self._supervision, selectors.EVENT_READ)
            if connection is not None and connection.open:
                selector.register(connection, selectors.EVENT_READ)
            ready = selector.select(min(timeout_s, left_s))
        if connection is not None and any(key.fileobj is connection for key, _ in ready):
            connection.receive()
        self._tick()
        return bool(ready)


SEE_LOG = "See its output in the launch's log."


def ended(code: int, when: str) -> ServerError:
    """The error of a server that has ended on its own.

    Args:
        when: When that was, as in "before it was ready".
    """
    daemon = " Start it in the foreground, not as a daemon." if code == 0 else ""
    return ServerError(what=f"it ended with {code} {when}.", where="server", fix=SEE_LOG + daemon)


def silent(error: Exception, server: str) -> ServerError:
    """The error of a server that gave no answer, or none that is HTTP."""
    # The error may quote what the server sent.
    said = printable(str(error).strip(), most=200) or type(error).__name__
    return ServerError(what=f"it did not answer: {said}.", where=server, fix=SEE_LOG)


# A worker that has had this many processes before all workers are ready never becomes ready.
CRASHES = 3
# The first request may trigger the compilation of the model.
ANSWER_S = 120.0


def await_workers(
    workers_now: Callable[[], tuple[ServerWorker, ...]],
    processes: Processes,
    *,
    root: int,
    count: int,
) -> tuple[ServerWorker, ...]:
    """Wait until a server reports that `count` workers are ready.

    Args:
        count: The number of workers to wait for.

    Raises:
        ServerError: the server has ended, or a worker crashes each time it is started.
        TimedOutError: the launch has passed its deadline.
    """
    pids_of: dict[str, set[int]] = {}
    while True:
        workers = workers_now()
        if len(workers) == count and all(
            worker.ready and worker.pid is not None for worker in workers
        ):
            return workers
        for worker in workers:
            if worker.pid is not None:
                pids_of.setdefault(worker.id, set()).add(worker.pid)
        crashing = next((id_ for id_, pids in pids_of.items() if len(pids) >= CRASHES), None)
        if crashing is not None:
            what = f"worker {crashing} crashed each time it was started."
            raise ServerError(what=what, where="server", fix=SEE_LOG)
        if (code := processes.exit_code(root)) is not None:
            raise ended(code, "before its workers were ready")
        processes.wait(POLL_S)
