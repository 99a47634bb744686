"""Expand a scenario's matrix into cells, and select cells."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.machine.topology import cpu_list, parse_cpu_list
from corebound.scenario.cell import Binding, Cell, Framework, Threads
from corebound.scenario.models import (
    Claim,
    ExplicitCpus,
    Matrix,
    MatrixEntry,
    ProfileName,
    Scenario,
)
from corebound.scenario.yaml_reader import Path

# Something that can be varied: `("binding",)`, or `("parameters", "size")`.
Key = tuple[str, ...]

AXES: tuple[str, ...] = tuple(
    name for name in Matrix.model_fields if name not in {"parameters", "include", "exclude"}
)


class Setting(Struct, frozen=True, kw_only=True):
    """A value, its text on the axes of cells, and its place in the file."""

    value: Any
    text: str
    path: Path


def at(value: object, path: Path) -> Setting:
    """The setting for a value at `path`."""
    return Setting(value=value, text=text(value), path=path)


MatrixPoint = Mapping[Key, Setting]


def text(value: object) -> str:
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
        elif name in AXES and getattr(matrix, name) is not None:
            keys.append((name,))
    return tuple(keys)


def axes(matrix: Matrix) -> dict[Key, tuple[Setting, ...]]:
    """The axes in file order, each with its values."""
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
    """The settings that an entry of include, exclude, baseline or a claim names, in order."""
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
    """Number of points that the axes span, before include and exclude."""
    return math.prod(len(values) for values in axes(matrix).values())


def product(matrix: Matrix) -> list[dict[Key, Setting]]:
    """Every combination of the axes, the last axis varying fastest.

    Without axes there is one point, the scenario itself, unless `include` lists the points.
    """
    spanned = axes(matrix)
    if not spanned and matrix.include:
        return []
    return [
        dict(zip(spanned, values, strict=True)) for values in itertools.product(*spanned.values())
    ]


def agrees(point: MatrixPoint, wanted: MatrixPoint) -> bool:
    """Whether a point has every value that an entry names."""
    return all(key in point and point[key].text == setting.text for key, setting in wanted.items())


def points(scenario: Scenario) -> tuple[MatrixPoint, ...]:
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
    out = [entry(one, ("matrix", "exclude", i)) for i, one in enumerate(matrix.exclude)]
    kept = [point for point in product(matrix) if not any(agrees(point, one) for one in out)]
    added: list[MatrixPoint] = []
    for index, written in enumerate(matrix.include):
        extra = entry(written, ("matrix", "include", index))
        on_axes = {key: setting for key, setting in extra.items() if key in spanned}
        fitting = [point for point in kept if agrees(point, on_axes)]
        for point in fitting:
            point.update({key: extra[key] for key in extra if key not in spanned})
        if not fitting:
            added.append(extra)
    return (*kept, *added)


def setting(point: MatrixPoint, key: Key, scenario: Scenario) -> Setting:
    """A point's value, else the scenario's; the value is None if neither sets it."""
    if (own := point.get(key)) is not None:
        return own
    if key[0] == "parameters":
        return at(scenario.parameters.get(key[1]), key)
    return at(getattr(scenario, key[0]), key)


def parameters(point: MatrixPoint, scenario: Scenario) -> dict[str, Setting]:
    """The workload's parameters at a point, the scenario's first."""
    names = [*scenario.parameters, *(key[1] for key in point if key[0] == "parameters")]
    return {name: setting(point, ("parameters", name), scenario) for name in names}


def labels(point: MatrixPoint, scenario: Scenario) -> tuple[tuple[str, str], ...]:
    """The axes and values that identify a point: all axes, then what an include added."""
    spanned = axis_keys(scenario.matrix)
    keys = (*spanned, *(key for key in point if key not in spanned))
    return tuple((key[-1], setting(point, key, scenario).text) for key in keys)


# Library names in Debian and most other distributions; the dynamic loader finds them.
ALLOCATORS = {"tcmalloc": "libtcmalloc.so.4", "jemalloc": "libjemalloc.so.2"}


def _binding(cell: Cell) -> str:
    binding = cell.binding
    return f"cpus:{cpu_list(binding.cpus)}" if binding.mode == "cpus" else binding.mode


def _wait_policy(cell: Cell) -> str | None:
    policy = dict(cell.env).get("OMP_WAIT_POLICY")
    return policy and policy.lower()


def _allocator(cell: Cell) -> str | None:
    preloaded = dict(cell.env).get("LD_PRELOAD")
    return next((name for name, library in ALLOCATORS.items() if library == preloaded), None)


_VALUES: dict[str, Callable[[Cell], object]] = {
    "binding": _binding,
    "smt": lambda cell: cell.binding.smt,
    "avoid_cpu0": lambda cell: cell.binding.avoid_cpu0,
    "core_kind": lambda cell: cell.binding.core_kind,
    "memory": lambda cell: cell.binding.memory,
    "backend": lambda cell: cell.binding.backend,
    "bind": lambda cell: cell.binding.moment,
    "threads": lambda cell: cell.threads.rule,
    "omp": lambda cell: cell.threads.omp,
    "mkl": lambda cell: cell.threads.mkl,
    "intra_op": lambda cell: cell.threads.intra_op,
    "inter_op": lambda cell: cell.threads.inter_op,
    "wait_policy": _wait_policy,
    "allocator": _allocator,
    "workers": lambda cell: cell.workers,
    "gpus": lambda cell: cell.gpus,
    "framework": lambda cell: cell.framework,
    "environment": lambda cell: cell.environment.partition("@")[0],
    "commit": lambda cell: cell.commit,
}


def value_of(cell: Cell, key: Key) -> str:
    """A cell's value for any key that can be varied, as its axes show it."""
    if key[0] == "parameters":
        return text(dict(cell.parameters).get(key[1]))
    return text(_VALUES[key[0]](cell))


