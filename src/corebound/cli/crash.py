"""The last error handler: saves a crash report for a bug in corebound.

It imports only the standard library, because the import of any other module may have failed.
"""

import contextlib
import os
import platform
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

from corebound import __version__, clock
from corebound.cli import interrupts
from corebound.errors import CRASHED
from corebound.text import lines, one_line, uncommanded

# An error message may contain all of what could not be read.
_MAX_LETTERS = 200
_FALLBACK_MESSAGE = (
    "corebound: internal error. This is a bug in corebound; its traceback was lost.\n"
)


def report(error: BaseException) -> int:
    """Save the traceback of a bug and report it on standard error in one line.

    If the traceback cannot be saved, it follows that line. After an interrupt nothing is
    reported: libraries that are written in C replace it by an error of their own.

    Returns:
        The exit code.
    """
    if interrupts.received:
        return interrupts.received[0]
    try:
        text = _report_text(error)
        file = _save(text)
        kind = one_line("".join(traceback.format_exception_only(error)))[:_MAX_LETTERS].strip()
        message = f"corebound: internal error: {kind}. This is a bug in corebound, not a result. "
        if file is None:
            message += f"The traceback could not be saved; please report it:\n{text}"
        else:
            message += f"Please report it to its maintainers with the traceback in {file}\n"
        _write(uncommanded(lines(message)))
    except BaseException:  # noqa: BLE001  # for example, when memory has run out
        _write(_FALLBACK_MESSAGE)
    return CRASHED


def interruption(error: BaseException | None) -> BaseException | None:
    """Find the Ctrl-C, SIGTERM or closed pipe behind an error; None if there is none.

    An interrupt can arrive at any time, also during the clean-up that it starts. Errors that
    result from it are not bugs.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        error = error.__cause__ or error.__context__
    return error


def _report_text(error: BaseException) -> str:
    # A URL may contain a secret, such as a webhook's key.
    command = re.sub(r"(https?://[^/\s']*)[^\s']*", r"\1/…", shlex.join(sys.argv))
    return (
        f"corebound {__version__}\n"
        f"command: {command}\n"
        f"Python: {sys.version}\n"
        f"platform: {platform.platform()}\n"
        f"at: {clock.utc_now().isoformat(timespec='seconds')}\n\n"
        f"{''.join(traceback.format_exception(error))}"
    )


def _save(text: str) -> Path | None:
    """Save the report and return its path; None if that fails."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(".txt", "corebound-crash-", folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
            return Path(name)
    return None


def _folders() -> Iterator[Path]:
    """The folder for persistent state (XDG Base Directory), then the temporary folder."""
    with contextlib.suppress(RuntimeError):  # there is no home folder
        home = Path(os.environ.get("XDG_STATE_HOME", ""))
        yield (home if home.is_absolute() else Path.home() / ".local/state") / "corebound"
    with contextlib.suppress(OSError):  # there is no temporary folder
        yield Path(tempfile.gettempdir())


def _write(text: str) -> None:
    with contextlib.suppress(BaseException):
        sys.stderr.write(text)
        sys.stderr.flush()
