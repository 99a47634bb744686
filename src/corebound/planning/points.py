"""The matrix multiplied out: points that still know where each value was written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from corebound.model.scenario import ExplicitCpus, Matrix, MatrixEntry, Scenario
from corebound.model.topology import cpu_list, parse_cpu_list
from corebound.planning.tree import Path

# What can be varied: `("binding",)`, or `("parameters", "size")`.
Key = tuple[str, ...]

AXES: tuple[str, ...] = tuple(
    name for name in Matrix.model_fields if name not in {"parameters", "include", "exclude"}
)


class Setting(Struct, frozen=True, kw_only=True):
    """A value, how the axes of cells show it, and where in the file it stands."""

    value: Any
    text: str
    path: Path


def at(value: object, path: Path) -> Setting:
    """A value that stands at `path`."""
    return Setting(value=value, text=text(value), path=path)


Point = Mapping[Key, Setting]


def text(value: object) -> str:
    """A value as the axes of cells show it; None, which sets nothing, is `default`."""
    if isinstance(value, ExplicitCpus):
        return f"cpus:{cpu_list(parse_cpu_list(str(value.cpus)))}"
    if value is None:
        return "default"
    return str(value).lower() if isinstance(value, bool) else str(value)


def axis_keys(matrix: Matrix) -> tuple[Key, ...]:
    """What the axes vary, in the order of the file."""
    keys: list[Key] = []
    for name in matrix.written:
        if name == "parameters":
            keys += [(name, parameter) for parameter in matrix.parameters]
        elif name in AXES and getattr(matrix, name) is not None:
            keys.append((name,))
    return tuple(keys)


def axes(matrix: Matrix) -> dict[Key, tuple[Setting, ...]]:
    """The axes in the order of the file, each with its values."""
    return {
        key: _settings(
            matrix.parameters[key[1]] if len(key) > 1 else getattr(matrix, key[0]),
            ("matrix", *key),
        )
        for key in axis_keys(matrix)
    }


def _settings(values: Iterable[object], path: Path) -> tuple[Setting, ...]:
    return tuple(at(value, (*path, index)) for index, value in enumerate(values))


def entry(written: MatrixEntry, path: Path) -> dict[Key, Setting]:
    """What an entry of include, exclude, baseline or a claim names, in its order."""
    found: dict[Key, Setting] = {}
    for name in written.written:
        if name == "parameters":
            for parameter, value in written.parameters.items():
                key = ("parameters", parameter)
                found[key] = at(value, (*path, *key))
        else:
            found[name,] = at(getattr(written, name), (*path, name))
    return found


def count(matrix: Matrix) -> int:
    """How many points the axes alone span, before include and exclude."""
    return math.prod(len(values) for values in axes(matrix).values())


def product(matrix: Matrix) -> list[dict[Key, Setting]]:
    """Every combination of the axes, the last axis varying fastest.

    Without axes there is one, the scenario itself, unless `include` alone lists them.
    """
    spanned = axes(matrix)
    if not spanned and matrix.include:
        return []
    return [
        dict(zip(spanned, values, strict=True)) for values in itertools.product(*spanned.values())
    ]


def agrees(point: Point, wanted: Point) -> bool:
    """Whether a point has every value that an entry names."""
    return all(key in point and point[key].text == setting.text for key, setting in wanted.items())


def points(scenario: Scenario) -> tuple[Point, ...]:
    """The matrix's points, as GitHub Actions makes them of its own.

    First the product of the axes; then out goes what any exclude agrees with;
    then each include in turn is added to every point of the product that it
    does not contradict on an axis, or where there is none stands as a point of
    its own. What one include added, a later one may overwrite.

    Source: GitHub Docs, "Running variations of jobs in a workflow", expanding
    or adding matrix configurations.
    """
    matrix = scenario.matrix
    spanned = axes(matrix)
    out = [entry(one, ("matrix", "exclude", i)) for i, one in enumerate(matrix.exclude)]
    kept = [point for point in product(matrix) if not any(agrees(point, one) for one in out)]
    added: list[Point] = []
    for index, written in enumerate(matrix.include):
        extra = entry(written, ("matrix", "include", index))
        on_axes = {key: setting for key, setting in extra.items() if key in spanned}
        fitting = [point for point in kept if agrees(point, on_axes)]
        for point in fitting:
            point.update({key: extra[key] for key in extra if key not in spanned})
        if not fitting:
            added.append(extra)
    return (*kept, *added)


def setting(point: Point, key: Key, scenario: Scenario) -> Setting:
    """A point's value, else what the scenario says for all; None where neither does."""
    if (own := point.get(key)) is not None:
        return own
    if key[0] == "parameters":
        return at(scenario.parameters.get(key[1]), key)
    return at(getattr(scenario, key[0]), key)


def parameters(point: Point, scenario: Scenario) -> dict[str, Setting]:
    """The workload's parameters at a point, the scenario's own first."""
    names = [*scenario.parameters, *(key[1] for key in point if key[0] == "parameters")]
    return {name: setting(point, ("parameters", name), scenario) for name in names}


def labels(point: Point, scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """What tells a point from the others: every axis, then what only an include gave it."""
    spanned = axis_keys(scenario.matrix)
    keys = (*spanned, *(key for key in point if key not in spanned))
    return tuple((key[-1], setting(point, key, scenario).text) for key in keys)
