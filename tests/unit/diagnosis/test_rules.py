"""Rules on launches put together: what two CPUs of one node cannot show for certain.

SMT and nodes need another machine; the shares of data, checkpoints and random numbers,
more launches than the recorded runs had time for.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corebound.diagnosis.evidence import CellEvidence
from corebound.records.telemetry import GpuUse
from support.build import (
    a_host,
    a_host_over_time,
    a_profiled_launch,
    a_thread,
    a_window,
    an_operator,
)
from support.findings import cell_evidence, cell_keys, findings_in, measured_cell

TWO_NODES = a_host(nodes=2, cores_per_node=2)
SMT = a_host(cores_per_node=2, cpus_per_core=2)


def test_two_threads_a_core_are_named_where_one_is_faster() -> None:
    both = measured_cell(13.9, axes=(("smt", "true"),), slots=((0, 1, 2, 3),), used=4)
    apart = measured_cell(10.0, axes=(("smt", "false"),), slots=((0, 1),), used=2)

    found = findings_in(both, apart, topology=SMT)["smt-siblings-shared"]

    assert cell_keys(found) == ["smt=true"]
    assert "4 threads run as SMT siblings on 2 cores" in found.what
    assert "1.39×" in found.what


def test_two_threads_a_core_that_are_no_slower_are_left_alone() -> None:
    both = measured_cell(9.0, axes=(("smt", "true"),), slots=((0, 1, 2, 3),), used=4)
    apart = measured_cell(10.0, axes=(("smt", "false"),), slots=((0, 1),), used=2)

    assert findings_in(both, apart, topology=SMT) == {}


def test_threads_seen_on_one_node_then_on_the_other_are_named() -> None:
    stays = tuple((index % 2 * 2, index * 50, index * 50 + 50) for index in range(20))
    roaming = measured_cell(
        10.0, slots=((0, 1, 2, 3),), threads=(a_thread(stays=stays, migrations=19),)
    )

    found = findings_in(roaming, topology=TWO_NODES)["threads-migrate"]

    assert found.tone == "warn"
    assert "19 moves between nodes per launch" in found.evidence[1]
    assert "numactl" in found.fix


def test_threads_that_move_within_a_node_at_no_cost_are_left_alone() -> None:
    stays = tuple((index % 2, index * 50, index * 50 + 50) for index in range(20))
    moving = (a_thread(stays=stays, migrations=19),)
    roaming = measured_cell(10.0, axes=(("binding", "none"),), threads=moving)
    bound = measured_cell(10.0, axes=(("binding", "physical-cores"),))

    assert findings_in(roaming, bound, topology=TWO_NODES) == {}


def test_threads_that_move_are_named_where_as_many_that_stay_are_faster() -> None:
    moving = (a_thread(migrations=40),)
    roaming = measured_cell(13.0, axes=(("binding", "none"),), threads=moving, used=1)
    bound = measured_cell(10.0, axes=(("binding", "physical-cores"),), used=1)

    found = findings_in(roaming, bound)["threads-migrate"]

    assert found.tone == "bad"
    assert cell_keys(found) == ["binding=none"]


def test_memory_on_the_other_node_is_named_with_its_share_and_its_cost() -> None:
    far = measured_cell(15.0, axes=(("memory", "remote"),), node_bytes={0: 1 << 20, 1: 9 << 20})
    near = measured_cell(10.0, axes=(("memory", "local"),), node_bytes={0: 10 << 20})

    found = findings_in(far, near, topology=TWO_NODES)["memory-remote"]

    assert cell_keys(found) == ["memory=remote"]
    assert found.what.startswith("90 % of the memory")
    assert found.evidence == ("workers on CPUs 0-1, memory 10 % on node 0, 90 % on node 1",)


def test_memory_on_a_host_of_one_node_is_not_remote() -> None:
    assert findings_in(measured_cell(10.0, node_bytes={0: 1 << 20})) == {}


def test_workers_bound_to_one_cpu_while_others_idle_are_named() -> None:
    crowded = measured_cell(10.0, slots=((0, 1, 2, 3),) * 2, allowed=((0,), (0,)))

    found = findings_in(crowded, topology=TWO_NODES)["workers-overlap"]

    assert found.what == "Several workers were bound to CPU 0, while CPUs 1-3 are idle."


def test_workers_on_cpus_of_their_own_or_that_may_run_anywhere_do_not_overlap() -> None:
    apart = measured_cell(10.0, slots=((0, 1, 2, 3),) * 2, allowed=((0,), (1,)))
    anywhere = measured_cell(10.0, slots=((0, 1, 2, 3),) * 2, allowed=((0, 1, 2, 3),) * 2)

    assert findings_in(apart, topology=TWO_NODES) == {}
    assert findings_in(anywhere, topology=TWO_NODES) == {}


def test_workers_that_share_a_node_with_a_cpu_for_each_of_their_threads_do_not_overlap() -> None:
    together = measured_cell(10.0, slots=((0, 1),) * 2, allowed=((0, 1),) * 2, used=1)

    assert findings_in(together, topology=TWO_NODES) == {}


def test_a_framework_that_sizes_its_pool_past_its_one_cpu_is_named() -> None:
    crowd = tuple(a_thread(tid=100 + index, wait_ns=10**9) for index in range(4))
    stuck = measured_cell(
        50.0, axes=(("threads", "default"),), slots=((0,),), used=4, threads=crowd
    )
    single = measured_cell(10.0, axes=(("threads", "1"),), slots=((0,),), used=1)

    found = findings_in(stuck, single)

    assert list(found) == ["one-cpu-default-threads"]
    assert "5.00×" in found["one-cpu-default-threads"].what


def test_threads_that_follow_one_another_are_no_crowd() -> None:
    spans = [((0, 100 * at, 100 * at + 100),) for at in range(8)]
    series = tuple(a_thread(tid=100 + at, stays=stays) for at, stays in enumerate(spans))
    slow = measured_cell(50.0, axes=(("threads", "default"),), slots=((0,),), threads=series)
    single = measured_cell(10.0, axes=(("threads", "1"),), slots=((0,),), used=1)

    assert findings_in(slow, single) == {}


def test_one_thread_on_one_cpu_is_left_alone() -> None:
    fine = measured_cell(10.0, axes=(("threads", "default"),), slots=((0,),), used=1)
    single = measured_cell(9.0, axes=(("threads", "1"),), slots=((0,),), used=1)

    assert findings_in(fine, single) == {}


def test_random_numbers_that_take_a_good_part_of_a_step_are_named_with_their_operator() -> None:
    launch = a_profiled_launch(
        an_operator("aten::bernoulli_", 400_000), an_operator("aten::convolution", 500_000)
    )

    found = findings_in(cell_evidence([*measured_cell(1.0).launches, launch]))

    # Of 1 ms with 0.1 ms outside operators: 40 %, and no operator over a half.
    assert list(found) == ["random-numbers"]
    assert found["random-numbers"].what == (
        "Random number generation takes 40 % of the step, mostly in aten::bernoulli_."
    )


def test_an_operator_is_said_to_dominate_above_half_of_the_step_only() -> None:
    half = a_profiled_launch(an_operator("conv", 500_000), an_operator("add", 400_000))
    more = a_profiled_launch(an_operator("conv", 600_000), an_operator("add", 300_000))
    timed = measured_cell(1.0).launches

    assert findings_in(cell_evidence([*timed, half])) == {}
    assert findings_in(cell_evidence([*timed, more]))["operator-dominates"].tone == "plain"


def test_a_step_that_waits_for_its_data_is_named_by_its_profile() -> None:
    launch = a_profiled_launch(
        an_operator("conv", 400_000), an_operator("copy", 500_000), phases={"data": 600_000}
    )

    found = findings_in(cell_evidence([*measured_cell(1.0).launches, launch]))["data-starves-step"]

    assert "60 % of the step" in found.what
    assert "loaders: 1" in found.fix


def in_ten_seconds(
    *, step_s: float, loader_s: float, loaders: int = 1, gpu: float | None = None
) -> CellEvidence:
    """A step's process and one that it started used so much CPU time in that time."""
    used = (a_thread(tid=100, run_ns=round(step_s * 1e9)),
            replace(a_thread(tid=200, run_ns=round(loader_s * 1e9)), pid=200))  # fmt: skip
    one = measured_cell(10.0, axes=(("loaders", str(loaders)),), threads=used)
    gpus = () if gpu is None else (GpuUse(id="0", busy_share=gpu, memory_bytes=1),)
    ran_ns = round((step_s + loader_s) * 1e9)
    host = a_host_over_time(a_window(to_ms=10_000, ran_ns=ran_ns, gpus=gpus), cpus=(0, 1))
    return cell_evidence([replace(launch, host=host) for launch in one.launches])


