"""The steps of a nightly run: each in its own process, with a journal from which a run resumes.

The journal has one line as each step begins and ends, written to disk at once. The journal of an
interrupted nightly run has no end line; the next invocation resumes that run.
"""

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

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
from corebound.records import atomic_write

JOURNAL = "journal.jsonl"
SCHEMA = 1
# The time format at the start of record file names; it selects this nightly run's files.
TIMESTAMP_FORMAT = "%Y%m%dT%H%M%SZ"
# A nightly run older than this is not resumed: there are new commits to measure.
MAX_RESUME_AGE = timedelta(hours=12)


class Journal(Struct, frozen=True, kw_only=True):
    """The journal of one nightly run.

    Attributes:
        folder: The folder of the journal and the logs of the steps.
        identity: The values that identify the request; other values mean another nightly run.
        codes: The exit codes of the steps that have ended.
    """

    folder: Path
    identity: tuple[str, ...]
    codes: dict[str, int]

    @property
    def stamp(self) -> str:
        """The start time, as in file names."""
        return self.folder.name

    def began(self, step: str, at: str) -> None:
        """Record that a step begins."""
        _append(self.folder, {"step": step, "event": "began", "at": at})

    def ended(self, step: str, code: int, at: str) -> Self:
        """Record a step's exit code."""
        _append(self.folder, {"step": step, "event": "ended", "code": code, "at": at})
        self.codes[step] = code
        return self

    def over(self, code: int, at: str) -> None:
        """Record that the nightly run has ended and must not be resumed."""
        _append(self.folder, {"event": "over", "code": code, "at": at})


def begin_journal(folder: Path, identity: Sequence[str], now: datetime) -> Journal:
    """Start the journal of a new nightly run.

    Args:
        folder: The folder of all nightly runs.
    """
    run_folder = folder / now.strftime(TIMESTAMP_FORMAT)
    while run_folder.exists():
        now += timedelta(seconds=1)
        run_folder = folder / now.strftime(TIMESTAMP_FORMAT)
    with report_os_errors(
        "the journal of the nightly run cannot be created",
        where=run_folder,
        fix="Make that folder writable, or name another with --nights.",
    ):
        atomic_write.make_folder(run_folder)
        _append(run_folder, {"schema": SCHEMA, "asked": list(identity)})
        atomic_write.sync_folder(run_folder)
    return Journal(folder=run_folder, identity=tuple(identity), codes={})


