"""Rules on records of real runs: what each fires on, and what it leaves alone."""

from __future__ import annotations

import pytest

from diagnosed import keys, recorded


def test_eight_threads_on_two_cpus_or_one_are_named_beside_one_thread() -> None:
    found = recorded("small-network-threads")["more-threads-than-cpus"]

    assert keys(found) == [
        "binding=one-cpu,bind=before-start,threads=8",
        "binding=none,bind=before-start,threads=8",
    ]
    assert "8 threads share one CPU" in found.what
    assert "OMP_NUM_THREADS=1" in found.remedy
    assert any(line.startswith("waiting for a CPU") for line in found.evidence)


def test_a_second_thread_on_one_cpu_that_costs_nothing_certain_is_left_alone() -> None:
    # OMP_NUM_THREADS=2 on one CPU: 7.98 ms against 7.16, an interval of 0.79 to 1.58.
    assert recorded("host-cores-on-one-cpu") == {}


def test_a_pool_sized_before_binding_is_named_and_one_of_a_single_thread_is_not() -> None:
    found = recorded("small-network-threads")["bound-after-start"]

    assert keys(found) == ["binding=one-cpu,bind=after-start,threads=default"]
    assert "115× the CPU time of `bind: before-start`" in found.what


def test_binding_mindspore_after_its_start_costs_nothing_and_is_left_alone() -> None:
    # 4.8 and 5.0 ms bound after start, 4.5 and 4.7 before.
    assert recorded("mindspore-bound-after-start") == {}


def test_two_processes_with_all_threads_are_named_and_those_of_one_thread_are_not() -> None:
    found = recorded("several-processes")["processes-with-all-threads"]

    assert keys(found) == [
        "workers=2,binding=none,threads=default,wait_policy=default",
        "workers=2,binding=none,threads=default,wait_policy=passive",
    ]
    assert found.tone == "bad"
    assert "2 processes have 2 threads each, 4 on 2 CPUs" in found.what


def test_workers_of_a_server_with_all_threads_are_named_and_pinned_ones_are_not() -> None:
    found = recorded("torchserve")

    # The threads wander too, but there are also twice as many: one cause, one finding.
    assert list(found) == ["processes-with-all-threads"]
    assert keys(found["processes-with-all-threads"]) == [
        "model=resnet18,workers=2,binding=none,threads=default,wait_policy=default"
    ]
    assert "a request takes 6.41× the CPU time" in found["processes-with-all-threads"].what
    assert "binding: launcher" in found["processes-with-all-threads"].remedy


def test_two_dispatch_threads_on_one_cpu_are_named_and_one_is_not() -> None:
    found = recorded("mindspore-dispatch-threads")["dispatch-threads"]

    assert keys(found) == [
        "bind=before-start,omp=default,mode=graph,dispatch_threads=2,blocking=false"
    ]
    assert "dispatch_threads_num(1)" in found.remedy


def test_launches_that_keep_slowing_down_are_named_as_never_steady() -> None:
    found = recorded("mindspore-dispatch-threads")["never-steady"]

    assert found.evidence == ("how they went: 2 slowdown",)
    assert "never-steady" not in recorded("several-processes")


def test_the_slower_blas_is_named_and_the_faster_is_not() -> None:
    found = recorded("numpy-blas")["slower-blas"]

    assert keys(found) == ["threads=1,dtype=float32,blas=mkl"]
    assert found.remedy == "Use the other on this processor: `blas: openblas`."


def test_too_few_loaders_are_named_and_the_best_number_is_not() -> None:
    found = recorded("data-loaders")["loaders"]

    assert keys(found) == ["loaders=0"]
    assert "DataLoader(num_workers=2)" in found.remedy


def test_a_generator_that_was_late_is_named_and_one_that_was_not_is_not() -> None:
    found = recorded("serving-load")["generator-bound"]

    assert keys(found) == ["rate=10"]
    assert "8.27 ms late or more" in found.evidence[0]


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
    assert recorded(name) == {}
