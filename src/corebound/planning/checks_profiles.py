"""What is wrong with the parameters that profiles change and with the cells that they keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corebound.model.plan import Cell
from corebound.model.scenario import Profile, Scenario
from corebound.planning.cell_values import matching
from corebound.planning.checks import parameter_flaws
from corebound.planning.points import at
from corebound.planning.tree import Flaw, Path, printable


def profiles(scenario: Scenario, cells: Sequence[Cell]) -> Iterator[Flaw]:
    """What is wrong with each profile, given the cells of the whole matrix."""
    for name, change in scenario.profiles.items():
        yield from _parameters(scenario, change, ("profiles", name, "parameters"))
        for index, one in enumerate(change.only):
            path: Path = ("profiles", name, "only", index)
            if not one.written:
                yield path, "this names nothing.", "Name the settings of cells, or remove it."
            elif not matching(one, cells):
                yield path, "no cell fits it.", "Name values that stand in the matrix."


def _parameters(scenario: Scenario, change: Profile, path: Path) -> Iterator[Flaw]:
    for name, value in change.parameters.items():
        if name in scenario.matrix.parameters:
            what = f"`{printable(name)}` is an axis of the matrix."
            yield (*path, name), what, "Choose among its values with `only`."
        else:
            yield from parameter_flaws({name: at(value, (*path, name))}, scenario)
