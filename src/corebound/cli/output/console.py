"""A console that neutralises untrusted text.

Colours are styles of a `Console`, which alone may send escape sequences; see `streams`.
"""

import contextlib
import sys
from collections.abc import Iterable
from typing import Any

import rich.console
from rich.cells import cell_len
from rich.console import ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from corebound import text as corebound_text
from corebound.cli.output.streams import Stream
from corebound.errors import InputError

# Wider than any table.
_WIDE = 10_000


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

    def print_line(self, text: str) -> None:
        """Print a line of untrusted text, without wrapping it."""
        self.print(Text(text), soft_wrap=True)

    # rich's `file` can be set as well; nothing sets it here.
    @property  # type: ignore[misc]
    def file(self) -> Any:
        """The stream it writes to."""
        stream = super().file
        return _StyledStream(stream) if isinstance(stream, Stream) else stream


# Words break in a narrower column only.
_WORD_WIDTH = 16


def print_table(table: Table, console: Console) -> None:
    """Print a table; if it is too wide, print its rows below each other.

    Each row is then its first cell, and a line with heading and value for each other cell.
    """
    for column in table.columns:
        # A column with a ratio is meant to be cut off.
        if column.min_width is None and column.ratio is None:
            texts = [_plain(cell) for cell in (column.header, *column.cells)]
            words = (word for text in texts for word in text.split())
            column.min_width = (
                max(map(cell_len, texts))
                if column.no_wrap
                else min(max(map(cell_len, words), default=0), _WORD_WIDTH)
            )
    if _measured(table, console).minimum <= console.width:
        console.print(table)
        return
    if table.title:
        console.print(table.title, style=table.title_style or "table.title")
    if header := _plain(table.columns[0].header):
        console.print(header, style="bold")
    for first, *rest in zip(*(column.cells for column in table.columns), strict=True):
        console.print(first, soft_wrap=False)
        for column, cell in zip(table.columns[1:], rest, strict=True):
            if value := _plain(cell).strip():
                heading = _plain(column.header)
                line = f"{heading}: {value}" if heading else value
                console.print(Padding(line, (0, 0, 0, 2), expand=False))


def fits(table: Table, console: Console) -> bool:
    """Whether a table fits the terminal without breaking a line."""
    return _measured(table, console).maximum <= console.width


def _measured(table: Table, console: Console) -> Measurement:
    return Measurement.get(console, console.options.update(max_width=_WIDE), table)


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


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
