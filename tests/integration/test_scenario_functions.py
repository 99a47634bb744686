"""The functions beside the shipped scenarios that need a framework's environment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.environments import launch_once
from support.paths import ROOT

pytestmark = pytest.mark.frameworks


def _beside(folder: Path, name: str) -> None:
    shutil.copy(ROOT / "scenarios" / f"{name}.py", folder)


@pytest.mark.quick
@pytest.mark.parametrize("cores", ["shared", "split"])
def test_neighbours_run_at_the_same_time_on_the_cores_that_they_are_given(
    tmp_path: Path, cores: str
) -> None:
    if cores == "split" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    _beside(tmp_path, "neighbours")

    outcome = launch_once(
        tmp_path,
        "numpy",
        workload="neighbours:beside",
        parameters={"measured": "copies", "neighbour": "other", "cores": cores},
    )

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    (worker,) = outcome.workers
    cpus: dict[int, set[int]] = {}
    for thread in worker.threads:
        cpus.setdefault(thread.pid, set()).update(*thread.allowed)
    measured, neighbour = cpus.values()
    assert measured.isdisjoint(neighbour) == (cores == "split")
    assert sum(thread.run_ns or 0 for thread in worker.threads) > 0


def test_a_round_of_boosting_uses_the_requested_threads(tmp_path: Path) -> None:
    _beside(tmp_path, "boosting_rounds")

    outcome = launch_once(
        tmp_path,
        "lightgbm",
        workload="boosting_rounds:rounds",
        parameters={"rows": 3000},
        threads=2,
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    assert outcome.workers[0].threads_used == 2
