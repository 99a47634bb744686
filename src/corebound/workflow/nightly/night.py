"""The nightly run: its steps in order, those that are done left out."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from corebound.errors import (
    CRASHED,
    NO_ANSWER,
    REGRESSION,
    HostError,
    InputError,
    LaunchError,
    refusals_told,
)
from corebound.launch import die_with_parent
from corebound.workflow.nightly.journal import Journal

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


def run_step(step: Step, folder: Path, *, held: int) -> int:
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
            die_with_parent.words(step.command),
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


# A night that was killed lets go of the lock when its step has ended: a run ends between
# two launches, whose processes are killed at once.
_PATIENCE_S = 60.0
_BETWEEN_LOOKS_S = 0.2


class Failure(Struct, frozen=True, kw_only=True):
    """The step at which a night ended, its exit code, and the end of its log."""

    step: str
    code: int
    log: Path
    tail: tuple[str, ...]


class NightlyResult(Struct, frozen=True, kw_only=True):
    """What a night came to.

    Attributes:
        codes: The exit code of each step that was done.
        failure: Where it ended before its end; None where all steps were done.
    """

    codes: dict[str, int]
    failure: Failure | None

    @property
    def exit_code(self) -> int:
        """That of the step that failed; else the first of 1, 4 and 5 that a step had, or 0."""
        launches = LaunchError.exit_code
        if self.failure is not None:
            known = {InputError.exit_code, HostError.exit_code, launches, CRASHED}
            return self.failure.code if self.failure.code in known else launches
        codes = set(self.codes.values())
        return next((code for code in (REGRESSION, launches, NO_ANSWER) if code in codes), 0)


def carry_on(
    steps: Sequence[Step],
    journal: Journal,
    *,
    held: int,
    now: Callable[[], str],
    said: Callable[[str], None],
) -> NightlyResult:
    """Do what of a night is left to do; the first step that fails ends it.

    Args:
        steps: All of the night's.
        journal: Says which were done before; told of the others as they begin and end.
        held: A descriptor of the lock.
        now: ISO 8601 in UTC.
        said: Told what begins.
    """
    for step in steps:
        if step.once and journal.codes.get(step.name) in step.fine:
            continue
        said(f"{step.name} …")
        journal.began(step.name, now())
        code = run_step(step, journal.folder, held=held)
        journal.ended(step.name, code, now())
        if code not in step.fine:
            log = step.log(journal.folder)
            failure = Failure(step=step.name, code=code, log=log, tail=tuple(tail(log)))
            return NightlyResult(codes=dict(journal.codes), failure=failure)
    return NightlyResult(codes=dict(journal.codes), failure=None)


@contextmanager
def alone(folder: Path, *, patience_s: float = _PATIENCE_S) -> Iterator[int]:
    """Hold the lock of a folder of nights; yields its descriptor.

    Raises:
        HostError: another night holds it, for longer than one takes to end.
        InputError: the folder cannot be written.
    """
    with refusals_told(
        "the nights cannot be kept here",
        where=folder,
        mend="Make that folder writable, or name another with --nights.",
    ):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    until_s = time.monotonic() + patience_s
    try:
        while not _locked(descriptor):
            if time.monotonic() > until_s:
                raise HostError(
                    what="another night is at work.",
                    where=str(folder / "lock"),
                    mend="Wait for it to end; `fuser` of that file says which process it is.",
                )
            time.sleep(_BETWEEN_LOOKS_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
