"""Specifies the order of a run's launches, and that none is lost or repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.tuning import analyse_tuning
from corebound.launch.launch import LaunchResult
from corebound.planning.duplicates import mark_duplicates
from corebound.planning.plan import HostCapabilities, PlannedCell, plan_cells
from corebound.records.launch_record import Kind, Launch, Status
from corebound.records.telemetry import Pauses
from corebound.records.tuning import RaceRule, Tuning
from corebound.runner import Clock, Ending, Job, Runner, Task, is_complete
from corebound.runner.launcher import requests
from corebound.scenario.cell import Binding, Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Alternating, Measure
from corebound.worker.protocol import EndedBy
from support.build import (
    a_host,
    a_host_over_time,
    a_run,
    a_scenario,
    a_thread,
    a_traffic,
    a_window,
    a_worker,
)


class Silent:
    """Watches nothing."""

    def started(self, job: Job, *, left: Mapping[str, int]) -> None: ...
    def ended(self, launch: Launch) -> None: ...
    def tick(self) -> None: ...


class Stopped(Exception):
    """Stands for a kill -9 of the runner."""


def an_outcome(
    status: Status = "ok", *, median_ns: int = 1_000_000, ended_by: EndedBy | None = None
) -> LaunchResult:
    return LaunchResult(
        ended_by=ended_by,
        status=status,
        reason=None if status == "ok" else "it was so",
        fix=None,
        evidence=(),
        duration_ns=1,
        overhead_ns=0,
        looks=0,
        look_ns=0,
        workers=(a_worker(wall_ns=(median_ns,) * 20),) if status == "ok" else (),
        leftover_processes=(),
        log="",
    )


def a_task(
    *,
    name: str = "a-scenario",
    bindings: Sequence[object] = ("none", "one-cpu"),
    least: int = 3,
    most: int = 3,
    operators: int | None = None,
    environment: str = "host",
    relaunch_disturbed: int | None = None,
    alternate: Alternating = "never",
    sides: Sequence[str] = (),
) -> Task:
    scenario = a_scenario(
        name=name,
        environment=environment,
        workload="steps:short",
        matrix={
            "binding": list(bindings),
            **({"parameters": {"side": list(sides)}} if sides else {}),
        },
        **({"baseline": {"parameters": {"side": sides[0]}}} if sides else {}),
        measure={
            "alternate": alternate,
            "launches": {"min": least, "max": most},
            **({"operators": operators} if operators else {}),
            **({} if relaunch_disturbed is None else {"relaunch_disturbed": relaunch_disturbed}),
        },
    )
    means = HostCapabilities(
        topology=a_host(),
        tools=frozenset({"taskset", "numactl"}),
        pythons={environment: "/usr/bin/python3"},
    )
    cells = expand(scenario, "a.yaml")
    return Task(
        scenario=scenario,
        planned=plan_cells(scenario, cells, means, folder="/suite", profile=None, seed=1),
    )


def one_by_one(
    launch: Callable[[Job], LaunchResult],
) -> Callable[[Sequence[Job]], tuple[LaunchResult, ...]]:
    """Launch each job; those of a group have been paused for each other."""

    def launch_group(jobs: Sequence[Job]) -> tuple[LaunchResult, ...]:
        pauses = Pauses(duration_ns=1_000, cpu_ns=0) if len(jobs) > 1 else None
        return tuple(replace(launch(job), pauses=pauses) for job in jobs)

    return launch_group


def a_runner(
    kept: list[Launch],
    *tasks: Task,
    launch: Callable[[Job], LaunchResult] = lambda _job: an_outcome(),
    seed: int = 1,
    budget_s: float | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    operators: bool = True,
) -> Runner:
    return Runner(
        a_run(seed=seed),
        tasks,
        done=tuple(kept),
        append=kept.append,
        launch=one_by_one(launch),
        observer=Silent(),
        clock=Clock(monotonic_s=clock, now=lambda: "2026-01-02T03:04:05Z"),
        budget_s=budget_s,
        operators=operators,
    )


def launched(kept: Sequence[Launch]) -> list[tuple[int, str]]:
    return [
        (launch.block, launch.cell.key)
        for launch in kept
        if launch.status != "skipped" and launch.kind == "measure"
    ]


def profiled(kept: Sequence[Launch]) -> list[str]:
    return [launch.cell.key for launch in kept if launch.kind == "profile"]


def test_duplicates_are_not_launched_and_share_the_baseline_of_the_measured_cell() -> None:
    scenario = a_scenario(
        matrix={"binding": ["none", "node", "one-cpu"], "parameters": {"side": ["a", "b"]}},
        baseline={"binding": "node"},
        workload="steps:short",
        measure={"launches": {"min": 2, "max": 2}, "alternate": "always"},
    )
    host = HostCapabilities(
        topology=a_host(), tools=frozenset({"taskset"}), pythons={"host": "/usr/bin/python3"}
    )
    cells = expand(scenario, "a.yaml")
    planned = plan_cells(scenario, cells, host, folder="/suite", profile=None, seed=1)
    task = Task(scenario=scenario, planned=mark_duplicates(scenario, planned, host.topology))
    kept: list[Launch] = []

    a_runner(kept, task).run()

    assert set(launched(kept)) == {
        (block, f"binding={mode},side={side}")
        for block in range(2)
        for mode in ("node", "one-cpu")
        for side in "ab"
    }
    assert all(launch.alternated for launch in kept)
    assert is_complete((task,), kept, operators=True)


def test_every_field_of_a_launchs_result_is_in_its_record() -> None:
    assert set(LaunchResult.__struct_fields__) <= set(Launch.__struct_fields__)


def test_every_block_launches_every_cell_once() -> None:
    kept: list[Launch] = []

    ending = a_runner(kept, a_task()).run()

    assert ending == "complete"
    assert sorted(launched(kept)) == [
        (block, f"binding={mode}") for block in range(3) for mode in ("none", "one-cpu")
    ]
    assert [launch.block for launch in kept] == sorted(launch.block for launch in kept)


def test_the_order_within_blocks_is_the_seeds() -> None:
    def order(seed: int) -> list[tuple[int, str]]:
        kept: list[Launch] = []
        a_runner(kept, a_task(bindings=MODES), seed=seed).run()
        return launched(kept)

    assert order(1) == order(1)
    assert order(1) != order(2)


MODES = ("none", "one-cpu", "physical-cores", "logical-cpus", "node")


def test_a_cell_the_host_cannot_hold_is_recorded_once_with_its_reason() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(bindings=("none", "smt-siblings"))).run()

    skipped = [launch for launch in kept if launch.status == "skipped"]
    assert [launch.cell.key for launch in skipped] == ["binding=smt-siblings"]
    assert skipped[0].reason
    assert skipped[0].fix


def test_a_cell_that_keeps_failing_is_given_up() -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        bad = job.planned.cell.binding == Binding(mode="one-cpu")
        return an_outcome("failed" if bad else "ok")

    a_runner(kept, a_task(least=6, most=6), launch=launch).run()

    assert launched(kept).count((0, "binding=one-cpu")) == 1
    assert sum(key == "binding=one-cpu" for _, key in launched(kept)) == 2
    assert sum(key == "binding=none" for _, key in launched(kept)) == 6


@pytest.mark.parametrize(
    ("outcome", "times"),
    [
        (an_outcome("failed", ended_by="error"), 1),
        (an_outcome("failed", ended_by="crash"), 2),
        (an_outcome("failed", ended_by="kill"), 2),
        (an_outcome("failed"), 2),
        (an_outcome("timed-out"), 2),
    ],
)
@pytest.mark.parametrize("alternate", ["never", "always"])
def test_a_cell_whose_program_has_an_error_of_its_own_is_launched_once(
    outcome: LaunchResult, times: int, alternate: Alternating
) -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        return outcome if side_of(job.planned.cell) == "b" else an_outcome()

    a_runner(kept, two_alike(alternate=alternate, least=4, most=4), launch=launch).run()

    failed = [one for one in kept if one.status != "ok"]
    assert len(failed) == times
    assert all(("not launched again" in (one.fix or "")) == (times == 1) for one in failed)
    assert len(kept) == 4 + times


@pytest.mark.parametrize("block", range(1, 4))
def test_an_error_after_a_success_is_no_reason_to_give_up(block: int) -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        fails = job.block == block
        return an_outcome("failed", ended_by="error") if fails else an_outcome()

    a_runner(kept, a_task(bindings=("none",), least=4, most=4), launch=launch).run()

    assert [one.status for one in kept].count("failed") == 1
    assert len(kept) == 4
    assert not any(one.fix for one in kept)


@pytest.mark.parametrize("alternate", ["never", "always"])
@pytest.mark.parametrize(
    ("outcome", "is_repeated"),
    [
        (an_outcome("failed", ended_by="kill"), True),
        (an_outcome("failed", ended_by="crash"), False),
        (an_outcome("failed", ended_by="error"), False),
        (an_outcome("failed"), False),
        (an_outcome("timed-out"), False),
    ],
)
def test_a_resumed_run_repeats_what_was_killed_from_outside_and_nothing_else(
    outcome: LaunchResult, alternate: Alternating, *, is_repeated: bool
) -> None:
    kept: list[Launch] = []
    task = two_alike(alternate=alternate)

    def launch(job: Job) -> LaunchResult:
        return outcome if side_of(job.planned.cell) == "b" else an_outcome()

    a_runner(kept, task, launch=launch).run()
    before = len(kept)
    assert is_complete((task,), kept, operators=True) == (not is_repeated)
    a_runner(kept, task).run()

    again = [(one.block, one.cell.key) for one in kept[before:]]
    ids = [one.id for one in kept]
    assert len(set(ids)) == len(ids)
    assert bool(again) == is_repeated
    assert is_complete((task,), kept, operators=True)
    of_b = [one for one in kept if side_of(one.cell) == "b" and one.status == "ok"]
    assert len(of_b) == (3 if is_repeated else 0)


def test_a_killed_profile_is_made_again_by_a_resumed_run() -> None:
    kept: list[Launch] = []
    task = a_task(bindings=("none",), operators=5, environment="pytorch")
    killed = an_outcome("failed", ended_by="kill")

    a_runner(kept, task, launch=lambda job: killed if job.kind == "profile" else an_outcome()).run()
    assert len(profiled(kept)) == 1
    a_runner(kept, task).run()

    assert len(profiled(kept)) == 2
    assert len({one.id for one in kept}) == len(kept)
    assert is_complete((task,), kept, operators=True)


def test_no_launch_starts_after_the_budget() -> None:
    kept: list[Launch] = []
    seconds = iter(range(1000))

    ending = a_runner(kept, a_task(), budget_s=4.5, clock=lambda: float(next(seconds))).run()

    assert ending == "out of time"
    assert 0 < len(kept) < 6


def test_no_launch_starts_of_which_less_than_half_would_fit_into_the_budget() -> None:
    def launched_in(budget_s: float) -> int:
        kept: list[Launch] = []
        now_s = 0.0

        def ten_seconds(_job: Job) -> LaunchResult:
            nonlocal now_s
            now_s += 10
            return an_outcome()

        task = a_task(bindings=("none",))
        a_runner(kept, task, launch=ten_seconds, budget_s=budget_s, clock=lambda: now_s).run()
        return len(kept)

    # Only the first one shows how long a launch takes.
    assert [launched_in(seconds) for seconds in (1, 14, 16, 24, 26)] == [1, 1, 2, 2, 3]


def test_with_a_budget_each_scenario_gets_the_two_blocks_that_an_interval_needs() -> None:
    def order(budget_s: float | None) -> list[tuple[str, int]]:
        kept: list[Launch] = []
        tasks = [a_task(name=name, bindings=("none",)) for name in ("a", "b")]
        a_runner(kept, *tasks, budget_s=budget_s).run()
        return [(launch.cell.scenario, launch.block) for launch in kept]

    assert order(None) == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert order(60.0) == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("a", 2), ("b", 2)]


def test_in_a_first_block_a_launch_is_expected_to_take_as_long_as_other_cells_took() -> None:
    kept: list[Launch] = []
    now_s = 0.0

    def ten_seconds(_job: Job) -> LaunchResult:
        nonlocal now_s
        now_s += 10
        return an_outcome()

    task = a_task(bindings=("none", "one-cpu", "node"))
    a_runner(kept, task, launch=ten_seconds, budget_s=14, clock=lambda: now_s).run()

    assert len(kept) == 1


@pytest.mark.parametrize(
    ("budget_s", "expected_s"), [(None, 2.0), (3600.0, 2.0), (10.0, 1.25), (1.0, 0.125)]
)
def test_first_launches_iterate_for_at_most_a_quarter_of_the_budget(
    budget_s: float | None, expected_s: float
) -> None:
    seen: set[int | None] = set()

    def note(job: Job) -> LaunchResult:
        seen.add(job.planned.requests[0].enough_ns)
        return an_outcome()

    # Two cells share the quarter.
    task = a_task(bindings=("none", "one-cpu"))
    a_runner([], task, launch=note, budget_s=budget_s).run()

    assert seen == {round(expected_s * 1e9)}


def test_cells_whose_ratio_is_wide_get_more_launches_up_to_the_most() -> None:
    kept: list[Launch] = []
    medians_ns = iter(range(1_000_000, 100_000_000, 700_000))

    a_runner(
        kept,
        a_task(least=3, most=7),
        launch=lambda _job: an_outcome(median_ns=next(medians_ns)),
    ).run()

    assert max(block for block, _ in launched(kept)) == 6


@given(stop=st.integers(0, 14), again=st.integers(0, 14), seed=st.integers(0, 50))
def test_a_killed_run_goes_on_as_if_it_had_not_been(stop: int, again: int, seed: int) -> None:
    whole: list[Launch] = []
    a_runner(whole, a_task(bindings=MODES), seed=seed).run()

    kept: list[Launch] = []
    for limit in (stop, again):
        _run_until(kept, limit, seed=seed)
    a_runner(kept, a_task(bindings=MODES), seed=seed).run()

    assert launched(kept) == launched(whole)


@given(
    stop=st.integers(0, 30),
    operators=st.booleans(),
    seed=st.integers(0, 50),
    least=st.integers(2, 4),
)
def test_a_run_is_complete_when_going_on_would_record_nothing(
    stop: int, operators: bool, seed: int, least: int
) -> None:
    task = a_task(bindings=("none", "one-cpu", {"cpus": "60000"}), least=least, most=4, operators=5)
    whole: list[Launch] = []
    a_runner(whole, task, seed=seed, operators=operators).run()
    done = whole[:stop]

    complete = is_complete((task,), done, operators=operators)

    assert complete == (len(done) == len(whole))


def test_a_run_that_lacks_only_profiles_is_complete_where_none_are_wanted() -> None:
    task = a_task(operators=5)
    kept: list[Launch] = []
    a_runner(kept, task, operators=False).run()

    assert is_complete((task,), kept, operators=False)
    assert not is_complete((task,), kept, operators=True)


def _run_until(kept: list[Launch], limit: int, *, seed: int) -> Ending | None:
    budget = iter(range(limit))

    def launch(_job: Job) -> LaunchResult:
        if next(budget, None) is None:
            raise Stopped
        return an_outcome()

    try:
        return a_runner(kept, a_task(bindings=MODES), seed=seed, launch=launch).run()
    except Stopped:
        return None


def test_scenarios_take_turns_block_by_block() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(), a_task(name="other")).run()

    turns = [(launch.block, launch.cell.scenario) for launch in kept]
    assert list(dict.fromkeys(turns)) == [
        (block, name) for block in range(3) for name in ("a-scenario", "other")
    ]


def test_a_favoured_scenario_has_several_blocks_a_turn_and_no_more_launches() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(), replace(a_task(name="other"), turns=2)).run()

    turns = [(launch.block, launch.cell.scenario) for launch in kept]
    assert list(dict.fromkeys(turns)) == [
        (0, "a-scenario"), (0, "other"), (1, "other"),
        (1, "a-scenario"), (2, "other"), (2, "a-scenario"),
    ]  # fmt: skip


def test_operators_are_profiled_once_a_cell_when_all_is_measured() -> None:
    kept: list[Launch] = []
    task = a_task(operators=5, environment="pytorch")

    ending = a_runner(kept, task).run()

    assert ending == "complete"
    assert profiled(kept) == ["binding=none", "binding=one-cpu"]
    assert [launch.kind for launch in kept] == ["measure"] * 6 + ["profile"] * 2
    assert [launch.id for launch in kept[6:]] == ["a-scenario-profile-0", "a-scenario-profile-1"]


def test_a_profile_is_not_repeated_by_a_run_that_goes_on() -> None:
    kept: list[Launch] = []
    task = a_task(operators=5, environment="pytorch")
    a_runner(kept, task).run()
    before = list(kept)

    a_runner(kept, task).run()

    assert kept == before


def test_a_profile_that_failed_is_not_tried_again() -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        return an_outcome("failed" if job.kind == "profile" else "ok")

    for _ in range(2):
        a_runner(kept, a_task(operators=5, environment="pytorch"), launch=launch).run()

    assert profiled(kept) == ["binding=none", "binding=one-cpu"]


def test_no_operators_are_profiled_where_they_are_not_asked_for() -> None:
    for task, operators in (
        (a_task(environment="pytorch"), True),
        (a_task(operators=5, environment="pytorch"), False),
    ):
        kept: list[Launch] = []
        a_runner(kept, task, operators=operators).run()
        assert profiled(kept) == []


def test_operators_that_cannot_be_profiled_are_a_skip_with_its_reason() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(operators=5)).run()

    skips = [launch for launch in kept if launch.kind == "profile"]
    assert [launch.status for launch in skips] == ["skipped", "skipped"]
    assert "no operators to profile" in str(skips[0].reason)


def test_a_cell_the_host_cannot_hold_is_not_profiled() -> None:
    kept: list[Launch] = []
    task = a_task(operators=5, environment="pytorch", bindings=("none", "smt-siblings"))

    a_runner(kept, task).run()

    assert profiled(kept) == ["binding=none"]


def test_no_profile_starts_after_the_budget() -> None:
    kept: list[Launch] = []
    # Each launch looks at the clock three times: before it, as it starts, as it ends.
    seconds = iter(range(1000))
    task = a_task(operators=5, environment="pytorch")

    ending = a_runner(kept, task, budget_s=18.5, clock=lambda: float(next(seconds))).run()

    assert ending == "out of time"
    assert (len(launched(kept)), profiled(kept)) == (6, [])


def test_a_profile_is_asked_for_in_the_request_and_measuring_is_not_changed() -> None:
    planned = a_task(operators=5, environment="pytorch").planned[0]

    assert requests(a_job(planned, "profile"))[0].operators == 5
    assert requests(a_job(planned, "measure")) == planned.requests
    assert planned.requests[0].operators is None


def a_job(planned: PlannedCell, kind: Kind) -> Job:
    return Job(name="a", kind=kind, block=0, position=0, planned=planned)


def a_disturbed_outcome() -> LaunchResult:
    """Twenty iterations of 100 ms on a CPU of which half was stolen."""
    windows = (a_window(from_ms=500 * at, to_ms=500 * at + 500, steal_ms=250) for at in range(4))
    return replace(an_outcome(median_ns=100_000_000), host=a_host_over_time(*windows))


def test_a_disturbed_launch_is_refused_and_made_again_at_the_end_of_its_block() -> None:
    kept: list[Launch] = []
    first = iter([a_disturbed_outcome()])

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    refused, *others = kept
    assert refused.status == "invalid"
    assert refused.disturbance is not None
    assert refused.disturbance.refused
    assert refused.evidence == refused.disturbance.evidence
    assert [(one.first, one.last) for one in refused.workers[0].disturbed] == [(1, 19)]
    again = kept[2]
    assert (again.block, again.cell.key) == (0, refused.cell.key)
    assert (again.id, again.attempt) == (f"{refused.id}-again-1", 1)
    assert all(launch.status == "ok" for launch in others)
    assert len(kept) == 7


def test_a_disturbed_launch_is_not_dropped_from_a_race_but_made_again() -> None:
    kept: list[Launch] = []
    dropped = replace(a_disturbed_outcome(), status="dropped", reason="it is too slow.")
    first = iter([dropped])

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    assert kept[0].status == "invalid"
    assert (kept[2].cell.key, kept[2].status) == (kept[0].cell.key, "ok")


def test_the_name_of_a_launch_that_is_made_again_is_that_of_the_first_whatever_it_is() -> None:
    kept: list[Launch] = []
    first = iter([a_disturbed_outcome()])

    a_runner(
        kept, a_task(name="is-it-again-slow"), launch=lambda _job: next(first, None) or an_outcome()
    ).run()

    assert kept[2].id == f"{kept[0].id}-again-1"


def test_a_host_that_disturbs_everything_makes_no_run_endless_and_no_cell_empty() -> None:
    kept: list[Launch] = []

    ending = a_runner(kept, a_task(), launch=lambda _job: a_disturbed_outcome()).run()

    assert ending == "complete"
    for key in ("binding=none", "binding=one-cpu"):
        statuses = [launch.status for launch in kept if launch.cell.key == key]
        assert statuses.count("invalid") == Measure().relaunch_disturbed
        assert statuses.count("ok") == 3
    assert all(launch.disturbance is not None for launch in kept)
    assert len({launch.id for launch in kept}) == len(kept)


def test_a_scenario_may_keep_every_disturbed_launch_and_each_is_marked() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(relaunch_disturbed=0), launch=lambda _job: a_disturbed_outcome()).run()

    assert [launch.status for launch in kept] == ["ok"] * 6
    assert all(launch.disturbance and not launch.disturbance.refused for launch in kept)
    assert all(launch.workers[0].disturbed for launch in kept)


def test_refused_launches_are_made_again_within_the_budget_only() -> None:
    kept: list[Launch] = []
    seconds = iter(range(1000))

    ending = a_runner(
        kept,
        a_task(),
        launch=lambda _job: a_disturbed_outcome(),
        budget_s=4.5,
        clock=lambda: float(next(seconds)),
    ).run()

    assert ending == "out of time"
    assert len(kept) < 3


def test_a_run_killed_after_a_refused_launch_makes_it_again() -> None:
    whole: list[Launch] = []
    a_runner(whole, a_task(), launch=lambda _job: a_disturbed_outcome()).run()

    for stop in range(len(whole)):
        kept = whole[:stop]
        a_runner(kept, a_task(), launch=lambda _job: a_disturbed_outcome()).run()

        assert sorted(launch.id for launch in kept) == sorted(launch.id for launch in whole)


def test_a_launch_that_failed_is_not_also_refused() -> None:
    kept: list[Launch] = []

    a_runner(
        kept, a_task(), launch=lambda _job: replace(a_disturbed_outcome(), status="failed")
    ).run()

    assert {launch.status for launch in kept} == {"failed"}


def test_a_launch_that_ran_out_of_time_while_it_was_stopped_is_made_again() -> None:
    kept: list[Launch] = []
    stopped = a_host_over_time(
        a_window(), a_window(from_ms=500, to_ms=9000, suspended_ns=8 * 10**9)
    )
    late = replace(an_outcome("timed-out"), host=stopped)
    first = iter([late, replace(late, host=a_host_over_time(a_window()))])

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    assert [launch.status for launch in kept[:3]] == ["invalid", "timed-out", "ok"]
    assert "suspended for 8.00 s" in (kept[0].reason or "")
    assert kept[2].id == f"{kept[0].id}-again-1"


def a_disturbed_profile() -> LaunchResult:
    """Of two seconds, during the first half second of which half of a CPU was stolen."""
    windows = (
        a_window(from_ms=500 * at, to_ms=500 * at + 500, steal_ms=0 if at else 250)
        for at in range(4)
    )
    return replace(an_outcome(), workers=(a_worker(wall_ns=()),), host=a_host_over_time(*windows))


def test_a_disturbed_profile_is_made_again_when_the_others_have_been() -> None:
    whole: list[Launch] = []
    task = a_task(operators=5, environment="pytorch")

    def launch_with(first: list[LaunchResult]) -> Callable[[Job], LaunchResult]:
        return lambda job: first.pop() if job.kind == "profile" and first else an_outcome()

    a_runner(whole, task, launch=launch_with([a_disturbed_profile()])).run()

    made = [one for one in whole if one.kind == "profile"]
    assert [(one.id, one.status) for one in made] == [
        ("a-scenario-profile-0", "invalid"),
        ("a-scenario-profile-1", "ok"),
        ("a-scenario-profile-0-again-1", "ok"),
    ]
    # A run that was killed before it was made again does so.
    kept = whole[: whole.index(made[0]) + 1]
    a_runner(kept, task).run()
    assert sorted(one.id for one in kept) == sorted(one.id for one in whole)


def test_a_host_that_disturbs_every_profile_is_given_up_and_the_last_one_kept() -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        return a_disturbed_profile() if job.kind == "profile" else an_outcome()

    a_runner(kept, a_task(operators=5, environment="pytorch"), launch=launch).run()

    for key in ("binding=none", "binding=one-cpu"):
        made = [one.status for one in kept if one.kind == "profile" and one.cell.key == key]
        assert made == ["invalid"] * Measure().relaunch_disturbed + ["ok"]


def test_launches_that_do_not_count_say_nothing_of_when_to_stop() -> None:
    def made(*, invalid_ns: int) -> list[tuple[int, str]]:
        kept: list[Launch] = []

        def launch(job: Job) -> LaunchResult:
            if job.block in {1, 4} and job.planned.cell.binding.mode == "one-cpu":
                bad = an_outcome(median_ns=invalid_ns)
                return replace(bad, status="invalid", evidence=("it moved",))
            return an_outcome(median_ns=1_000_000 + job.block * 1_000)

        a_runner(kept, a_task(least=6, most=30), launch=launch).run()
        return launched(kept)

    # Four launches that count are alike to a few tenths of a per cent.
    assert max(block for block, _ in made(invalid_ns=1_000_000)) == 5
    assert made(invalid_ns=1_000_000) == made(invalid_ns=90_000_000)


def two_alike(**asked: Any) -> Task:
    """Two cells that differ in a parameter alone, so that they may alternate."""
    return a_task(bindings=("one-cpu",), sides=("a", "b"), **{"alternate": "auto", **asked})


def test_cells_that_alternate_are_launched_together_and_their_records_name_one_another() -> None:
    kept: list[Launch] = []

    a_runner(kept, two_alike(least=2, most=2)).run()

    assert [launch.block for launch in kept] == [0, 0, 1, 1]
    for one, other in (kept[:2], kept[2:]):
        assert one.alternated == (other.id,)
        assert other.alternated == (one.id,)


def test_launches_of_their_own_name_no_other() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task()).run()

    assert {launch.alternated for launch in kept} == {()}


def test_of_launches_that_alternated_all_are_made_again_if_one_was_disturbed() -> None:
    kept: list[Launch] = []
    first = iter([an_outcome(), a_disturbed_outcome()])

    a_runner(
        kept, two_alike(least=2, most=2), launch=lambda _job: next(first, None) or an_outcome()
    ).run()

    refused, again = kept[:2], kept[2:4]
    assert [launch.status for launch in refused] == ["invalid", "invalid"]
    assert "alternated with was disturbed" in (refused[0].reason or "")
    assert [(launch.status, launch.block, launch.attempt) for launch in again] == [("ok", 0, 1)] * 2
    assert again[0].alternated == (again[1].id,)


def three_alike(*disturbed: str, least: int = 2) -> tuple[list[Launch], list[list[str]]]:
    """A run of a baseline and two cells, the first launches of some of which are disturbed.

    Returns:
        Its launches, and for each group of launches that alternated its sides.
    """
    kept: list[Launch] = []
    task = a_task(
        bindings=("one-cpu",), sides=("base", "b", "c"), alternate="auto", least=least, most=least
    )
    left = set(disturbed)
    groups: list[list[str]] = []

    def launch(job: Job) -> LaunchResult:
        side = side_of(job.planned.cell)
        if side not in left:
            return an_outcome()
        left.remove(side)
        return a_disturbed_outcome()

    runner = a_runner(kept, task, launch=launch)
    launch_all = runner._launch_all

    def noting(jobs: Sequence[Job]) -> Sequence[LaunchResult]:
        groups.append(sorted(side_of(job.planned.cell) for job in jobs))
        return launch_all(jobs)

    runner._launch_all = noting
    runner.run()
    return kept, groups


def side_of(cell: Cell) -> str:
    return str(dict(cell.parameters)["side"])


def test_a_disturbed_launch_of_several_that_alternated_costs_one_more_of_its_baseline() -> None:
    kept, groups = three_alike("b")

    assert groups == [["b", "base", "c"], ["b", "base", "c"], ["b", "base"]]
    counts = Counter((side_of(launch.cell), launch.status) for launch in kept)
    assert counts == {
        ("base", "ok"): 3, ("b", "ok"): 2, ("c", "ok"): 2, ("b", "invalid"): 1,
    }  # fmt: skip


@pytest.mark.parametrize("disturbed", [("base",), ("base", "b"), ("b", "c")])
def test_without_a_pair_that_is_not_disturbed_all_are_made_again(disturbed: Sequence[str]) -> None:
    kept, groups = three_alike(*disturbed)

    assert groups == [["b", "base", "c"]] * 3
    assert [launch.status for launch in kept] == ["invalid"] * 3 + ["ok"] * 6
    assert [launch.block for launch in kept] == [0] * 6 + [1] * 3


def test_a_resumed_run_leaves_out_the_same_launch() -> None:
    whole, _ = three_alike("b", least=3)
    task = a_task(bindings=("one-cpu",), sides=("base", "b", "c"), alternate="auto", most=3)
    # A block is on disk as a whole: the first has three launches.
    for stop in range(3, len(whole) + 1, 3):
        kept = whole[:stop]
        a_runner(kept, task).run()

        assert sorted(launch.id for launch in kept) == sorted(launch.id for launch in whole)


def test_a_launch_for_which_there_was_no_memory_did_not_alternate() -> None:
    kept: list[Launch] = []
    runner = a_runner(kept, two_alike(least=2, most=2))
    alternated = replace(an_outcome(), pauses=Pauses(duration_ns=1_000, cpu_ns=0))
    runner._launch_all = lambda _jobs: (alternated, an_outcome())

    runner.run()

    assert {launch.alternated for launch in kept} == {()}


def test_a_cell_that_ran_while_it_was_paused_no_longer_alternates() -> None:
    kept: list[Launch] = []
    groups: list[int] = []

    def launch_group(jobs: Sequence[Job]) -> tuple[LaunchResult, ...]:
        groups.append(len(jobs))
        return tuple(
            replace(an_outcome(), pauses=Pauses(duration_ns=10_000_000, cpu_ns=5_000_000))
            for _ in jobs
        )

    runner = a_runner(kept, two_alike(least=2, most=2))
    runner._launch_all = launch_group
    runner.run()

    assert groups == [2, 1, 1]


def with_busy_threads(number: int) -> LaunchResult:
    """A launch that keeps so many threads busy."""
    wall_ns = (1_000_000,) * 21
    threads = tuple(a_thread(tid=tid, run_ns=18_000_000) for tid in range(number))
    return replace(an_outcome(), workers=(a_worker(wall_ns=wall_ns, threads=threads),))


def busy_by_side(**number_by_side: int) -> list[Launch]:
    """A run of sides that keep so many threads busy; `a` is the baseline."""
    kept: list[Launch] = []
    task = a_task(
        bindings=("one-cpu",), sides=tuple(number_by_side), alternate="auto", least=2, most=2
    )
    a_runner(
        kept,
        task,
        launch=lambda job: with_busy_threads(number_by_side[side_of(job.planned.cell)]),
    ).run()
    return kept


def test_a_launch_that_keeps_more_threads_busy_than_its_baseline_no_longer_alternates() -> None:
    kept = busy_by_side(a=1, b=1, c=2)

    refused = [launch for launch in kept if launch.status == "invalid"]
    assert [(side_of(launch.cell), launch.block) for launch in refused] == [("c", 0)]
    assert "2 threads" in (refused[0].reason or "")
    others = {
        (launch.block, side_of(launch.cell)): len(launch.alternated)
        for launch in kept
        if launch.status == "ok"
    }
    assert others == {
        (0, "a"): 2, (0, "b"): 2, (0, "c"): 0, (1, "a"): 1, (1, "b"): 1, (1, "c"): 0,
    }  # fmt: skip


def test_a_baseline_that_alternated_only_with_such_a_launch_is_launched_again_too() -> None:
    kept = busy_by_side(a=2, b=1)

    assert [launch.status for launch in kept] == ["invalid"] * 2 + ["ok"] * 4
    assert [launch.alternated for launch in kept[2:]] == [()] * 4


def test_a_resumed_run_does_not_let_such_a_launch_alternate_again() -> None:
    whole = busy_by_side(a=1, b=2)
    task = a_task(bindings=("one-cpu",), sides=("a", "b"), alternate="auto", least=2, most=2)
    for stop in (2, 4):
        kept = whole[:stop]
        a_runner(kept, task, launch=lambda _job: an_outcome()).run()

        assert [launch.alternated for launch in kept[2:]] == [()] * 4


def test_who_asks_for_alternation_has_it_with_any_threads() -> None:
    kept: list[Launch] = []
    task = a_task(bindings=("one-cpu",), sides=("a", "b"), alternate="always", least=2, most=2)
    busy = {"a": 1, "b": 2}

    a_runner(
        kept, task, launch=lambda job: with_busy_threads(busy[side_of(job.planned.cell)])
    ).run()

    assert [launch.status for launch in kept] == ["ok"] * 4


def a_race_task(*, rule: RaceRule | None = None) -> Task:
    task = a_task(bindings=("none", "one-cpu", "physical-cores", "logical-cpus"))
    tuning = Tuning(objective="latency", rule=rule or RaceRule(max_blocks=10, confirm_blocks=3))
    return replace(task, tuning=tuning)


# The bindings of the task, by the time of an iteration.
RACED_MS = {"none": 2.0, "one-cpu": 9.0, "physical-cores": 1.0, "logical-cpus": 2.2}


def raced(job: Job) -> LaunchResult:
    noise = 1 + 0.001 * (job.block % 3)
    return an_outcome(median_ns=round(1e6 * noise * RACED_MS[job.planned.cell.binding.mode]))


def limits_of_later_launches(launch_s: float) -> set[float]:
    """The time limits, in seconds, of launches after the first, which take this long."""
    limits: set[float] = set()
    now_s = 0.0

    def launch(job: Job) -> LaunchResult:
        nonlocal now_s
        now_s += launch_s
        if job.block > 0:
            limits.add(job.planned.measure.timeout_s)
        return an_outcome()

    a_runner([], a_task(bindings=("none",)), launch=launch, clock=lambda: now_s).run()
    return limits


def test_a_launch_that_takes_ten_times_as_long_as_any_before_it_is_ended() -> None:
    assert limits_of_later_launches(20.0) == {200.0}


def test_short_launches_get_a_minute_and_none_more_than_the_scenario_allows() -> None:
    assert limits_of_later_launches(1.0) == {60.0}
    assert limits_of_later_launches(100.0) == {600.0}


def test_a_launch_that_hangs_is_not_told_to_raise_the_scenarios_limit() -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        status: Status = "ok" if job.block == 0 else "timed-out"
        return replace(an_outcome(status), duration_ns=1_000_000_000, fix="Raise the limit.")

    a_runner(kept, a_task(bindings=("none",)), launch=launch).run()

    assert "hang" in str(kept[1].fix)


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
    # 8 launches: 2 candidates and 2 fresh ones of 3 finalists. The race has 70 % of it.
    task = a_race_task(rule=RaceRule(max_blocks=10, confirm_blocks=3, budget_s=0.7 * 80))

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
    assert set(skipped.values()) == {"the budget has no time for it"}
    tuning = task.tuning
    assert tuning is not None
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
    task = a_race_task(rule=RaceRule(max_blocks=10, confirm_blocks=3, budget_s=0.7 * 150))

    def launch(job: Job) -> LaunchResult:
        nonlocal now_s
        # 5 launches of 30 s are too few for more than two configurations; 12 of the mean are not.
        now_s += 30.0 if now_s == 0 else 3.0
        return raced(job)

    a_runner(kept, task, launch=launch, clock=lambda: now_s, budget_s=150).run()

    assert {key for block, key in launched(kept) if block == 0} == {
        f"binding={mode}" for mode in RACED_MS
    }


def a_rate_race_task() -> Task:
    task, traffic = a_race_task(), a_traffic(shape="rate-search")
    return replace(task, planned=tuple(replace(one, traffic=traffic) for one in task.planned))


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
