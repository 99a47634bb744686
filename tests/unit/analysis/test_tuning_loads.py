"""Specifies what the races of several loads say together."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from corebound.analysis.tuning import TuneResult, analyse_tuning
from corebound.analysis.tuning_loads import loads_result
from corebound.present.sections import text_of
from corebound.present.tune import common_document, common_sentence, loads_table
from corebound.records.race import RaceRule, RaceSetup
from support.known import known
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run

SMALL = {DEFAULT: 10.0, ONE_THREAD: 5.0, BOUND: 8.0, ONE_CPU: 15.0}
LARGE = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 5.0, ONE_CPU: 15.0}


def a_race(batch: int, times_ms: Mapping[str, float], *, most: int | None = None) -> TuneResult:
    tuning = RaceSetup(
        objective="latency", rule=RaceRule(max_blocks=30), load=(("batch", str(batch)),)
    )
    run, launches = a_tuned_run(times_ms, tuning=tuning, most=most)
    return analyse_tuning(replace(run, id=f"batch-{batch}"), launches)


def a_check(of: TuneResult, times_ms: Mapping[str, float]) -> TuneResult:
    """Later launches of all cells of a race."""
    tuning = replace(of.tuning, verifies=of.run.id, recommended=known(of.recommended).key)
    return analyse_tuning(*a_tuned_run(times_ms, tuning=tuning, seed=2))


def test_one_configuration_that_all_loads_recommend_does_for_all() -> None:
    loads = loads_result([a_race(1, LARGE), a_race(8, LARGE)], {})

    assert (known(loads.common).key, known(loads.common).state) == (BOUND, "one")
    assert "best for each" in common_sentence(loads)
    assert [row[-1] for row in loads_table(loads).rows] == ["the same", "the same"]


def test_the_common_configuration_has_the_least_worst_loss() -> None:
    # One thread would cost a large batch 14/5; the physical cores cost a small one 8/5.
    loads = loads_result([a_race(1, SMALL), a_race(8, LARGE)], {})

    assert known(loads.common).key == BOUND


def test_it_is_unchecked_until_both_have_fresh_launches() -> None:
    # It was third of the small batch's race, so it is no finalist.
    small = a_race(1, {DEFAULT: 6.0, ONE_THREAD: 5.0, BOUND: 6.5, ONE_CPU: 15.0})
    large = a_race(8, {DEFAULT: 9.0, ONE_THREAD: 14.0, BOUND: 5.0, ONE_CPU: 15.0})
    loads = loads_result([small, large], {})

    assert known(loads.common).state == "unchecked"
    assert [(one.run.id, key) for one, key in loads.unchecked] == [("batch-1", BOUND)]
    assert "--resume" in common_sentence(loads)

    check = a_check(small, {DEFAULT: 6.0, ONE_THREAD: 5.0, BOUND: 6.5, ONE_CPU: 15.0})
    checked = loads_result([small, large], {"batch-1": [check]})
    assert known(checked.common).state == "several"
    assert checked.unchecked == ()


@pytest.mark.parametrize(("slower", "state"), [(1.002, "one"), (1.3, "several")])
def test_the_margin_decides_whether_one_does_for_all(slower: float, state: str) -> None:
    small = {DEFAULT: 10.0, ONE_THREAD: 5.0, BOUND: 5.0 * slower, ONE_CPU: 15.0}
    races = [a_race(1, small), a_race(8, LARGE)]
    checks = {"batch-1": [a_check(races[0], small)]}

    loads = loads_result(races, checks)

    assert (known(loads.common).key, known(loads.common).state) == (BOUND, state)


def test_a_loss_is_reported_for_the_load_that_has_it() -> None:
    small = a_race(1, SMALL)
    loads = loads_result([small, a_race(8, LARGE)], {"batch-1": [a_check(small, SMALL)]})

    assert "for batch=1" in common_sentence(loads)
    document = common_document(loads)
    assert document["state"] == "several"
    cost, same = document["costs"]
    assert cost["load"] == {"batch": "1"}
    assert cost["recommended_speedup_ratio"] == pytest.approx(8 / 5, rel=0.02)
    assert same["recommended_speedup_ratio"] is None


def test_without_a_recommendation_for_each_load_there_is_no_common_one() -> None:
    loads = loads_result([a_race(1, SMALL), a_race(8, LARGE, most=3)], {})

    assert loads.common is None
    assert "not every load" in common_sentence(loads)
    assert "not complete" in text_of(loads_table(loads).rows[1][1])
    assert common_document(loads)["costs"] == []
