"""Select cells by the expressions of `--only`."""

import contextlib
import functools
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from corebound.errors import InputError
from corebound.machine.topology import cpu_list, parse_cpu_list
from corebound.scenario.cell import Cell
from corebound.scenario.fault_wording import closest
from corebound.scenario.matrix import axis_text
from corebound.scenario.yaml_reader import as_data, read_yaml

# A comma separates terms only if another term follows: CPU lists contain commas too.
_SEPARATOR = re.compile(r",(?=[A-Za-z_][\w.-]*!?=)")
_TERM = re.compile(r"([A-Za-z_][\w.-]*)(!?=)(.*)", re.DOTALL)


def select(cells: Sequence[Cell], expressions: Sequence[str]) -> tuple[Cell, ...]:
    """The cells that `--only` selects, in the order of `cells`.

    Args:
        cells: Cells of any number of scenarios.
        expressions: Alternative expressions; an empty list selects every cell. Each expression is
            a comma-separated list of terms that must all hold: `axis=value`, `axis!=value`
            or `scenario=GLOB`. It may also be a cell's key or id as reports show it.

    Raises:
        InputError: a term names an unknown axis or a value that no cell has, or no cell
            matches an expression.
    """
    for expression in expressions:
        _check_expression(cells, expression)
    return filter_cells(cells, expressions)


def filter_cells(cells: Sequence[Cell], expressions: Sequence[str]) -> tuple[Cell, ...]:
    """The cells that `--only` selects, where `cells` may be a subset of the intended cells.

    Like `select`, but an expression may match no cell.
    """
    if not expressions:
        return tuple(cells)
    selected = {cell for expression in expressions for cell in _selected(cells, expression)}
    return tuple(cell for cell in cells if cell in selected)


def _selected(cells: Sequence[Cell], expression: str) -> tuple[Cell, ...]:
    """The cells that match an expression; only the exact cell if it is a key or an id."""
    exact = tuple(cell for cell in cells if expression in {cell.id, cell.key})
    return exact or tuple(cell for cell in cells if matches_expression(cell, expression))


def matches_expression(cell: Cell, expression: str) -> bool:
    """Whether a cell matches an expression of `--only`: by its key or id, or by all terms.

    `!=` holds for an axis that the cell does not have.
    """
    if expression in {cell.id, cell.key}:
        return True
    return all(_term_holds(cell, term) for term in _SEPARATOR.split(expression))


def _term_holds(cell: Cell, term: str) -> bool:
    parts = _TERM.fullmatch(term)
    if parts is None:
        return False
    axis, operator, value = parts.groups()
    if axis == "scenario":
        is_equal = fnmatchcase(cell.scenario, value)
    else:
        is_equal = dict(cell.axes).get(axis) in (value, _as_in_file(value))
    return is_equal == (operator == "=")


@functools.lru_cache(maxsize=1024)
def _as_in_file(written: str) -> str:
    """The text of a value that is written as in a scenario file: `default` for `null`."""
    node, faults = read_yaml(written.encode(errors="surrogateescape"), "--only")
    if node is None or faults:
        return written
    value = as_data(node)
    if isinstance(value, dict) and len(value) == 1:
        ((key, own),) = value.items()  # of `binding` or `environment`
        with contextlib.suppress(ValueError):  # no list of CPUs, so no cell has it
            own = cpu_list(parse_cpu_list(str(own))) if key == "cpus" else own
        value = f"{key}:{own}"
    return axis_text(value)


def _check_expression(cells: Sequence[Cell], expression: str) -> None:
    """Raise an error if an expression is invalid or matches no cell."""
    if any(expression in {cell.id, cell.key} for cell in cells):
        return
    for term in _SEPARATOR.split(expression):
        _check_term(cells, expression, term)
    if not any(matches_expression(cell, expression) for cell in cells):
        raise _error(expression, "no cell matches it.", "Use fewer terms.")


def _check_term(cells: Sequence[Cell], expression: str, term: str) -> None:
    parts = _TERM.fullmatch(term)
    if parts is None:
        raise _error(
            expression,
            f"`{term}` is not a valid term.",
            "Write axis=value, axis!=value or scenario=NAME, separated by commas.",
        )
    axis, _, value = parts.groups()
    if axis == "scenario":
        valid_values = {cell.scenario for cell in cells}
        is_valid = any(fnmatchcase(name, value) for name in valid_values)
    else:
        valid_values = {
            own_value for cell in cells for name, own_value in cell.axes if name == axis
        }
        is_valid = not valid_values.isdisjoint((value, _as_in_file(value)))
    if not valid_values:
        names = dict.fromkeys(name for cell in cells for name, _ in cell.axes)
        raise _error(
            expression, f"no cell has an axis `{axis}`.", _suggestion(axis, [*names, "scenario"])
        )
    if not is_valid:
        raise _error(
            expression, f"no cell has {axis}={value}.", _suggestion(value, sorted(valid_values))
        )


def _suggestion(text: str, choices: Sequence[str]) -> str:
    close = closest(text, choices)
    choices_text = ", ".join(choices[:12]) + (", …" if len(choices) > 12 else "")
    return f"Did you mean {close}?" if close else f"There are: {choices_text}."


def _error(expression: str, what: str, fix: str) -> InputError:
    return InputError(what=what, where=f"--only {expression}", fix=fix)
