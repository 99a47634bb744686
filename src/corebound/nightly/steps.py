"""Steps of a night: commands, each in a process that does not outlive the night's."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from corebound.launch import tied

# Of a log, so that a summary says why and stays one.
_TAIL_LINES = 12


class Step(Struct, frozen=True, kw_only=True):
    """One step.

    Attributes:
        name: Such as `run`.
        command: Its argument list.
        fine: Exit codes with which the night goes on.
        once: Whether a night that goes on leaves it out where it was done: what changes what
            is measured, and measuring itself. The others cost little and follow from it.
    """

    name: str
    command: tuple[str, ...]
    fine: frozenset[int] = frozenset({0})
    once: bool = False

    def out(self, folder: Path) -> Path:
        """What the step writes to stdout, in the folder of its night."""
        return folder / f"{self.name}.out"

    def log(self, folder: Path) -> Path:
        """What it writes to stderr."""
        return folder / f"{self.name}.log"


def carry_out(step: Step, folder: Path, *, held: int) -> int:
    """Do one step; what it writes is added to its log.

    Args:
        step: The step.
        folder: Of the night.
        held: A descriptor of the night's lock, held by the step as well: should the night be
            killed, no other begins before its step has ended.

    Returns:
        Its exit code; negative: the signal.
    """
    with step.out(folder).open("wb") as out, step.log(folder).open("ab") as log:
        log.write(f"$ {' '.join(step.command)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            tied.words(step.command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            pass_fds=(held,),
        )
        return _awaited(process)


def _awaited(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except BaseException:
        # Ctrl-C came to both of us; SIGTERM to us alone.
        process.terminate()
        process.wait()
        raise


def tail(file: Path) -> Sequence[str]:
    """The last lines of a log."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return [line for line in lines if line.strip()][-_TAIL_LINES:]
