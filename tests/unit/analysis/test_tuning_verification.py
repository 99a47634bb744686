"""Specifies when a recommendation of `corebound tune` still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_verification import (
    Verification,
    latest_verification,
    verification,
)
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run

Times = Mapping[str, float | Sequence[float]]
BOUND_WINS: Times = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}
DEFAULT_WINS: Times = {DEFAULT: 8.0, ONE_THREAD: 14.0, BOUND: 10.0, ONE_CPU: 15.0}


def a_race(times_ms: Times) -> TuneResult:
    return analyse_tuning(*a_tuned_run(times_ms))


def a_check(
    of: TuneResult, times_ms: Times, *, failing: str | None = None, most: int | None = None
) -> TuneResult:
    assert of.recommended is not None
    tuning = replace(of.tuning, verifies=of.run.id, recommended=of.recommended.key)
    made = a_tuned_run(times_ms, tuning=tuning, seed=2, failing=failing, most=most)
    return analyse_tuning(*made)


def verified(then: Times, now: Times) -> Verification:
    race = a_race(then)
    return verification(race, a_check(race, now))


def test_it_holds_while_it_is_faster_than_the_default() -> None:
    checked = verified(BOUND_WINS, BOUND_WINS)

    assert (checked.answer, checked.better) == ("holds", None)
    assert checked.text.startswith("The recommendation holds: ")


def test_it_is_lost_if_the_default_is_faster_now() -> None:
    checked = verified(BOUND_WINS, DEFAULT_WINS)

    assert checked.answer == "lost"
    assert checked.better is not None
    assert checked.better.key == DEFAULT
    assert "The default is better now." in checked.text


def test_it_is_lost_if_it_is_as_fast_as_the_default() -> None:
    alike: Times = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 10.0, ONE_CPU: 15.0}

    assert verified(BOUND_WINS, alike).answer == "lost"


def test_it_is_inconclusive_if_launches_differ_too_much_to_say() -> None:
    noisy: Times = {DEFAULT: (7.0, 10.0), BOUND: (9.0, 8.0), ONE_THREAD: 14.0, ONE_CPU: 15.0}

    assert verified(BOUND_WINS, noisy).answer == "inconclusive"


def test_it_is_lost_if_its_launches_fail_now() -> None:
    race = a_race(BOUND_WINS)

    assert verification(race, a_check(race, BOUND_WINS, failing=BOUND)).answer == "lost"


@pytest.mark.parametrize("launches", [0, 1, 7])
def test_a_check_that_was_interrupted_decides_nothing(launches: int) -> None:
    race = a_race(BOUND_WINS)
    interrupted = a_check(race, DEFAULT_WINS, most=launches)

    checked = verification(race, interrupted)

    assert checked.answer == "inconclusive"
    assert "too few launches" in checked.text
    complete = latest_verification(race, [a_check(race, BOUND_WINS), interrupted])
    assert complete is not None
    assert complete.answer == "holds"


def test_the_default_holds_until_something_beats_it() -> None:
    assert verified(DEFAULT_WINS, DEFAULT_WINS).answer == "holds"
    assert verified(DEFAULT_WINS, BOUND_WINS).answer == "lost"


def test_the_latest_check_of_all_finalists_counts() -> None:
    race = a_race(BOUND_WINS)
    holds, lost = a_check(race, BOUND_WINS), a_check(race, DEFAULT_WINS)

    latest = latest_verification(race, [lost, holds])

    assert latest is not None
    assert latest.answer == "holds"
    assert latest_verification(race, []) is None


def test_a_race_without_a_recommendation_has_no_verification() -> None:
    unfinished = analyse_tuning(*a_tuned_run(BOUND_WINS, most=2))

    assert latest_verification(unfinished, [unfinished]) is None
    with pytest.raises(ValueError, match="recommends nothing"):
        verification(unfinished, unfinished)
