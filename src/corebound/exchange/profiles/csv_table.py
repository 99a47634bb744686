"""Read comma-separated tables by column name, across versions that name columns differently."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from corebound.exchange.profiles.parts import nanoseconds, text_lines
from corebound.exchange.reading import Unreadable, label

_HEADING = re.compile(r"(.*?)\s*\(([^()]*)\)")
_UNITS_NS = {"ns": 1, "us": 1000, "μs": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}
_ABSENT = ("", "n/a", "na", "none", "-")
_FIX = "Export the profile again: the file is truncated or damaged."


class Table(Struct, frozen=True):
    """A table that is read row by row.

    Attributes:
        columns: The position and unit of each column, by its name in lower case without
            underscores. Of two columns with the same name, the first counts.
        width: How many columns there are.
    """

    columns: dict[str, tuple[int, str]]
    width: int
    _records: Iterator[list[str]]

    def has(self, *names: str) -> bool:
        """Whether all these columns exist."""
        return all(name in self.columns for name in names)

    def first(self, names: Sequence[str]) -> str | None:
        """The first of these columns that exists."""
        return next((name for name in names if name in self.columns), None)

    def rows(self, *, ragged: bool = False) -> Iterator[Row]:
        """Yield every row; all must be as wide as the heading, unless `ragged` is set.

        Raises:
            Unreadable: A row is truncated, or the text is not a table.
        """
        number = 1
        try:
            for record in self._records:
                number += 1
                if not any(field.strip() for field in record):
                    continue
                if len(record) < self.width and not ragged:
                    raise Unreadable(
                        f"row {number} has {len(record)} of {self.width} columns.", _FIX
                    )
                yield Row(table=self, number=number, fields=record)
        except csv.Error as error:
            raise Unreadable(f"row {number + 1} is not valid CSV: {error}.", _FIX) from None
        if number == 1:
            raise Unreadable(
                "the file has a heading but no rows.", "Export a profile with at least one row."
            )


class Row(Struct, frozen=True, kw_only=True):
    """One row of a table."""

    table: Table
    number: int
    fields: list[str]

    def text(self, name: str) -> str:
        """A field, without the white space that protects it from rounding in spreadsheets."""
        index, _ = self.table.columns[name]
        if index >= len(self.fields):
            raise Unreadable(f"row {self.number} ends before `{name}`.", _FIX)
        return label(self.fields[index].strip())

    def optional(self, name: str | None) -> str | None:
        """A field; None if its value or its column is absent."""
        text = self.text(name) if name in self.table.columns and name is not None else ""
        return None if text.lower() in _ABSENT else text

    def time_ns(self, name: str, *, default_ns: int = 1000) -> int:
        """A non-negative time, in the column's unit or else the default unit."""
        unit_ns = _UNITS_NS.get(self.table.columns[name][1].lower(), default_ns)
        try:
            time_ns = nanoseconds(self.text(name), unit_ns)
        except Unreadable as error:
            raise Unreadable(f"row {self.number}: {error.what}", error.fix) from None
        if time_ns < 0:
            raise Unreadable(f"row {self.number}: a time is negative.", _FIX)
        return time_ns

    def optional_time_ns(self, name: str | None) -> int | None:
        """A time; None if its value or its column is absent."""
        return None if name is None or self.optional(name) is None else self.time_ns(name)

    def number_of(self, name: str) -> float:
        """A finite number."""
        try:
            value = float(self.text(name))
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or abs(value) > 1e15:
            raise Unreadable(f"row {self.number}: {self.text(name)[:40]!r} is not a number.", _FIX)
        return value

    def number_or_none(self, name: str) -> float | None:
        """A finite number; None if its column is missing."""
        return self.number_of(name) if name in self.table.columns else None

    def count(self, name: str) -> int:
        """A non-negative integer."""
        value = self.number_of(name)
        if value < 0 or value != round(value):
            raise Unreadable(f"row {self.number}: {value} is not a count.", _FIX)
        return round(value)


def open_table(pieces: Iterable[bytes]) -> Table:
    """Open a table and read its heading.

    Raises:
        Unreadable: The text is not a table.
    """
    records = csv.reader(text_lines(pieces), strict=True)
    try:
        heading = next(records, [])
    except csv.Error as error:
        raise Unreadable(f"the first line is not a heading: {error}.", _FIX) from None
    columns: dict[str, tuple[int, str]] = {}
    for index, title in enumerate(heading):
        heading_match = _HEADING.fullmatch(title.strip())
        name, unit = heading_match.groups() if heading_match else (title, "")
        columns.setdefault(" ".join(name.lower().replace("_", " ").split()), (index, unit))
    return Table(columns, len(heading), records)
