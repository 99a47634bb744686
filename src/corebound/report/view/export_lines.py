"""Lines of figures for machines: CSV, with what a spreadsheet must not compute."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from corebound.foreign import spreadsheet


def lines_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines as CSV under all names that any of them has."""
    text = io.StringIO()
    # Lines of different hands may differ in their columns; each column stands once.
    names = list(dict.fromkeys(name for line in lines for name in line))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: spreadsheet(value) for name, value in line.items()})
    return text.getvalue()


def finite(value: float) -> float | None:
    """JSON knows no infinity: an end that is not known is absent."""
    return value if value < float("inf") else None
