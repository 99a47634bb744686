"""Specifies which cells a race launches, and for how long."""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.tuning import analyse_tuning
from corebound.launch.launch import LaunchResult
from corebound.records.launch_record import Launch
from corebound.records.race import RACE_SHARE, RaceRule, RaceSetup
from corebound.runner import Job, Task, is_complete
from corebound.serving.checks import bottleneck_evidence
from corebound.stats.interference import is_refused
from support.build import a_run, a_served, a_traffic, an_answered
from support.known import known
from support.runs import MODES, a_disturbed_outcome, a_runner, a_task, an_outcome, launched


def test_a_disturbed_launch_is_not_dropped_from_a_race_but_made_again() -> None:
    kept: list[Launch] = []
    dropped = replace(a_disturbed_outcome(), status="dropped", reason="it is too slow.")
    first = iter([dropped])

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    assert kept[0].status == "invalid"
    assert (kept[2].cell.key, kept[2].status) == (kept[0].cell.key, "ok")


@pytest.mark.parametrize(
    ("evidence", "is_repeated"),
    [(None, True), (("CPU 3 was used",), False)],
    ids=["late generator", "wrong CPU"],
)
def test_a_load_generator_that_others_made_late_is_a_disturbance_of_its_launch(
    evidence: tuple[str, ...] | None, *, is_repeated: bool
) -> None:
    late = a_served(answered=an_answered(lateness_ns=[40_000_000] * 100))
    (reason,) = bottleneck_evidence(late.answered, late.traffic, 1)
    invalid = replace(
        a_disturbed_outcome(), status="invalid", served=late, evidence=evidence or (reason,)
    )
    first, kept = iter([invalid]), list[Launch]()

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    assert kept[0].status == "invalid"
    assert is_refused(kept[0]) == is_repeated


def a_race_task(*, rule: RaceRule | None = None) -> Task:
    task = a_task(bindings=("none", "one-cpu", "physical-cores", "logical-cpus"))
    tuning = RaceSetup(objective="latency", rule=rule or RaceRule(max_blocks=10, confirm_blocks=3))
    return replace(task, tuning=tuning)


# The bindings of the task, by the time of an iteration.
RACED_MS = {"none": 2.0, "one-cpu": 9.0, "physical-cores": 1.0, "logical-cpus": 2.2}


def raced(job: Job) -> LaunchResult:
    noise = 1 + 0.001 * (job.block % 3)
    return an_outcome(median_ns=round(1e6 * noise * RACED_MS[job.planned.cell.binding.mode]))


def test_a_race_launches_no_more_what_is_slower_and_the_finalists_again() -> None:
    kept: list[Launch] = []

    ending = a_runner(kept, a_race_task(), launch=raced).run()

    counts = Counter(launch.cell.key for launch in kept)
    assert ending == "complete"
    assert counts["binding=one-cpu"] < counts["binding=physical-cores"]
    last = max(launch.block for launch in kept)
    fresh = {key for block, key in launched(kept) if block > last - 3}
    # The winner, the runner-up, which is the default here.
    assert fresh == {"binding=physical-cores", "binding=none"}


@given(killed_after=st.integers(0, 30))
def test_a_race_that_was_killed_makes_the_same_launches(killed_after: int) -> None:
    whole: list[Launch] = []
    a_runner(whole, a_race_task(), launch=raced).run()
    kept = whole[:killed_after]

    a_runner(kept, a_race_task(), launch=raced).run()

    assert kept == whole
    assert is_complete((a_race_task(),), kept, operators=False)


@pytest.mark.parametrize("seed", range(4))
def test_a_race_leaves_out_what_its_budget_has_no_time_for(seed: int) -> None:
    now_s = 0.0
    kept: list[Launch] = []
    # 8 launches: 2 candidates and 2 fresh ones of 3 finalists.
    rule = RaceRule(max_blocks=10, confirm_blocks=3, budget_s=0.7 * 80, screen_iterations=15)
    task = a_race_task(rule=rule)

    def launch(job: Job) -> LaunchResult:
        nonlocal now_s
        now_s += 10.0
        return raced(job)

    a_runner(kept, task, launch=launch, clock=lambda: now_s, budget_s=80, seed=seed).run()

    skipped = {one.cell.key: one.reason for one in kept if one.status == "skipped"}
    raced_keys = {key for block, key in launched(kept) if block == 0}
    assert "binding=none" in raced_keys  # the default
    assert "binding=one-cpu" in raced_keys  # the most promising other one
    # Before the first launch, its time is unknown.
    assert len(skipped) >= 1
    assert set(skipped.values()) == {"no time left in the budget"}
    tuning = known(task.tuning)
    result = analyse_tuning(
        replace(a_run(seed=seed, scenarios=(task.scenario,)), tuning=tuning), kept
    )
    assert {cell.key for cell, _ in result.skipped} == set(skipped)
    assert result.advice != "unfinished"


