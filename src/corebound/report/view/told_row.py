"""Cells of one scenario as a line of a list, and what is said of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.command import CommandLine, series_command
from corebound.report.view.page import Label


class ToldRow(Struct, frozen=True, kw_only=True):
    """Cells of one scenario that one thing is to be said of.

    `label` is of the first of so many `cells`, `says` of all; `command` measures them
    again, and is None where none is known.
    """

    title: str
    address: str
    label: Label
    cells: int
    says: str
    command: CommandLine | None


def told_row(series: Sequence[Series], known: Chronicle, says: str) -> ToldRow:
    """The line of these series, at least one, all of one scenario."""
    first = series[0]
    return ToldRow(
        title=first.title,
        address=series_place(first),
        label=known.label(first),
        cells=len(series),
        says=says,
        command=series_command(series),
    )
