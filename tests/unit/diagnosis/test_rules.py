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


def test_two_threads_per_core_are_reported_if_one_is_faster() -> None:
    both = measured_cell(13.9, axes=(("smt", "true"),), slots=((0, 1, 2, 3),), used=4)
    separate = measured_cell(10.0, axes=(("smt", "false"),), slots=((0, 1),), used=2)

    finding = findings_in(both, separate, topology=SMT)["smt-siblings-shared"]

    assert cell_keys(finding) == ["smt=true"]
    assert "4 threads run as SMT siblings on 2 cores" in finding.what
    assert "1.39×" in finding.what


def test_two_threads_per_core_that_are_not_slower_are_not_reported() -> None:
    both = measured_cell(9.0, axes=(("smt", "true"),), slots=((0, 1, 2, 3),), used=4)
    separate = measured_cell(10.0, axes=(("smt", "false"),), slots=((0, 1),), used=2)

    assert findings_in(both, separate, topology=SMT) == {}


def test_threads_that_move_between_nodes_are_reported() -> None:
    stays = tuple((index % 2 * 2, index * 50, index * 50 + 50) for index in range(20))
    roaming = measured_cell(
        10.0, slots=((0, 1, 2, 3),), threads=(a_thread(stays=stays, migrations=19),)
    )

    finding = findings_in(roaming, topology=TWO_NODES)["threads-migrate"]

    assert finding.tone == "warn"
    assert "19 moves between nodes per launch" in finding.evidence[1]
    assert "numactl" in finding.fix


def test_threads_that_move_within_a_node_at_no_cost_are_not_reported() -> None:
    stays = tuple((index % 2, index * 50, index * 50 + 50) for index in range(20))
    moving = (a_thread(stays=stays, migrations=19),)
    roaming = measured_cell(10.0, axes=(("binding", "none"),), threads=moving)
    bound = measured_cell(10.0, axes=(("binding", "physical-cores"),))

    assert findings_in(roaming, bound, topology=TWO_NODES) == {}


def test_threads_that_move_are_reported_if_bound_threads_are_faster() -> None:
    moving = (a_thread(migrations=40),)
    roaming = measured_cell(13.0, axes=(("binding", "none"),), threads=moving, used=1)
    bound = measured_cell(10.0, axes=(("binding", "physical-cores"),), used=1)

    finding = findings_in(roaming, bound)["threads-migrate"]

    assert finding.tone == "bad"
    assert cell_keys(finding) == ["binding=none"]


def test_memory_on_the_other_node_is_reported_with_its_share_and_cost() -> None:
    far = measured_cell(15.0, axes=(("memory", "remote"),), node_bytes={0: 1 << 20, 1: 9 << 20})
    near = measured_cell(10.0, axes=(("memory", "local"),), node_bytes={0: 10 << 20})

    finding = findings_in(far, near, topology=TWO_NODES)["memory-remote"]

    assert cell_keys(finding) == ["memory=remote"]
    assert finding.what.startswith("90 % of the memory")
    assert finding.evidence == ("workers on CPUs 0-1, memory 10 % on node 0, 90 % on node 1",)


def test_memory_on_a_host_of_one_node_is_not_remote() -> None:
    assert findings_in(measured_cell(10.0, node_bytes={0: 1 << 20})) == {}


def test_workers_bound_to_one_cpu_while_others_idle_are_reported() -> None:
    crowded = measured_cell(10.0, slots=((0, 1, 2, 3),) * 2, allowed=((0,), (0,)))

    finding = findings_in(crowded, topology=TWO_NODES)["workers-overlap"]

    assert finding.what == "Several workers were bound to CPU 0, while CPUs 1-3 are idle."


def test_workers_on_their_own_cpus_or_unbound_do_not_overlap() -> None:
    separate = measured_cell(10.0, slots=((0, 1, 2, 3),) * 2, allowed=((0,), (1,)))
    anywhere = measured_cell(10.0, slots=((0, 1, 2, 3),) * 2, allowed=((0, 1, 2, 3),) * 2)

    assert findings_in(separate, topology=TWO_NODES) == {}
    assert findings_in(anywhere, topology=TWO_NODES) == {}


def test_workers_that_share_a_node_with_a_cpu_for_each_of_their_threads_do_not_overlap() -> None:
    together = measured_cell(10.0, slots=((0, 1),) * 2, allowed=((0, 1),) * 2, used=1)

    assert findings_in(together, topology=TWO_NODES) == {}


def test_a_framework_that_sizes_its_pool_beyond_its_one_cpu_is_reported() -> None:
    crowd = tuple(a_thread(tid=100 + index, wait_ns=10**9) for index in range(4))
    stuck = measured_cell(
        50.0, axes=(("threads", "default"),), slots=((0,),), used=4, threads=crowd
    )
    single = measured_cell(10.0, axes=(("threads", "1"),), slots=((0,),), used=1)

    finding = findings_in(stuck, single)

    assert list(finding) == ["one-cpu-default-threads"]
    assert "5.00×" in finding["one-cpu-default-threads"].what


