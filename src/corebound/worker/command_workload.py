"""An external command as a workload."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from corebound.worker.protocol import Request, ended_by
from corebound.worker.workload import WorkloadError

if TYPE_CHECKING:
    from corebound.worker.reported_metrics import ReportedMetrics


class CommandWorkload:
    """An external command, timed from start to exit.

    Its standard output is discarded, and its standard error goes to the launch's log, unless it
    reports metrics.
    The process is not reaped until `cpu_ns`, which the loop calls after it has read the
    wall clock. Inspecting the process therefore adds nothing to the measured time.
    """

    blas: str | None = None
    work: Mapping[str, float] = MappingProxyType({})
    versions: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        argv: list[str],
        *,
        prepare: list[str] | None = None,
        cleanup: list[str] | None = None,
        output: ReportedMetrics | None = None,
    ) -> None:
        self._program = _program(argv[0])
        self._argv = argv
        for other in (prepare, cleanup):
            if other is not None:
                _program(other[0])
        self._prepare = prepare
        self.prepare: Callable[[], object] | None = (
            None if prepare is None and output is None else self._prepare_step
        )
        self._cleanup = cleanup
        self._devnull = os.open(os.devnull, os.O_RDWR)
        self._output = output
        self.metrics: list[list[list[float]]] = []
        out, error = (self._devnull, 2) if output is None else output.descriptors
        self._file_actions = [
            (os.POSIX_SPAWN_DUP2, self._devnull, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, error, 2),
        ]
        self._pid: int | None = None
        self._cpu_ns = 0
        self._affinities: set[frozenset[int]] = set()

    def _prepare_step(self) -> None:
        if self._prepare is not None:
            _run_untimed(self._prepare)
        if self._output is not None:
            self._output.clear()

    def step(self) -> None:
        """Start the command and wait until it has ended, without reaping it."""
        self._pid = os.posix_spawn(
            self._program, self._argv, os.environ, file_actions=self._file_actions
        )
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)

    def cpu_ns(self) -> int:
        """Reap the ended command; add its CPU time, including children that it waited for.

        Raises:
            WorkloadError: the command did not exit with 0.
        """
        if self._pid is not None:
            self._affinities.add(frozenset(os.sched_getaffinity(self._pid)))
            _pid, status, usage = os.wait4(self._pid, 0)
            self._pid = None
            self._cpu_ns += round((usage.ru_utime + usage.ru_stime) * 1e9)
            if self._output is not None:
                self._output.copy_to_log()
            _require_success(self._argv, os.waitstatus_to_exitcode(status))
            if self._output is not None:
                self.metrics.append(self._output.values())
        return self._cpu_ns

    def check(self, _result: object) -> None:
        """Do nothing: a command's exit code shows whether it succeeded."""

    def teardown(self) -> None:
        """Run the command that cleans up; close the descriptor of the null device."""
        os.close(self._devnull)
        if self._cleanup is not None:
            _run_untimed(self._cleanup)

    def allowed(self) -> list[list[int]]:
        """Every distinct CPU affinity set that the command's process had when it ended."""
        return sorted(sorted(cpus) for cpus in self._affinities)


def _program(name: str) -> str:
    """The path of a program."""
    if (program := shutil.which(name)) is not None:
        return program
    if Path(name).is_file():
        raise WorkloadError(
            what=f"`{name}` is not executable.", fix=f"Run `chmod +x {shlex.quote(name)}`."
        )
    raise WorkloadError(
        what=f"the command `{name}` was not found.",
        fix="Install it, or give its path, relative to the scenario file. PATH is that of the"
        " `corebound` command.",
    )


def _run_untimed(words: list[str]) -> None:
    """Run a command that is not timed; its output goes to the launch's log."""
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        pid = os.posix_spawn(
            _program(words[0]),
            words,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, 2, 1)],
        )
    finally:
        os.close(null)
    _require_success(words, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _require_success(words: list[str], code: int) -> None:
    if code == 0:
        return
    if code > 0:
        ending = f"exited with {code}"
    else:
        ending = f"was killed by signal {-code} ({signal.strsignal(-code)})"
    raise WorkloadError(
        what=f"the command `{' '.join(words)}` {ending}.",
        fix="Its error messages are in the launch's log. A workload must exit with 0.",
        ended_by=ended_by(code),
    )


def make_workload(request: Request) -> CommandWorkload:
    """Set up the command of a request.

    Raises:
        WorkloadError: there is no such program.
    """
    if request.command is None:
        raise ValueError("the request names no command")
    if request.programs is not None:
        searched = (request.programs, os.environ.get("PATH", os.defpath))
        os.environ["PATH"] = os.pathsep.join(searched)
    port = _free_port()
    for name, value in os.environ.items():
        if _PORT in value:
            os.environ[name] = value.replace(_PORT, port)
    command, prepare, cleanup = (
        words and [word.replace(_PORT, port) for word in words]
        for words in (request.command, request.prepare, request.cleanup)
    )
    output = None
    if request.metrics:
        metrics = importlib.import_module("corebound.worker.reported_metrics")
        output = metrics.ReportedMetrics(request.metrics)
    return CommandWorkload(command or [], prepare=prepare, cleanup=cleanup, output=output)


# The placeholder of a command that only the worker can fill.
_PORT = "{port}"


def _free_port() -> str:
    """A TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])
