"""Standard output and error on which text that others wrote does nothing.

Names, paths, logs and messages come from records, repositories and machines of others. Whatever a
command prints passes through here, so no terminal and no CI service obeys any of it. Colours are
styles of a `Console`, which alone may send escape sequences.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, TextIO, cast

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from corebound import text as corebound_text
from corebound.errors import InputError

# As a shell tells a command that SIGPIPE ended.
CLOSED = 141


class Stream:
    """A standard stream that makes all text inert, and says what ended it.

    A write raises SystemExit where the reader has closed the pipe, and InputError where the
    system refuses it, as on a full disk.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        """Write to a stream that errors call by this name."""
        self._stream = stream
        self._name = name
        self._within_line = False

    def __getattr__(self, attribute: str) -> Any:
        """Whatever else a stream has, but for its bytes, which would pass us by."""
        if attribute == "buffer":
            raise AttributeError(attribute)
        return getattr(self._stream, attribute)

    def write(self, text: str) -> int:
        """Write text, made inert."""
        return self.write_styled(corebound_text.lines(text))

    def write_styled(self, text: str) -> int:
        """Write what a `Console` has made inert, with the escape sequences of its styles."""
        if not text:  # an empty write to a device is a write, and whoever tries one catches errors
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
        """Hand on all that was written."""
        try:
            self._stream.flush()
        except OSError as error:
            self._end(error)

    def _end(self, error: OSError) -> NoReturn:
        # What is still buffered would fail once more when Python ends, which prints that.
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(CLOSED) from error
        raise InputError(
            what=f"it cannot be written: {error.strerror}.",
            where=self._name,
            mend="Free some space, or send the output elsewhere.",
        ) from error


class Console(rich.console.Console):
    """A console that takes text as it stands, without markup, and makes it inert."""

    def __init__(self, **options: Any) -> None:
        """Take the options of rich's console."""
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does; the text of every segment is inert."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(corebound_text.lines(segment.text), segment.style)

    @property  # type: ignore[misc]
    def file(self) -> Any:
        """Where it writes to."""
        stream = super().file
        return _Styled(stream) if isinstance(stream, Stream) else stream


class _Styled:
    """A `Stream` as a `Console` writes to it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write_styled(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def error(text: str) -> None:
    """Print an error; an exit code tells it where standard error takes nothing."""
    with contextlib.suppress(SystemExit, InputError):
        Console(stderr=True, soft_wrap=True).print(text)
        sys.stderr.flush()


@contextlib.contextmanager
def inert() -> Iterator[None]:
    """Make standard output and error inert for as long as the context lasts."""
    _open_closed()
    before = sys.stdout, sys.stderr
    sys.stdout = cast("TextIO", Stream(sys.stdout, "standard output"))
    sys.stderr = cast("TextIO", Stream(sys.stderr, "standard error"))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _open_closed() -> None:
    """Open what the caller has closed, or the next file of ours would get its number.

    Closed output is a pipe that nobody reads, so that no result is lost unnoticed.
    """
    if sys.__stdin__ is None:
        _become(0, os.open(os.devnull, os.O_RDONLY))
    if sys.__stdout__ is None:
        reading, writing = os.pipe()
        _become(1, writing)
        if reading != 1:
            os.close(reading)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.__stderr__ is None:
        _become(2, os.open(os.devnull, os.O_WRONLY))
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _become(number: int, descriptor: int) -> None:
    """Give a descriptor this number, which child processes inherit."""
    if descriptor == number:
        os.set_inheritable(number, True)
    else:
        os.dup2(descriptor, number)
        os.close(descriptor)
