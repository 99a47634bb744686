"""Expand a scenario's matrix into cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine.topology import cpu_list, parse_cpu_list
from corebound.scenario.cell import HOST, Binding, Cell, NamedMode, Threads, framework_of
from corebound.scenario.models import (
    Matrix,
    MatrixEntry,
    ProfileName,
    Scenario,
)
from corebound.scenario.settings import SETTINGS, ExplicitCpus
from corebound.scenario.yaml_reader import Path

# Something that can be varied: `("binding",)`, or `("parameters", "size")`.
Key = tuple[str, ...]


class LocatedValue(Struct, frozen=True, kw_only=True):
    """A value, its text on the axes of cells, and its place in the file."""

    value: Any
    text: str
    path: Path


def located(value: object, path: Path) -> LocatedValue:
    """A value with its text and its path."""
    return LocatedValue(value=value, text=axis_text(value), path=path)


MatrixPoint = Mapping[Key, LocatedValue]


def axis_text(value: object) -> str:
    """A value as the axes of cells show it; None, which sets nothing, becomes `default`."""
    if isinstance(value, ExplicitCpus):
        return f"cpus:{cpu_list(parse_cpu_list(str(value.cpus)))}"
    if value is None:
        return "default"
    return str(value).lower() if isinstance(value, bool) else str(value)


def axis_keys(matrix: Matrix) -> tuple[Key, ...]:
    """The keys of the axes, in file order."""
    keys: list[Key] = []
    for name in matrix.written:
        if name == "parameters":
            keys += [(name, parameter) for parameter in matrix.parameters]
        elif name in SETTINGS and getattr(matrix, name) is not None:
            keys.append((name,))
    return tuple(keys)


def axes(matrix: Matrix) -> dict[Key, tuple[LocatedValue, ...]]:
    """The axes in file order, each with its values."""
    return {
        key: _located_values(
            matrix.parameters[key[1]] if len(key) > 1 else getattr(matrix, key[0]),
            ("matrix", *key),
        )
        for key in axis_keys(matrix)
    }


def _located_values(values: Iterable[object], path: Path) -> tuple[LocatedValue, ...]:
    return tuple(located(value, (*path, index)) for index, value in enumerate(values))


def entry_values(entry: MatrixEntry, path: Path) -> dict[Key, LocatedValue]:
    """The settings that an entry of include, exclude, baseline or a claim names, in order."""
    values: dict[Key, LocatedValue] = {}
    for name in entry.written:
        if name == "parameters":
            for parameter, value in entry.parameters.items():
                key = ("parameters", parameter)
                values[key] = located(value, (*path, *key))
        else:
            values[name,] = located(getattr(entry, name), (*path, name))
    return values


def count_points(matrix: Matrix) -> int:
    """Number of points that the axes span, before include and exclude."""
    return math.prod(len(values) for values in axes(matrix).values())


def product(matrix: Matrix) -> list[dict[Key, LocatedValue]]:
    """Every combination of the axes, the last axis varying fastest.

    Without axes there is one point, the scenario itself, unless `include` lists the points.
    """
    spanned = axes(matrix)
    if not spanned and matrix.include:
        return []
    return [
        dict(zip(spanned, values, strict=True)) for values in itertools.product(*spanned.values())
    ]


def agrees(point: MatrixPoint, entry: MatrixPoint) -> bool:
    """Whether a point has every value that an entry names."""
    return all(key in point and point[key].text == value.text for key, value in entry.items())


def matrix_points(scenario: Scenario) -> tuple[MatrixPoint, ...]:
    """The matrix's points, by the same rules as GitHub Actions.

    Start with the product of the axes and remove every point that matches an exclude.
    Then apply each include in turn: it extends every remaining point of the product that
    it does not contradict on an axis. If there is no such point, it becomes a point of its
    own. A later include may overwrite values that an earlier one added.

    Source: GitHub Docs, "Running variations of jobs in a workflow", expanding
    or adding matrix configurations.
    """
    matrix = scenario.matrix
    spanned = axes(matrix)
    excluded = [
        entry_values(entry, ("matrix", "exclude", i)) for i, entry in enumerate(matrix.exclude)
    ]
    remaining = [
        point for point in product(matrix) if not any(agrees(point, entry) for entry in excluded)
    ]
    additions: list[MatrixPoint] = []
    for index, entry in enumerate(matrix.include):
        added_values = entry_values(entry, ("matrix", "include", index))
        axis_values = {key: value for key, value in added_values.items() if key in spanned}
        extended = [point for point in remaining if agrees(point, axis_values)]
        for point in extended:
            point.update({key: added_values[key] for key in added_values if key not in spanned})
        if not extended:
            additions.append(added_values)
    return (*remaining, *additions)


def value_at(point: MatrixPoint, key: Key, scenario: Scenario) -> LocatedValue:
    """A point's value, else the scenario's; the value is None if neither sets it."""
    if (value := point.get(key)) is not None:
        return value
    if key[0] == "parameters":
        return located(scenario.parameters.get(key[1]), key)
    return located(getattr(scenario, key[0]), key)


def point_parameters(point: MatrixPoint, scenario: Scenario) -> dict[str, LocatedValue]:
    """The workload's parameters at a point, the scenario's first."""
    names = [*scenario.parameters, *(key[1] for key in point if key[0] == "parameters")]
    return {name: value_at(point, ("parameters", name), scenario) for name in names}


def axis_labels(point: MatrixPoint, scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """The axes and values that identify a point: all axes, then what an include added."""
    spanned = axis_keys(scenario.matrix)
    keys = (*spanned, *(key for key in point if key not in spanned))
    return tuple((key[-1], value_at(point, key, scenario).text) for key in keys)


def value_of(cell: Cell, key: Key) -> str:
    """A cell's value for any key that can be varied, as its axes show it."""
    if key[0] == "parameters":
        return axis_text(dict(cell.parameters).get(key[1]))
    return axis_text(SETTINGS[key[0]].value_in(cell))