def key_of(axis: str) -> Key:
    """The key of an axis by its name; `load` rejects parameters named like a setting."""
    return (axis,) if axis in AXES else ("parameters", axis)


def matching(wanted: MatrixEntry, cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that have every value that an entry names."""
    named = {key: found.text for key, found in entry(wanted, ()).items()}
    return tuple(cell for cell in cells if all(value_of(cell, key) == named[key] for key in named))


HOST = "host"
# The project under test, as asv.conf.json builds it.
PROJECT = "project"
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)


def is_project(environment: str) -> bool:
    """Whether an environment is one of the project under test, at any commit.

    >>> is_project("project"), is_project("project@v1.2"), is_project("projector")
    (True, True, False)
    """
    return environment.partition("@")[0] == PROJECT


def framework_of(environment: str) -> Framework | None:
    """The framework that an environment's first word names; None if it names none.

    >>> framework_of("pytorch-2.12"), framework_of("host"), framework_of("mine")
    ('pytorch', 'none', None)
    """
    if environment in {HOST, PROJECT}:
        return "none"
    word = environment.partition("-")[0]
    return next((known for known in FRAMEWORKS if known == word != "none"), None)


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
    changed, kept = under(scenario, profile)
    return shorten_labels([_cell(point, changed, where) for point in kept])


def under(
    scenario: Scenario, profile: ProfileName | None
) -> tuple[Scenario, tuple[MatrixPoint, ...]]:
    """The scenario with a profile's parameters, and the points that the profile keeps."""
    change = scenario.profiles.get(profile) if profile else None
    if change is None:
        return scenario, points(scenario)
    given = {**scenario.parameters, **change.parameters}
    changed = scenario.model_copy(update={"parameters": given})
    every = points(changed)
    if not change.only:
        return changed, every
    cells = tuple(_cell(point, changed, "") for point in every)
    wanted = {cell for one in change.only for cell in matching(one, cells)}
    kept = (point for point, cell in zip(every, cells, strict=True) if cell in wanted)
    return changed, tuple(kept)


def given(
    point: MatrixPoint, changed: Scenario, scenario: Scenario, profile: ProfileName | None
) -> dict[str, Setting]:
    """The parameters of a point under a profile, each with its place in the file.

    Args:
        point: A point that the profile keeps.
        changed: The scenario with the profile's parameters.
        scenario: The scenario as written.
        profile: The profile, or None.
    """
    own: Mapping[str, Any] = {}
    if profile is not None and (change := scenario.profiles.get(profile)) is not None:
        own = change.parameters
    return {
        name: Setting(value=one.value, text=one.text, path=("profiles", profile, *one.path))
        if profile is not None and name in own and one.path == ("parameters", name)
        else one
        for name, one in parameters(point, changed).items()
    }


def shorten_labels(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells with labels that leave out the axes on which all cells have the same value.

    The label of a single cell shows every axis.
    """
    values = [dict(cell.axes) for cell in cells]
    axes = dict.fromkeys(axis for one in values for axis in one)
    unsaid = tuple(axis for axis in axes if len({one.get(axis) for one in values}) == 1)
    return tuple(replace(cell, unsaid=unsaid if len(cells) > 1 else ()) for cell in cells)


def _cell(point: MatrixPoint, scenario: Scenario, where: str) -> Cell:
    values = {name: setting(point, (name,), scenario).value for name in AXES}
    environment, commit = values["environment"] or HOST, values["commit"]
    return Cell(
        scenario=scenario.name,
        axes=labels(point, scenario),
        binding=_resolved_binding(values),
        threads=Threads(
            rule=values["threads"],
            omp=values["omp"],
            mkl=values["mkl"],
            intra_op=values["intra_op"],
            inter_op=values["inter_op"],
        ),
        workers=values["workers"],
        gpus=values["gpus"],
        framework=values["framework"] or framework_of(environment) or "none",
        environment=environment if commit is None else f"{environment}@{commit}",
        parameters=tuple(
            (name, found.value) for name, found in parameters(point, scenario).items()
        ),
        env=_env(scenario, values),
        where=where,
        commit=commit,
    )


def _resolved_binding(values: dict[str, Any]) -> Binding:
    wanted = values["binding"]
    explicit = isinstance(wanted, ExplicitCpus)
    return Binding(
        mode="cpus" if explicit else wanted,
        cpus=parse_cpu_list(str(wanted.cpus)) if explicit else (),
        smt=values["smt"],
        avoid_cpu0=values["avoid_cpu0"],
        core_kind=values["core_kind"],
        memory=values["memory"],
        backend=values["backend"],
        moment=values["bind"],
    )


def _env(scenario: Scenario, values: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    env = dict(scenario.env)
    if values["wait_policy"] is not None:
        env["OMP_WAIT_POLICY"] = values["wait_policy"].upper()
    if values["allocator"] is not None:
        env["LD_PRELOAD"] = ALLOCATORS[values["allocator"]]
    return tuple(env.items())


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
