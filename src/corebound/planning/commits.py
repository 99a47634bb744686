"""A scenario once more, with commits of the project under test as an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corebound.errors import Fault, ScenarioFaults
from corebound.model.scenario import Scenario
from corebound.planning.expand import PROJECT, expand
from corebound.planning.load import load_document

# Under a name of its own, so that a comparison never stands in for the nightly page.
SUFFIX = ".commits"
_LONGEST_NAME = 80


def is_comparable(scenario: Scenario) -> bool:
    """Whether each of its cells runs in the environment of the project under test."""
    cells = expand(scenario, "")
    return all(cell.environment.partition("@")[0] == PROJECT for cell in cells)


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
    document = scenario.document()
    if "commit" in document or any(cell.commit for cell in expand(scenario, "")):
        what, mend = "the scenario has commits of its own.", "Measure it with `corebound run`."
        raise ScenarioFaults((Fault(file=path, line=None, what=what, mend=mend),))
    document["name"] = document["name"][: _LONGEST_NAME - len(SUFFIX)] + SUFFIX
    document["title"] = f"{document['title']}: by commit"
    document["matrix"] = _matrix(document.get("matrix", {}), commits)
    document["baseline"] = {"commit": commits[0]}
    # They were published of one state of things, and are judged where that is measured.
    document.pop("claims", None)
    if margin is not None:
        document["measure"] = {**document.get("measure", {}), "margin": margin}
        # What was said on the command line, no profile changes.
        for profile in document.get("profiles", {}).values():
            profile.pop("margin", None)
    if launches is not None:
        own = document.get("measure", {}).get("launches", {})
        wanted = {**own, "min": launches[0], "max": launches[1]}
        document["measure"] = {**document.get("measure", {}), "launches": wanted}
    return load_document(document, path)


def _matrix(matrix: dict[str, Any], commits: Sequence[str]) -> dict[str, Any]:
    """The matrix times the commits.

    What `include` adds is added once for each commit: without one it would make
    cells of no commit.
    """
    include = [{**one, "commit": commit} for commit in commits for one in matrix.get("include", ())]
    axes = {key: value for key, value in matrix.items() if key not in {"include", "exclude"}}
    parts = {"exclude": matrix["exclude"]} if matrix.get("exclude") else {}
    if include:
        parts["include"] = include
    varied = {key: value for key, value in axes.items() if value not in (None, {})}
    # Where includes alone make the cells, an axis would make others beside them.
    return (
        {**varied, **parts}
        if include and not varied
        else {**varied, "commit": list(commits), **parts}
    )
