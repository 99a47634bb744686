"""Standard output and error that neutralise control sequences in untrusted text.

Names, paths, logs and messages come from other people's records, repositories and machines. All
output of a command passes through here, so that a terminal or CI service executes none of it.
It imports little, because every start of the command line needs it.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn, TextIO, cast

from corebound import text as corebound_text
from corebound.errors import InputError

# The exit code that a shell reports for a command ended by SIGPIPE.
PIPE_CLOSED = 141


class Stream:
    """A standard stream that neutralises all text and handles write errors.

    A write raises SystemExit if the reader has closed the pipe, and InputError if the system
    refuses it, for example on a full disk.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        """Wrap a stream; errors use this name for it."""
        self._stream = stream
        self._name = name
        self._within_line = False

    def __getattr__(self, attribute: str) -> Any:
        """Delegate other attributes, except the raw bytes, which would bypass this class."""
        if attribute == "buffer":
            raise AttributeError(attribute)
        return getattr(self._stream, attribute)

    def write(self, text: str) -> int:
        """Neutralise text and write it."""
        return self.write_styled(corebound_text.lines(text))

    def write_styled(self, text: str) -> int:
        """Write text that a `Console` has neutralised, with the escape sequences of its styles."""
        # An empty write to a device is a real write, and callers that probe with one catch errors.
        if not text:
            return 0
        text = corebound_text.uncommanded(text, within_line=self._within_line)
        last = text.rpartition("\n")[2]
        self._within_line = bool(last.strip()) or ("\n" not in text and self._within_line)
        try:
            return self._stream.write(text)
        except UnicodeEncodeError as error:
            shown = text.encode(error.encoding, "backslashreplace").decode(error.encoding)
            return self._stream.write(shown)
        except OSError as error:
            self._end(error)

    def flush(self) -> None:
        """Flush everything that was written."""
        try:
            self._stream.flush()
        except OSError as error:
            self._end(error)

    def _end(self, error: OSError) -> NoReturn:
        # Python would try to write the remaining buffer again at exit, and print another error.
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(PIPE_CLOSED) from error
        raise InputError(
            what=f"cannot be written: {error.strerror}.",
            where=self._name,
            fix="Free some space, or redirect the output.",
        ) from error


@contextlib.contextmanager
def neutralised_streams() -> Iterator[None]:
    """Neutralise standard output and error within the context."""
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout = cast("TextIO", Stream(sys.stdout, "standard output"))
    sys.stderr = cast("TextIO", Stream(sys.stderr, "standard error"))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_closed_descriptors() -> None:
    """Open descriptors that the caller has closed, or the next opened file would get their numbers.

    Closed output becomes a pipe without a reader, so that lost results cause an error.
    """
    if sys.__stdin__ is None:
        _move_descriptor(0, os.open(os.devnull, os.O_RDONLY))
    if sys.__stdout__ is None:
        reading, writing = os.pipe()
        _move_descriptor(1, writing)
        if reading != 1:
            os.close(reading)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.__stderr__ is None:
        _move_descriptor(2, os.open(os.devnull, os.O_WRONLY))
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _move_descriptor(number: int, descriptor: int) -> None:
    """Move a descriptor to this number, which child processes inherit."""
    if descriptor == number:
        os.set_inheritable(number, True)
    else:
        os.dup2(descriptor, number)
        os.close(descriptor)
