"""What to set is the difference between two recorded commands, as one line of a shell."""

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.analysis.what_to_set import WhatToSet, what_to_set
from support.build import a_host, a_scenario
from support.examples import examples
from support.known import known
from support.results import a_result
from support.texts import in_order


def two_cells(get: str, have: str, *, cores: int = 2, **scenario: Any) -> WhatToSet | None:
    measured = a_result(
        a_scenario(**scenario), {get: 10.0, have: 20.0}, host=a_host(cores_per_node=cores)
    )
    return what_to_set(measured.by_key[get], measured.by_key[have])


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


OF_PYTORCH = {"workload": "gemm", "environment": "pytorch", "parameters": {"size": 64}}
OF_NUMPY = {"workload": "gemm", "environment": "numpy"}


@pytest.mark.parametrize(
    ("scenario", "get", "have", "line", "where"),
    [
        # Several processes get the same line each, or with CPUs of their own a line each.
        (
            {"matrix": {"workers": [4], "threads": ["default", 1]}},
            "workers=4,threads=1",
            "workers=4,threads=default",
            "OMP_NUM_THREADS=1",
            ("4 commands",),
        ),
        (
            {"matrix": {"workers": [2], "binding": ["none", "per-worker"]}},
            "workers=2,binding=per-worker",
            "workers=2,binding=none",
            "taskset -c 0",
            ("first", "CPU 1", "second"),
        ),
        (
            {**OF_NUMPY, "matrix": {"parameters": {"size": [64, 128]}}},
            "size=128",
            "size=64",
            "size=128",
            ("in the workload",),
        ),
        # Threads of the framework alone are set by its function.
        (
            {**OF_PYTORCH, "matrix": {"intra_op": [None, 3]}},
            "intra_op=3",
            "intra_op=default",
            "torch.set_num_threads(3)",
            ("start",),
        ),
    ],
)
def test_the_line_says_where_it_is_set(
    scenario: dict[str, Any], get: str, have: str, line: str, where: tuple[str, ...]
) -> None:
    found = known(two_cells(get, have, **scenario))

    assert found.line == line
    assert in_order(found.where, *where)


def test_nothing_is_set_to_undo_a_binding_or_without_a_launch_that_counts() -> None:
    (cell,) = a_result(a_scenario(), {"binding=none": 10.0}).cells
    matrix = {"binding": ["none", "one-cpu"]}

    assert two_cells("binding=none", "binding=one-cpu", matrix=matrix) is None
    assert what_to_set(cell, cell) is None


@examples(30)
@given(value=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_value_of_a_variable_reaches_the_program_as_it_is(value: str) -> None:
    own, bare = (
        a_result(a_scenario(env=env), {"binding=none": 10.0}, blocks=1)
        for env in ({"NAME": value}, {})
    )

    found = known(what_to_set(own.cells[0], bare.cells[0]))

    assert shlex.split(found.line) == [f"NAME={value}"]
