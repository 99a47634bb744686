"""Specifies the order of a run's launches, and that none is lost or repeated."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from corebound.launch.launch import LaunchResult
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Kind, Launch
from corebound.runner import Job, Task
from corebound.runner.launcher import requests
from corebound.scenario.models import Measure
from support.build import a_host_over_time, a_window, a_worker
from support.known import known
from support.runs import (
    a_disturbed_outcome,
    a_runner,
    a_task,
    an_outcome,
    launched,
    profiled,
    two_alike,
)


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


def test_a_cell_the_host_cannot_hold_is_recorded_once_with_its_reason() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(bindings=("none", "smt-siblings"))).run()

    skipped = [launch for launch in kept if launch.status == "skipped"]
    assert [launch.cell.key for launch in skipped] == ["binding=smt-siblings"]
    assert skipped[0].reason
    assert skipped[0].fix


@pytest.mark.parametrize(
    ("task", "launch", "budget_s", "measured", "profiles"),
    [
        (a_task(), an_outcome, 4.5, 5, 0),
        (a_task(operators=5, environment="pytorch"), an_outcome, 6, 6, 0),
        # Refused launches are made again within the budget only.
        (a_task(), a_disturbed_outcome, 2.5, 3, 0),
    ],
)
def test_no_launch_starts_after_the_budget(
    task: Task, launch: Callable[[], LaunchResult], budget_s: float, measured: int, profiles: int
) -> None:
    kept: list[Launch] = []

    # Each launch takes a second.
    ending = a_runner(
        kept, task, launch=lambda _job: launch(), budget_s=budget_s, clock=lambda: float(len(kept))
    ).run()

    assert ending == "out of time"
    assert (len(launched(kept)), len(profiled(kept))) == (measured, profiles)


def test_no_launch_starts_of_which_less_than_half_would_fit_into_the_budget() -> None:
    def launched_in(budget_s: float, *bindings: str) -> int:
        kept: list[Launch] = []
        now_s = 0.0

        def ten_seconds(_job: Job) -> LaunchResult:
            nonlocal now_s
            now_s += 10
            return an_outcome()

        task = a_task(bindings=bindings)
        a_runner(kept, task, launch=ten_seconds, budget_s=budget_s, clock=lambda: now_s).run()
        return len(kept)

    # Only the first one shows how long a launch takes, of other cells too.
    assert [launched_in(seconds, "none") for seconds in (1, 14, 16, 24, 26)] == [1, 1, 2, 2, 3]
    assert launched_in(14, "none", "one-cpu", "node") == 1


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
    # A run that goes on repeats none.
    before = list(kept)
    a_runner(kept, task).run()
    assert kept == before


def test_operators_that_cannot_be_profiled_are_a_skip_with_its_reason() -> None:
    kept: list[Launch] = []

    a_runner(kept, a_task(operators=5)).run()

    skips = [launch for launch in kept if launch.kind == "profile"]
    assert [launch.status for launch in skips] == ["skipped", "skipped"]
    assert "no operators" in str(skips[0].reason)


def test_a_profile_is_asked_for_in_the_request_and_measuring_is_not_changed() -> None:
    planned = a_task(operators=5, environment="pytorch").planned[0]

    assert requests(a_job(planned, "profile"))[0].operators == 5
    assert requests(a_job(planned, "measure")) == planned.requests
    assert planned.requests[0].operators is None


def a_job(planned: PlannedCell, kind: Kind) -> Job:
    return Job(name="a", kind=kind, block=0, position=0, planned=planned)


def test_a_disturbed_launch_is_refused_and_made_again_at_the_end_of_its_block() -> None:
    kept: list[Launch] = []
    first = iter([a_disturbed_outcome()])

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    refused, *others = kept
    assert refused.status == "invalid"
    assert known(refused.disturbance).refused
    assert refused.evidence == known(refused.disturbance).evidence
    assert [(one.first, one.last) for one in refused.workers[0].disturbed] == [(1, 19)]
    again = kept[2]
    assert (again.block, again.cell.key) == (0, refused.cell.key)
    assert (again.id, again.attempt) == (f"{refused.id}-again-1", 1)
    assert all(launch.status == "ok" for launch in others)
    assert len(kept) == 7


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


def test_a_launch_that_ran_out_of_time_while_it_was_stopped_is_made_again() -> None:
    kept: list[Launch] = []
    stopped = a_host_over_time(
        a_window(), a_window(from_ms=500, to_ms=9000, suspended_ns=8 * 10**9)
    )
    late = replace(an_outcome("timed-out"), host=stopped)
    first = iter([late, replace(late, host=a_host_over_time(a_window()))])

    a_runner(kept, a_task(), launch=lambda _job: next(first, None) or an_outcome()).run()

    assert [launch.status for launch in kept[:3]] == ["invalid", "timed-out", "ok"]
    assert "8.00 s" in (kept[0].reason or "")
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


def test_cells_that_alternate_are_launched_together_and_their_records_name_one_another() -> None:
    kept: list[Launch] = []

    a_runner(kept, two_alike(least=2, most=2)).run()

    assert [launch.block for launch in kept] == [0, 0, 1, 1]
    for one, other in (kept[:2], kept[2:]):
        assert one.alternated == (other.id,)
        assert other.alternated == (one.id,)


def test_of_launches_that_alternated_all_are_made_again_if_one_was_disturbed() -> None:
    kept: list[Launch] = []
    first = iter([an_outcome(), a_disturbed_outcome()])

    a_runner(
        kept, two_alike(least=2, most=2), launch=lambda _job: next(first, None) or an_outcome()
    ).run()

    refused, again = kept[:2], kept[2:4]
    assert [launch.status for launch in refused] == ["invalid", "invalid"]
    assert "was disturbed" in (refused[0].reason or "")
    assert [(launch.status, launch.block, launch.attempt) for launch in again] == [("ok", 0, 1)] * 2
    assert again[0].alternated == (again[1].id,)


def test_launches_that_start_at_once_share_the_time_and_name_one_another() -> None:
    kept: list[Launch] = []
    now_s = 0.0

    def launch(_job: Job) -> LaunchResult:
        nonlocal now_s
        now_s += 10
        return replace(an_outcome(), duration_ns=8_000_000_000, overhead_ns=1_000_000_000)

    task = a_task(alternate="auto", least=2, most=2)
    a_runner(kept, task, launch=launch, clock=lambda: now_s).run()

    one, other, *_ = kept
    assert (one.started_with, other.started_with) == ((other.id,), (one.id,))
    assert not one.alternated
    # Each took 8 s by itself, and both together 20 s.
    assert [launch.duration_ns for launch in kept] == [10_000_000_000] * 4
    assert [launch.overhead_ns for launch in kept] == [3_000_000_000] * 4


def test_of_launches_that_only_started_at_once_a_disturbed_one_is_made_again_alone() -> None:
    kept: list[Launch] = []
    first = iter([an_outcome(), a_disturbed_outcome()])
    task = a_task(alternate="auto", least=2, most=2)

    a_runner(kept, task, launch=lambda _job: next(first, None) or an_outcome()).run()

    assert [launch.status for launch in kept[:3]] == ["ok", "invalid", "ok"]
    assert kept[2].id == f"{kept[1].id}-again-1"
    assert kept[2].started_with == ()


def test_of_launches_that_start_at_once_only_those_with_time_are_made() -> None:
    kept: list[Launch] = []
    now_s = 0.0

    def launch(_job: Job) -> LaunchResult:
        nonlocal now_s
        now_s += 10
        return an_outcome()

    task = a_task(alternate="auto")
    ending = a_runner(kept, task, launch=launch, budget_s=32, clock=lambda: now_s).run()

    # The first block took 20 s. Of the second, one launch has half of its time before the end.
    assert ending == "out of time"
    assert [launch.block for launch in kept] == [0, 0, 1]
