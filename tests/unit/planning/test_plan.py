"""Specifies which launches of a block alternate: those that can be paused, with their baseline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.planning.host_support import HostCapabilities, HugePageSupport, QuotaSupport
from corebound.planning.plan import (
    MOST_INTERLEAVED,
    MOST_TOGETHER,
    PlannedCell,
    interleave_groups,
    plan_cells,
    start_groups,
)
from corebound.scenario.matrix import baselines_of, expand
from support.build import a_host, a_scenario


def block(
    *,
    smt: int = 1,
    quota: QuotaSupport | None = None,
    host_quota: float | None = None,
    huge_pages: HugePageSupport | None = None,
    openmp: dict[str, str] | None = None,
    tools: frozenset[str] = frozenset({"taskset", "numactl"}),
    instructions: frozenset[str] = frozenset(),
    **scenario: Any,
) -> tuple[tuple[PlannedCell, ...], dict[str, str]]:
    """Every cell of a scenario on a host of eight CPUs, and whom each is compared with."""
    loaded = a_scenario(**scenario)
    environment = str(loaded.environment or "host")
    host_topology = a_host(nodes=2, cores_per_node=4 // smt, cpus_per_core=smt)
    host = HostCapabilities(
        topology=replace(host_topology, cpu_quota=host_quota),
        tools=tools,
        instructions=instructions,
        pythons={environment: "/usr/bin/python3"},
        gpus=("0",),
        quota=quota or QuotaSupport(),
        huge_pages=huge_pages or HugePageSupport(),
        openmp={environment: openmp or {}},
    )
    cells = expand(loaded, "a.yaml")
    planned = plan_cells(loaded, cells, host, folder="/suite", profile=None, seed=1)
    baselines = baselines_of(cells, cells, loaded)
    pairs = zip(cells, baselines, strict=True)
    return planned, {cell.key: base.key for cell, base in pairs if base is not None}


def parted(*, smt: int = 1, **scenario: Any) -> list[list[str]]:
    groups = interleave_groups(*block(smt=smt, **scenario))
    return [[cell.cell.label for cell in group] for group in groups]


def sides(*names: str, **scenario: Any) -> dict[str, Any]:
    """A scenario of cells that differ in one parameter."""
    return {
        "matrix": {"parameters": {"side": list(names)}},
        "baseline": {"parameters": {"side": names[0]}},
        **scenario,
    }


def test_cells_alternate_with_their_baseline() -> None:
    assert parted(**sides("a", "b", "c")) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("binding", ["none", "one-cpu"]),
        ("threads", [1, 2]),
        # How many threads that is depends on the framework.
        ("threads", ["default", 2]),
    ],
)
def test_cells_that_keep_other_cpus_busy_alternate_only_on_request(
    axis: str, values: list[Any]
) -> None:
    both: dict[str, Any] = {"matrix": {axis: values}, "baseline": {axis: values[0]}}
    one, other = map(str, values)

    assert parted(**both) == [[one], [other]]
    assert parted(**both, measure={"alternate": "always"}) == [[one, other]]


@pytest.mark.parametrize("framework", ["numpy", "pytorch"])
def test_as_many_threads_as_the_framework_default_alternate_with_it(framework: str) -> None:
    both: dict[str, Any] = {
        "matrix": {"threads": ["default", 4, 8]},
        "baseline": {"threads": "default"},
        "environment": framework,
        "framework": framework,
    }

    assert parted(**both) == [["default", "8"], ["4"]]
    # PyTorch has a thread for each core, OpenBLAS one for each CPU.
    assert parted(**both, smt=2) == [["default"], ["4"], ["8"]]


@pytest.mark.parametrize("framework", ["numpy", "pytorch", "tensorflow", "mindspore"])
@pytest.mark.parametrize("requested", [{"threads": 2}, {"threads": 1, "workers": 2}])
def test_thread_pools_and_several_workers_alternate(
    framework: str, requested: dict[str, Any]
) -> None:
    requested = {"environment": framework, "framework": framework, **requested}

    assert parted(**sides("a", "b", **requested)) == [["a", "b"]]


def test_a_cell_that_ran_while_it_was_paused_is_launched_on_its_own() -> None:
    planned, baselines = block(**sides("a", "b", "c"))

    groups = interleave_groups(planned, baselines, alone={planned[1].cell.key})

    assert [[cell.cell.label for cell in group] for group in groups] == [["a", "c"], ["b"]]


def test_alternate_never_disables_alternation() -> None:
    assert parted(**sides("a", "b", measure={"alternate": "never"})) == [["a"], ["b"]]


def test_a_cell_whose_baseline_is_not_in_the_block_is_launched_on_its_own() -> None:
    planned, baselines = block(**sides("a", "b", "c"))

    assert [len(cell) for cell in interleave_groups(planned[1:], baselines)] == [1, 1]


names = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=16, unique=True)


@given(order=names, data=st.data())
def test_every_cell_is_in_one_group_and_no_group_is_too_large(
    order: Sequence[str], data: st.DataObject
) -> None:
    planned, baselines = block(**sides(*order))
    some = data.draw(st.permutations(planned))

    groups = interleave_groups(some, baselines)

    assert sorted(cell.cell.key for group in groups for cell in group) == sorted(
        cell.cell.key for cell in planned
    )
    assert max(map(len, groups)) == min(len(order), MOST_INTERLEAVED)
    for group in groups:
        assert [cell for cell in some if cell in group] == list(group)


def test_cells_with_a_quota_never_alternate() -> None:
    limited = sides("a", "b", cpu_quota=2)

    assert parted(**limited) == [["a"], ["b"]]
    assert parted(**limited, measure={"alternate": "always"}) == [["a"], ["b"]]


def starts(*, apart: Collection[str] = (), **scenario: Any) -> list[list[list[str]]]:
    """The labels of the cells that start at once, by turn."""
    function = {"workload": "steps:short", "environment": "host", **scenario}
    groups = start_groups(interleave_groups(*block(**function)), apart=apart)
    return [[[cell.cell.label for cell in turn] for turn in group] for group in groups]


THREADS: dict[str, Any] = {"matrix": {"threads": [1, 2, 4]}}


def test_cells_that_do_not_alternate_start_at_once_and_have_a_turn_each() -> None:
    assert starts(**THREADS) == [[["1"], ["2"], ["4"]]]


def test_cells_that_alternate_share_a_turn_among_those_that_start_at_once() -> None:
    both: dict[str, Any] = {
        "matrix": {"binding": ["none", "node"], "parameters": {"side": ["a", "b"]}},
        "baseline": {"parameters": {"side": "a"}},
    }

    assert starts(**both) == [[["none, a", "none, b"], ["node, a", "node, b"]]]


@pytest.mark.parametrize(
    ("scenario", "sizes"),
    [
        ({"binding": "none"}, [MOST_TOGETHER, 1]),
        ({"binding": "none", "workers": 4}, [4, 4, 1]),
        ({"binding": "none", "workers": 16}, [1] * 9),
        ({"binding": "one-cpu"}, [2, 2, 2, 2, 1]),
    ],
)
def test_two_workers_for_each_cpu_that_they_import_on_start_at_once(
    scenario: dict[str, Any], sizes: list[int]
) -> None:
    found = starts(matrix={"threads": list(range(1, 10))}, **scenario)

    assert [sum(map(len, group)) for group in found] == sizes


@pytest.mark.parametrize(
    "separate",
    [
        {"measure": {"alternate": "never"}},
        {"cpu_quota": 2},
        {"workload": {"command": ["true"]}},
    ],
)
def test_what_cannot_be_paused_or_times_its_start_starts_separately(
    separate: dict[str, Any],
) -> None:
    assert starts(**THREADS, **separate) == [[["1"]], [["2"]], [["4"]]]


def test_a_cell_that_may_not_start_with_others_does_not_part_them() -> None:
    assert starts(**THREADS, apart={"threads=2"}) == [[["1"], ["4"]], [["2"]]]


NO_CGROUP = QuotaSupport(tool=None, reason="/sys/fs/cgroup/cpu: Permission denied")


@pytest.mark.parametrize(
    ("host", "scenario", "reason"),
    [
        (
            {"quota": NO_CGROUP},
            {"cpu_quota": 1.5},
            "cannot be set on this host: /sys/fs/cgroup/cpu",
        ),
        ({"host_quota": 1.5}, {"cpu_quota": 2}, "more than this host allows: 1.5 CPUs"),
        ({}, {"cpu_quota": 9}, "limits nothing on the 8 CPUs"),
        (
            {"quota": QuotaSupport(tool="systemd-run")},
            {"cpu_quota": 2, "workers": 2},
            "of several processes needs a cgroup",
        ),
    ],
)
def test_a_quota_that_a_host_cannot_set_is_skipped_with_its_reason(
    host: dict[str, Any], scenario: dict[str, Any], reason: str
) -> None:
    planned, _ = block(**host, **scenario, matrix={})

    assert [one.placement for one in planned] == [None]
    assert planned[0].unfit is not None
    assert reason in planned[0].unfit.what


@pytest.mark.parametrize(
    "host", [{}, {"host_quota": 1.5}, {"quota": QuotaSupport(tool="systemd-run")}]
)
def test_a_quota_that_a_host_can_set_is_planned(host: dict[str, Any]) -> None:
    planned, _ = block(**host, cpu_quota=1.5, matrix={})

    assert planned[0].unfit is None


def test_a_file_of_a_parameter_is_beside_the_scenario() -> None:
    (cell,), _ = block(
        workload="onnx-inference",
        environment="onnxruntime",
        parameters={"model": "models/mine.onnx", "shapes": "1x3"},
        matrix={},
    )

    (request,) = cell.requests
    assert request.parameters == {"model": "/suite/models/mine.onnx", "shapes": "1x3"}


@pytest.mark.parametrize(
    ("host", "can_require_advice", "possible"),
    [
        ("always", True, {"always", "madvise", "never"}),
        ("always", False, {"always", "never"}),
        ("madvise", True, {"madvise", "never"}),
        ("never", True, {"never"}),
        (None, True, {"never"}),
    ],
)
def test_a_process_has_no_more_huge_pages_than_its_host_allows(
    host: Any, can_require_advice: bool, possible: set[str]
) -> None:
    support = HugePageSupport(host=host, can_require_advice=can_require_advice)

    planned, _ = block(huge_pages=support, matrix={"thp": ["always", "madvise", "never"]})

    assert {cell.cell.thp for cell in planned if cell.unfit is None} == possible


def test_an_openmp_runtime_that_is_not_there_is_skipped_with_what_installs_it() -> None:
    planned, _ = block(
        openmp={"llvm": "libomp.so.5"}, matrix={"openmp": [None, "gnu", "intel", "llvm"]}
    )

    (unfit,) = (cell.unfit for cell in planned if cell.unfit is not None)
    assert unfit.what == "environment host has no OpenMP runtime of Intel."
    assert unfit.fix.startswith("Add intel-openmp==VERSION")
    assert [dict(cell.commands[0].env).get("LD_PRELOAD") for cell in planned if cell.commands] == [
        None,
        None,
        "libomp.so.5",
    ]


def test_compiling_needs_a_compiler() -> None:
    compiled: dict[str, Any] = {
        "workload": "resnet50-inference",
        "environment": "pytorch",
        "parameters": {"mode": "compiled"},
        "matrix": {},
    }

    (without,), _ = block(**compiled)
    (with_compiler,), _ = block(tools=frozenset({"taskset", "g++"}), **compiled)

    assert without.unfit is not None
    assert without.unfit.what == (
        "`mode: compiled` needs a C++ compiler, which this host does not have."
    )
    assert with_compiler.unfit is None


@pytest.mark.parametrize(
    ("dtype", "environment", "instructions"),
    [
        ("bfloat16", "pytorch", {"avx512_bf16"}),
        ("bfloat16", "jax", {"amx_bf16"}),
        ("int8", "onnxruntime", {"avx_vnni"}),
    ],
)
def test_a_type_without_instructions_is_skipped(
    dtype: str, environment: str, instructions: set[str]
) -> None:
    typed: dict[str, Any] = {
        "workload": "encoder-inference",
        "environment": environment,
        "parameters": {"dtype": dtype},
        "matrix": {},
    }

    (capable,), _ = block(instructions=frozenset({"sse2", *instructions}), **typed)
    (incapable,), _ = block(instructions=frozenset({"sse2"}), **typed)
    (unknown,), _ = block(**typed)

    assert capable.unfit is None
    assert incapable.unfit is not None
    assert incapable.unfit.what == f"`dtype: {dtype}` has no instructions on this processor."
    assert unknown.unfit is None


def test_llama_cpp_needs_no_instructions_for_8_bits() -> None:
    (cell,), _ = block(
        workload="decoder-inference",
        environment="llama-cpp",
        parameters={"dtype": "int8"},
        matrix={},
        instructions=frozenset({"sse2"}),
    )

    assert cell.unfit is None
