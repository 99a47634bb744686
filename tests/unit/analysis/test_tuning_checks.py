"""When a recommendation still holds, and what launches through its files show of these."""

from collections.abc import Mapping, Sequence
from itertools import chain

import pytest
from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_checks import (
    DIRECT,
    THROUGH_AXIS,
    ArtefactProof,
    Verification,
    latest_verification,
    launched_proof,
    verification,
)
from corebound.planning.artefacts import Artefact, artefacts
from corebound.present.tune import verification_text
from corebound.records.launch_record import Launch
from corebound.scenario.matrix import expand
from support.build import a_launch, a_worker
from support.known import known
from support.tuning import (
    BOUND,
    DEFAULT,
    ONE_CPU,
    ONE_THREAD,
    a_tuned_run,
    a_tuned_scenario,
    a_tuning,
)

Times = Mapping[str, float | Sequence[float]]
BOUND_WINS: Times = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}
DEFAULT_WINS: Times = {DEFAULT: 8.0, ONE_THREAD: 14.0, BOUND: 10.0, ONE_CPU: 15.0}


def a_race(times_ms: Times) -> TuneResult:
    return analyse_tuning(*a_tuned_run(times_ms))


def a_check(
    of: TuneResult, times_ms: Times, *, failing: str | None = None, most: int | None = None
) -> TuneResult:
    tuning = replace(of.tuning, verifies=of.run.id, recommended=known(of.recommended).key)
    made = a_tuned_run(times_ms, tuning=tuning, seed=2, failing=failing, most=most)
    return analyse_tuning(*made)


def verified(then: Times, now: Times) -> Verification:
    race = a_race(then)
    return verification(race, a_check(race, now))


ALIKE: Times = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 10.0, ONE_CPU: 15.0}
NOISY: Times = {DEFAULT: (7.0, 10.0), BOUND: (9.0, 8.0), ONE_THREAD: 14.0, ONE_CPU: 15.0}


@pytest.mark.parametrize(
    ("then", "now", "answer", "better", "said"),
    [
        (BOUND_WINS, BOUND_WINS, "holds", None, "The recommendation holds: "),
        (BOUND_WINS, DEFAULT_WINS, "lost", DEFAULT, "default is better"),
        (BOUND_WINS, ALIKE, "lost", None, ""),
        (BOUND_WINS, NOISY, "inconclusive", None, ""),
        # The default holds until something beats it.
        (DEFAULT_WINS, DEFAULT_WINS, "holds", None, ""),
        (DEFAULT_WINS, BOUND_WINS, "lost", BOUND, ""),
    ],
)
def test_it_holds_while_it_is_faster_than_the_default(
    then: Times, now: Times, answer: str, better: str | None, said: str
) -> None:
    checked = verified(then, now)

    assert checked.answer == answer
    assert (checked.better and checked.better.key) == better
    assert said in verification_text(checked)


def test_it_is_lost_if_its_launches_fail_now() -> None:
    race = a_race(BOUND_WINS)

    assert verification(race, a_check(race, BOUND_WINS, failing=BOUND)).answer == "lost"


@pytest.mark.parametrize("launches", [0, 1, 7])
def test_a_check_that_was_interrupted_decides_nothing(launches: int) -> None:
    race = a_race(BOUND_WINS)
    interrupted = a_check(race, DEFAULT_WINS, most=launches)

    checked = verification(race, interrupted)

    assert checked.answer == "inconclusive"
    assert "too few launches" in verification_text(checked)
    complete = known(latest_verification(race, [a_check(race, BOUND_WINS), interrupted]))
    assert complete.answer == "holds"


def test_the_latest_check_of_all_finalists_counts() -> None:
    race = a_race(BOUND_WINS)
    holds, lost = a_check(race, BOUND_WINS), a_check(race, DEFAULT_WINS)

    latest = known(latest_verification(race, [lost, holds]))

    assert latest.answer == "holds"
    assert latest_verification(race, []) is None


def test_a_race_without_a_recommendation_has_no_verification() -> None:
    unfinished = analyse_tuning(*a_tuned_run(BOUND_WINS, most=2))

    assert latest_verification(unfinished, [unfinished]) is None
    with pytest.raises(ValueError, match="recommends nothing"):
        verification(unfinished, unfinished)


CELLS = {cell.key: cell for cell in expand(a_tuned_scenario(), "f.yaml", None)}


def shell_file() -> Artefact:
    result, _ = a_tuning()
    example = result.examples[BOUND]
    written = artefacts(example.cell, known(example.placement), example.commands)
    return next(artefact for artefact in written if artefact.kind == "shell")


def launches(through: str, times_ms: Sequence[float]) -> list[Launch]:
    cell = CELLS[BOUND]
    cell = replace(cell, axes=(*cell.axes, (THROUGH_AXIS, through)))
    return [
        a_launch(cell=cell, block=block, workers=(a_worker(wall_ns=(round(ms * 1e6),) * 30),))
        for block, ms in enumerate(times_ms)
    ]


def proof(file_ms: Sequence[float], command_ms: Sequence[float]) -> ArtefactProof:
    launched = chain(launches("shell", file_ms), launches(DIRECT, command_ms))
    return launched_proof(shell_file(), [*launched], warmup="auto", margin=0.02)


COMMAND_MS = (10.0, 10.05, 9.95, 10.02)


@pytest.mark.parametrize(
    ("file_ms", "command_ms", "state", "said"),
    [
        ((10.01, 10.0, 9.98, 10.03), COMMAND_MS, "launched", "4 of 4 launches"),
        # Certain, but less than 2 %.
        ((10.1, 10.15, 10.05, 10.12), COMMAND_MS, "launched", ""),
        ((13.0, 13.1, 12.9, 13.05), COMMAND_MS, "differs", "1.30× slower"),
        # Without launches of both nothing is said of its speed.
        ((), COMMAND_MS, "written", ""),
        ((10.0,), (10.0,), "written", ""),
    ],
)
def test_a_file_that_is_as_fast_as_the_command_reproduces_the_winner(
    file_ms: Sequence[float], command_ms: Sequence[float], state: str, said: str
) -> None:
    shown = proof(file_ms, command_ms)

    assert shown.state == state
    assert said in shown.evidence
