"""`corebound` as its user calls it, and other processes that tests start and look for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corebound.machine import lock


def command_line(*words: str) -> tuple[str, ...]:
    """The command line of corebound, which Ctrl-C ends.

    Where the tests themselves were started in the background, SIGINT is ignored.
    """
    return "env", "--default-signal=INT", sys.executable, "-m", "corebound", *words


def start(folder: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start corebound in a folder; the environment is ours and what is given."""
    return subprocess.Popen(
        command_line(*words),
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
    return {lock.VARIABLE: str(folder), "TMPDIR": str(private_tmp(folder))}


def private_tmp(folder: Path) -> Path:
    """What stands for /tmp to a folder's commands: beside it, for it may be a repository."""
    made = folder.with_name(f"{folder.name}-tmp")
    made.mkdir(exist_ok=True)
    return made


def corebound(
    folder: Path, *words: str, timeout_s: float = 600, **environment: str
) -> tuple[int, str, str]:
    """Run corebound to its end: exit code, stdout and stderr; it is never a traceback."""
    process = start(folder, *words, **environment)
    try:
        out, err = process.communicate(timeout=timeout_s)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    assert "Traceback" not in err, err
    return process.returncode, out, err


@contextmanager
def busy_process(cpu: int) -> Iterator[None]:
    """Something that is not of corebound, and computes on one CPU all the time."""
    command = ("taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass")
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def is_running(pid: int) -> bool:
    """Whether a process is there and more than an exit code that nobody has asked for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
