"""What to set is the difference between two recorded commands, as one line of a shell."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.what_to_set import WhatToSet, what_to_set
from support.build import a_host, a_scenario
from support.results import a_result
from support.texts import in_order


def line(result: ScenarioResult, get: str, have: str) -> WhatToSet | None:
    return what_to_set(result.by_key[get], result.by_key[have])


def two_cells(get: str, have: str, *, cores: int = 2, **scenario: Any) -> WhatToSet | None:
    measured = a_result(
        a_scenario(**scenario), {get: 10.0, have: 20.0}, host=a_host(cores_per_node=cores)
    )
    return line(measured, get, have)


@pytest.mark.parametrize(
    ("matrix", "get", "have", "expected"),
    [
        # MKL and OpenBLAS follow OMP_NUM_THREADS.
        ({"threads": ["default", 1]}, "threads=1", "threads=default", "OMP_NUM_THREADS=1"),
        ({"threads": ["default", 1]}, "threads=default", "threads=1", "env -u OMP_NUM_THREADS"),
        ({"threads": [1, 2]}, "threads=2", "threads=1", "OMP_NUM_THREADS=2"),
        ({"binding": ["none", "one-cpu"]}, "binding=one-cpu", "binding=none", "taskset -c 0"),
        (
            {"binding": ["none", "one-cpu"], "threads": ["default", 1]},
            "binding=one-cpu,threads=1",
            "binding=none,threads=default",
            "OMP_NUM_THREADS=1 taskset -c 0",
        ),
        (
            {"wait_policy": [None, "passive"]},
            "wait_policy=passive",
            "wait_policy=default",
            "OMP_WAIT_POLICY=PASSIVE",
        ),
        (
            {"allocator": [None, "jemalloc"]},
            "allocator=jemalloc",
            "allocator=default",
            "LD_PRELOAD=libjemalloc.so.2",
        ),
        (
            {"memory": ["default", "local"]},
            "memory=local",
            "memory=default",
            "numactl --localalloc",
        ),
    ],
)
def test_the_line_sets_what_the_other_command_does_not(
    matrix: dict[str, Any], get: str, have: str, expected: str
) -> None:
    assert two_cells(get, have, matrix=matrix) == WhatToSet(
        line=expected, where="before the command"
    )


def test_several_processes_get_the_same_line_each() -> None:
    matrix = {"workers": [4], "threads": ["default", 1]}

    found = two_cells("workers=4,threads=1", "workers=4,threads=default", matrix=matrix)

    assert found is not None
    assert found.line == "OMP_NUM_THREADS=1"
    assert "4 commands" in found.where


def test_processes_with_cpus_of_their_own_get_a_line_each() -> None:
    matrix = {"workers": [2], "binding": ["none", "per-worker"]}

    found = two_cells("workers=2,binding=per-worker", "workers=2,binding=none", matrix=matrix)

    assert found is not None
    assert found.line == "taskset -c 0"
    assert in_order(found.where, "first", "CPU 1", "second")


def test_a_parameter_is_set_in_the_workload() -> None:
    matrix = {"parameters": {"size": [64, 128]}}
    scenario: dict[str, Any] = {"workload": "gemm", "environment": "numpy", "matrix": matrix}

    found = two_cells("size=128", "size=64", **scenario)

    assert found == WhatToSet(line="size=128", where="in the workload")


def test_threads_of_the_framework_alone_are_set_by_its_function() -> None:
    scenario: dict[str, Any] = {
        "workload": "gemm",
        "environment": "pytorch",
        "parameters": {"size": 64},
        "matrix": {"intra_op": [None, 3]},
    }

    found = two_cells("intra_op=3", "intra_op=default", **scenario)

    assert found is not None
    assert found.line == "torch.set_num_threads(3)"
    assert "start" in found.where


def test_nothing_is_set_to_undo_a_binding() -> None:
    matrix = {"binding": ["none", "one-cpu"]}

    assert two_cells("binding=none", "binding=one-cpu", matrix=matrix) is None


def test_nothing_is_set_without_a_launch_that_counts() -> None:
    result = a_result(a_scenario(), {"binding=none": 10.0})
    (cell,) = result.cells

    assert what_to_set(cell, cell) is None


@settings(max_examples=30)
@given(value=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_value_of_a_variable_reaches_the_program_as_it_is(value: str) -> None:
    own, bare = (
        a_result(a_scenario(env=env), {"binding=none": 10.0}, blocks=1)
        for env in ({"NAME": value}, {})
    )

    found = what_to_set(own.cells[0], bare.cells[0])

    assert found is not None
    assert shlex.split(found.line) == [f"NAME={value}"]
