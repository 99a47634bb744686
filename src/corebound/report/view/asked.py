"""Which cells of a scenario a run was to measure."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.errors import InputError
from corebound.model.plan import Cell
from corebound.planning.expand import select


def asked(planned: Sequence[Cell], only: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of one scenario that a run's `--only` left, in their order.

    Args:
        planned: All cells of the scenario.
        only: What the run was asked for; perhaps of its other scenarios alone.
    """
    if not only:
        return tuple(planned)
    chosen = {cell for expression in only for cell in _fitting(planned, expression)}
    return tuple(cell for cell in planned if cell in chosen)


def _fitting(planned: Sequence[Cell], expression: str) -> tuple[Cell, ...]:
    """The cells that one alternative asks for; none where it is about another scenario."""
    try:
        return select(planned, [expression])
    except InputError:
        return ()
