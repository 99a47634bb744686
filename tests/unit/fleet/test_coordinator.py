"""Delivering shards: nothing is lost, nothing moves to another host, nothing is done twice."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.fleet.coordinator import MOST_ATTEMPTS, Coordinator, clock_skew_s, fleet_of, is_done
from corebound.fleet.engines import JobState
from corebound.fleet.folder import PlanFolder, ShardState
from corebound.fleet.plan import Assignment
from corebound.fleet.status import fleet_status
from support.examples import examples
from support.fleets import FakeEngine, a_plan, a_plan_folder, done, scenario_named
from support.known import known

NOW = "2026-01-02T03:05:30Z"


def coordinator(folder: PlanFolder, engine: FakeEngine, *, again: bool = False) -> Coordinator:
    return Coordinator(folder, fleet_of(folder.plan), engine, now=lambda: NOW, again=again)


def reports(folder: PlanFolder, task: Assignment) -> JobState:
    shard = next(shard for shard in folder.plan.shards if shard.id == task.shard)
    return JobState(state="ended", report=done(shard).signed(folder.key))


def run_to_its_end(coordinator: Coordinator, most: int = 1000) -> None:
    for _ in range(most):
        if not coordinator.step():
            return
    raise AssertionError("it never ends")


def states_of(folder: PlanFolder) -> dict[str, ShardState]:
    return {shard.id: folder.state_of(shard) for shard in folder.plan.shards}


def words(folder: PlanFolder) -> dict[str, str]:
    status = fleet_status(folder.plan, states_of(folder))
    return {f"{one.host}/{one.scenario}": one.status for one in status.shards}


def test_every_shard_is_delivered_to_its_host_one_at_a_time(tmp_path: Path) -> None:
    plan = a_plan(scenarios=[scenario_named("a"), scenario_named("b")])
    folder = a_plan_folder(tmp_path, plan)
    engine = FakeEngine(lambda task: reports(folder, task))

    one = coordinator(folder, engine)
    one.step()
    assert [task.host for task in engine.delivered] == ["n1", "n2"]
    run_to_its_end(one)

    assert {(task.shard, task.host) for task in engine.delivered} == {
        (shard.id, shard.host) for shard in plan.shards
    }
    assert set(words(folder).values()) == {"done"}


def test_what_is_done_is_not_delivered_again(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    run_to_its_end(coordinator(folder, FakeEngine(lambda task: reports(folder, task))))
    engine = FakeEngine(lambda task: reports(folder, task))

    run_to_its_end(coordinator(folder, engine, again=True))

    assert engine.delivered == []


def test_a_lost_agent_gets_its_shard_again_on_the_same_host_and_not_forever(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path, a_plan(hosts=("n1",)))
    engine = FakeEngine(lambda _task: JobState(state="lost", reason="the worker is gone"))

    run_to_its_end(coordinator(folder, engine))

    assert [task.host for task in engine.delivered] == ["n1"] * MOST_ATTEMPTS
    assert words(folder) == {"n1/a": "lost"}


def test_a_shard_waits_for_its_host_and_the_others_go_on(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    engine = FakeEngine(lambda task: reports(folder, task))
    engine.gone = {"n1": "no worker of n1 is connected"}
    one = coordinator(folder, engine)

    run_to_its_end(one)

    assert words(folder) == {"n1/a": "planned", "n2/a": "done"}
    assert [shard.host for shard in one.waiting] == ["n1"]
    # A later command says so too, without asking the engine.
    (waiting, _) = fleet_status(folder.plan, states_of(folder)).shards
    assert waiting.reason == "no worker of n1 is connected"
    engine.gone = {}
    run_to_its_end(one)
    assert words(folder) == {"n1/a": "done", "n2/a": "done"}


def test_a_failed_shard_is_delivered_again_only_when_asked(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path, a_plan(hosts=("n1",)))

    def fails(task: Assignment) -> JobState:
        answer = reports(folder, task)
        failed = replace(known(answer.report), state="failed").signed(folder.key)
        return JobState(state="ended", report=failed)

    engine = FakeEngine(fails)
    run_to_its_end(coordinator(folder, engine))
    run_to_its_end(coordinator(folder, engine))
    assert len(engine.delivered) == 1

    run_to_its_end(coordinator(folder, engine, again=True))
    assert len(engine.delivered) == 2


def test_a_cancelled_shard_waits_for_resume(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path, a_plan(hosts=("n1",)))
    engine = FakeEngine(lambda _task: JobState(state="running"))
    one = coordinator(folder, engine)
    one.step()

    assert one.cancel() == 1
    assert engine.cancelled == [folder.plan.shards[0].id]
    assert words(folder) == {"n1/a": "cancelled"}
    assert not coordinator(folder, engine).step()
    assert coordinator(folder, engine, again=True).step()


@examples(25)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 3))
def test_whatever_is_lost_or_restarted_all_is_done_at_last_on_its_own_host(
    tmp_path_factory: object, seed: int, hosts: int, scenarios: int
) -> None:
    """Agents vanish, reports arrive twice, and the coordinator itself restarts at random."""
    chance = random.Random(seed)
    folder = a_plan_folder(
        tmp_path_factory.mktemp("fleet"),  # type: ignore[attr-defined]
        a_plan(
            hosts=[f"n{number}" for number in range(hosts)],
            scenarios=[scenario_named(f"s{number}") for number in range(scenarios)],
        ),
    )

    def answer(task: Assignment) -> JobState:
        event = chance.random()
        if event < 0.3:
            return JobState(state="lost", reason="killed")
        return JobState(state="running") if event < 0.5 else reports(folder, task)

    engine = FakeEngine(answer)
    for _ in range(200):
        one = coordinator(folder, engine, again=True)
        for _ in range(chance.randrange(1, 6)):
            one.step()
        if all(map(is_done, one.states.values())):
            break
    assert set(words(folder).values()) == {"done"}
    planned = {(shard.id, shard.host) for shard in folder.plan.shards}
    assert {(task.shard, task.host) for task in engine.delivered} == planned


def test_a_report_that_the_plan_has_not_signed_does_not_count(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    other = a_plan_folder(tmp_path / "other")
    engine = FakeEngine(lambda task: reports(other, task))

    one = coordinator(folder, engine)
    run_to_its_end(one)

    assert set(words(folder).values()) == {"lost"}
    assert not any(state.report for state in one.states.values())


def test_a_clock_is_wrong_if_a_report_lies_outside_its_delivery(tmp_path: Path) -> None:
    shard = a_plan().shards[0]
    submitted = "2026-01-02T03:00:00Z"

    def skew(ended_at: str) -> float | None:
        return clock_skew_s(done(shard, ended_at=ended_at), submitted, NOW)

    assert skew("2026-01-02T03:05:00Z") is None
    assert skew("2026-01-02T04:05:30Z") == 3600
    assert skew("2026-01-02T02:00:00Z") == -3600
    assert skew("no time") is None
