"""Load a scenario file, or report every fault in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from corebound.errors import Fault, ScenarioFaults
from corebound.scenario import checks, function_checks, matrix_checks
from corebound.scenario.cell import framework_of
from corebound.scenario.files import EnvironmentFinder, FileFinder
from corebound.scenario.function_checks import ModuleFinder, guess_framework
from corebound.scenario.matrix import (
    axes_of,
    environment_name,
    expand_matrix,
    located,
    points_of,
)
from corebound.scenario.models import PROFILES, Scenario, measure_for
from corebound.scenario.validation import SCENARIO, FileFormat, Model, ValidatedTree, validate
from corebound.scenario.yaml_reader import Flaw, Path, as_tree, read_yaml


def load(
    data: bytes,
    file: str,
    find: ModuleFinder | None = None,
    find_file: FileFinder | None = None,
    find_environment: EnvironmentFinder = lambda _name: None,
) -> Scenario:
    """Read a scenario file.

    Args:
        data: The file's bytes; any content is accepted.
        find: Finds the module of a user-defined function; None skips that check.
        find_file: Whether the files and programs that the scenario names exist; likewise.
        find_environment: Finds an environment whose framework is not named.

    Raises:
        ScenarioFaults: every fault in syntax, keys, values and their combinations, each with
            its line.
    """
    # Each search starts an interpreter.
    find = None if find is None else cache(find)

    def check(scenario: Scenario, removed: tuple[Path, ...]) -> Iterator[Flaw]:
        yield from _check_meaning(
            _with_framework(scenario, find), removed, find, find_file, cache(find_environment)
        )
        if find_file is not None:
            yield from checks.check_files(scenario, find_file)

    return _with_framework(load_file(data, file, SCENARIO, check), find)


def load_file(
    data: bytes,
    file: str,
    form: FileFormat[Model],
    check: Callable[[Model, tuple[Path, ...]], Iterable[Flaw]],
) -> Model:
    """Read a YAML file of any format.

    Args:
        data: The file's bytes; any content is accepted.
        check: Checks the meaning of the valid part; its second argument are the invalid parts.

    Raises:
        ScenarioFaults: every fault in syntax, keys, values and their combinations.
    """
    root, flaws = read_yaml(data, file)
    if root is None:
        raise ScenarioFaults(flaws)
    validated = validate(root, form)
    faults = [*flaws, *_shape_faults(validated, file)]
    if validated.model is not None:
        faults += [
            Fault(file=file, line=validated.root.nearest(path).line, what=what, fix=fix)
            for path, what, fix in check(validated.model, validated.removed)
        ]
    if faults or validated.model is None:
        # By line, without duplicates: many cells may report the same place.
        raise ScenarioFaults(
            tuple(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))
        )
    return validated.model


def _with_framework(scenario: Scenario, find: ModuleFinder | None) -> Scenario:
    """The scenario with the framework that its module imports, if nothing else names one."""
    workload, axes = scenario.workload, axes_of(scenario.matrix)
    if find is None or not isinstance(workload, str) or ":" not in workload:
        return scenario
    if scenario.framework is not None or ("framework",) in axes:
        return scenario
    values = axes.get(("environment",)) or (located(scenario.environment, ()),)
    names = [environment_name(value) for value in values]
    if any(framework_of(name) is not None for name in names):
        return scenario
    framework = guess_framework(workload, names[0], find)
    # Recorded with the scenario, so that a record does not depend on the module.
    return scenario.model_copy(update={"framework": framework}) if framework else scenario


def load_document(document: dict[str, Any], path: str) -> Scenario:
    """Read a scenario from a record, in the form that `Scenario.document()` returns.

    Only its shape is validated: what it names was valid when it was recorded.

    Raises:
        ScenarioFaults: this version cannot read it; the faults have no lines.
    """
    validated = validate(as_tree(document), SCENARIO)
    if validated.problems or validated.model is None:
        raise ScenarioFaults(tuple(_shape_faults(validated, path)))
    return validated.model


def _shape_faults(validated: ValidatedTree[Model], file: str) -> Iterator[Fault]:
    for problem in validated.problems:
        yield Fault(file=file, line=problem.line, what=problem.what, fix=problem.fix)


def _check_meaning(
    scenario: Scenario,
    removed: tuple[Path, ...],
    find: ModuleFinder | None,
    find_file: FileFinder | None,
    find_environment: EnvironmentFinder,
) -> Iterator[Flaw]:
    """Check the meaning of the valid part of a scenario; `removed` are the invalid parts."""
    invalid_keys = frozenset(part for path in removed for part in path if isinstance(part, str))
    measures = {profile: measure_for(scenario, profile) for profile in PROFILES}
    yield from checks.check_scenario(scenario, measures, invalid_keys)
    axis_flaws = tuple(matrix_checks.check_axes(axes_of(scenario.matrix), scenario))
    yield from axis_flaws
    if any(path == ("matrix",) for path, _, _ in axis_flaws):
        return
    matrix = expand_matrix(scenario.matrix)
    points = {profile: points_of(scenario, matrix, profile) for profile in PROFILES}
    for point in points[None]:
        yield from checks.check_point(point, scenario, invalid_keys, find_environment)
    if find_file is not None:
        yield from checks.check_points_files(scenario, points[None], find_file)
    yield from matrix_checks.check_excludes(matrix, scenario, invalid_keys)
    if not axis_flaws and not any(path[:1] == ("matrix",) for path in removed):
        yield from matrix_checks.check_includes(matrix, scenario, points[None])
    # The baseline may name a cell that an invalid include would have added.
    if any(path == ("matrix",) or path[:2] == ("matrix", "include") for path in removed):
        return
    cells = tuple(point.cell for point in points[None])
    yield from matrix_checks.check_named_cells(scenario, cells, invalid_keys)
    yield from checks.check_profiles(scenario, cells)
    yield from checks.check_traffic(scenario, points, measures, invalid_keys)
    if find is not None:
        yield from function_checks.check_function(scenario, points, find, invalid_keys)
