"""A scenario once more, with commits of the project under test as an axis."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.errors import Fault, ScenarioFaults
from corebound.model.scenario import Scenario
from corebound.planning.expand import expand, is_project
from corebound.planning.sides import by_side

# Under a name of its own, so that a comparison never stands in for the nightly page.
SUFFIX = ".commits"


def is_comparable(scenario: Scenario) -> bool:
    """Whether each of its cells runs in the environment of the project under test."""
    cells = expand(scenario, "")
    return all(is_project(cell.environment) for cell in cells)


def by_commit(
    scenario: Scenario,
    commits: Sequence[str],
    path: str,
    *,
    launches: tuple[int, int] | None = None,
    margin: float | None = None,
) -> Scenario:
    """Give a scenario a last axis `commit`; each cell is compared with itself at the first.

    Args:
        scenario: One that `is_comparable`.
        commits: Hashes; the first is the baseline.
        path: Where it was read from, for faults.
        launches: The fewest and the most of each cell, instead of the scenario's.
        margin: Instead of the scenario's.

    Raises:
        ScenarioFaults: it names commits of its own.
    """
    if "commit" in scenario.document() or any(cell.commit for cell in expand(scenario, "")):
        what, mend = "the scenario has commits of its own.", "Measure it with `corebound run`."
        raise ScenarioFaults((Fault(file=path, line=None, what=what, mend=mend),))
    return by_side(
        scenario, ("commit",), commits, path, suffix=SUFFIX, launches=launches, margin=margin
    )
