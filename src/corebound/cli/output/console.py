"""A console that neutralises untrusted text.

Colours are styles of a `Console`, which alone may send escape sequences; see `streams`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from corebound import text as corebound_text
from corebound.cli.output.streams import Stream
from corebound.errors import InputError


class Console(rich.console.Console):
    """A console that takes text literally, without markup, and neutralises it."""

    def __init__(self, **options: Any) -> None:
        """Accept the options of rich's console."""
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, with the text of every segment neutralised."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(corebound_text.lines(segment.text), segment.style)

    # rich's `file` can be set as well; nothing sets it here.
    @property  # type: ignore[misc]
    def file(self) -> Any:
        """The stream it writes to."""
        stream = super().file
        return _StyledStream(stream) if isinstance(stream, Stream) else stream


class _StyledStream:
    """The view of a `Stream` that a `Console` writes to."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write_styled(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def print_error(text: str) -> None:
    """Print an error; if standard error cannot be written, the exit code remains."""
    with contextlib.suppress(SystemExit, InputError):
        Console(stderr=True, soft_wrap=True).print(text)
        sys.stderr.flush()