def test_threads_that_follow_one_another_count_as_one() -> None:
    spans = [((0, 100 * at, 100 * at + 100),) for at in range(8)]
    series = tuple(a_thread(tid=100 + at, stays=stays) for at, stays in enumerate(spans))
    slow = measured_cell(50.0, axes=(("threads", "default"),), slots=((0,),), threads=series)
    single = measured_cell(10.0, axes=(("threads", "1"),), slots=((0,),), used=1)

    assert findings_in(slow, single) == {}


def test_one_thread_on_one_cpu_is_not_reported() -> None:
    fine = measured_cell(10.0, axes=(("threads", "default"),), slots=((0,),), used=1)
    single = measured_cell(9.0, axes=(("threads", "1"),), slots=((0,),), used=1)

    assert findings_in(fine, single) == {}


def test_random_numbers_are_reported_with_their_operator() -> None:
    launch = a_profiled_launch(
        an_operator("aten::bernoulli_", 400_000), an_operator("aten::convolution", 500_000)
    )

    finding = findings_in(cell_evidence([*measured_cell(1.0).launches, launch]))

    # Of 1 ms with 0.1 ms outside operators: 40 %, and no operator over a half.
    assert list(finding) == ["random-numbers"]
    assert finding["random-numbers"].what == (
        "Random number generation takes 40 % of the step, mostly in aten::bernoulli_."
    )


def test_an_operator_dominates_above_half_of_the_step_only() -> None:
    half = a_profiled_launch(an_operator("conv", 500_000), an_operator("add", 400_000))
    more = a_profiled_launch(an_operator("conv", 600_000), an_operator("add", 300_000))
    timed = measured_cell(1.0).launches

    assert findings_in(cell_evidence([*timed, half])) == {}
    assert findings_in(cell_evidence([*timed, more]))["operator-dominates"].tone == "plain"


def test_a_profile_shows_that_a_step_waits_for_its_data() -> None:
    launch = a_profiled_launch(
        an_operator("conv", 400_000), an_operator("copy", 500_000), phases={"data": 600_000}
    )

    finding = findings_in(cell_evidence([*measured_cell(1.0).launches, launch]))[
        "data-starves-step"
    ]

    assert "60 % of the step" in finding.what
    assert "loaders: 1" in finding.fix


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
    finding = findings_in(in_ten_seconds(step_s=4, loader_s=9.5))["data-starves-step"]

    assert "60 % of the step" in finding.what
    assert finding.evidence[0] == (
        "the busiest loader is active 95 % of the time, the training process waits 60 %"
    )
    assert "more `loaders`" in finding.fix


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


def test_heavy_preparation_is_reported_with_its_class() -> None:
    axes = (("model", "small"),)
    heavy = measured_cell(50.0, axes=(*axes, ("preprocessing", "heavy")))
    light = measured_cell(10.0, axes=(*axes, ("preprocessing", "light")))

    finding = findings_in(heavy, light)["data-starves-step"]

    assert cell_keys(finding) == ["model=small,preprocessing=heavy"]
    assert finding.what == (
        "Preparing data takes 80 % of the step: heavy preparation limits it; the network is small."
    )


def test_preparation_that_takes_little_is_not_reported() -> None:
    axes = (("model", "large"),)
    heavy = measured_cell(11.0, axes=(*axes, ("preprocessing", "heavy")))
    light = measured_cell(10.0, axes=(*axes, ("preprocessing", "light")))

    assert findings_in(heavy, light) == {}


def test_more_loaders_than_the_best_number_are_too_many() -> None:
    many = measured_cell(14.0, axes=(("loaders", "8"),))
    best = measured_cell(10.0, axes=(("loaders", "2"),))

    assert "8 loaders are too many" in findings_in(many, best)["loaders"].what


def test_checkpoints_that_take_half_of_the_time_are_reported_with_a_longer_interval() -> None:
    always = measured_cell(20.0, axes=(("every", "1"),))
    never = measured_cell(10.0, axes=(("every", "0"),))

    finding = findings_in(always, never)["checkpoint-share"]

    assert finding.what.startswith("Saving every step takes 50 % of the time")
    # A save costs 10 ms: every nine steps of 10 ms it is 10 of 100.
    assert "every 9 steps" in finding.fix


def test_checkpoints_below_a_tenth_are_not_reported() -> None:
    seldom = measured_cell(10.9, axes=(("every", "16"),))
    never = measured_cell(10.0, axes=(("every", "0"),))

    assert findings_in(seldom, never) == {}


def test_a_rule_lists_all_its_cells_in_one_finding_worst_first() -> None:
    cells = [
        measured_cell(ms, axes=(("loaders", str(n)),))
        for n, ms in ((0, 20.0), (1, 40.0), (2, 10.0))
    ]

    finding = findings_in(*cells)["loaders"]

    assert cell_keys(finding) == ["loaders=1", "loaders=0"]


def test_without_evidence_there_are_no_findings() -> None:
    assert findings_in(measured_cell(10.0, threads=())) == {}
