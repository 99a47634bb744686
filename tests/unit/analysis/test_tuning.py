"""Specifies what a run of `corebound tune` recommends, and how it says so."""

from collections.abc import Sequence

import pytest
from benchmarks.simulation.verdicts import BASELINE, CELL, summary_of
from msgspec.structs import replace

from corebound.analysis.tuning import analyse_tuning
from corebound.present.tune import certainty, headline
from corebound.records.launch_record import Status
from corebound.records.race import RaceRule, RaceSetup
from corebound.records.telemetry import Disturbance
from corebound.scenario.objectives import Objective
from corebound.stats.comparison import compare_expected
from support.known import known
from support.texts import in_order
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run

PLANTED = {DEFAULT: 10.0, ONE_THREAD: 14.0, BOUND: 8.0, ONE_CPU: 15.0}
# A race that is over soon, whether it has decided or not.
SHORT = RaceSetup(objective="latency", rule=RaceRule(max_blocks=8, confirm_blocks=6))
DEFAULT_BEST = {DEFAULT: 8.0, ONE_THREAD: 14.0, BOUND: 10.0, ONE_CPU: 15.0}


def test_the_planted_best_is_recommended_with_its_gain_from_fresh_launches() -> None:
    result = analyse_tuning(*a_tuned_run(PLANTED))

    assert result.advice == "change"
    assert known(result.recommended).key == BOUND
    gain = known(result.against(DEFAULT))
    assert gain.pairs == 6  # the fresh launches alone
    assert gain.speedup_ratio == pytest.approx(10 / 8, rel=0.02)
    assert in_order(headline(result), "physical cores", "one thread per", "1.2")


def test_a_default_that_is_best_is_kept() -> None:
    result = analyse_tuning(*a_tuned_run(DEFAULT_BEST))

    assert result.advice == "keep the default"
    assert known(result.recommended).key == DEFAULT
    assert headline(result).startswith("Keep the default")


@pytest.mark.parametrize(
    ("default_ms", "best_ms", "others_ms", "advices"),
    [
        # A default with modes gets more fresh launches until it is decided.
        (
            (30.0, 480.0, 20.0, 480.0, 20.0, 30.0, 20.0), (18.0, 19.0, 31.0), (36.0, 38.0),
            {"change"},
        ),
        # A winner that may be no better gets a limited number.
        (
            (10.0, 9.0, 11.0, 9.4), (9.9, 10.7, 8.9, 9.3, 10.2), (14.0, 15.0),
            {"inconclusive", "keep the default"},
        ),
    ],
)  # fmt: skip
def test_finalists_that_differ_little_get_a_limited_number_of_more_fresh_launches(
    default_ms: tuple[float, ...],
    best_ms: tuple[float, ...],
    others_ms: tuple[float, float],
    advices: set[str],
) -> None:
    times_ms: dict[str, float | Sequence[float]] = {
        DEFAULT: default_ms, BOUND: best_ms, ONE_THREAD: others_ms[0], ONE_CPU: others_ms[1],
    }  # fmt: skip

    result = analyse_tuning(*a_tuned_run(times_ms, tuning=SHORT))

    fresh = {one.cell.key: one.summary.attempts for one in result.confirmed}
    assert result.advice in advices
    assert max(fresh.values()) <= 18
    if result.advice == "change":
        assert fresh[DEFAULT] == fresh[BOUND]
        assert fresh[DEFAULT] in {12, 18}  # looked at once each usual number is complete


def test_a_race_that_decides_nothing_says_by_how_much_launches_differ() -> None:
    noisy_ms = {DEFAULT: (8.0, 14.0), BOUND: (7.5, 13.0, 9.0)}
    others_ms = {ONE_THREAD: 24.0, ONE_CPU: 25.0}
    tuning = RaceSetup(objective="latency", rule=RaceRule(max_blocks=4, confirm_blocks=6))

    result = analyse_tuning(*a_tuned_run({**noisy_ms, **others_ms}, tuning=tuning))

    assert result.advice == "inconclusive"
    assert any(in_order(said, "winner", "7.4", "default", "7.9") for said in certainty(result))


def test_launches_that_were_discarded_count_in_the_budget() -> None:
    tuning = RaceSetup(objective="latency", rule=RaceRule(max_blocks=5, confirm_blocks=2))
    run, launches = a_tuned_run(dict.fromkeys(PLANTED, (10.0, 9.0, 11.0, 9.4)), tuning=tuning)
    # Four blocks of four launches of a second.
    run = replace(run, tuning=replace(tuning, rule=replace(tuning.rule, budget_s=16.0)))

    def blocks(attempt: int) -> int:
        made = [replace(launch, attempt=attempt) for launch in launches]
        race = analyse_tuning(run, made).race_state.race
        assert race.ending == "time"
        return race.blocks

    assert blocks(attempt=0) == 4
    # A block takes 8 s, and a second one leaves no 12 s of 23 s for six fresh launches.
    assert blocks(attempt=1) == 1


