"""A scenario file to a scenario, or to everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from corebound.errors import Fault, ScenarioFaults
from corebound.scenario import checks, function_checks
from corebound.scenario.matrix import expand, points
from corebound.scenario.models import Scenario
from corebound.scenario.module_source import Finder
from corebound.scenario.validation import ValidatedTree, shape
from corebound.scenario.yaml_reader import Flaw, read, tree


def load(data: bytes, file: str, find: Finder | None = None) -> Scenario:
    """Read a scenario file.

    Args:
        data: The file's bytes, whatever they are.
        file: Its name, for the faults.
        find: Finds the module of a function of the user's own; None: it is not looked for.

    Raises:
        ScenarioFaults: all that is wrong with it: syntax, keys, values, and
            what they mean together; each with its line.
    """
    root, flaws = read(data, file)
    if root is None:
        raise ScenarioFaults(flaws)
    shaped = shape(root)
    faults = [*flaws, *_shape_faults(shaped, file)]
    if shaped.scenario is not None:
        faults += [
            Fault(file=file, line=shaped.root.nearest(path).line, what=what, mend=mend)
            for path, what, mend in _meaning(shaped.scenario, shaped, find)
        ]
    if faults or shaped.scenario is None:
        raise ScenarioFaults(_sorted(faults))
    return shaped.scenario


def load_document(document: dict[str, Any], path: str) -> Scenario:
    """Read a scenario as a record holds it, which is `Scenario.document()`.

    Only its shape is judged: what it names was sound when it was recorded.

    Raises:
        ScenarioFaults: this version cannot read it; no fault has a line.
    """
    shaped = shape(tree(document))
    if shaped.problems or shaped.scenario is None:
        raise ScenarioFaults(tuple(_shape_faults(shaped, path)))
    return shaped.scenario


def _shape_faults(shaped: ValidatedTree, file: str) -> Iterator[Fault]:
    for one in shaped.problems:
        yield Fault(file=file, line=one.line, what=one.what, mend=one.mend)


def _sorted(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """By line, each once: what is wrong at one place may be seen in many cells."""
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0))


def _meaning(scenario: Scenario, shaped: ValidatedTree, find: Finder | None) -> Iterator[Flaw]:
    """What is wrong with what could be understood, as far as it can be told."""
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
    # A cell that a baseline names may be one that a broken include would have made.
    if not any(path == ("matrix",) or path[:2] == ("matrix", "include") for path in shaped.lost):
        cells = expand(scenario, "")
        yield from checks.named_cells(scenario, cells, doubtful)
        yield from checks.profiles(scenario, cells)
        yield from checks.traffic(scenario, doubtful)
        if find is not None:
            yield from function_checks.function(scenario, find, doubtful)
