"""Errors that the user can mend, each with what, where and how to mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

# Exit codes of commands that end without an error; the README lists all codes.
REGRESSION = 1
NO_ANSWER = 5
# EX_SOFTWARE of sysexits.h: an internal software error.
CRASHED = 70


class CoreboundError(Exception):
    """Something the user can mend; `cli` prints it without a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *, what: str, where: str, mend: str) -> None:
        what, where, mend = map(encodable, (what, where, mend))
        super().__init__(f"{where}: {what}\n  {mend}")
        self.what = what
        self.where = where
        self.mend = mend

    def __reduce__(self) -> tuple[Any, ...]:
        """What it takes to be raised again in another process: its arguments go by name."""
        return _again, (type(self), self.args, self.__dict__)


def _again(
    kind: type[CoreboundError], words: tuple[str, ...], told: dict[str, Any]
) -> CoreboundError:
    error = kind.__new__(kind, *words)
    error.__dict__.update(told)
    return error


def encodable(text: str) -> str:
    r"""A text that can be printed and kept: a path's bytes that are no UTF-8 as `\udc..`.

    >>> encodable("a\udcff")
    'a\\udcff'
    """
    return text.encode(errors="backslashreplace").decode()


class InputError(CoreboundError):
    """What the user gave cannot be understood."""

    exit_code: ClassVar[int] = 2


@contextmanager
def refusals_told(what: str, *, where: Path, mend: str) -> Iterator[None]:
    """Tell what the file system refuses within as a fault of the place the user named.

    Args:
        what: What cannot be done then, without a full stop: the reason follows.
        where: The place, unless what was refused has one of its own.
        mend: What to do about it.

    Raises:
        InputError: something was refused.
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            what=f"{what}: {error.strerror}.", where=str(error.filename or where), mend=mend
        ) from error


class HostError(CoreboundError):
    """This host cannot do what was asked."""

    exit_code: ClassVar[int] = 3


@contextmanager
def git_needed(where: Path) -> Iterator[None]:
    """Start git within; that there is none is told as a fault of the host.

    Args:
        where: What git is needed for: a folder of the repository.

    Raises:
        HostError: git is not installed.
    """
    try:
        yield
    except FileNotFoundError as error:
        if error.filename != "git":
            raise
        raise HostError(
            what="git is not installed.",
            where=str(where),
            mend="Install it: `apt-get install git`.",
        ) from error


class LaunchError(CoreboundError):
    """Launches failed, or could not be started or supervised."""

    exit_code: ClassVar[int] = 4


class BuildError(LaunchError):
    """A commit of the project under test could not be built; `what` ends with the log's tail."""


# Every command has errors, also those that need no msgspec.
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with a file.

    `line` counts from 1 and is None where the file has no line to show, as
    when it cannot be read at all.
    """

    file: str
    line: int | None
    what: str
    mend: str

    def __post_init__(self) -> None:
        for name in ("file", "what", "mend"):
            object.__setattr__(self, name, encodable(getattr(self, name)))

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.what} {self.mend}"


class ScenarioFaults(InputError):
    """Everything that is wrong with one or more scenario files, at once."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        first = faults[0]
        where = first.file if first.line is None else f"{first.file}:{first.line}"
        super().__init__(what=first.what, where=where, mend=first.mend)
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)
