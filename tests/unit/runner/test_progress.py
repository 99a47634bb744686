"""Specifies which launches cells still need, and that a resumed run decides the same."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.launch.launch import LaunchResult
from corebound.planning.duplicates import mark_duplicates
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import plan_cells
from corebound.records.launch_record import Launch, Status
from corebound.records.telemetry import Pauses
from corebound.runner import Ending, Job, Task, is_complete
from corebound.scenario.cell import Binding, Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Alternating
from support.build import a_host, a_scenario, a_thread, a_worker
from support.runs import (
    MODES,
    a_disturbed_outcome,
    a_runner,
    a_task,
    an_outcome,
    launched,
    profiled,
    two_alike,
)


class Stopped(Exception):
    """Stands for a kill -9 of the runner."""


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


def test_cells_whose_ratio_is_wide_get_more_launches_up_to_the_most() -> None:
    kept: list[Launch] = []
    medians_ns = iter(range(1_000_000, 100_000_000, 700_000))

    a_runner(
        kept, a_task(least=3, most=7), launch=lambda _job: an_outcome(median_ns=next(medians_ns))
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


def test_a_cell_that_ran_while_it_waited_for_its_turn_starts_with_no_other() -> None:
    kept: list[Launch] = []
    groups: list[int] = []

    def launch_group(jobs: Sequence[Job]) -> tuple[LaunchResult, ...]:
        groups.append(len(jobs))
        noisy = Pauses(duration_ns=10_000_000, cpu_ns=5_000_000)
        quiet = Pauses(duration_ns=10_000_000, cpu_ns=0)
        waits = (quiet, quiet, noisy) if len(jobs) == 3 else (quiet,) * len(jobs)
        return tuple(replace(an_outcome(), wait=wait) for wait in waits)

    runner = a_runner(
        kept, a_task(bindings=("none", "node", "physical-cores"), alternate="auto", least=2, most=2)
    )
    runner._launch_all = launch_group
    runner.run()

    assert sorted(groups) == [1, 2, 3]


def test_a_launch_that_failed_beside_others_is_followed_by_separate_ones() -> None:
    kept: list[Launch] = []
    bindings = ("none", "node", "physical-cores")
    task = a_task(bindings=bindings, alternate="auto", least=2, most=2)

    a_runner(
        kept,
        task,
        launch=lambda job: an_outcome(
            "timed-out" if job.block == 0 and job.key == "binding=node" else "ok"
        ),
    ).run()

    later = {launch.cell.key: len(launch.started_with) for launch in kept if launch.block == 1}
    assert later == {"binding=none": 1, "binding=node": 0, "binding=physical-cores": 1}


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
        kept, task, launch=lambda job: with_busy_threads(number_by_side[side_of(job.planned.cell)])
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


def test_a_resumed_run_does_not_let_such_a_launch_alternate_again_unless_asked_to() -> None:
    whole = busy_by_side(a=1, b=2)
    task, always = (
        a_task(bindings=("one-cpu",), sides=("a", "b"), alternate=alternate, least=2, most=2)
        for alternate in ("auto", "always")
    )
    for stop in (2, 4):
        kept = whole[:stop]
        a_runner(kept, task, launch=lambda _job: an_outcome()).run()

        assert [launch.alternated for launch in kept[2:]] == [()] * 4

    busy, asked = {"a": 1, "b": 2}, list[Launch]()
    a_runner(
        asked, always, launch=lambda job: with_busy_threads(busy[side_of(job.planned.cell)])
    ).run()
    assert [launch.status for launch in asked] == ["ok"] * 4


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


@pytest.mark.parametrize(("launch_s", "limit_s"), [(20.0, 200.0), (1.0, 60.0), (100.0, 600.0)])
def test_a_launch_is_ended_after_ten_times_any_before_it_within_a_minute_and_the_limit(
    launch_s: float, limit_s: float
) -> None:
    assert limits_of_later_launches(launch_s) == {limit_s}


def test_a_launch_that_hangs_is_not_told_to_raise_the_scenarios_limit() -> None:
    kept: list[Launch] = []

    def launch(job: Job) -> LaunchResult:
        status: Status = "ok" if job.block == 0 else "timed-out"
        return replace(an_outcome(status), duration_ns=1_000_000_000, fix="Raise the limit.")

    a_runner(kept, a_task(bindings=("none",)), launch=launch).run()

    assert "hang" in str(kept[1].fix)
