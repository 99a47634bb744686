"""The noise floor stands beside a verdict, and only of the same host, scenario and packages."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.noise_floor import calibration_for, noise_words
from corebound.analysis.scenario_result import study
from corebound.records.calibration import Calibration
from corebound.records.run_record import EnvironmentLock
from corebound.report.scenario.verdict import hero
from corebound.scenario.matrix import expand
from corebound.stats.noise_floor import calibrated, lock_digest
from support import build
from support.build import a_launch, a_run, a_scenario, a_worker

LOCK = EnvironmentLock(name="host", sha256="", python="3.11.2", packages=("numpy==2.0",))
SCENARIO = a_scenario()
RUN = a_run(scenarios=(SCENARIO,), environments=(LOCK,))
SOURCE = RUN.scenarios[0]


def a_calibration(**changes: Any) -> Calibration:
    """Of the scenario and the run above."""
    same = {
        "host": RUN.host.id,
        "lock": lock_digest(RUN.environments, "host"),
        "scenario": SCENARIO.name,
        "sha256": SOURCE.sha256,
    }
    return build.a_calibration(**{**same, **changes})


def test_the_latest_of_the_same_is_chosen() -> None:
    older = a_calibration()
    newer = a_calibration(run="c2", at="2026-02-01T00:00:00Z")

    assert calibration_for([newer, older], RUN, SOURCE) == newer


@pytest.mark.parametrize(
    "change",
    [
        {"host": "another"},
        {"sha256": "another"},
        {"profile": "quick"},
        {"lock": "another"},
        {"scenario": "another"},
    ],
)
def test_another_hosts_or_scenarios_noise_is_not_shown(change: dict[str, str]) -> None:
    assert calibration_for([a_calibration(**change)], RUN, SOURCE) is None


def test_the_words_are_of_as_many_launches_as_the_verdict() -> None:
    assert noise_words(a_calibration(), launches=10) == (
        "Noise floor ±2.1 % with 6 launches of each, measured 2026-01-01 by comparing the"
        " baseline with itself: a slowdown of 4.0 % is found nine times in ten."
    )
    assert "±0.7 % with 30 launches" in noise_words(a_calibration(), launches=30)
    assert "no slowdown up to tenfold" in noise_words(a_calibration(), launches=30)
    assert noise_words(None, launches=6) == ""


def test_it_stands_in_what_a_verdict_rests_on() -> None:
    cells = expand(SCENARIO, "s.yaml")
    launches = [
        a_launch(cell=cell, block=block, position=position)
        for block in range(6)
        for position, cell in enumerate(cells)
    ]
    studied = study(RUN, SOURCE, launches)

    with_it = hero(studied, 0, 0, a_calibration()).support

    assert "Noise floor ±2.1 %" in "".join(piece.text for piece in with_it)
    assert with_it[: len(hero(studied, 0, 0).support)] == hero(studied, 0, 0).support


def test_copies_of_a_cell_make_a_calibration_of_it() -> None:
    (cell, _) = expand(SCENARIO, "s.yaml")
    launches = [
        a_launch(
            cell=replace(cell, axes=(*cell.axes, ("copy", copy))),
            block=block,
            position=position,
            workers=(a_worker(wall_ns=(1_000_000 + 10_000 * ((block + position) % 3),) * 30),),
        )
        for block in range(6)
        for position, copy in enumerate("ab")
    ]

    calibration = calibrated(RUN, SOURCE, launches)

    assert calibration is not None
    assert (calibration.cell, calibration.blocks, calibration.lock) == (
        cell.key,
        6,
        a_calibration().lock,
    )
    assert [one.launches for one in calibration.noise] == [6, 30]
    assert calibration_for([calibration], RUN, SOURCE) == calibration


def test_two_pairs_make_none() -> None:
    (cell, _) = expand(SCENARIO, "s.yaml")
    launches = [
        a_launch(cell=replace(cell, axes=(*cell.axes, ("copy", copy))), block=block)
        for block in range(2)
        for copy in "ab"
    ]

    assert calibrated(RUN, SOURCE, launches) is None
