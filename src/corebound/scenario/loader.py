"""Load a scenario file, or report every fault in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from corebound.errors import Fault, ScenarioFaults
from corebound.scenario import checks, function_checks
from corebound.scenario.function_checks import ModuleFinder
from corebound.scenario.matrix import expand, matrix_points
from corebound.scenario.models import Scenario
from corebound.scenario.validation import ValidatedTree, validate
from corebound.scenario.yaml_reader import Flaw, as_tree, read_yaml


def load(data: bytes, file: str, find: ModuleFinder | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        data: The file's bytes; any content is accepted.
        file: The file's name, for faults.
        find: Finds the module of a user-defined function; None skips that check.

    Raises:
        ScenarioFaults: every fault in syntax, keys, values and their combinations, each with
            its line.
    """
    root, flaws = read_yaml(data, file)
    if root is None:
        raise ScenarioFaults(flaws)
    validated = validate(root)
    faults = [*flaws, *_shape_faults(validated, file)]
    if validated.scenario is not None:
        faults += [
            Fault(file=file, line=validated.root.nearest(path).line, what=what, fix=fix)
            for path, what, fix in _check_meaning(validated.scenario, validated, find)
        ]
    if faults or validated.scenario is None:
        raise ScenarioFaults(_sorted(faults))
    return validated.scenario


def load_document(document: dict[str, Any], path: str) -> Scenario:
    """Read a scenario from a record, in the form that `Scenario.document()` returns.

    Only its shape is validated: what it names was valid when it was recorded.

    Raises:
        ScenarioFaults: this version cannot read it; the faults have no lines.
    """
    validated = validate(as_tree(document))
    if validated.problems or validated.scenario is None:
        raise ScenarioFaults(tuple(_shape_faults(validated, path)))
    return validated.scenario


def _shape_faults(validated: ValidatedTree, file: str) -> Iterator[Fault]:
    for problem in validated.problems:
        yield Fault(file=file, line=problem.line, what=problem.what, fix=problem.fix)


def _sorted(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults by line, without duplicates: many cells may report the same place."""
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))


def _check_meaning(
    scenario: Scenario, validated: ValidatedTree, find: ModuleFinder | None
) -> Iterator[Flaw]:
    """Check the meaning of the valid part of a scenario."""
    invalid_keys = frozenset(
        part for path in validated.removed for part in path if isinstance(part, str)
    )
    yield from checks.check_scenario(scenario, invalid_keys)
    axis_flaws = tuple(checks.check_axes(scenario))
    yield from axis_flaws
    if any(path == ("matrix",) for path, _, _ in axis_flaws):
        return
    points = matrix_points(scenario)
    for point in points:
        yield from checks.check_point(point, scenario, invalid_keys)
    yield from checks.check_excludes(scenario, invalid_keys)
    if not axis_flaws and not any(path[:1] == ("matrix",) for path in validated.removed):
        yield from checks.check_includes(scenario, points)
    # The baseline may name a cell that an invalid include would have added.
    if not any(
        path == ("matrix",) or path[:2] == ("matrix", "include") for path in validated.removed
    ):
        cells = expand(scenario, "")
        yield from checks.check_named_cells(scenario, cells, invalid_keys)
        yield from checks.check_profiles(scenario, cells)
        yield from checks.check_traffic(scenario, invalid_keys)
        if find is not None:
            yield from function_checks.check_function(scenario, find, invalid_keys)