def test_the_time_between_short_launches_counts_in_the_budget() -> None:
    rule = RaceRule(max_blocks=9, confirm_blocks=2, budget_s=70.0, screen_iterations=15)
    tuning = RaceSetup(objective="latency", rule=rule)
    run, launches = a_tuned_run(dict.fromkeys(PLANTED, (10.0, 9.0, 11.0, 9.4)), tuning=tuning)

    def blocks(block_s: int) -> int:
        made = [
            replace(
                one,
                started_at=f"2026-01-02T03:{one.block * block_s // 60:02}:"
                f"{one.block * block_s % 60:02}Z",
            )
            for one in launches
        ]
        return analyse_tuning(run, made).race_state.race.blocks

    assert 0 < blocks(block_s=17) < blocks(block_s=0)


@pytest.mark.parametrize(("hit", "counted", "says"), [(3, 3, True), (4, 6, False)])
def test_fresh_launches_that_do_not_count_are_named(hit: int, counted: int, *, says: bool) -> None:
    run, launches = a_tuned_run(PLANTED)
    first_fresh = analyse_tuning(run, launches).race_state.race.blocks
    disturbed = Disturbance(share=1.0, by=("foreign load",), evidence=("so it was",))
    result = analyse_tuning(
        run,
        [
            replace(launch, disturbance=disturbed)
            if launch.block in range(first_fresh, first_fresh + hit)
            else launch
            for launch in launches
        ],
    )

    gain = known(result.against(DEFAULT))
    assert gain.pairs == counted
    assert (f"disturbed up to {hit}" in " ".join(certainty(result))) is says


def test_a_run_that_was_killed_does_not_say_that_its_fresh_launches_decided_nothing() -> None:
    run, launches = a_tuned_run(PLANTED)

    for missing in (1, 5, 9):
        result = analyse_tuning(run, launches[:-missing])
        assert "did not decide" not in " ".join(certainty(result))


@pytest.mark.parametrize(
    ("failing", "status", "reason"),
    [(DEFAULT, "failed", "it crashed"), (ONE_CPU, "dropped", "it is too slow.")],
)
def test_a_configuration_that_fails_or_ends_early_leaves_the_race_with_the_reason(
    failing: str, status: Status, reason: str
) -> None:
    run, launches = a_tuned_run(PLANTED, failing=failing)
    result = analyse_tuning(
        run,
        [
            replace(launch, status=status, reason=reason) if launch.status == "failed" else launch
            for launch in launches
        ],
    )

    assert result.advice == "change"
    dropped = {one.key: (one.block, one.reason) for one in result.race_state.race.dropped}
    assert dropped[failing] == (0, reason)
    assert in_order(headline(result), "default", "no result") == (failing == DEFAULT)


@pytest.mark.parametrize("most", [3, 9])
def test_a_race_that_was_killed_is_unfinished(most: int) -> None:
    result = analyse_tuning(*a_tuned_run(PLANTED, most=most))

    assert result.advice == "unfinished"
    assert result.recommended is None
    assert "--resume" in headline(result)
    assert in_order(headline(result), "leads", "95 %") == (most > 3)


@pytest.mark.parametrize(("objective", "recommended"), [("latency", BOUND), ("cost", ONE_CPU)])
def test_the_objective_decides_what_is_best(objective: Objective, recommended: str) -> None:
    tuning = RaceSetup(objective=objective, rule=RaceRule())
    cpu_ms = {DEFAULT: 20.0, ONE_THREAD: 15.0, BOUND: 16.0, ONE_CPU: 12.0}

    result = analyse_tuning(*a_tuned_run(PLANTED, tuning=tuning, cpu_ms=cpu_ms))

    assert known(result.recommended).key == recommended


def test_a_gain_is_that_of_launches_of_any_mode() -> None:
    # Two launches of the default took far longer, on a busy host: 4.1 ms become 7.6 and 5.7.
    times_ms = (4.13, 7.58, 4.13, 4.14, 5.70, 4.16)
    default = summary_of(BASELINE, [1e6 * time_ms for time_ms in times_ms])
    best = summary_of(CELL, [1e6 * time_ms for time_ms in (2.13, 2.12, 2.12, 2.11, 2.11, 2.11)])

    gain = known(compare_expected(best, default, margin=0.02))

    assert known(gain.interval).contains(4.13 / 2.11)
