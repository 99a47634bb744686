"""Rules on records of real runs: what each fires on, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.findings import cell_keys, findings_of_record


def test_eight_threads_on_two_cpus_or_one_are_named_beside_one_thread() -> None:
    found = findings_of_record("small-network-threads")["more-threads-than-cpus"]

    assert cell_keys(found) == [
        "binding=one-cpu,bind=before-start,threads=8",
        "binding=none,bind=before-start,threads=8",
    ]
    assert "8 threads share one CPU" in found.what
    assert "OMP_NUM_THREADS=1" in found.fix
    assert any(line.startswith("run-queue wait: ") for line in found.evidence)


def test_a_second_thread_on_one_cpu_that_costs_nothing_certain_is_left_alone() -> None:
    # OMP_NUM_THREADS=2 on one CPU: 7.98 ms against 7.16, an interval of 0.79 to 1.58.
    assert findings_of_record("host-cores-on-one-cpu") == {}


def test_a_pool_sized_before_binding_is_named_and_one_of_a_single_thread_is_not() -> None:
    found = findings_of_record("small-network-threads")["bound-after-start"]

    assert cell_keys(found) == ["binding=one-cpu,bind=after-start,threads=default"]
    assert "115× the CPU time of `bind: before-start`" in found.what


def test_binding_mindspore_after_its_start_costs_nothing_and_is_left_alone() -> None:
    # 4.8 and 5.0 ms bound after start, 4.5 and 4.7 before.
    assert findings_of_record("mindspore-bound-after-start") == {}


def test_two_processes_with_all_threads_are_named_and_those_of_one_thread_are_not() -> None:
    found = findings_of_record("several-processes")["processes-with-all-threads"]

    assert cell_keys(found) == [
        "workers=2,binding=none,threads=default,wait_policy=default",
        "workers=2,binding=none,threads=default,wait_policy=passive",
    ]
    assert found.tone == "bad"
    assert "2 processes with 2 threads each (4 in total) share 2 CPUs" in found.what


def test_workers_of_a_server_with_all_threads_are_named_and_pinned_ones_are_not() -> None:
    found = findings_of_record("torchserve")

    # The threads wander too, but there are also twice as many: one cause, one finding.
    assert list(found) == ["processes-with-all-threads"]
    assert cell_keys(found["processes-with-all-threads"]) == [
        "model=resnet18,workers=2,binding=none,threads=default,wait_policy=default"
    ]
    assert "a request uses 6.41× the CPU time" in found["processes-with-all-threads"].what
    assert "binding: launcher" in found["processes-with-all-threads"].fix


def test_two_dispatch_threads_on_one_cpu_are_named_and_one_is_not() -> None:
    found = findings_of_record("mindspore-dispatch-threads")["dispatch-threads"]

    assert cell_keys(found) == [
        "bind=before-start,omp=default,mode=graph,dispatch_threads=2,blocking=false"
    ]
    assert "dispatch_threads_num(1)" in found.fix


def test_launches_that_keep_slowing_down_are_named_as_never_steady() -> None:
    found = findings_of_record("mindspore-dispatch-threads")["never-steady"]

    assert found.evidence == ("classification: 2 slowdown",)
    assert "never-steady" not in findings_of_record("several-processes")


def test_the_slower_blas_is_named_and_the_faster_is_not() -> None:
    found = findings_of_record("numpy-blas")["slower-blas"]

    assert cell_keys(found) == ["threads=1,dtype=float32,blas=mkl"]
    assert found.fix == "Use the faster library on this processor: `blas: openblas`."


def test_too_few_loaders_are_named_and_the_best_number_is_not() -> None:
    found = findings_of_record("data-loaders")["loaders"]

    assert cell_keys(found) == ["loaders=0"]
    assert "DataLoader(num_workers=2)" in found.fix


def test_a_generator_that_was_late_is_named_and_one_that_was_not_is_not() -> None:
    found = findings_of_record("serving-load")["generator-bound"]

    assert cell_keys(found) == ["rate=10"]
    assert "8.27 ms late or more" in found.evidence[0]


def test_heavy_preparation_that_the_step_waits_for_is_named_and_light_is_not() -> None:
    found = findings_of_record("heavy-preparation")["data-starves-step"]

    assert cell_keys(found) == ["preprocessing=heavy,loaders=0"]
    assert found.what == "Preparing data takes 82 % of the step: the model waits."
    # Other programs disturbed its profiles for 90 to 98 % of their time, so none is evidence.
    assert found.evidence[0] == "5.50× slower than with `preprocessing: light`"
    assert not any("data: " in line for line in found.evidence)


def test_a_thread_that_changes_nodes_is_named_and_one_bound_to_a_node_is_not() -> None:
    found = findings_of_record("two-nodes-wandering")["threads-migrate"]

    assert cell_keys(found) == ["binding=none"]
    assert "29 moves between nodes per launch, as sampled" in found.evidence


def test_memory_bound_to_the_other_node_is_named_and_to_one_s_own_is_not() -> None:
    found = findings_of_record("two-nodes-memory")["memory-remote"]

    assert cell_keys(found) == ["binding=one-cpu,memory=remote,threads=default"]
    assert found.evidence == ("workers on CPU 0, memory 100 % on node 1",)


def test_a_pool_as_large_as_the_host_on_one_cpu_is_named_and_one_thread_is_not() -> None:
    found = findings_of_record("pool-of-the-host")["one-cpu-default-threads"]

    assert cell_keys(found) == ["threads=default"]
    assert "The framework starts 2 threads by default, on one CPU" in found.what
    assert "OMP_NUM_THREADS=1" in found.fix


def test_two_workers_on_one_cpu_are_named_and_those_with_one_each_are_not() -> None:
    found = findings_of_record("two-workers-on-a-cpu")["workers-overlap"]

    assert cell_keys(found) == ["binding=cpus:0"]
    assert "while CPU 1 is idle" in found.what


def test_a_product_that_is_the_whole_step_is_named_and_one_of_several_operators_is_not() -> None:
    found = findings_of_record("one-product")["operator-dominates"]

    assert found.what == "aten::mm alone takes 99 % of the step."
    assert "operator-dominates" not in findings_of_record("hourglass")


def test_random_numbers_of_dropout_are_named_and_a_step_without_them_is_not() -> None:
    found = findings_of_record("dropout-on-activations")["random-numbers"]

    assert cell_keys(found) == ["share=0.5"]
    assert (
        found.what == "Random number generation takes 49 % of the step, mostly in aten::bernoulli_."
    )


def test_a_checkpoint_after_every_step_is_named_with_how_seldom_would_do() -> None:
    found = findings_of_record("checkpoints-each-step")["checkpoint-share"]

    assert cell_keys(found) == ["every=1"]
    assert found.what == (
        "Saving every step takes 72 % of the time: training is 3.51× slower than without"
        " checkpoints."
    )
    # Of 26.6 ms a save takes 19.0; every 23rd step that is 0.83 ms beside 7.58.
    assert found.fix.startswith("Save every 23 steps or less often")


def test_a_quota_is_named_and_a_load_without_one_is_not_taken_for_it() -> None:
    found = findings_of_record("under-a-quota")["throttled"]

    assert found.tone == "bad"
    assert "a cgroup's quota stopped threads for 39 % of the time (throttling)" in found.evidence
    assert "throttled" not in findings_of_record("a-competing-load")


def test_a_load_beside_launches_is_named_and_so_are_those_it_cost() -> None:
    found = findings_of_record("a-competing-load")["foreign-load"]

    assert cell_keys(found) == ["binding=cpus:1", "binding=one-cpu"]
    assert found.evidence[-2:] == ("3 launches kept and marked", "1 launch without results")


def test_a_workload_that_moves_itself_is_named_and_where_it_may_move_it_is_not() -> None:
    found = findings_of_record("moves-itself")["not-as-asked"]

    assert cell_keys(found) == ["binding=one-cpu"]
    assert any("was allowed CPUs 1, its slot is 0" in line for line in found.evidence)


def test_processes_left_behind_are_named_and_a_workload_without_them_is_not() -> None:
    found = findings_of_record("forks-strays")["strays"]

    assert cell_keys(found) == ["helper=true"]
    assert found.evidence == ("sleep: 3",)


def test_a_competing_load_is_named_where_threads_waited_for_it() -> None:
    found = findings_of_record("one-product")["foreign-load"]

    # The same load ran beside one thread: neither CPU rested, and it waited for half of the time.
    assert cell_keys(found) == ["threads=2", "threads=1"]
    assert "100 % of its iterations overlapped a disturbance" in found.evidence


def test_what_a_hypervisor_took_is_named_where_it_did_and_not_elsewhere() -> None:
    found = findings_of_record("one-product")["steal"]

    assert cell_keys(found) == ["threads=1"]
    assert "the hypervisor gave 21 % of a CPU to others (steal)" in found.evidence
    assert "steal" not in findings_of_record("dropout-on-activations")


@pytest.mark.parametrize(
    "name",
    [
        # Two threads or one on one or two CPUs, bound or not: nothing to mend but the first,
        # which other programs disturbed and is not accused for it.
        "resnet50-inference",
        # One launch a cell cannot tell 556 ms from 240.
        "checkpoint-interval",
        "four-classes",
        # Convolutions 54 %, of two kinds; dropout's random numbers well below a tenth.
        "hourglass",
    ],
)
def test_what_shows_no_cause_for_certain_is_not_accused(name: str) -> None:
    assert findings_of_record(name) == {}
