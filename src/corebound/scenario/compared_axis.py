"""Turn a scenario into a comparison by adding an axis of commits or of another setting."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from corebound.errors import Fault, ScenarioFaults
from corebound.scenario.cell import Cell, Scalar, is_project
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import Key, expand
from corebound.scenario.models import Scenario

_LONGEST_NAME = 80


def with_compared_axis(
    scenario: Scenario,
    axis: Key,
    values: Sequence[Scalar],
    path: str,
    *,
    suffix: str,
    launches: tuple[int, int] | None = None,
    margin: float | None = None,
) -> Scenario:
    """Add a last axis to a scenario; its first value is the baseline of every cell.

    Args:
        scenario: A valid scenario. An axis of the same name is replaced.
        axis: `("threads",)`, or `("parameters", "size")`.
        values: The values of that axis; the first is the baseline.
        path: Where the scenario was read from, for faults.
        suffix: Appended to the scenario's name, so that a comparison never replaces the
            page of the nightly runs.
        launches: Minimum and maximum launches of each cell; replaces the scenario's values.
        margin: Replaces the scenario's margin.

    Raises:
        ScenarioFaults: an `include` or `exclude` names that axis, or a value is invalid for
            it.
    """
    document = scenario.document()
    matrix = document.get("matrix", {})
    entries = (*matrix.get("include", ()), *matrix.get("exclude", ()))
    if any(_names(entry, axis) for entry in entries):
        what = f"an `include` or `exclude` names `{axis[-1]}`, which is to be compared."
        fix = "Compare another setting, or measure this one with `corebound run`."
        raise ScenarioFaults((Fault(file=path, line=None, what=what, fix=fix),))
    document["name"] = document["name"][: _LONGEST_NAME - len(suffix)] + suffix
    document["title"] = f"{document['title']}: by {axis[-1]}"
    document["matrix"] = _matrix(matrix, axis, values)
    document["baseline"] = _with({}, axis, values[0])
    # Claims describe the scenario as published; they are judged only where it runs unchanged.
    document.pop("claims", None)
    if margin is not None:
        document = with_margin(document, margin)
    if axis != ("commit",):
        # Two values that are the same on this host are compared because the user asks for it.
        document["measure"] = {**document.get("measure", {}), "duplicates": "each"}
        for profile in document.get("profiles", {}).values():
            profile.pop("duplicates", None)
    if launches is not None:
        written = document.get("measure", {}).get("launches", {})
        changed = {**written, "min": launches[0], "max": launches[1]}
        document["measure"] = {**document.get("measure", {}), "launches": changed}
    return load_document(document, path)


def with_margin(document: dict[str, Any], margin: float) -> dict[str, Any]:
    """A scenario's document with another margin, which takes precedence over the profiles'."""
    profiles = document.get("profiles", {})
    changed = {**document, "measure": {**document.get("measure", {}), "margin": margin}}
    if profiles:
        changed["profiles"] = {
            name: {key: value for key, value in profile.items() if key != "margin"}
            for name, profile in profiles.items()
        }
    return changed


def _names(written: dict[str, Any], axis: Key) -> bool:
    if len(axis) == 1:
        return axis[0] in written
    return axis[1] in (written.get(axis[0]) or {})


def _with(written: dict[str, Any], axis: Key, value: object) -> dict[str, Any]:
    """An entry or the axes, with one value added."""
    if len(axis) == 1:
        return {**written, axis[0]: value}
    return {**written, axis[0]: {**(written.get(axis[0]) or {}), axis[1]: value}}


def _without(written: dict[str, Any], axis: Key) -> dict[str, Any]:
    if len(axis) == 1:
        return {key: value for key, value in written.items() if key != axis[0]}
    inner = {key: value for key, value in (written.get(axis[0]) or {}).items() if key != axis[1]}
    return {**{key: value for key, value in written.items() if key != axis[0]}, axis[0]: inner}


def _matrix(matrix: dict[str, Any], axis: Key, values: Sequence[Scalar]) -> dict[str, Any]:
    """The matrix multiplied by the values.

    Each `include` is repeated for every value; otherwise it would add cells without one.
    """
    include = [_with(entry, axis, value) for value in values for entry in matrix.get("include", ())]
    axes = {key: value for key, value in matrix.items() if key not in {"include", "exclude"}}
    includes_and_excludes = {"exclude": matrix["exclude"]} if matrix.get("exclude") else {}
    if include:
        includes_and_excludes["include"] = include
    other_axes = _without(axes, axis)
    varied_axes = {key: value for key, value in other_axes.items() if value not in (None, {})}
    # If includes alone define the cells, an axis would add further cells.
    if include and not varied_axes:
        return includes_and_excludes
    return {**_with(varied_axes, axis, list(values)), **includes_and_excludes}


# Separate names, so that a comparison never replaces the page of the nightly runs.
COMMITS_SUFFIX, SIDES_SUFFIX = ".commits", ".sides"


def compared_axis(document: dict[str, Any]) -> Key | None:
    """The axis that was added to a scenario to compare its values; None for any other scenario."""
    if not str(document.get("name")).endswith((COMMITS_SUFFIX, SIDES_SUFFIX)):
        return None
    ((key, value),) = document["baseline"].items()
    return (key, *value) if isinstance(value, dict) else (key,)


def key_without_axis(cell: Cell, axis: Key) -> str:
    """A cell's key without an axis: that of the cell in the scenario's file."""
    return replace(cell, axes=tuple(pair for pair in cell.axes if pair[0] != axis[-1])).key


def runs_in_project(scenario: Scenario) -> bool:
    """Whether every cell runs in the environment of the project under test."""
    cells = expand(scenario, "")
    return all(is_project(cell.environment) for cell in cells)


def without_commits(document: dict[str, Any]) -> dict[str, Any]:
    """A compared scenario without the commits, so that it is the same for every pair of them."""
    matrix = _without(document.get("matrix", {}), ("commit",))
    if "include" in matrix:
        entries = [_without(entry, ("commit",)) for entry in matrix["include"]]
        matrix["include"] = [entry for at, entry in enumerate(entries) if entry not in entries[:at]]
    return {**document, "matrix": matrix, "baseline": _without(document["baseline"], ("commit",))}


def with_compared_commits(
    scenario: Scenario,
    commits: Sequence[str],
    path: str,
    *,
    launches: tuple[int, int] | None = None,
    margin: float | None = None,
) -> Scenario:
    """Add a last axis `commit` to a scenario; the first commit is the baseline of every cell.

    Args:
        scenario: A scenario for which `runs_in_project` is true.
        commits: Commit hashes; the first is the baseline.
        path: Where the scenario was read from, for faults.
        launches: Minimum and maximum launches of each cell; replaces the scenario's values.
        margin: Replaces the scenario's margin.

    Raises:
        ScenarioFaults: the scenario already names commits.
    """
    if "commit" in scenario.document() or any(cell.commit for cell in expand(scenario, "")):
        what, fix = "the scenario already names commits.", "Measure it with `corebound run`."
        raise ScenarioFaults((Fault(file=path, line=None, what=what, fix=fix),))
    return with_compared_axis(
        scenario,
        ("commit",),
        commits,
        path,
        suffix=COMMITS_SUFFIX,
        launches=launches,
        margin=margin,
    )