def test_a_first_launch_of_a_race_has_a_time_limit_but_the_defaults_has_none() -> None:
    limits: dict[str, float] = {}

    def launch(job: Job) -> LaunchResult:
        if job.block == 0:
            limits[job.planned.cell.binding.mode] = job.planned.measure.timeout_s
        return raced(job)

    a_runner([], a_race_task(), launch=launch).run()

    assert limits["none"] == 600
    assert min(limits.values()) == 30


def test_one_long_first_launch_leaves_no_configuration_of_a_race_out() -> None:
    now_s = 0.0
    kept: list[Launch] = []
    rule = RaceRule(max_blocks=10, confirm_blocks=3, budget_s=0.7 * 150, screen_iterations=15)
    task = a_race_task(rule=rule)

    def launch(job: Job) -> LaunchResult:
        nonlocal now_s
        # With 30 s each there would be time for two only.
        now_s += 30.0 if now_s == 0 else 3.0
        return raced(job)

    a_runner(kept, task, launch=launch, clock=lambda: now_s, budget_s=150).run()

    assert {key for block, key in launched(kept) if block == 0} == {
        f"binding={mode}" for mode in RACED_MS
    }


def a_rate_race_task(*, rule: RaceRule | None = None) -> Task:
    task, traffic = a_race_task(rule=rule), a_traffic(shape="rate-search")
    return replace(task, planned=tuple(replace(one, traffic=traffic) for one in task.planned))


def test_a_late_load_generator_screens_no_configuration_out() -> None:
    rule = RaceRule(confirm_blocks=3, budget_s=1000.0, screen_iterations=15)
    late = a_served(answered=an_answered(lateness_ns=[40_000_000] * 100))
    evidence = bottleneck_evidence(late.answered, late.traffic, 1)
    invalid = replace(a_disturbed_outcome(), status="invalid", served=late, evidence=evidence)
    kept, now_s = list[Launch](), 0.0

    def launch(job: Job) -> LaunchResult:
        nonlocal now_s
        now_s += 1.0
        return invalid if now_s == 1.0 else raced(job)

    task = a_rate_race_task(rule=rule)
    a_runner(kept, task, launch=launch, clock=lambda: now_s, budget_s=1000).run()

    again = [one for one in kept if one.block == 0 and one.cell.key == kept[0].cell.key]
    assert [one.status for one in again] == ["invalid", "ok"]


def test_a_first_search_for_a_rate_ends_if_it_cannot_come_near_the_highest_one() -> None:
    task = a_rate_race_task()
    highest_per_s = 0.0
    limited: dict[str, bool] = {}

    def launch(job: Job) -> LaunchResult:
        nonlocal highest_per_s
        mode, planned = job.planned.cell.binding.mode, job.planned.traffic
        assert planned is not None
        if job.block == 0:
            limited[mode] = planned.least_per_s is not None
        if planned.least_per_s is not None:
            assert job.block == 0
            assert 0.5 * highest_per_s < planned.least_per_s < highest_per_s
        highest_per_s = max(highest_per_s, 1000 / RACED_MS[mode])
        return raced(job)

    a_runner([], task, launch=launch).run()

    # The default, which the winner is compared with, and the very first one search on.
    assert not limited["none"]
    assert sum(limited.values()) in {2, 3}


def test_a_cell_whose_first_launch_ended_early_has_no_other() -> None:
    def launch(job: Job) -> LaunchResult:
        if job.planned.cell.binding.mode == "one-cpu":
            return replace(raced(job), status="dropped", reason="it is too slow.", workers=())
        return raced(job)

    kept: list[Launch] = []
    a_runner(kept, a_rate_race_task(), launch=launch).run()

    assert [block for block, key in launched(kept) if key == "binding=one-cpu"] == [0]
    assert (1, "binding=physical-cores") in launched(kept)


