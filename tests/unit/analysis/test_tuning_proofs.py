"""What launches through an artefact show of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from msgspec.structs import replace

from corebound.analysis.tuning_proofs import DIRECT, THROUGH_AXIS, Proof, launched_proof
from corebound.planning.artefacts import Artefact, artefacts
from corebound.records.launch_record import Launch
from corebound.scenario.matrix import expand
from support.build import a_launch, a_worker
from support.tuning import BOUND, a_tuned_scenario, a_tuning

CELLS = {cell.key: cell for cell in expand(a_tuned_scenario(), "f.yaml", None)}


def shell_file() -> Artefact:
    result, _ = a_tuning()
    example = result.examples[BOUND]
    assert example.placement is not None
    written = artefacts(example.cell, example.placement, example.commands)
    return next(artefact for artefact in written if artefact.kind == "shell")


def launches(through: str, times_ms: Sequence[float]) -> list[Launch]:
    cell = CELLS[BOUND]
    cell = replace(cell, axes=(*cell.axes, (THROUGH_AXIS, through)))
    return [
        a_launch(cell=cell, block=block, workers=(a_worker(wall_ns=(round(ms * 1e6),) * 30),))
        for block, ms in enumerate(times_ms)
    ]


def proof(file_ms: Sequence[float], command_ms: Sequence[float]) -> Proof:
    launched = chain(launches("shell", file_ms), launches(DIRECT, command_ms))
    return launched_proof(shell_file(), [*launched], warmup="auto", margin=0.02)


COMMAND_MS = (10.0, 10.05, 9.95, 10.02)


def test_a_file_that_is_as_fast_as_the_command_reproduces_the_winner() -> None:
    shown = proof((10.01, 10.0, 9.98, 10.03), COMMAND_MS)

    assert shown.state == "launched"
    assert "4 of 4 launches" in shown.evidence


def test_a_difference_within_the_margin_is_none() -> None:
    # Certain, but less than 2 %.
    shown = proof((10.1, 10.15, 10.05, 10.12), COMMAND_MS)

    assert shown.comparison is not None
    assert shown.comparison.interval is not None
    assert shown.comparison.interval.high < 1
    assert shown.state == "launched"


def test_a_file_that_is_slower_does_not_hold_and_says_by_how_much() -> None:
    shown = proof((13.0, 13.1, 12.9, 13.05), COMMAND_MS)

    assert shown.state == "differs"
    assert "1.30× slower" in shown.evidence


def test_without_launches_of_both_nothing_is_said_of_its_speed() -> None:
    assert proof((), COMMAND_MS).state == "written"
    assert proof((10.0,), (10.0,)).state == "written"
