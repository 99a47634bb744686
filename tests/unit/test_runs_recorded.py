"""Runs that were really made, of the same thing on a host of changing load, do not differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.simulation.runs import LEARNED, WAYS, Run, by_launches_alone, load

RECORDED = Path(__file__).parents[1] / "data/runs/changing-load.json"
LEARNING = {name: way for name, way in WAYS.items() if way is not by_launches_alone}


@pytest.fixture(scope="module")
def cells() -> list[list[Run]]:
    return load(RECORDED)


def test_the_recorded_runs_saw_a_load_that_their_launches_alone_do_not_tell(
    cells: list[list[Run]],
) -> None:
    assert len(cells) == 7
    assert all(len(runs) >= 2 * LEARNED for runs in cells)
    judged = [one for runs in cells for one in by_launches_alone(runs)]
    assert sum(one.differs for one in judged) > len(judged) / 3


@pytest.mark.parametrize("name", LEARNING)
def test_at_most_one_in_twenty_pairs_is_called_different(name: str, cells: list[list[Run]]) -> None:
    judged = [one for runs in cells for one in LEARNING[name](runs)]
    neighbours = [one for one in judged if one.neighbours]

    assert sum(one.differs for one in judged) <= 0.05 * len(judged)
    assert sum(one.differs for one in neighbours) <= 0.05 * len(neighbours)
