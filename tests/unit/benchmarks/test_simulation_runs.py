"""`benchmarks.simulation.runs`: recorded runs of one workload under changing load do not differ."""

from pathlib import Path

import pytest
from benchmarks.simulation.runs import LEARNED, METHODS, Run, by_launches_alone, load

RECORDED = Path(__file__).parents[2] / "data/runs/changing-load.json"
LEARNING = {name: method for name, method in METHODS.items() if method is not by_launches_alone}


@pytest.fixture(scope="module")
def cells() -> list[list[Run]]:
    return load(RECORDED)


def test_launch_noise_alone_does_not_explain_the_recorded_runs(cells: list[list[Run]]) -> None:
    assert len(cells) == 7
    assert all(len(runs) >= 2 * LEARNED for runs in cells)
    comparisons = [c for runs in cells for c in by_launches_alone(runs)]
    assert sum(c.differs for c in comparisons) > len(comparisons) / 3


@pytest.mark.parametrize("name", LEARNING)
def test_at_most_one_in_twenty_pairs_differs(name: str, cells: list[list[Run]]) -> None:
    comparisons = [c for runs in cells for c in LEARNING[name](runs)]
    neighbours = [c for c in comparisons if c.neighbours]

    assert sum(c.differs for c in comparisons) <= 0.05 * len(comparisons)
    assert sum(c.differs for c in neighbours) <= 0.05 * len(neighbours)
