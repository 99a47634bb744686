"""Check a scenario's matrix, and that its baseline and claims name cells."""

import math
from collections.abc import Iterable, Iterator, Sequence

from corebound.scenario.cell import Cell
from corebound.scenario.fault_wording import closest, join_words, printable
from corebound.scenario.matrix import (
    Axes,
    Entry,
    ExpandedMatrix,
    Key,
    LocatedValue,
    Point,
    claim_pairs,
    entry_values,
    matching_cells,
    value_of,
)
from corebound.scenario.models import MatrixEntry, Scenario
from corebound.scenario.settings import SETTINGS, ExistingEnvironment, ExplicitCpus
from corebound.scenario.yaml_reader import Flaw, Path

# A day has room for about 10,000 launches of eight seconds. A larger matrix is a mistake
# and must not exhaust memory.
MOST_CELLS = 10_000


def check_axes(axes: Axes, scenario: Scenario) -> Iterator[Flaw]:
    """Check the axes before they are expanded into cells."""
    for key, values in axes.items():
        first_values: dict[str, LocatedValue] = {}
        for value in values:
            if first_values.setdefault(value.text, value) is not value:
                what = f"`{_as_written(key, value)}` appears twice on its axis."
                yield value.path, what, "Keep one of them."
        at_top = getattr(scenario, key[0]) if len(key) > 1 else scenario.model_fields_set
        if key[-1] in at_top:
            what = f"`{printable(key[-1])}` is set in the matrix and outside it."
            yield ("matrix", *key), what, "Keep one of them."
    yield from _parameter_names(scenario)
    # Before include and exclude.
    if (cells := math.prod(map(len, axes.values()))) > MOST_CELLS:
        what = f"the matrix has {cells:,} cells, more than {MOST_CELLS:,}."
        yield ("matrix",), what, "Shorten axes, or make several scenarios."


def _as_written(key: Key, value: LocatedValue) -> str:
    """A key and its value as they are written in a scenario file."""
    if isinstance(value.value, ExplicitCpus):
        return f"{key[-1]}: {{cpus: {value.value.cpus}}}"
    if isinstance(value.value, ExistingEnvironment):
        kind, _, name = value.text.partition(":")
        return f"{key[-1]}: {{{kind}: {printable(name)}}}"
    return f"{key[-1]}: {printable(value.text)}"


def _parameter_names(scenario: Scenario) -> Iterator[Flaw]:
    matrix = scenario.matrix
    sections: list[tuple[Path, Iterable[str]]] = [(("matrix", "parameters"), matrix.parameters)]
    sections += [
        (("matrix", "include", index, "parameters"), entry.parameters)
        for index, entry in enumerate(matrix.include)
    ]
    for path, names in sections:
        for name in names:
            if name in SETTINGS or name == "scenario":
                what = f"the parameter `{name}` has the name of a setting."
                yield (*path, name), what, "Vary it under another name."


def check_excludes(
    matrix: ExpandedMatrix, scenario: Scenario, invalid_keys: frozenset[str]
) -> Iterator[Flaw]:
    """Check each exclude; `invalid_keys` as for `check_named_cells`."""
    for exclude, written in zip(matrix.excludes, scenario.matrix.exclude, strict=True):
        if not invalid_keys & (
            {*written.written, *written.parameters, *written.env} or {"exclude"}
        ):
            yield from _exclude(exclude, matrix.axes)


def _exclude(exclude: Entry, axes: Axes) -> Iterator[Flaw]:
    is_valid = bool(exclude.values)
    if not exclude.values:
        fix = "Name values of the cells to exclude, or remove it."
        yield exclude.path, "this entry is empty.", fix
    for key, value in exclude.values.items():
        if key not in axes:
            is_valid = False
            what = f"`{printable(key[-1])}` is not an axis of the matrix."
            names = [axis[-1] for axis in axes]
            fix = f"The axes are {join_words(names, 'and')}." if names else "There are no axes."
            yield value.path, what, fix
        elif value.text not in (texts := [axis_value.text for axis_value in axes[key]]):
            is_valid = False
            yield (
                value.path,
                f"`{_as_written(key, value)}` is not a value of its axis.",
                _suggestion(value.text, texts),
            )
    if is_valid and not exclude.matches:
        yield exclude.path, "no cell has all of this.", "Name values that occur together."


def _suggestion(text: str, choices: Sequence[str]) -> str:
    close = closest(text, choices)
    listed = [*choices[:8], "…"] if len(choices) > 8 else choices
    return f"Did you mean `{close}`?" if close else f"There, it is {join_words(listed)}."


def check_includes(
    matrix: ExpandedMatrix, scenario: Scenario, points: tuple[Point, ...]
) -> Iterator[Flaw]:
    """Check each include, and the points that are left in the end."""
    # An exclude that names nothing removes all cells; it is reported on its own.
    if (
        not points
        and scenario.matrix.exclude
        and all(exclude.written for exclude in scenario.matrix.exclude)
    ):
        yield ("matrix", "exclude"), "no cell is left.", "Exclude fewer cells."
    for include in matrix.includes:
        adds_nothing = all(key in matrix.axes for key in include.values)
        if not include.values:
            fix = "Name the settings of a cell, or remove it."
            yield include.path, "this entry is empty.", fix
        elif adds_nothing and include.matches:
            what = "the matrix already contains this."
            yield include.path, what, "Remove it, or name a new value."
    first_points: dict[tuple[tuple[str, str], ...], Point] = {}
    for point in points:
        if first_points.setdefault(point.cell.axes, point) is not point:
            what = "this adds a cell that another entry adds too."
            yield point.path[:3], what, "Remove one of them."


def check_named_cells(
    scenario: Scenario, cells: tuple[Cell, ...], invalid_keys: frozenset[str]
) -> Iterator[Flaw]:
    """Check the cells that the baseline and the claims name.

    Args:
        invalid_keys: Keys that are unknown because of other faults; an entry that names one
            is not checked.
    """
    if not cells:
        return
    if scenario.baseline is not None:
        yield from _named(scenario.baseline, ("baseline",), cells, invalid_keys)
    for index, claim in enumerate(scenario.claims):
        path: Path = ("claims", index)
        flaws = [
            *_named(claim.faster, (*path, "faster"), cells, invalid_keys),
            *_named(claim.than, (*path, "than"), cells, invalid_keys),
        ]
        yield from flaws
        named_keys = {str(part) for side in (claim.faster, claim.than) for part in side.written}
        if not flaws and not named_keys & invalid_keys and not claim_pairs(claim, cells):
            what = "no pair of cells matches `faster` and `than`."
            yield path, what, "Name different values; the cells must agree on every other axis."


def _named(
    written: MatrixEntry, path: Path, cells: tuple[Cell, ...], invalid_keys: frozenset[str]
) -> Iterator[Flaw]:
    values = entry_values(written, path)
    if {part for key in values for part in key} & invalid_keys:
        return
    if not values:
        yield path, "this entry is empty.", "Name values of the cells."
        return
    choices = {key: list(dict.fromkeys(value_of(cell, key) for cell in cells)) for key in values}
    named_cells = matching_cells(written, cells)
    is_valid = True
    for key, value in values.items():
        if value.text not in choices[key]:
            is_valid = False
            what = f"no cell has `{_as_written(key, value)}`."
            yield value.path, what, _suggestion(value.text, choices[key])
    if is_valid and not named_cells:
        yield path, "no cell has all of this.", "Name values that meet in one cell."
