"""Specifies what a run is expected to take and to reach, judged by the last one."""

import math
import statistics

import pytest
from msgspec.structs import replace

from corebound.analysis.forecast import (
    Experience,
    TimeLeft,
    experience,
    forecast_run,
    guess,
    shortage_note,
)
from corebound.analysis.scenario_result import analyse_scenario
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Launch
from corebound.records.telemetry import Disturbance
from corebound.scenario.matrix import expand
from corebound.scenario.models import Launches
from support.build import a_launch, a_run, a_scenario, a_worker
from support.known import known
from support.texts import in_order

SCENARIO = a_scenario(matrix={"threads": [1, 2]})
RUN = a_run(scenarios=(SCENARIO,))
CELLS = expand(SCENARIO, "f.yaml", None)
REFUSED = Disturbance(share=1.0, by=("foreign load",), evidence=(), refused=True)
TWO_PERCENT = Experience(since="2026-01-02", launch_s=2.0, spreads=(0.02,))


def launches(*levels_ns: tuple[int, int], alternate: bool = False) -> list[Launch]:
    """A block for each pair of levels; each launch takes 3 s."""
    made = []
    for block, pair in enumerate(levels_ns):
        ids = [f"{block}-{position}" for position in range(2)]
        for position, level_ns in enumerate(pair):
            launch = a_launch(
                cell=CELLS[position],
                block=block,
                position=position,
                workers=(a_worker(wall_ns=(level_ns,) * 20),),
            )
            others = (ids[1 - position],) if alternate else ()
            made.append(replace(launch, duration_ns=3_000_000_000, alternated=others))
    return made


PAIRS = [(1_000_000, 1_010_000), (1_000_000, 1_030_000), (1_000_000, 1_020_000)]


def known_of(made: list[Launch]) -> Experience | None:
    return experience(analyse_scenario(RUN, RUN.scenarios[0], made))


def test_the_spread_is_that_of_the_ratios_of_blocks() -> None:
    (spread,) = known(known_of(launches(*PAIRS))).spreads

    assert spread == pytest.approx(statistics.stdev(math.log(b / a) for a, b in PAIRS))


def test_launches_that_alternate_share_their_time_and_discarded_ones_add_theirs() -> None:
    def launch_s(made: list[Launch]) -> float:
        return known(known_of(made)).launch_s

    discarded = launches(*PAIRS)
    discarded[-1] = replace(discarded[-1], status="invalid")

    assert launch_s(launches(*PAIRS)) == 3.0
    assert launch_s(launches(*PAIRS, alternate=True)) == 1.5
    assert launch_s(discarded) == pytest.approx(6 * 3 / 5)
    assert known_of([replace(one, status="failed") for one in launches(*PAIRS)]) is None


def test_the_half_width_is_that_of_students_interval() -> None:
    # t(0.975; 5) = 2.571
    assert TWO_PERCENT.half_width(6) == pytest.approx(math.expm1(2.571 * 0.02 / 6**0.5), rel=1e-3)
    assert TWO_PERCENT.half_width(1) is None
    assert replace(TWO_PERCENT, spreads=()).half_width(6) is None


def test_a_run_ends_when_ratios_are_as_precise_as_requested() -> None:
    (forecast,) = forecast_run(
        [("a", 4, Launches(min=3, max=30, until_relative_ci=0.02), TWO_PERCENT)], None
    )

    before = known(TWO_PERCENT.half_width(forecast.launches - 1))
    assert known(forecast.half_width) <= 0.02 < before
    assert forecast.duration_s == forecast.launches * 4 * 2.0


def test_a_budget_is_shared_by_the_scenarios_block_by_block() -> None:
    wanted = Launches(min=6, max=30, until_relative_ci=0.001)

    forecasts = forecast_run(
        [("a", 4, wanted, TWO_PERCENT), ("b", 1, wanted, TWO_PERCENT)], budget_s=105
    )

    # After ten blocks of both, 5 s are left, which hold two of the smaller one.
    assert [forecast.launches for forecast in forecasts] == [10, 12]
    assert sum(forecast.duration_s for forecast in forecasts) <= 105


# A launch takes 2 s, with just enough iterations 1.3 s.
CUTTABLE = replace(TWO_PERCENT, iterating_s=1.0, iterations=10)


@pytest.mark.parametrize(("budget_s", "launches"), [(1, (0, 0)), (7, (1, 0)), (14, (1, 1))])
def test_a_budget_holds_the_scenarios_whose_shortest_launches_fit(
    budget_s: float, launches: tuple[int, ...]
) -> None:
    wanted = Launches(min=6)
    forecasts = forecast_run([(name, 4, wanted, CUTTABLE) for name in "ab"], budget_s)

    assert tuple(forecast.launches for forecast in forecasts) == launches
    assert sum(forecast.duration_s for forecast in forecasts) <= budget_s


