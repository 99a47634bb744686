"""Load a scenario file, or report every fault in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from corebound.errors import Fault, ScenarioFaults
from corebound.scenario import checks, function_checks
from corebound.scenario.function_checks import Finder
from corebound.scenario.matrix import expand, points
from corebound.scenario.models import Scenario
from corebound.scenario.validation import ValidatedTree, shape
from corebound.scenario.yaml_reader import Flaw, read, tree


def load(data: bytes, file: str, find: Finder | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        data: The file's bytes; any content is accepted.
        file: The file's name, for faults.
        find: Finds the module of a user-defined function; None skips that check.

    Raises:
        ScenarioFaults: every fault in syntax, keys, values and their combinations, each with
            its line.
    """
    root, flaws = read(data, file)
    if root is None:
        raise ScenarioFaults(flaws)
    shaped = shape(root)
    faults = [*flaws, *_shape_faults(shaped, file)]
    if shaped.scenario is not None:
        faults += [
            Fault(file=file, line=shaped.root.nearest(path).line, what=what, fix=fix)
            for path, what, fix in _meaning(shaped.scenario, shaped, find)
        ]
    if faults or shaped.scenario is None:
        raise ScenarioFaults(_sorted(faults))
    return shaped.scenario


def load_document(document: dict[str, Any], path: str) -> Scenario:
    """Read a scenario from a record, in the form that `Scenario.document()` returns.

    Only its shape is validated: what it names was valid when it was recorded.

    Raises:
        ScenarioFaults: this version cannot read it; the faults have no lines.
    """
    shaped = shape(tree(document))
    if shaped.problems or shaped.scenario is None:
        raise ScenarioFaults(tuple(_shape_faults(shaped, path)))
    return shaped.scenario


def _shape_faults(shaped: ValidatedTree, file: str) -> Iterator[Fault]:
    for one in shaped.problems:
        yield Fault(file=file, line=one.line, what=one.what, fix=one.fix)


def _sorted(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults by line, without duplicates: many cells may report the same place."""
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))


def _meaning(scenario: Scenario, shaped: ValidatedTree, find: Finder | None) -> Iterator[Flaw]:
    """Check the meaning of the valid part of a scenario."""
    doubtful = frozenset(part for path in shaped.lost for part in path if isinstance(part, str))
    yield from checks.whole(scenario, doubtful)
    on_axes = tuple(checks.axes_alone(scenario))
    yield from on_axes
    if any(path == ("matrix",) for path, _, _ in on_axes):
        return
    made = points(scenario)
    for point in made:
        yield from checks.at_point(point, scenario, doubtful)
    yield from checks.excludes(scenario, doubtful)
    if not on_axes and not any(path[:1] == ("matrix",) for path in shaped.lost):
        yield from checks.includes(scenario, made)
    # The baseline may name a cell that an invalid include would have added.
    if not any(path == ("matrix",) or path[:2] == ("matrix", "include") for path in shaped.lost):
        cells = expand(scenario, "")
        yield from checks.named_cells(scenario, cells, doubtful)
        yield from checks.profiles(scenario, cells)
        yield from checks.traffic(scenario, doubtful)
        if find is not None:
            yield from function_checks.function(scenario, find, doubtful)
