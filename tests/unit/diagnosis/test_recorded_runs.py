"""Rules on records of real runs: what each fires on, and what it leaves alone."""

from __future__ import annotations

import pytest

from support.findings import cell_keys, findings_of_record


def test_eight_threads_on_two_cpus_or_one_are_reported() -> None:
    finding = findings_of_record("small-network-threads")["more-threads-than-cpus"]

    assert cell_keys(finding) == [
        "binding=one-cpu,bind=before-start,threads=8",
        "binding=none,bind=before-start,threads=8",
    ]
    assert "8 threads share one CPU" in finding.what
    assert "OMP_NUM_THREADS=1" in finding.fix
    assert any(line.startswith("run-queue wait: ") for line in finding.evidence)


def test_a_second_thread_on_one_cpu_at_no_certain_cost_is_not_reported() -> None:
    # OMP_NUM_THREADS=2 on one CPU: 7.98 ms against 7.16, an interval of 0.79 to 1.58.
    assert findings_of_record("host-cores-on-one-cpu") == {}


def test_a_pool_sized_before_binding_is_reported_but_a_single_thread_is_not() -> None:
    finding = findings_of_record("small-network-threads")["bound-after-start"]

    assert cell_keys(finding) == ["binding=one-cpu,bind=after-start,threads=default"]
    assert "115× the CPU time of `bind: before-start`" in finding.what


def test_binding_mindspore_after_its_start_costs_nothing_and_is_not_reported() -> None:
    # 4.8 and 5.0 ms bound after start, 4.5 and 4.7 before.
    assert findings_of_record("mindspore-bound-after-start") == {}


def test_two_processes_with_all_threads_are_reported_but_with_one_thread_are_not() -> None:
    finding = findings_of_record("several-processes")["processes-with-all-threads"]

    assert cell_keys(finding) == [
        "workers=2,binding=none,threads=default,wait_policy=default",
        "workers=2,binding=none,threads=default,wait_policy=passive",
    ]
    assert finding.tone == "bad"
    assert "2 processes with 2 threads each (4 in total) share 2 CPUs" in finding.what


def test_workers_of_a_server_with_all_threads_are_reported_but_pinned_ones_are_not() -> None:
    finding = findings_of_record("torchserve")

    # The threads wander too, but there are also twice as many: one cause, one finding.
    assert list(finding) == ["processes-with-all-threads"]
    assert cell_keys(finding["processes-with-all-threads"]) == [
        "model=resnet18,workers=2,binding=none,threads=default,wait_policy=default"
    ]
    assert "a request uses 6.41× the CPU time" in finding["processes-with-all-threads"].what
    assert "binding: launcher" in finding["processes-with-all-threads"].fix


def test_two_dispatch_threads_on_one_cpu_are_reported_but_one_is_not() -> None:
    finding = findings_of_record("mindspore-dispatch-threads")["dispatch-threads"]

    assert cell_keys(finding) == [
        "bind=before-start,omp=default,mode=graph,dispatch_threads=2,blocking=false"
    ]
    assert "dispatch_threads_num(1)" in finding.fix


def test_launches_that_keep_slowing_down_are_never_steady() -> None:
    finding = findings_of_record("mindspore-dispatch-threads")["never-steady"]

    assert finding.evidence == ("classification: 2 slowdown",)
    assert "never-steady" not in findings_of_record("several-processes")


def test_the_slower_blas_is_reported_but_the_faster_is_not() -> None:
    finding = findings_of_record("numpy-blas")["slower-blas"]

    assert cell_keys(finding) == ["threads=1,dtype=float32,blas=mkl"]
    assert finding.fix == "Use the faster library on this processor: `blas: openblas`."


def test_too_few_loaders_are_reported_but_the_best_number_is_not() -> None:
    finding = findings_of_record("data-loaders")["loaders"]

    assert cell_keys(finding) == ["loaders=0"]
    assert "DataLoader(num_workers=2)" in finding.fix


def test_a_late_generator_is_reported_but_a_punctual_one_is_not() -> None:
    finding = findings_of_record("serving-load")["generator-bound"]

    assert cell_keys(finding) == ["rate=10"]
    assert "8.27 ms late or more" in finding.evidence[0]


def test_heavy_preparation_is_reported_but_light_is_not() -> None:
    finding = findings_of_record("heavy-preparation")["data-starves-step"]

    assert cell_keys(finding) == ["preprocessing=heavy,loaders=0"]
    assert finding.what == "Preparing data takes 82 % of the step: the model waits."
    # Other programs disturbed its profiles for 90 to 98 % of their time, so none is evidence.
    assert finding.evidence[0] == "5.50× slower than with `preprocessing: light`"
    assert not any("data: " in line for line in finding.evidence)


