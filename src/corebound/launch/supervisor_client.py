"""The runner's client for the supervisor: starts it, spawns workers, receives their exits."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import corebound
from corebound.errors import LaunchError
from corebound.launch import supervisor
from corebound.machine.procfs import processes_below

# How long the supervisor may take to answer. It waits only for processes that it
# has killed, and those remain only while a device driver blocks them.
PATIENCE_S = 30.0
# The program of the supervisor. It is isolated from the environment and from installed packages,
# and finds corebound's own modules after those of the standard library.
_LIBRARY = Path(corebound.__file__).parents[1]
_SUPERVISOR = """
import sys
sys.path.append(sys.argv[3])
from corebound.launch.supervisor import main
main()
"""


class Supervision:
    """A running supervisor, which serves any number of launches, one at a time.

    Attributes:
        spawned: The processes that were started for the launch, as long as it lasts.
    """

    def __init__(self, scratch: Path) -> None:
        """Start the supervisor.

        It removes `scratch` when it ends, even if this process is killed.
        """
        self._names = os.fsencode(scratch), scratch.resolve()
        # If the supervisor is killed, this process inherits its descendants.
        supervisor.become_subreaper()
        own_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = (sys.executable, "-I", "-S", "-c", _SUPERVISOR)
        with child_end:
            self._process = subprocess.Popen(
                (*program, str(child_end.fileno()), str(scratch), str(_LIBRARY)),
                stdin=subprocess.DEVNULL,
                pass_fds=(child_end.fileno(),),
                # This process handles Ctrl-C from the terminal.
                start_new_session=True,
            )
        self._channel = own_end
        self._exits: dict[int, int] = {}
        self.spawned: set[int] = set()
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the supervisor, and all that its launches have left."""
        self._channel.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End launch processes left by a killed supervisor; they are now our descendants."""
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            orphans = [pid for pid in processes_below(os.getpid()) if self._is_ours(pid)]
            if not orphans:
                return
            supervisor.kill(orphans)

    def _is_ours(self, pid: int) -> bool:
        """Whether a process has our scratch folder in its environment, or works below it."""
        name, folder = self._names
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            works_in = Path(f"/proc/{pid}/cwd").readlink()
        except OSError:
            return False
        return name in environment or works_in.is_relative_to(folder)

    @property
    def pid(self) -> int:
        """The supervisor's process id; all processes of a launch descend from it."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when a worker has ended."""
        return self._channel.fileno()

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        descriptors: tuple[int, int, int],
        cgroup: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> int:
        """Start a worker in a session of its own.

        Args:
            argv: The command line; the program is looked up on the PATH of `env`.
            env: The complete environment.
            cwd: The working directory.
            descriptors: File descriptors for its log (stdout and stderr), request and reply.
            cgroup: `cgroup.procs` of the cgroup that it starts in, which is removed by `end`;
                None: the supervisor's.
            settings: The settings of its process, by name; None: those of the supervisor.

        Returns:
            Its process id.

        Raises:
            LaunchError: it could not be started.
        """
        order = {
            "do": "spawn",
            "argv": list(argv),
            "env": dict(env),
            "cwd": str(cwd),
            "cgroup": None if cgroup is None else str(cgroup),
            "settings": dict(settings or {}),
        }
        answer = self._answer(order, descriptors)
        if "error" in answer:
            raise LaunchError(
                what=f"the worker could not be started: {answer['error']}.",
                where=argv[0],
                fix="Check that the program exists and is executable.",
            )
        pid = int(answer["pid"])
        self.spawned.add(pid)
        return pid

    def exit_code(self, pid: int) -> int | None:
        """A worker's exit code (negative: the signal that ended it), or None while it runs."""
        while self._readable(0.0):
            self._note(self._receive())
        return self._exits.get(pid)

    def end(self, *, grace_s: float) -> tuple[str, ...]:
        """End all processes of the launch; they have `grace_s` to end by themselves first.

        Returns:
            The names of the processes that had to be killed.

        Raises:
            LaunchError: the supervisor has ended or does not answer.
        """
        names = self._answer({"do": "end", "grace_s": grace_s})["ended"]
        self._exits.clear()
        self.spawned.clear()
        return tuple(names)

    def _readable(self, timeout_s: float) -> bool:
        return bool(select.select([self._channel], [], [], timeout_s)[0])

    def _receive(self) -> dict[str, Any]:
        data = self._channel.recv(supervisor.MOST_BYTES)
        if not data:
            raise self._lost()
        message: dict[str, Any] = json.loads(data)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        # Drop answers to orders whose sender was interrupted.
        if "exited" in message:
            self._exits[message["exited"]] = message["code"]

    def _answer(self, order: dict[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Send an order and wait for the answer with the same number."""
        self._sent += 1
        number = self._sent
        data = json.dumps({**order, "order": number}).encode()
        try:
            socket.send_fds(self._channel, [data], descriptors)
        except OSError as error:
            raise self._lost() from error
        while self._readable(PATIENCE_S):
            message = self._receive()
            if message.get("order") == number:
                return message
            self._note(message)
        raise self._lost()

    def _lost(self) -> LaunchError:
        return LaunchError(
            what="the supervisor of the launches has ended or does not answer.",
            where="corebound",
            fix="Continue the run with `corebound run --resume`.",
        )
