"""The parts of a run's time add up to what its launches took."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.selection import latest_results
from corebound.analysis.time_spent import TimeSpent, between_launches, time_spent
from corebound.present.run import time_sentence, time_table
from corebound.records.launch_record import Launch
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, a_worker
from support.texts import in_order

SCENARIO = a_scenario(measure={"warmup": {"iterations": 1}})
FREE, BOUND = expand(SCENARIO, "s.yaml")[:2]
SECOND = 1_000_000_000


def took(duration_s: float, *iterations_s: float, **values: object) -> Launch:
    wall_ns = tuple(round(each * SECOND) for each in iterations_s)
    launch = a_launch(cell=FREE, workers=(a_worker(wall_ns=wall_ns),))
    return replace(launch, **{"duration_ns": round(duration_s * SECOND), **values})


def spent_by(*launches: Launch) -> TimeSpent:
    results = latest_results([(a_run(scenarios=(SCENARIO,)), launches)])
    (spent,) = time_spent(launches, results).values()
    return spent


def test_a_launch_starts_warms_up_and_measures() -> None:
    spent = spent_by(took(5, 0.5, 0.25, 0.25))

    assert spent == TimeSpent(start_up=4 * SECOND, warm_up=SECOND // 2, measuring=SECOND // 2)


@pytest.mark.parametrize(("durations_s", "started_with"), [((6, 6), False), ((2.5, 3.5), True)])
def test_launches_that_alternate_share_the_time_that_both_took(
    durations_s: tuple[float, float], started_with: bool
) -> None:
    # In records without `started_with`, each has the duration of both.
    with_one, with_other = (("one",), ("other",)) if started_with else ((), ())
    one = took(durations_s[0], 0, 1, 1, id="one", alternated=("other",), started_with=with_other)
    other = took(durations_s[1], 0, 2, id="other", alternated=("one",), started_with=with_one)

    spent = spent_by(one, other)

    assert (spent["measuring"], spent["start_up"]) == (4 * SECOND, 2 * SECOND)


def test_the_time_of_a_launch_that_does_not_count_is_discarded() -> None:
    spent = spent_by(took(5, 0, 1), took(3, 0, 1, id="bad", status="invalid"))

    assert (spent["discarded"], spent["measuring"]) == (3 * SECOND, SECOND)


def test_the_time_between_launches_leaves_out_an_interruption_of_the_run() -> None:
    times = ("00:00:00", "00:00:10", "03:00:00")
    launches = [took(5, 1, id=at, started_at=f"2026-01-02T{at}Z") for at in times]

    between = between_launches(launches, [TimeSpent(start_up=15 * SECOND)])

    assert between["between"] == pytest.approx(5 * SECOND)


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=1, max_size=9))
def test_the_parts_add_up_to_what_the_launches_took(times: list[tuple[float, float]]) -> None:
    launches = [
        took(starting_s + iterating_s, iterating_s, id=str(at))
        for at, (starting_s, iterating_s) in enumerate(times)
    ]
    (spent,) = time_spent(launches, ()).values()

    assert spent.total() == pytest.approx(sum(launch.duration_ns for launch in launches), abs=9)


def test_the_sentence_and_the_table_have_the_same_shares() -> None:
    spent = {"a": TimeSpent(start_up=60, measuring=20)}
    between = TimeSpent(between=20)

    said = time_sentence(spent, between).text
    assert in_order(said, "60 % start-up", "20 % measuring", "20 % between")
    columns, rows = time_table(spent, between).in_words
    assert [column.heading for column in columns][2:] == [
        "start-up",
        "measuring",
        "between launches",
    ]
    assert rows[0][2:] == ("75 %", "25 %", "–")
    assert rows[1][2:] == ("60 %", "20 %", "20 %")