def test_what_a_budget_does_not_hold_is_said_before_the_run() -> None:
    wanted = Launches(min=6)

    def said(budget_s: float | None) -> str | None:
        forecasts = forecast_run([(name, 4, wanted, CUTTABLE) for name in "ab"], budget_s)
        return shortage_note(forecasts, budget_s)

    assert in_order(said(7), "1 scenario: b")
    assert "96.0 s" in (said(7) or "")
    assert "1 scenario" not in (said(14) or "")
    assert said(96) is None
    assert said(None) is None


def test_another_number_of_iterations_changes_their_part_only() -> None:
    # Twenty iterations of 0.05 s, and two seconds besides.
    measured = replace(TWO_PERCENT, launch_s=3.0, iterating_s=1.0, iterations=20)

    assert measured.launch_s_with(60) == pytest.approx(5.0)
    assert measured.launch_s_with(None) == 3.0


def took(scenario: str, seconds: float, **changes: object) -> Launch:
    cell = replace(CELLS[0], scenario=scenario)
    return replace(a_launch(cell=cell), duration_ns=round(seconds * 1e9), **changes)


def alternated(seconds: float) -> list[Launch]:
    return [took("a", seconds, alternated=(other,)) for other in ("x", "y")]


# Every second one is made twice.
AGAIN = [
    took("a", 2.0, **changes)
    for _ in range(50)
    for changes in ({"status": "invalid", "disturbance": REFUSED}, {}, {})
]


@pytest.mark.parametrize(
    ("expected_s", "done", "left", "seconds"),
    [
        # Before the first launch the expectation counts; without it nothing is known.
        ({"a": 4.0, "b": 1.0}, [], {"a": 3, "b": 2}, 14.0),
        ({}, [], {"a": 3}, None),
        # Each scenario has the time of its own launches, which share it if they alternated.
        ({}, [took("slow", 10.0), took("fast", 0.1)], {"slow": 2, "fast": 10}, 21.0),
        ({}, alternated(6.0), {"a": 1}, 3.0),
        ({}, AGAIN, {"a": 1}, 3.0),
        # Own launches outweigh a wrong guess: between 9 and 10.1.
        ({"a": 1.0}, [took("a", 10.0)] * 18, {"a": 1}, 9.55),
        # Six scenarios took 3 s instead of 1; the expectation counts like four that took 1.
        (dict.fromkeys("abcdefg", 1.0), [took(one, 3.0) for one in "abcdef"], {"g": 1}, 2.2),
    ],
)
def test_the_time_left_is_judged_by_what_launches_took(
    expected_s: dict[str, float], done: list[Launch], left: dict[str, int], seconds: float | None
) -> None:
    time_left = TimeLeft(expected_s)
    for launch in done:
        time_left.add(launch)

    assert time_left.seconds(left) == (seconds and pytest.approx(seconds, rel=0.05))


def test_a_server_that_was_ended_before_its_requests_tells_nothing_of_starts() -> None:
    time_left = TimeLeft({"a": 25.0})
    before = time_left.start_factor

    time_left.add(took("a", 84.0, workers=(a_worker(wall_ns=()),), share_s=84.0))

    assert time_left.start_factor == before


def test_a_first_run_is_guessed_from_the_framework() -> None:
    def launch_s(**changes: object) -> float:
        cell = replace(CELLS[0], **changes)
        planned = PlannedCell(
            cell=cell,
            measure=SCENARIO.measure,
            placement=None,
            commands=(),
            requests=(),
            unfit=None,
        )
        return known(guess([planned])).launch_s

    assert launch_s(framework="pytorch") > launch_s(framework="numpy") > 0
    assert guess([]) is None


def test_without_spreads_the_number_of_launches_is_in_the_middle() -> None:
    guessed = replace(TWO_PERCENT, since=None, spreads=())

    (forecast,) = forecast_run([("a", 4, Launches(min=6, max=30), guessed)], None)

    assert (forecast.launches, forecast.since) == (18, None)


def test_a_guess_is_a_range_and_a_run_before_is_not() -> None:
    guessed = replace(TWO_PERCENT, since=None, spreads=())
    launches = Launches(min=6, max=6)

    first, later = forecast_run(
        [("a", 1, launches, guessed), ("b", 1, launches, TWO_PERCENT)], None
    )

    # Six launches of two seconds; a third of it, and three times.
    assert first.likely_s == pytest.approx((4, 36))
    assert later.likely_s == (12, 12)
