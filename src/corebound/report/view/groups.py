"""Cells that are compared with one another, and what sets such groups apart."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.model.plan import Cell
from corebound.report.view.study import CellStudy
from corebound.report.view.words import axis_value


class Group(Struct, frozen=True, kw_only=True):
    """A baseline, which comes first, and the cells that are compared with it.

    Attributes:
        title: What sets it apart from the other groups; empty where there are none.
        cells: Each with the name it has within the group.
    """

    title: str
    cells: tuple[tuple[Cell, CellStudy], ...]


def by_baseline(cells: Sequence[CellStudy]) -> tuple[Group, ...]:
    """Group cells by what they are compared with, in the order of the file."""
    groups: dict[str, list[CellStudy]] = {}
    for one in cells:
        base = one.baseline.key if one.baseline else one.cell.key
        groups.setdefault(base, []).append(one)
    axes = apart([group[0].cell for group in groups.values()])
    return tuple(
        Group(
            title=title_of(group[0].cell, axes),
            cells=tuple(
                (without(one.cell, axes), one)
                for one in sorted(group, key=lambda one: one.baseline is not None)
            ),
        )
        for group in groups.values()
    )


def apart(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The axes on which some of these cells differ."""
    axes = dict.fromkeys(axis for cell in cells for axis, _ in cell.axes)
    return tuple(axis for axis in axes if len({dict(cell.axes).get(axis) for cell in cells}) > 1)


def title_of(cell: Cell, axes: Sequence[str]) -> str:
    """A group's name, read off one of its cells."""
    return ", ".join(axis_value(cell, axis) for axis in axes)


def without(cell: Cell, axes: Sequence[str]) -> Cell:
    """The cell as it is named where these axes go without saying."""
    return replace(cell, axes=tuple(pair for pair in cell.axes if pair[0] not in axes))
