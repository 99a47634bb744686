"""Errors that the user can fix; each says what is wrong, where, and how to fix it."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

# Exit codes of commands that end without an error; docs/reference/commands.md lists all codes.
REGRESSION = 1
NO_ANSWER = 5
# EX_SOFTWARE of sysexits.h: an internal software error.
CRASHED = 70


class CoreboundError(Exception):
    """An error that the user can fix; `cli` prints it without a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, *, what: str, where: str, fix: str) -> None:
        what, where, fix = map(encodable, (what, where, fix))
        super().__init__(f"{where}: {what}\n  {fix}")
        self.what = what
        self.where = where
        self.fix = fix

    @property
    def document(self) -> dict[str, Any]:
        """The error as plain data, as `--json` prints it."""
        return {
            "what": self.what,
            "where": self.where,
            "fix": self.fix,
            "exit_code": self.exit_code,
            "faults": [],
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling to another process, despite the keyword-only arguments."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(
    kind: type[CoreboundError], arguments: tuple[str, ...], attributes: dict[str, Any]
) -> CoreboundError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


def encodable(text: str) -> str:
    r"""Make a text encodable: bytes of a path that are not UTF-8 become `\udc..`.

    >>> encodable("a\udcff")
    'a\\udcff'
    """
    return text.encode(errors="backslashreplace").decode()


class InputError(CoreboundError):
    """The user's input is invalid."""

    exit_code: ClassVar[int] = 2


@contextmanager
def report_os_errors(what: str, *, where: Path, fix: str) -> Iterator[None]:
    """Report an OSError raised in the block as an error of the path that the user named.

    Args:
        what: What cannot be done, without a full stop: the reason is appended.
        where: The path, unless the OSError has its own.

    Raises:
        InputError: the block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            what=f"{what}: {error.strerror or error}.", where=str(error.filename or where), fix=fix
        ) from error


class HostError(CoreboundError):
    """This host cannot do what was requested."""

    exit_code: ClassVar[int] = 3


class MissingPackageError(HostError):
    """An optional package is not installed."""

    def __init__(self, package: str, *, needed_for: str, where: str, otherwise: str = "") -> None:
        super().__init__(
            what=f"{needed_for} needs the package `{package}`, which is not installed.",
            where=where,
            fix=f"Install it with `{sys.executable} -m pip install {package}`{otherwise}.",
        )


class LaunchError(CoreboundError):
    """Launches failed, or could not be started or supervised."""

    exit_code: ClassVar[int] = 4


class BuildError(LaunchError):
    """A commit of the project under test could not be built; `what` ends with the log's tail."""


# A dataclass, because commands that do not load msgspec need errors too.
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with a file.

    `line` counts from 1. It is None if there is no line to show, for example if the file
    cannot be read.
    """

    file: str
    line: int | None
    what: str
    fix: str

    def __post_init__(self) -> None:
        for name in ("file", "what", "fix"):
            object.__setattr__(self, name, encodable(getattr(self, name)))

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.what} {self.fix}"


@contextmanager
def collect_fault(file: Path, faults: list[Fault], *, what: str = "this run") -> Iterator[None]:
    """Skip what cannot be read or analysed: the block's error becomes a fault of its file.

    One file must not cost the results of all others, whatever its analysis raises.

    Args:
        file: The file that the block reads.
        what: What is skipped, for the message.
    """
    try:
        yield
    except CoreboundError as error:
        line = 1 if error.where.endswith(":1") else None
        text = f"{what} was skipped: {error.what}"
        faults.append(Fault(file=str(file), line=line, what=text, fix=error.fix))
    except Exception as error:  # noqa: BLE001  # a bug, but in the analysis of this file only
        faults.append(analysis_fault(str(file), error, what=what))


def analysis_fault(file: str, error: Exception, *, what: str = "this run") -> Fault:
    """The fault of something recorded whose analysis raised an error that is a bug."""
    kind = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
    text = f"{what} was skipped, because its analysis failed: {kind}. This is a bug in corebound."
    return Fault(file=file, line=None, what=text, fix="Please report it together with this file.")


class ScenarioFaults(InputError):
    """All faults of one or more scenario files."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        first = faults[0]
        where = first.file if first.line is None else f"{first.file}:{first.line}"
        super().__init__(what=first.what, where=where, fix=first.fix)
        self.faults = faults

    @property
    def document(self) -> dict[str, Any]:
        """The error as plain data, with every fault."""
        return {**super().document, "faults": [asdict(fault) for fault in self.faults]}

    def __str__(self) -> str:
        return "\n".join(str(fault) for fault in self.faults)


# Errors of the system for an invalid or forbidden path. A missing path is reported elsewhere;
# here it would be a file of corebound's own, and so a bug.
_PATH_ERRORS = {
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
}
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}
_RESOURCE_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}


def user_error(error: OSError) -> CoreboundError | None:
    """Convert an error of the system into a user error, if it is not a bug."""
    what = f"{error.strerror}."
    if error.errno in _PATH_ERRORS and error.filename is not None:
        fix = "Check the path and its permissions."
        return InputError(what=what, where=str(error.filename), fix=fix)
    if error.errno in _DISK_ERRORS:
        fix = "Free some space, or check the disk."
        return InputError(what=what, where=str(error.filename or "corebound"), fix=fix)
    if error.errno in _RESOURCE_ERRORS:
        fix = "Close other programs, or raise the limit that `ulimit -a` shows."
        return HostError(what=what, where=str(error.filename or "corebound"), fix=fix)
    return None