def test_a_step_that_waits_while_its_loader_is_always_busy_starves() -> None:
    found = findings_in(in_ten_seconds(step_s=4, loader_s=9.5))["data-starves-step"]

    assert "60 % of the step" in found.what
    assert found.evidence[0] == (
        "the busiest loader is active 95 % of the time, the training process waits 60 %"
    )
    assert "more `loaders`" in found.fix


@pytest.mark.parametrize(
    ("step_s", "loader_s", "loaders"),
    [
        (9, 9.5, 1),  # both are busy: neither waits
        (4, 5, 1),  # the loader has time to spare, so it is not what the step waits for
        (4, 9.5, 0),  # a busy child that is no loader
    ],
)
def test_a_step_that_waits_for_nothing_or_for_something_else_does_not_starve(
    step_s: float, loader_s: float, loaders: int
) -> None:
    cell = in_ten_seconds(step_s=step_s, loader_s=loader_s, loaders=loaders)

    assert "data-starves-step" not in findings_in(cell)


def test_a_gpu_that_waits_for_busy_cpus_starves_and_a_busy_one_does_not() -> None:
    waits = findings_in(in_ten_seconds(step_s=9, loader_s=9, gpu=0.2))["data-starves-step"]

    assert "80 % of the step: the GPU waits, and the CPUs have no time left" in waits.what
    assert "data-starves-step" not in findings_in(in_ten_seconds(step_s=9, loader_s=9, gpu=0.9))
    # It idles, but so do the CPUs: something else holds it up.
    assert "data-starves-step" not in findings_in(in_ten_seconds(step_s=2, loader_s=2, gpu=0.2))