def key_of(axis: str) -> Key:
    """The key of an axis by its name; `load` rejects parameters named like a setting."""
    return (axis,) if axis in SETTINGS else ("parameters", axis)


def matching_cells(written: MatrixEntry, cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that have every value that an entry names."""
    values = {key: value.text for key, value in entry_values(written, ()).items()}
    return tuple(
        cell for cell in cells if all(value_of(cell, key) == values[key] for key in values)
    )


def expand(scenario: Scenario, path: str, profile: ProfileName | None = None) -> tuple[Cell, ...]:
    """Expand a scenario's matrix into cells.

    Args:
        scenario: A valid scenario, as `load` or `load_document` returns it.
        path: Where it was read from; together with the line of its matrix, if known, it
            becomes each cell's `where`.
        profile: The profile that changes parameters and leaves cells out, if any.

    Returns:
        The cells in file order, with the last axis varying fastest, then the cells that
        `include` adds.
    """
    where = path if scenario.line is None else f"{path}:{scenario.line}"
    changed, selected = apply_profile(scenario, profile)
    return shorten_labels([_cell(point, changed, where) for point in selected])


def apply_profile(
    scenario: Scenario, profile: ProfileName | None
) -> tuple[Scenario, tuple[MatrixPoint, ...]]:
    """The scenario with a profile's parameters, and the points that the profile keeps."""
    change = scenario.profiles.get(profile) if profile else None
    if change is None:
        return scenario, matrix_points(scenario)
    parameters = {**scenario.parameters, **change.parameters}
    changed = scenario.model_copy(update={"parameters": parameters})
    all_points = matrix_points(changed)
    if not change.only:
        return changed, all_points
    cells = tuple(_cell(point, changed, "") for point in all_points)
    selected = {cell for entry in change.only for cell in matching_cells(entry, cells)}
    remaining = (point for point, cell in zip(all_points, cells, strict=True) if cell in selected)
    return changed, tuple(remaining)


def profile_parameters(
    point: MatrixPoint, changed: Scenario, scenario: Scenario, profile: ProfileName | None
) -> dict[str, LocatedValue]:
    """The parameters of a point under a profile, each with its place in the file.

    Args:
        point: A point that the profile keeps.
        changed: The scenario with the profile's parameters.
        scenario: The scenario as written.
        profile: The profile, or None.
    """
    changed_parameters: Mapping[str, Any] = {}
    if profile is not None and (change := scenario.profiles.get(profile)) is not None:
        changed_parameters = change.parameters
    return {
        name: LocatedValue(
            value=parameter.value, text=parameter.text, path=("profiles", profile, *parameter.path)
        )
        if profile is not None
        and name in changed_parameters
        and parameter.path == ("parameters", name)
        else parameter
        for name, parameter in point_parameters(point, changed).items()
    }


def shorten_labels(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells with labels that leave out the axes on which all cells have the same value.

    The label of a single cell shows every axis.
    """
    axes_of_cells = [dict(cell.axes) for cell in cells]
    axes = dict.fromkeys(axis for values_of_cell in axes_of_cells for axis in values_of_cell)
    hidden = tuple(
        axis
        for axis in axes
        if len({values_of_cell.get(axis) for values_of_cell in axes_of_cells}) == 1
    )
    return tuple(replace(cell, hidden_axes=hidden if len(cells) > 1 else ()) for cell in cells)


def _cell(point: MatrixPoint, scenario: Scenario, where: str) -> Cell:
    fields: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {
        "": fields,
        "binding": {},
        "threads": {},
        "env": dict(scenario.env),
    }
    for name, setting in SETTINGS.items():
        value = value_at(point, (name,), scenario).value
        part, _, field = setting.field.rpartition(".")
        if setting.stored is None:
            parts[part][field] = value
        elif value is not None:
            parts[part][field] = setting.stored[value]
    environment, commit = fields.pop("environment") or HOST, fields["commit"]
    framework = fields.pop("framework") or framework_of(environment) or "none"
    return Cell(
        scenario=scenario.name,
        axes=axis_labels(point, scenario),
        binding=_resolved_binding(**parts["binding"]),
        threads=Threads(**parts["threads"]),
        framework=framework,
        environment=environment if commit is None else f"{environment}@{commit}",
        parameters=tuple(
            (name, parameter.value) for name, parameter in point_parameters(point, scenario).items()
        ),
        env=tuple(parts["env"].items()),
        where=where,
        **fields,
    )


def _resolved_binding(mode: NamedMode | ExplicitCpus, **options: Any) -> Binding:
    if isinstance(mode, ExplicitCpus):
        return Binding(mode="cpus", cpus=parse_cpu_list(str(mode.cpus)), **options)
    return Binding(mode=mode, **options)
