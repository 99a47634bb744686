"""Specifies that a budget is a promise: when a run ends, and who gets its time."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from corebound.analysis.forecast import GUESS_FACTOR
from corebound.launch.launch import LaunchResult
from corebound.planning.budget import LEAST_ITERATIONS
from corebound.records.launch_record import Launch
from corebound.runner import Job, Task
from support.build import a_host_over_time, a_window, a_worker
from support.examples import examples
from support.known import known
from support.runs import MODES, a_runner, a_task, an_outcome

ITERATIONS = 20
HANGING = math.inf


class Host(Struct):
    """A host with a clock, on which launches are ended at their share as a real one does.

    `steps_s` are the seconds of an iteration of each cell, by scenario and key. On a `noisy` one,
    others disturb all launches. `progress` has each launch that started, and how many of its
    scenario were said to be left, with it.
    """

    steps_s: Mapping[tuple[str, str], float]
    start_s: float = 0.1
    noisy: bool = False
    now_s: float = 0.0
    progress: list[tuple[Job, int]] = field(default_factory=list)

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        self.progress.append((job, left[job.planned.cell.scenario]))

    def ended(self, launch: Launch) -> None:
        pass

    def tick(self) -> None:
        pass

    def launch(self, job: Job) -> LaunchResult:
        step_s = self.steps_s[job.planned.cell.scenario, job.key]
        share_s = math.inf if job.share_s is None else job.share_s
        whole_s = self.start_s + ITERATIONS * step_s
        spent_s = min(whole_s, share_s)
        self.now_s += spent_s
        iterations = (
            ITERATIONS if whole_s <= share_s else int(max(spent_s - self.start_s, 0) / step_s)
        )
        ended_s = None if whole_s <= share_s else share_s
        duration_ns = round(spent_s * 1e9)
        if iterations < LEAST_ITERATIONS:
            outcome = replace(an_outcome("dropped"), least_iteration_ns=duration_ns)
        else:
            worker = a_worker(wall_ns=(round(step_s * 1e9),) * iterations)
            outcome = replace(an_outcome(), workers=(worker,))
            if self.noisy:
                outcome = replace(
                    outcome, host=a_host_over_time(a_window(to_ms=60_000, steal_ms=30_000))
                )
        return replace(outcome, duration_ns=duration_ns, share_s=ended_s)

    def run(
        self,
        *tasks: Task,
        budget_s: float,
        expected_s: Mapping[str, float] | None = None,
        focuses: bool = False,
        done: Sequence[Launch] = (),
    ) -> list[Launch]:
        kept, began_s = [*done], self.now_s
        a_runner(
            kept,
            *tasks,
            launch=self.launch,
            budget_s=budget_s,
            clock=lambda: self.now_s - began_s,
            expected_s=expected_s,
            observer=self,
            focuses=focuses,
        ).run()
        return kept


def count(kept: list[Launch], key: str, status: str = "ok") -> int:
    return sum(launch.cell.key == f"binding={key}" and launch.status == status for launch in kept)


def steps(name: str = "a-scenario", **steps_s: float) -> dict[tuple[str, str], float]:
    return {(name, f"binding={key.replace('_', '-')}"): each for key, each in steps_s.items()}


def test_a_cell_that_hangs_is_ended_at_its_share_and_the_other_has_all_its_launches() -> None:
    host = Host(steps(none=0.05, one_cpu=HANGING))

    kept = host.run(a_task(least=6, most=6), budget_s=30)

    assert (count(kept, "none"), count(kept, "one-cpu", "dropped")) == (6, 1)
    assert host.now_s <= 30
    (dropped,) = [launch for launch in kept if launch.status == "dropped"]
    assert known(dropped.share_s) <= 15


def test_a_slow_cell_counts_with_the_iterations_of_its_share() -> None:
    host = Host(steps(none=0.05, one_cpu=1.0))

    kept = host.run(a_task(least=3, most=3), budget_s=30)

    slow = [launch for launch in kept if launch.cell.key == "binding=one-cpu"]
    assert [launch.status for launch in slow] == ["ok"] * 3
    assert all(LEAST_ITERATIONS <= len(one.workers[0].wall_ns) < ITERATIONS for one in slow)
    assert all(launch.share_s is not None for launch in slow)
    assert count(kept, "none") == 3


def test_a_first_launch_of_a_scenario_has_the_time_of_a_slow_start() -> None:
    host = Host(steps("quick", none=0.01) | steps("slow", none=0.01), start_s=0.1)
    tasks = [a_task(name=name, bindings=("none",), least=6, most=6) for name in ("quick", "slow")]

    host.run(*tasks, budget_s=10)

    shares_s = {job.planned.cell.scenario: job for job, _ in reversed(host.progress)}
    first = shares_s["slow"]
    assert known(first.share_s) >= GUESS_FACTOR * first.planned.cell.runtime.start_up_s


def test_launches_are_as_short_as_five_of_each_cell_need_to_be() -> None:
    # With all its iterations, a launch takes 10 s.
    host = Host(steps(none=0.5, one_cpu=0.5))

    kept = host.run(a_task(least=30, most=30), budget_s=25)

    assert count(kept, "none") >= 4
    assert count(kept, "one-cpu") >= 4


FOUR = ("none", "one-cpu", "physical-cores", "node")


def four_cells() -> Host:
    """Launches of 2 s, nearly all of it their start; one cell is twice as slow as the baseline."""
    looks = steps(none=0.01, one_cpu=0.02, physical_cores=0.0105, node=0.01)
    return Host(looks, start_s=2.0)


def test_a_budget_too_short_to_decide_all_decides_what_looks_plainest() -> None:
    kept = four_cells().run(a_task(bindings=FOUR, least=6, most=20), budget_s=34, focuses=True)

    assert {key: count(kept, key) for key in FOUR} == {
        "none": 6,
        "one-cpu": 6,
        "physical-cores": 1,
        "node": 1,
    }


def test_a_short_budget_repeats_little_on_a_host_that_disturbs_everything() -> None:
    host = Host(four_cells().steps_s, start_s=2.0, noisy=True)

    kept = host.run(a_task(bindings=FOUR, least=6, most=20), budget_s=36, focuses=True)

    assert [launch.status for launch in kept].count("invalid") <= 2
    assert count(kept, "one-cpu") == count(kept, "none") == 6


def test_a_budget_that_decides_all_launches_all_alike() -> None:
    kept = four_cells().run(a_task(bindings=FOUR, least=6, most=20), budget_s=70, focuses=True)

    assert min(count(kept, key) for key in FOUR) >= 6


def test_a_night_has_the_same_launches_of_all() -> None:
    kept = four_cells().run(a_task(bindings=FOUR, least=6, most=20), budget_s=34)

    assert {count(kept, key) for key in FOUR} <= {3, 4}


def test_of_two_scenarios_the_plainer_comparison_is_decided() -> None:
    slight = steps("a-first", none=0.01, one_cpu=0.011)
    host = Host(slight | steps("b-second", none=0.01, one_cpu=0.03), start_s=2.0)
    tasks = [a_task(name=name, least=6, most=20) for name in ("a-first", "b-second")]

    kept = host.run(*tasks, budget_s=32, focuses=True)

    second = [launch.cell.scenario for launch in kept if launch.block]
    assert second[:6] == ["b-second"] * 6


def test_one_comparison_is_decided_before_another_is_begun() -> None:
    # Both fit if launches are as short as may be; nobody knows how long later ones take.
    plain = steps("a-first", none=0.05, one_cpu=0.1)
    host = Host(plain | steps("b-second", none=0.05, one_cpu=0.2), start_s=0.5)
    tasks = [a_task(name=name, least=6, most=20) for name in ("a-first", "b-second")]

    kept = host.run(*tasks, budget_s=45, focuses=True)

    later = [launch.cell.scenario for launch in kept if launch.block]
    assert later[:10] == ["b-second"] * 10


def test_one_comparison_is_decided_before_a_scenario_that_leaves_no_time_for_it() -> None:
    plain = steps("a-first", none=0.01, one_cpu=0.02)
    host = Host(plain | steps("b-second", none=0.01, one_cpu=0.01), start_s=2.0)
    tasks = [a_task(name=name, least=6, most=20) for name in ("a-first", "b-second")]

    kept = host.run(*tasks, budget_s=26, focuses=True)

    numbers = Counter(launch.cell.scenario for launch in kept)
    assert numbers["a-first"] >= 8
    assert numbers["b-second"] <= 2


def test_pairs_of_a_resumed_run_are_launched_in_the_same_session() -> None:
    host, task = four_cells(), a_task(bindings=FOUR, least=6, most=6)
    first = host.run(task, budget_s=34, focuses=True)

    kept = host.run(task, budget_s=1000, done=first)

    later = kept[len(first) :]
    by_block = {
        launch.block: {one.cell.key for one in later if one.block == launch.block}
        for launch in later
    }
    assert min(count(kept, key) for key in FOUR) >= 6
    # The block that was interrupted is completed.
    assert [block for block, keys in by_block.items() if "binding=none" not in keys] == [5]


@given(
    budget_s=st.floats(min_value=10, max_value=300),
    start_s=st.floats(min_value=0.01, max_value=5),
    steps_s=st.lists(st.floats(min_value=0.001, max_value=1), min_size=2, max_size=4),
)
@examples(60)
def test_a_run_that_focuses_ends_in_its_budget_with_a_launch_of_each(
    budget_s: float, start_s: float, steps_s: list[float]
) -> None:
    bindings = FOUR[: len(steps_s)]
    host = Host(
        {("a-scenario", f"binding={key}"): one for key, one in zip(bindings, steps_s, strict=True)},
        start_s=start_s,
    )

    kept = host.run(a_task(bindings=bindings, least=3, most=20), budget_s=budget_s, focuses=True)

    assert host.now_s <= 1.1 * budget_s + 5
    firsts = [launch.cell.key for launch in kept if launch.block == 0]
    later = [launch for launch in kept if launch.block > 0]
    assert not later or {*firsts} == {f"binding={key}" for key in bindings}


def test_a_budget_that_suffices_shortens_no_launch() -> None:
    host = Host(steps(none=0.05, one_cpu=0.5))

    kept = host.run(a_task(least=3, most=3), budget_s=100)

    assert all(launch.share_s is None for launch in kept)
    assert len(kept) == 6


def test_without_a_budget_no_launch_has_a_share() -> None:
    shares = []

    def launch(job: Job) -> LaunchResult:
        shares.append(job.share_s)
        return an_outcome()

    a_runner([], a_task(), launch=launch).run()

    assert set(shares) == {None}


def test_with_a_budget_all_scenarios_have_a_first_block_before_one_has_a_second() -> None:
    names = ("a", "b", "c")
    tasks = [a_task(name=name, bindings=("none",), least=3, most=3) for name in names]
    host = Host({(name, "binding=none"): 0.1 for name in names})

    kept = host.run(*tasks, budget_s=10)

    assert [(one.cell.scenario, one.block) for one in kept[:4]] == [
        ("a", 0), ("b", 0), ("c", 0), ("a", 1),
    ]  # fmt: skip


def test_a_resumed_run_launches_what_was_too_slow_for_the_budget_again() -> None:
    host = Host(steps(none=0.05, one_cpu=3.0))
    kept: list[Launch] = []
    task = a_task(least=3, most=3)

    for budget_s in (10.0, 1000.0):
        a_runner(kept, task, launch=host.launch, budget_s=budget_s, clock=lambda: host.now_s).run()

    assert count(kept, "one-cpu", "dropped") == 1
    assert count(kept, "one-cpu") == 3
    assert len({launch.id for launch in kept}) == len(kept)


@examples(60)
@given(
    budget_s=st.floats(min_value=1, max_value=600),
    start_s=st.sampled_from([0.0, 0.1, 3.0]),
    scenarios=st.lists(
        st.lists(
            st.one_of(st.floats(min_value=0.001, max_value=60), st.just(HANGING)),
            min_size=1,
            max_size=len(MODES),
        ),
        min_size=1,
        max_size=6,
    ),
    expected_s=st.lists(st.floats(min_value=0.1, max_value=100), min_size=6, max_size=6),
)
@example(
    budget_s=3.0,
    start_s=0.0,
    scenarios=[[1.0], [0.00390625], [1.0, HANGING], [1.0, 0.125]],
    expected_s=[1.0, 1.0, 1.0, 0.125, 1.0, 1.0],
)
@example(
    budget_s=1.0,
    start_s=0.0,
    scenarios=[[1.0], [0.001953125], [0.00390625, HANGING]],
    expected_s=[0.1, 0.1, 0.1, 1.0, 1.0, 1.0],
)
def test_a_run_ends_in_its_budget_and_goes_breadth_first(
    budget_s: float, start_s: float, scenarios: list[list[float]], expected_s: list[float]
) -> None:
    tasks = []
    steps_s: dict[tuple[str, str], float] = {}
    for number, cells in enumerate(scenarios):
        name, modes = f"s{number}", MODES[: len(cells)]
        tasks.append(a_task(name=name, bindings=modes, least=3, most=6))
        steps_s |= {
            (name, f"binding={mode}"): each for mode, each in zip(modes, cells, strict=True)
        }
    host = Host(steps_s, start_s=start_s)
    expected = dict(zip((task.scenario.name for task in tasks), expected_s, strict=False))

    kept = host.run(*tasks, budget_s=budget_s, expected_s=expected)

    assert host.now_s <= 1.1 * budget_s + 5
    first_second = next((at for at, launch in enumerate(kept) if launch.block == 1), len(kept))
    early = {launch.cell.scenario for launch in kept[:first_second]}
    # What the rest of the budget did not seem to hold comes last, whether it is cut or not. If it
    # takes less than it seemed, more of it follows.
    late = [
        at
        for at, launch in enumerate(kept)
        if at > first_second
        and (launch.block, launch.status) in {(0, "ok"), (0, "dropped")}
        and launch.cell.scenario not in early
    ]
    last = kept[late[0] :] if late else []
    assert all(launch.block == 0 or launch.cell.scenario not in early for launch in last)
    for number, (job, left) in enumerate(host.progress):
        later = {other.name for other, _ in host.progress[number:] if is_same_block(other, job)}
        assert len(later) <= left


def is_same_block(one: Job, other: Job) -> bool:
    return (one.planned.cell.scenario, one.block) == (other.planned.cell.scenario, other.block)
