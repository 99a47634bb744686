"""Expand a scenario's matrix into cells, and find the cells that its entries name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine.topology import cpu_list, parse_cpu_list
from corebound.scenario.cell import HOST, Binding, Cell, Threads, framework_of
from corebound.scenario.models import Claim, Matrix, MatrixEntry, ProfileName, Scenario
from corebound.scenario.server_workload import ServerWorkload
from corebound.scenario.settings import SETTINGS, ExistingEnvironment, ExplicitCpus
from corebound.scenario.yaml_reader import Path

# Something that can be varied: `("binding",)`, `("parameters", "size")` or `("env", "HOME")`.
Key = tuple[str, ...]

# The keys of a matrix and of its entries that hold values by name.
SECTIONS = ("parameters", "env")
_ENV_AXIS = "env."


class LocatedValue(Struct, frozen=True, kw_only=True):
    """A value, its text on the axes of cells, and its place in the file."""

    value: Any
    text: str
    path: Path


# What a point of the matrix varies or an entry names, in the order of the file.
Values = Mapping[Key, LocatedValue]
Axes = Mapping[Key, tuple[LocatedValue, ...]]


class Entry(Struct, frozen=True, kw_only=True):
    """An entry of `include` or `exclude`, applied.

    Attributes:
        matches: Whether a point has every value that it names; for an `include`, every value
            that it names on an axis.
    """

    path: Path
    values: Values
    matches: bool


class ExpandedMatrix(Struct, frozen=True, kw_only=True):
    """A matrix multiplied out: its axes, its entries, and what each point varies."""

    axes: Axes
    excludes: tuple[Entry, ...]
    includes: tuple[Entry, ...]
    points: tuple[Values, ...]


class Point(Struct, frozen=True, kw_only=True):
    """A point of the matrix with all its values, those of the scenario included.

    Attributes:
        path: The place of the first value that it varies; empty if it varies none.
        settings: Every setting, by name.
        parameters: The workload's parameters by name, the scenario's first.
        env: The environment variables by name, the scenario's first.
        cell: The cell made of them, with a label that shows every axis.
    """

    path: Path
    settings: Mapping[str, LocatedValue]
    parameters: Mapping[str, LocatedValue]
    env: Mapping[str, LocatedValue]
    cell: Cell


# The points under each profile.
Points = Mapping[ProfileName | None, tuple[Point, ...]]


def located(value: object, path: Path) -> LocatedValue:
    """A value with its text and its path."""
    return LocatedValue(value=value, text=axis_text(value), path=path)


def axis_text(value: object) -> str:
    """A value as the axes of cells show it; None, which sets nothing, becomes `default`."""
    if isinstance(value, ExplicitCpus):
        return f"cpus:{cpu_list(parse_cpu_list(str(value.cpus)))}"
    if isinstance(value, ExistingEnvironment):
        return value.name
    if value is None:
        return "default"
    return str(value).lower() if isinstance(value, bool) else str(value)


def axes_of(matrix: Matrix) -> Axes:
    """The axes in file order, each with its values."""
    values: dict[Key, tuple[object, ...]] = {}
    for name in matrix.written:
        if name in SECTIONS:
            values |= {(name, key): own for key, own in getattr(matrix, name).items()}
        elif name in SETTINGS and getattr(matrix, name) is not None:
            values[name,] = getattr(matrix, name)
    return {
        key: tuple(located(value, ("matrix", *key, i)) for i, value in enumerate(values[key]))
        for key in values
    }


def entry_values(entry: MatrixEntry, path: Path) -> Values:
    """What an entry of include, exclude, baseline or a claim names, in file order."""
    values: dict[Key, LocatedValue] = {}
    for name in entry.written:
        if name in SECTIONS:
            for item, value in getattr(entry, name).items():
                values[name, item] = located(value, (*path, name, item))
        else:
            values[name,] = located(getattr(entry, name), (*path, name))
    return values


def _agrees(point: Values, entry: Values) -> bool:
    """Whether a point has every value that an entry names."""
    return all(key in point and point[key].text == value.text for key, value in entry.items())


def expand_matrix(matrix: Matrix) -> ExpandedMatrix:
    """Expand a matrix by the same rules as GitHub Actions.

    Start with the product of the axes, the last axis varying fastest, and remove every point
    that matches an exclude. Then apply each include in turn: it extends every remaining point
    of the product that it does not contradict on an axis. If there is no such point, it
    becomes a point of its own. A later include may overwrite values that an earlier one added.

    Without axes there is one point, the scenario itself, unless `include` lists the points.

    Source: GitHub Docs, "Running variations of jobs in a workflow", expanding
    or adding matrix configurations.
    """
    axes = axes_of(matrix)
    product: list[dict[Key, LocatedValue]] = []
    if axes or not matrix.include:
        product = [
            dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
        ]
    excludes: list[Entry] = []
    remaining = product
    for index, written in enumerate(matrix.exclude):
        path: Path = ("matrix", "exclude", index)
        values = entry_values(written, path)
        matches = any(_agrees(point, values) for point in product)
        excludes.append(Entry(path=path, values=values, matches=matches))
        remaining = [point for point in remaining if not _agrees(point, values)]
    includes: list[Entry] = []
    additions: list[Values] = []
    for index, written in enumerate(matrix.include):
        path = ("matrix", "include", index)
        values = entry_values(written, path)
        on_axes = {key: value for key, value in values.items() if key in axes}
        extended = [point for point in remaining if _agrees(point, on_axes)]
        for point in extended:
            point.update({key: values[key] for key in values if key not in axes})
        if not extended:
            additions.append(values)
        includes.append(Entry(path=path, values=values, matches=bool(extended)))
    return ExpandedMatrix(
        axes=axes,
        excludes=tuple(excludes),
        includes=tuple(includes),
        points=(*remaining, *additions),
    )


def points_of(
    scenario: Scenario, matrix: ExpandedMatrix, profile: ProfileName | None, where: str = ""
) -> tuple[Point, ...]:
    """The points of a scenario under a profile, which changes parameters and leaves points out.

    Args:
        where: Where each cell is defined, as `file:line`.
    """
    change = scenario.profiles.get(profile) if profile else None
    own_values: dict[Key, LocatedValue] = {
        (name,): located(getattr(scenario, name), (name,)) for name in SETTINGS
    }
    sections: list[tuple[Path, str, Mapping[str, object]]] = [
        ((), "parameters", scenario.parameters),
        ((), "env", scenario.env),
    ]
    if change is not None:
        sections.append((("profiles", str(profile)), "parameters", change.parameters))
    own_values |= {
        (section, name): located(value, (*path, section, name))
        for path, section, named in sections
        for name, value in named.items()
    }
    points = tuple(
        _point(varied, own_values, matrix.axes, scenario, where) for varied in matrix.points
    )
    if change is None or not change.only:
        return points
    entries = [entry_values(entry, ()) for entry in change.only]
    return tuple(point for point in points if any(_matches(point.cell, entry) for entry in entries))


def _point(varied: Values, own_values: Values, axes: Axes, scenario: Scenario, where: str) -> Point:
    values = {**own_values, **varied}
    settings = {name: values[name,] for name in SETTINGS}
    parameters, env = (
        {key[1]: value for key, value in values.items() if key[0] == section}
        for section in SECTIONS
    )
    # All axes, then what an include added. A point of its own may lack an axis's parameter.
    labels = tuple(
        (axis_name(key), values[key].text if key in values else axis_text(None))
        for key in (*axes, *(key for key in varied if key not in axes))
    )
    return Point(
        path=next((value.path for value in varied.values()), ()),
        settings=settings,
        parameters=parameters,
        env=env,
        cell=_cell(settings, parameters, env, labels=labels, scenario=scenario, where=where),
    )


def _cell(
    settings: Mapping[str, LocatedValue],
    parameters: Mapping[str, LocatedValue],
    env: Mapping[str, LocatedValue],
    *,
    labels: tuple[tuple[str, str], ...],
    scenario: Scenario,
    where: str,
) -> Cell:
    fields: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {
        "": fields,
        "binding": {},
        "threads": {},
        "env": {name: value.value for name, value in env.items() if value.value is not None},
    }
    for name, setting in SETTINGS.items():
        value = settings[name].value
        part, _, field = setting.field.rpartition(".")
        if setting.stored is None:
            parts[part][field] = value
        elif value is not None:
            parts[part][field] = setting.stored[value]
    binding = parts["binding"]
    nodes, mode = binding["memory_nodes"], binding["mode"]
    binding["memory_nodes"] = () if nodes is None else parse_cpu_list(str(nodes))
    if isinstance(mode, ExplicitCpus):
        binding |= {"mode": "cpus", "cpus": parse_cpu_list(str(mode.cpus))}
    fields.pop("environment")
    environment, commit = environment_name(settings["environment"]), fields["commit"]
    framework = fields.pop("framework") or framework_of(environment) or "none"
    if isinstance(scenario.workload, ServerWorkload):
        framework = scenario.workload.framework
    return Cell(
        scenario=scenario.name,
        axes=labels,
        binding=Binding(**binding),
        threads=Threads(**parts["threads"]),
        framework=framework,
        environment=environment if commit is None else f"{environment}@{commit}",
        parameters=tuple((name, parameter.value) for name, parameter in parameters.items()),
        env=tuple(parts["env"].items()),
        metrics=tuple(source.metric for source in scenario.metrics),
        where=where,
        **fields,
    )


def environment_name(environment: LocatedValue) -> str:
    """The name of the environment that a value stands for."""
    return HOST if environment.value is None else environment.text


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
    matrix = expand_matrix(scenario.matrix)
    return shorten_labels([point.cell for point in points_of(scenario, matrix, profile, where)])


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


def value_of(cell: Cell, key: Key) -> str:
    """A cell's value for any key that can be varied, as its axes show it."""
    if key[0] in SECTIONS:
        return axis_text(dict(getattr(cell, key[0])).get(key[1]))
    return axis_text(SETTINGS[key[0]].value_in(cell))