def _append(folder: Path, line: dict[str, Any]) -> None:
    """Append a line to a journal and flush it to disk."""
    file = folder / JOURNAL
    with (
        report_os_errors(
            "the journal of the nightly run cannot be written",
            where=file,
            fix="Free some space and start the nightly run again: it resumes.",
        ),
        file.open("ab") as stream,
    ):
        # A line truncated by a kill stays truncated, on a line of its own.
        if stream.tell() and not file.read_bytes().endswith(b"\n"):
            stream.write(b"\n")
        stream.write(f"{json.dumps(line)}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())


def unfinished_journal(folder: Path, identity: Sequence[str], now: datetime) -> Journal | None:
    """Find the latest nightly run if its request is the same and it can still be resumed."""
    journals = sorted(folder.glob(f"*/{JOURNAL}"))
    if not journals:
        return None
    try:
        written = atomic_write.read(journals[-1])
    except OSError:
        return None
    lines = [parsed for line in written.split(b"\n") if (parsed := _parse_line(line))]
    run_folder = journals[-1].parent
    if not lines or lines[0].get("asked") != list(identity) or lines[0].get("schema") != SCHEMA:
        return None
    if (
        any(line.get("event") == "over" for line in lines)
        or _age(run_folder.name, now) > MAX_RESUME_AGE
    ):
        return None
    end_lines = (line for line in lines if line.get("event") == "ended")
    codes = {
        line["step"]: line["code"]
        for line in end_lines
        if isinstance(line.get("step"), str) and isinstance(line.get("code"), int)
    }
    return Journal(folder=run_folder, identity=tuple(identity), codes=codes)


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """Parse one line; None if it is truncated or damaged."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _age(stamp: str, now: datetime) -> timedelta:
    try:
        return now - datetime.strptime(f"{stamp}+0000", f"{TIMESTAMP_FORMAT}%z")
    except ValueError:
        return timedelta.max


# The number of log lines in a summary: enough to show the cause, and still short.
_TAIL_LINES = 12


class Step(Struct, frozen=True, kw_only=True):
    """One step of a nightly run.

    Attributes:
        name: Such as `run`.
        command: The argument list.
        accepted_codes: Exit codes after which the nightly run continues.
        once: Whether a resumed nightly run skips the step if it is done. This holds for the
            measurement and for steps that change what is measured. The other steps are cheap
            and depend on these.
    """

    name: str
    command: tuple[str, ...]
    accepted_codes: frozenset[int] = frozenset({0})
    once: bool = False

    def out(self, folder: Path) -> Path:
        """The file for the step's stdout, in the nightly run's folder."""
        return folder / f"{self.name}.out"

    def log(self, folder: Path) -> Path:
        """The file for the step's stderr."""
        return folder / f"{self.name}.log"


def run_step(step: Step, folder: Path, *, lock: int) -> int:
    """Run one step and append its output to its log.

    Args:
        lock: A descriptor of the lock, which the step inherits. If the nightly run is killed, no
            other one begins before the step has ended.

    Returns:
        The step's exit code; negative: the signal that ended it.
    """
    with step.out(folder).open("wb") as out, step.log(folder).open("ab") as log:
        log.write(f"$ {' '.join(step.command)}\n".encode())
        log.flush()
        process = subprocess.Popen(
            die_with_parent.wrap(step.command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            pass_fds=(lock,),
        )
        return _wait_for(process)


def _wait_for(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait()
    except BaseException:
        # Ctrl-C reaches both processes; SIGTERM reaches only this one.
        process.terminate()
        process.wait()
        raise


def last_lines(file: Path) -> Sequence[str]:
    """The last lines of a log."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return [line for line in lines if line.strip()][-_TAIL_LINES:]


# A step that outlives a killed nightly run holds the lock until it ends. A run ends between two
# launches, whose processes are killed at once.
_LOCK_PATIENCE_S = 60.0
_LOCK_POLL_S = 0.2


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
            valid_codes = {InputError.exit_code, HostError.exit_code, launches, CRASHED}
            return self.failure.code if self.failure.code in valid_codes else launches
        codes = set(self.codes.values())
        return next((code for code in (REGRESSION, launches, NO_ANSWER) if code in codes), 0)


def run_steps(
    steps: Iterable[Step],
    journal: Journal,
    *,
    lock: int,
    now: Callable[[], str],
    notify: Callable[[str], None],
) -> NightlyResult:
    """Run the remaining steps of a nightly run; the first failure ends it.

    Args:
        steps: All steps of the nightly run; each is requested once those before it have ended.
        journal: Lists the steps already done; the others are recorded as they begin and end.
        now: Returns the current time, ISO 8601 in UTC.
        notify: Called with the name of each step that begins.
    """
    for step in steps:
        if step.once and journal.codes.get(step.name) in step.accepted_codes:
            continue
        notify(f"{step.name} …")
        journal.began(step.name, now())
        code = run_step(step, journal.folder, lock=lock)
        journal.ended(step.name, code, now())
        if code not in step.accepted_codes:
            log = step.log(journal.folder)
            failure = Failure(step=step.name, code=code, log=log, tail=tuple(last_lines(log)))
            return NightlyResult(codes=dict(journal.codes), failure=failure)
    return NightlyResult(codes=dict(journal.codes), failure=None)


@contextmanager
def nightly_lock(folder: Path, *, patience_s: float = _LOCK_PATIENCE_S) -> Iterator[int]:
    """Hold the lock on a folder of nightly runs; yields the lock's descriptor.

    Raises:
        HostError: Another nightly run holds the lock for longer than one takes to end.
        InputError: The folder cannot be written.
    """
    with report_os_errors(
        "the folder of nightly runs cannot be written",
        where=folder,
        fix="Make that folder writable, or name another with --nights.",
    ):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    until_s = time.monotonic() + patience_s
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > until_s:
                raise HostError(
                    what="another nightly run is active.",
                    where=str(folder / "lock"),
                    fix="Wait for it to end. Run `fuser` on this file to see its process.",
                )
            time.sleep(_LOCK_POLL_S)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