def test_a_thread_that_changes_nodes_is_reported_but_a_bound_one_is_not() -> None:
    finding = findings_of_record("two-nodes-wandering")["threads-migrate"]

    assert cell_keys(finding) == ["binding=none"]
    assert "29 moves between nodes per launch, as sampled" in finding.evidence


def test_memory_on_the_other_node_is_reported_but_on_the_own_node_is_not() -> None:
    finding = findings_of_record("two-nodes-memory")["memory-remote"]

    assert cell_keys(finding) == ["binding=one-cpu,memory=remote,threads=default"]
    assert finding.evidence == ("workers on CPU 0, memory 100 % on node 1",)


def test_a_pool_as_large_as_the_host_on_one_cpu_is_reported_but_one_thread_is_not() -> None:
    finding = findings_of_record("pool-of-the-host")["one-cpu-default-threads"]

    assert cell_keys(finding) == ["threads=default"]
    assert "The framework starts 2 threads by default, on one CPU" in finding.what
    assert "OMP_NUM_THREADS=1" in finding.fix


def test_two_workers_on_one_cpu_are_reported_but_with_one_each_are_not() -> None:
    finding = findings_of_record("two-workers-on-a-cpu")["workers-overlap"]

    assert cell_keys(finding) == ["binding=cpus:0"]
    assert "while CPU 1 is idle" in finding.what


def test_a_dominating_product_is_reported_but_one_of_several_operators_is_not() -> None:
    finding = findings_of_record("one-product")["operator-dominates"]

    assert finding.what == "aten::mm alone takes 99 % of the step."
    assert "operator-dominates" not in findings_of_record("hourglass")


def test_random_numbers_of_dropout_are_reported_but_a_step_without_them_is_not() -> None:
    finding = findings_of_record("dropout-on-activations")["random-numbers"]

    assert cell_keys(finding) == ["share=0.5"]
    assert (
        finding.what
        == "Random number generation takes 49 % of the step, mostly in aten::bernoulli_."
    )


def test_a_checkpoint_after_every_step_is_reported_with_a_longer_interval() -> None:
    finding = findings_of_record("checkpoints-each-step")["checkpoint-share"]

    assert cell_keys(finding) == ["every=1"]
    assert finding.what == (
        "Saving every step takes 72 % of the time: training is 3.51× slower than without"
        " checkpoints."
    )
    # Of 26.6 ms a save takes 19.0; every 23rd step that is 0.83 ms beside 7.58.
    assert finding.fix.startswith("Save every 23 steps or less often")


def test_a_quota_is_reported_but_a_load_without_one_is_not_taken_for_it() -> None:
    finding = findings_of_record("under-a-quota")["throttled"]

    assert finding.tone == "bad"
    assert "a cgroup's quota stopped threads for 39 % of the time (throttling)" in finding.evidence
    assert "throttled" not in findings_of_record("a-competing-load")


def test_a_competing_load_is_reported_with_the_discarded_launches() -> None:
    finding = findings_of_record("a-competing-load")["foreign-load"]

    assert cell_keys(finding) == ["binding=cpus:1", "binding=one-cpu"]
    assert finding.evidence[-2:] == ("3 launches kept and marked", "1 launch without results")


def test_a_workload_that_rebinds_itself_is_reported_unless_it_is_unbound() -> None:
    finding = findings_of_record("moves-itself")["not-as-asked"]

    assert cell_keys(finding) == ["binding=one-cpu"]
    assert any("was allowed CPUs 1, its slot is 0" in line for line in finding.evidence)


def test_leftover_processes_are_reported() -> None:
    finding = findings_of_record("forks-strays")["strays"]

    assert cell_keys(finding) == ["helper=true"]
    assert finding.evidence == ("sleep: 3",)


def test_a_competing_load_is_reported_where_threads_waited_for_it() -> None:
    finding = findings_of_record("one-product")["foreign-load"]

    # The same load ran beside one thread: neither CPU rested, and it waited for half of the time.
    assert cell_keys(finding) == ["threads=2", "threads=1"]
    assert "100 % of its iterations overlapped a disturbance" in finding.evidence


def test_steal_is_reported_only_where_it_occurred() -> None:
    finding = findings_of_record("one-product")["steal"]

    assert cell_keys(finding) == ["threads=1"]
    assert "the hypervisor gave 21 % of a CPU to others (steal)" in finding.evidence
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
def test_runs_without_a_certain_cause_have_no_findings(name: str) -> None:
    assert findings_of_record(name) == {}
