"""The night itself: its steps in order, those that were done before left out."""

from __future__ import annotations

import fcntl
import os
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
from corebound.nightly.journal import Journal
from corebound.nightly.steps import Step, carry_out, tail

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


class Outcome(Struct, frozen=True, kw_only=True):
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
) -> Outcome:
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
        code = carry_out(step, journal.folder, held=held)
        journal.ended(step.name, code, now())
        if code not in step.fine:
            log = step.log(journal.folder)
            failure = Failure(step=step.name, code=code, log=log, tail=tuple(tail(log)))
            return Outcome(codes=dict(journal.codes), failure=failure)
    return Outcome(codes=dict(journal.codes), failure=None)


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