def a_screened_task(budget_s: float) -> Task:
    """Twenty configurations; the default is forty times as slow as the best."""
    task = a_task(bindings=MODES, sides=("40", "1", "2", "4"))
    rule = RaceRule(
        max_blocks=10, confirm_blocks=3, budget_s=RACE_SHARE * budget_s, screen_iterations=15
    )
    return replace(task, tuning=RaceSetup(objective="latency", rule=rule))


def screened(job: Job) -> LaunchResult:
    cell = job.planned.cell
    cost = (1 + MODES.index(cell.binding.mode)) * float(dict(cell.parameters)["side"])
    noise = 1 + 0.001 * (job.block % 3)
    return an_outcome(median_ns=round(1e6 * noise * cost))


class Timed:
    """Launches that take as long as they say, on a clock that they move."""

    def __init__(self, launch_s: Callable[[Job], float]) -> None:
        self.now_s = 0.0
        self.jobs: list[Job] = []
        self._launch_s = launch_s

    def __call__(self, job: Job) -> LaunchResult:
        self.jobs.append(job)
        self.now_s += self._launch_s(job)
        return screened(job)

    def run(self, kept: list[Launch], task: Task, budget_s: float) -> str:
        clock = partial(getattr, self, "now_s")
        return a_runner(kept, task, launch=self, clock=clock, budget_s=budget_s).run()


def test_a_budget_screens_all_configurations_briefly_and_in_order() -> None:
    kept: list[Launch] = []
    timed = Timed(lambda _job: 1.0)
    task = a_screened_task(100)
    timed.run(kept, task, 100)

    first = timed.jobs[: len(task.launchable)]
    assert [job.key for job in first] == [cell.key for cell in task.raced.cells]
    assert {request.iterations for job in first for request in job.planned.requests} == {15}
    result = analyse_tuning(replace(a_run(scenarios=(task.scenario,)), tuning=task.tuning), kept)
    assert known(result.recommended).key == "binding=none,side=1"
    # The race is of longer launches.
    last = timed.jobs[-1].planned.requests[0]
    assert last.iterations > 15
    assert known(last.enough_ns) <= 2_000_000_000


def test_a_default_that_is_hopeless_is_launched_again_beside_the_winner() -> None:
    task = a_screened_task(100)
    slow = task.raced.default
    kept: list[Launch] = []
    Timed(lambda _job: 1.0).run(kept, task, 100)

    blocks = [block for block, key in launched(kept) if key == slow]
    assert blocks[0] == 0
    assert blocks[1:] == list(range(max(blocks) - 2, max(blocks) + 1))


@given(launch_s=st.lists(st.floats(0.1, 12), min_size=1, max_size=7), budget_s=st.floats(10, 300))
def test_a_race_ends_with_its_budget_or_half_a_launch_later(
    launch_s: list[float], budget_s: float
) -> None:
    timed = Timed(lambda job: launch_s[job.planned.requests[0].iterations % len(launch_s)])
    timed.run([], a_screened_task(budget_s), budget_s)

    assert timed.now_s <= budget_s + max(launch_s)


@given(killed_after=st.integers(0, 60), launch_s=st.sampled_from([0.5, 2.0, 5.0]))
def test_a_screening_that_was_killed_makes_the_same_launches(
    killed_after: int, launch_s: float
) -> None:
    whole: list[Launch] = []
    task = a_screened_task(100)
    Timed(lambda _job: launch_s).run(whole, task, 100)
    kept = whole[:killed_after]

    Timed(lambda _job: launch_s).run(kept, task, 100)

    same = min(len(kept), len(whole))
    assert [one.id for one in kept[:same]] == [one.id for one in whole[:same]]


def test_no_launch_of_a_screening_may_take_a_quarter_of_the_budget() -> None:
    timed = Timed(lambda _job: 1.0)
    timed.run([], a_screened_task(100), 100)

    limits = [job.planned.measure.timeout_s for job in timed.jobs]
    assert max(limits) == 25
    assert set(limits[1:20]) == {2 * 1.0 + 5.0}