def axis_name(key: Key) -> str:
    """The name of a key on the axes of cells.

    >>> axis_name(("binding",)), axis_name(("parameters", "size")), axis_name(("env", "HOME"))
    ('binding', 'size', 'env.HOME')
    """
    return f"{_ENV_AXIS}{key[1]}" if key[0] == "env" else key[-1]


def key_of(axis: str) -> Key:
    """The key of an axis by its name; `load` rejects parameters named like a setting."""
    if axis in SETTINGS:
        return (axis,)
    if axis.startswith(_ENV_AXIS):
        return ("env", axis.removeprefix(_ENV_AXIS))
    return ("parameters", axis)


def _matches(cell: Cell, entry: Values) -> bool:
    """Whether a cell has every value that an entry names."""
    return all(value_of(cell, key) == value.text for key, value in entry.items())


def matching_cells(written: MatrixEntry, cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that have every value that an entry names."""
    entry = entry_values(written, ())
    return tuple(cell for cell in cells if _matches(cell, entry))


def baselines_of(
    cells: Iterable[Cell], available: Iterable[Cell], scenario: Scenario
) -> tuple[Cell | None, ...]:
    """The baseline of each cell, in the order of `cells`.

    A cell's baseline has the values that the scenario's `baseline` names, and equals the
    cell on every other axis. Without a `baseline` it is the first cell. A baseline is its
    own baseline.

    Args:
        available: The scenario's cells that are available for comparison.

    Returns:
        One baseline for each of `cells`; None if there is no such cell.
    """
    candidates = tuple(available)
    if scenario.baseline is None:
        return tuple(next(iter(candidates), None) for _ in cells)
    shared = _axes_of(candidates) - entry_values(scenario.baseline, ()).keys()
    baseline_by_values: dict[tuple[str, ...], Cell] = {}
    for baseline in matching_cells(scenario.baseline, candidates):
        baseline_by_values.setdefault(_values(baseline, shared), baseline)
    return tuple(baseline_by_values.get(_values(cell, shared)) for cell in cells)


def baseline_of(cell: Cell, available: Iterable[Cell], scenario: Scenario) -> Cell | None:
    """The baseline of one cell, as in `baselines_of`."""
    return baselines_of((cell,), available, scenario)[0]


def claim_pairs(claim: Claim, cells: Iterable[Cell]) -> tuple[tuple[Cell, Cell], ...]:
    """Each cell that is faster according to a claim, with the slower cell.

    Two cells make a pair if they are equal on every axis that neither side names.
    """
    candidates = tuple(cells)
    named_keys = {*entry_values(claim.faster, ()), *entry_values(claim.than, ())}
    shared = _axes_of(candidates) - named_keys
    slower: dict[tuple[str, ...], list[Cell]] = {}
    for slower_cell in matching_cells(claim.than, candidates):
        slower.setdefault(_values(slower_cell, shared), []).append(slower_cell)
    return tuple(
        (faster, slower_cell)
        for faster in matching_cells(claim.faster, candidates)
        for slower_cell in slower.get(_values(faster, shared), ())
        if faster.key != slower_cell.key
    )


def _axes_of(cells: Iterable[Cell]) -> set[Key]:
    return {key_of(axis) for cell in cells for axis, _ in cell.axes}


def _values(cell: Cell, keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(value_of(cell, key) for key in keys)
