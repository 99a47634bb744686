"""Execute a nightly run: its steps in order, skipping those already done, under a lock."""

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
    report_os_errors,
)
from corebound.launch import die_with_parent
from corebound.workflow.nightly.journal import Journal

# The number of log lines in a summary: enough to show the cause, and still short.
_TAIL_LINES = 12


class Step(Struct, frozen=True, kw_only=True):
    """One step of a nightly run.

    Attributes:
        name: Such as `run`.
        command: The argument list.
        fine: Exit codes after which the nightly run continues.
        once: Whether a resumed nightly run skips the step if it is done. This holds for the
            measurement and for steps that change what is measured. The other steps are cheap
            and depend on these.
    """

    name: str
    command: tuple[str, ...]
    fine: frozenset[int] = frozenset({0})
    once: bool = False

    def out(self, folder: Path) -> Path:
        """The file for the step's stdout, in the nightly run's folder."""
        return folder / f"{self.name}.out"

    def log(self, folder: Path) -> Path:
        """The file for the step's stderr."""
        return folder / f"{self.name}.log"


def run_step(step: Step, folder: Path, *, held: int) -> int:
    """Run one step and append its output to its log.

    Args:
        step: The step.
        folder: The nightly run's folder.
        held: A descriptor of the lock, which the step inherits. If the nightly run is killed, no
            other one begins before the step has ended.

    Returns:
        The step's exit code; negative: the signal that ended it.
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
        # Ctrl-C reaches both processes; SIGTERM reaches only this one.
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


# A step that outlives a killed nightly run holds the lock until it ends. A run ends between two
# launches, whose processes are killed at once.
_PATIENCE_S = 60.0
_SNAPSHOT_INTERVAL_S = 0.2


class Failure(Struct, frozen=True, kw_only=True):
    """The step that ended a nightly run, its exit code, and the end of its log."""

    step: str
    code: int
    log: Path
    tail: tuple[str, ...]


class NightlyResult(Struct, frozen=True, kw_only=True):
    """The result of a nightly run.

    Attributes:
        codes: The exit code of each completed step.
        failure: The step that ended the nightly run early; None if all steps completed.
    """

    codes: dict[str, int]
    failure: Failure | None

    @property
    def exit_code(self) -> int:
        """The failed step's code; else the first code of 1, 4 and 5 among the steps, or 0."""
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
    """Run the remaining steps of a nightly run; the first failure ends it.

    Args:
        steps: All steps of the nightly run.
        journal: Lists the steps already done; the others are recorded as they begin and end.
        held: A descriptor of the lock.
        now: Returns the current time, ISO 8601 in UTC.
        said: Called with the name of each step that begins.
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
    """Hold the lock on a folder of nightly runs; yields the lock's descriptor.

    Raises:
        HostError: Another nightly run holds the lock for longer than one takes to end.
        InputError: The folder cannot be written.
    """
    with report_os_errors(
        "the nights cannot be kept here",
        where=folder,
        fix="Make that folder writable, or name another with --nights.",
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
                    fix="Wait for it to end; `fuser` of that file says which process it is.",
                )
            time.sleep(_SNAPSHOT_INTERVAL_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
