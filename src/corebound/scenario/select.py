"""Select cells: by expressions of `--only`, as baselines and as the sides of claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from corebound.errors import InputError
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import Key, entry, key_of, matching, value_of
from corebound.scenario.models import Claim, Scenario


def baselines_of(
    cells: Iterable[Cell], among: Iterable[Cell], scenario: Scenario
) -> tuple[Cell | None, ...]:
    """The baseline of each cell, in the order of `cells`.

    A cell's baseline has the values that the scenario's `baseline` names, and equals the
    cell on every other axis. Without a `baseline` it is the first cell. A baseline is its
    own baseline.

    Args:
        cells: Cells of the scenario.
        among: The scenario's cells that are available for comparison.
        scenario: The scenario.

    Returns:
        One baseline for each of `cells`; None if there is no such cell.
    """
    every = tuple(among)
    if scenario.baseline is None:
        return tuple(next(iter(every), None) for _ in cells)
    shared = _axes_of(every) - entry(scenario.baseline, ()).keys()
    first: dict[tuple[str, ...], Cell] = {}
    for other in matching(scenario.baseline, every):
        first.setdefault(_values(other, shared), other)
    return tuple(first.get(_values(cell, shared)) for cell in cells)


def baseline_of(cell: Cell, among: Iterable[Cell], scenario: Scenario) -> Cell | None:
    """The baseline of one cell, as in `baselines_of`."""
    return baselines_of((cell,), among, scenario)[0]


def claim_pairs(claim: Claim, cells: Iterable[Cell]) -> tuple[tuple[Cell, Cell], ...]:
    """Each cell that is faster according to a claim, with the slower cell.

    Two cells make a pair if they are equal on every axis that neither side names.
    """
    every = tuple(cells)
    named = {*entry(claim.faster, ()), *entry(claim.than, ())}
    shared = _axes_of(every) - named
    slower: dict[tuple[str, ...], list[Cell]] = {}
    for other in matching(claim.than, every):
        slower.setdefault(_values(other, shared), []).append(other)
    return tuple(
        (one, other)
        for one in matching(claim.faster, every)
        for other in slower.get(_values(one, shared), ())
        if one.key != other.key
    )


def _axes_of(cells: Iterable[Cell]) -> set[Key]:
    return {key_of(axis) for cell in cells for axis, _ in cell.axes}


def _values(cell: Cell, keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(value_of(cell, key) for key in keys)


# A comma separates terms only if another term follows: CPU lists contain commas too.
_BETWEEN = re.compile(r",(?=[A-Za-z_][\w.-]*!?=)")
_TERM = re.compile(r"([A-Za-z_][\w.-]*)(!?=)(.*)", re.DOTALL)


def select(cells: Sequence[Cell], only: Sequence[str]) -> tuple[Cell, ...]:
    """The cells that `--only` selects, in the order of `cells`.

    Args:
        cells: Cells of any number of scenarios.
        only: Alternative expressions; an empty list selects every cell. Each expression is
            a comma-separated list of terms that must all hold: `axis=value`, `axis!=value`
            or `scenario=GLOB`. It may also be a cell's key or id as reports show it.

    Raises:
        InputError: a term names an unknown axis or a value that no cell has, or no cell
            matches an expression.
    """
    for expression in only:
        _check(cells, expression)
    return filter_cells(cells, only)


def filter_cells(cells: Sequence[Cell], only: Sequence[str]) -> tuple[Cell, ...]:
    """The cells that `--only` selects, where `cells` may be a subset of the intended cells.

    Like `select`, but an expression may match no cell.
    """
    if not only:
        return tuple(cells)
    chosen = {cell for expression in only for cell in _fitting(cells, expression)}
    return tuple(cell for cell in cells if cell in chosen)


def _fitting(cells: Sequence[Cell], expression: str) -> tuple[Cell, ...]:
    """The cells that match an expression; only the exact cell if it is a key or an id."""
    exact = tuple(cell for cell in cells if expression in {cell.id, cell.key})
    return exact or tuple(cell for cell in cells if fits(cell, expression))


def fits(cell: Cell, expression: str) -> bool:
    """Whether a cell matches an expression of `--only`: by its key or id, or by all terms.

    `!=` holds for an axis that the cell does not have.
    """
    if expression in {cell.id, cell.key}:
        return True
    return all(_holds(cell, term) for term in _BETWEEN.split(expression))


def _holds(cell: Cell, term: str) -> bool:
    parts = _TERM.fullmatch(term)
    if parts is None:
        return False
    axis, operator, value = parts.groups()
    if axis == "scenario":
        is_so = fnmatchcase(cell.scenario, value)
    else:
        is_so = dict(cell.axes).get(axis) == value
    return is_so == (operator == "=")


def _check(cells: Sequence[Cell], expression: str) -> None:
    """Raise an error if an expression is invalid or matches no cell."""
    if any(expression in {cell.id, cell.key} for cell in cells):
        return
    for term in _BETWEEN.split(expression):
        _check_term(cells, expression, term)
    if not any(fits(cell, expression) for cell in cells):
        raise _refused(expression, "no cell fits it.", "Ask for less at once.")


def _check_term(cells: Sequence[Cell], expression: str, term: str) -> None:
    parts = _TERM.fullmatch(term)
    if parts is None:
        raise _refused(
            expression,
            f"`{term}` is no term.",
            "Write axis=value, axis!=value or scenario=NAME, parted by commas.",
        )
    axis, _, value = parts.groups()
    if axis == "scenario":
        known = {cell.scenario for cell in cells}
        is_known = any(fnmatchcase(name, value) for name in known)
    else:
        known = {here for cell in cells for name, here in cell.axes if name == axis}
        is_known = value in known
    if not known:
        names = dict.fromkeys(name for cell in cells for name, _ in cell.axes)
        raise _refused(
            expression, f"no cell has an axis `{axis}`.", _offer(axis, [*names, "scenario"])
        )
    if not is_known:
        raise _refused(expression, f"no cell has {axis}={value}.", _offer(value, sorted(known)))


def _offer(written: str, known: Sequence[str]) -> str:
    close = get_close_matches(written, known, n=1)
    listed = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return f"Did you mean {close[0]}?" if close else f"There are: {listed}."


def _refused(expression: str, what: str, fix: str) -> InputError:
    return InputError(what=what, where=f"--only {expression}", fix=fix)
