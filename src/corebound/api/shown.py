"""How results show themselves: as text with `print` and in a console, as a table in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct

from corebound.text import one_line


class Shown(Struct, frozen=True, kw_only=True):
    """A result that shows a headline and a table, instead of its fields with all their data."""

    # The attributes that a table shows: of each row if the result consists of rows, else its own.
    shown: ClassVar[tuple[str, ...]] = ()

    def heading(self) -> str:
        """The result in a sentence; empty if the table says it all."""
        return ""

    def table(self) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """The headings of the columns, and the texts of each row."""
        if isinstance(self, Iterable):
            return self.shown, [
                tuple(_text(getattr(row, name)) for name in self.shown) for row in self
            ]
        return ("", ""), [(name, _text(getattr(self, name))) for name in self.shown]

    def __str__(self) -> str:
        """The headline, and the table with its columns aligned."""
        headings, rows = self.table()
        lines = [*([tuple(headings)] if any(headings) and rows else []), *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = ("  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join(filter(None, (self.heading(), *aligned)))

    def __repr__(self) -> str:
        """The same as text."""
        return str(self)

    def _repr_html_(self) -> str:
        from corebound.api import notebook

        headings, rows = self.table()
        return notebook.table_html(self.heading(), headings, rows)


def _text(value: object) -> str:
    """A value of an attribute in one line; a dash if there is none."""
    return one_line("; ".join(_parts(value))) or "–"


def _parts(value: object) -> Iterator[str]:
    match value:
        case None:
            pass
        case float():
            yield f"{value:.4g}"
        case Struct():
            fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
            yield ", ".join(f"{name} {_text(field)}" for name, field in fields)
        case Mapping():
            yield ", ".join(f"{name}={_text(field)}" for name, field in value.items())
        case str() | int():
            yield str(value)
        case Iterable():
            yield from (" ".join(_parts(part)) for part in value)
        case _:
            yield str(value)