def test_heavy_preparation_is_named_beside_light_with_the_class_it_makes() -> None:
    axes = (("model", "small"),)
    heavy = measured_cell(50.0, axes=(*axes, ("preprocessing", "heavy")))
    light = measured_cell(10.0, axes=(*axes, ("preprocessing", "light")))

    found = findings_in(heavy, light)["data-starves-step"]

    assert cell_keys(found) == ["model=small,preprocessing=heavy"]
    assert found.what == (
        "Preparing data takes 80 % of the step: heavy preparation limits it; the network is small."
    )


def test_preparation_that_takes_little_beside_a_large_network_is_left_alone() -> None:
    axes = (("model", "large"),)
    heavy = measured_cell(11.0, axes=(*axes, ("preprocessing", "heavy")))
    light = measured_cell(10.0, axes=(*axes, ("preprocessing", "light")))

    assert findings_in(heavy, light) == {}


def test_more_loaders_than_serve_best_are_too_many() -> None:
    many = measured_cell(14.0, axes=(("loaders", "8"),))
    best = measured_cell(10.0, axes=(("loaders", "2"),))

    assert "8 loaders are too many" in findings_in(many, best)["loaders"].what


def test_checkpoints_that_take_half_of_the_time_are_named_with_a_rarer_interval() -> None:
    always = measured_cell(20.0, axes=(("every", "1"),))
    never = measured_cell(10.0, axes=(("every", "0"),))

    found = findings_in(always, never)["checkpoint-share"]

    assert found.what.startswith("Saving every step takes 50 % of the time")
    # A save costs 10 ms: every nine steps of 10 ms it is 10 of 100.
    assert "every 9 steps" in found.fix


def test_checkpoints_below_a_tenth_are_left_alone() -> None:
    seldom = measured_cell(10.9, axes=(("every", "16"),))
    never = measured_cell(10.0, axes=(("every", "0"),))

    assert findings_in(seldom, never) == {}


def test_a_rule_names_all_its_cells_in_one_finding_worst_first() -> None:
    cells = [
        measured_cell(ms, axes=(("loaders", str(n)),))
        for n, ms in ((0, 20.0), (1, 40.0), (2, 10.0))
    ]

    found = findings_in(*cells)["loaders"]

    assert cell_keys(found) == ["loaders=1", "loaders=0"]


def test_without_evidence_nothing_is_said() -> None:
    assert findings_in(measured_cell(10.0, threads=())) == {}
