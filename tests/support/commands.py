"""`corebound` as its user calls it, and other processes that tests start and look for."""

import contextlib
import functools
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO, TypeVar

import pytest

from corebound.cli.app import main
from corebound.machine import lock
from support import command_server

T = TypeVar("T")


def command_line(*arguments: str) -> tuple[str, ...]:
    """The command line of corebound, which Ctrl-C ends.

    Where the tests themselves were started in the background, SIGINT is ignored.
    """
    return "env", "--default-signal=INT", sys.executable, "-m", "corebound", *arguments


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start corebound in a folder; the environment is ours and what is given."""
    return subprocess.Popen(
        command_line(*arguments),
        cwd=folder,
        env={**os.environ, **isolation(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def isolation(folder: Path) -> dict[str, str]:
    """A lock and a temporary folder of their own.

    So a run in progress on this host does not refuse ours, and what ours leaves can be seen.
    """
    return {lock.LOCK_VARIABLE: str(folder), "TMPDIR": str(private_tmp(folder))}


def private_tmp(folder: Path) -> Path:
    """What stands for /tmp to a folder's commands: beside it, for it may be a repository."""
    made = folder.with_name(f"{folder.name}-tmp")
    made.mkdir(exist_ok=True)
    return made


class Completed(NamedTuple):
    """How a command ended: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str


def corebound(
    folder: Path,
    *arguments: str,
    in_process: bool = False,
    timeout_s: float = 600,
    **environment: str,
) -> Completed:
    """Run corebound in a folder to its end; it never prints a traceback.

    Args:
        folder: The working directory.
        arguments: Of the command line.
        in_process: Run in this process, which saves a second: for commands whose effect is on
            files or git repositories alone.
        timeout_s: Kill a process that takes longer.
        environment: Variables to add to ours.
    """
    if in_process:
        completed = _in_process(folder, *arguments)
    else:
        completed = _in_fork(folder, arguments, environment, timeout_s)
    assert "Traceback" not in completed.err, completed.err
    return completed


@functools.cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A `support.command_server`, which ends with this process, and the socket it reads."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env, default_signal, python, *_ = command_line()
    with its:
        process = subprocess.Popen(
            (env, default_signal, python, "-P", command_server.__file__, str(its.fileno())),
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            pass_fds=(its.fileno(),),
        )
    return ours, process


def _in_fork(
    folder: Path, arguments: tuple[str, ...], environment: dict[str, str], timeout_s: float
) -> Completed:
    request = {
        "folder": str(folder),
        "arguments": arguments,
        "environment": {**os.environ, **isolation(folder), **environment},
    }
    channel, _ = _server()
    ours, its = os.pipe()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with os.fdopen(its, "wb", buffering=0):
            descriptors = [out.fileno(), err.fileno(), its]
            socket.send_fds(channel, [json.dumps(request).encode()], descriptors)
        with os.fdopen(ours) as told:
            pid = int(told.readline())
            try:
                code = _code_of(told, timeout_s)
            except BaseException:
                os.kill(pid, signal.SIGKILL)
                raise
        out.seek(0)
        err.seek(0)
        return Completed(code, out.read(), err.read())


def _code_of(told: TextIO, timeout_s: float) -> int:
    if not select.select([told], [], [], timeout_s)[0]:
        raise subprocess.TimeoutExpired("corebound", timeout_s)
    return int(told.readline())


def _in_process(folder: Path, *arguments: str) -> Completed:
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["corebound", *arguments])
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv(lock.LOCK_VARIABLE, str(folder))
        with pytest.raises(SystemExit) as exit_info:
            main()
    code = exit_info.value.code
    return Completed(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


def output_of(folder: Path, *arguments: str) -> str:
    """The standard output of a corebound command that must succeed."""
    completed = corebound(folder, *arguments)
    assert completed.code == 0, completed
    return completed.out


@contextmanager
def busy_process(cpu: int) -> Iterator[None]:
    """Something that is not of corebound, and computes on one CPU all the time."""
    command = ("taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass")
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def until(found: Callable[[], T | None], within_s: float = 60) -> T:
    """Wait until other processes have made something true, and return it."""
    deadline_s = time.monotonic() + within_s
    while not (value := found()):
        assert time.monotonic() < deadline_s, f"it did not happen within {within_s:g} s"
        time.sleep(0.02)
    return value


def is_running(pid: int) -> bool:
    """Whether a process is there and more than an exit code that nobody has asked for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
