"""Specifies which cells a host can launch, and why it cannot launch the others."""

from typing import Any

import pytest

from corebound.machine.cgroups import QuotaSupport
from corebound.planning.host_support import HugePageSupport
from support.known import known
from support.plans import block

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
    assert reason in known(planned[0].unfit).what


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

    assert known(without.unfit).what == (
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
    assert known(incapable.unfit).what == f"`dtype: {dtype}` has no instructions on this processor."
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


def test_an_open_number_of_iterations_lasts_long_enough_to_read_how_busy_a_gpu_is() -> None:
    planned, _ = block(workload="image-pipeline", environment="pytorch", matrix={"gpus": [0, 1]})

    lengths = [(one.cell.gpus, one.requests[0].enough_ns) for one in planned]
    assert lengths == [(0, 2_000_000_000), (1, 6_000_000_000)]
