"""Specifies the facts about a host, including its GPUs, and the cells that need them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.claims import judge_claims
from corebound.analysis.fairness import checks
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.machine import identity
from corebound.machine.identity import Gpu, Host, governors, gpus, microcode
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import PlannedCell, plan_cells
from corebound.records import codec
from corebound.report.pages.claims import claim_verdict
from corebound.report.scenario.provenance import environment_facts
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.worker.protocol import Request
from corebound.worker.workload import WorkloadError, make_workload
from support.build import (
    a_cell,
    a_host,
    a_launch,
    a_machine,
    a_peak,
    a_placement,
    a_run,
    a_scenario,
    a_worker,
)
from support.known import known
from support.machine_trees import MemoryTree
from support.texts import in_order

GPU = Gpu(id="0", name="NVIDIA H100")


def a_study(
    host: Host, *, flop: float | None = None, scenario: Scenario | None = None
) -> ScenarioResult:
    """One gemm on two cores, an iteration a millisecond."""
    asked = scenario or a_scenario(workload="gemm", environment="numpy", matrix={})
    (cell, *_) = expand(asked, "a.yaml")
    worker = replace(a_worker(), work={} if flop is None else {"flop": flop})
    launches = tuple(
        a_launch(cell=cell, block=block, placement=a_placement(), workers=(worker,))
        for block in range(2)
    )
    return latest_results([(a_run(scenarios=(asked,), host=host), launches)])[0]


def test_microcode_and_governors_are_read_where_the_kernel_shows_them() -> None:
    files = {"proc/cpuinfo": "processor: 0\nmicrocode: 0x2b000590\n"}
    for number, governor in enumerate(("powersave", "performance", "powersave")):
        folder = f"sys/devices/system/cpu/cpufreq/policy{number}"
        files[f"{folder}/scaling_governor"] = f"{governor}\n"

    assert microcode(MemoryTree(files)) == "0x2b000590"
    assert governors(MemoryTree(files)) == ("performance", "powersave")
    assert microcode(MemoryTree({})) is None
    assert governors(MemoryTree({})) is None


def test_a_machine_id_of_its_own_makes_a_container_a_host_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = identity.host(a_host())
    monkeypatch.setenv("COREBOUND_MACHINE_ID", "node-7")

    assert identity.host(a_host()).id != here.id


def facts(host: Host) -> dict[str, str]:
    found = environment_facts(a_study(host), records_file="r.jsonl")
    return {fact.term: fact.value for fact in found}


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (None, "unavailable: not checked"),
        ((), "none usable with CUDA"),
        ((GPU, replace(GPU, id="1")), "2 × NVIDIA H100"),
    ],
)
def test_the_gpus_are_a_fact_of_the_environment(gpus: tuple[Gpu, ...] | None, said: str) -> None:
    assert facts(replace(a_machine(), gpus=gpus))["GPUs"] == said


def test_the_peak_is_a_fact_with_its_factors_and_assumptions() -> None:
    peak = facts(a_machine())["Computed peak"]
    assert in_order(peak, "float32 256 GFLOP/s", "float64 128 GFLOP/s")
    assert in_order(peak, "2 cores", "2 FMA", "16 lanes", "2 FLOP", "2.00 GHz", "AVX-512", "Zen 5")
    assert "nominal" in peak


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (None, "unavailable: not checked"),
        ({"simd_bits": None}, "unavailable: the host does not report vector FMA instructions"),
        ({"fma_units": None}, "unavailable: the number of FMA units of Zen 5 with AVX-512"),
        (
            {"fma_units": None, "core": None},
            "unavailable: the number of FMA units of this design of core",
        ),
        ({"clock_hz": None}, "unavailable: the host does not report the clock rate"),
    ],
)
def test_an_unknown_peak_is_unavailable_with_a_reason(
    changed: dict[str, Any] | None, said: str
) -> None:
    peak = None if changed is None else replace(a_peak(), **changed)

    assert facts(replace(a_machine(), peak=peak))["Computed peak"].startswith(said)


@pytest.mark.parametrize(
    ("flop", "passed", "evidence"),
    [
        (128e6, True, "the highest reached 50 %"),
        (
            384e6,
            False,
            (
                "the highest reached 150 %, above it 1 cell of 1:"
                " something that the peak assumes is wrong, most likely the clock (turbo)"
            ),
        ),
    ],
)
def test_a_value_above_the_peak_fails_a_check(flop: float, passed: bool, evidence: str) -> None:
    check = checks(a_study(a_machine(), flop=flop))[-1]

    whom = "No cell" if passed else "A cell"
    assert in_order(check.says, whom, "computed peak")
    assert (check.passed, check.evidence) == (passed, evidence)


def test_without_a_share_of_a_peak_there_is_no_such_check() -> None:
    assert "peak" not in checks(a_study(a_machine()))[-1].says


def claiming(gpu: bool) -> Scenario:
    return a_scenario(
        workload="m:f",
        claims=[
            {
                "says": "it pays",
                "faster": {"binding": "one-cpu"},
                "than": {"binding": "none"},
                "needs": {"gpu": gpu},
            }
        ],
    )


@pytest.mark.parametrize(
    ("gpu", "gpus", "word", "detail"),
    [
        (True, (), "needs a GPU", "which this host does not have"),
        (True, None, "needs information about GPUs", "which this record does not contain"),
        (False, (GPU,), "needs a host without a GPU", ""),
        # Nothing in the way: only one of the two cells was launched.
        (True, (GPU,), "not measured", "one of the two cells has no valid launch on this host"),
        (False, (), "not measured", "one of the two cells has no valid launch on this host"),
    ],
)
def test_a_claim_about_gpus_is_judged_by_the_host_s_gpus(
    gpu: bool, gpus: tuple[Gpu, ...] | None, word: str, detail: str
) -> None:
    result = a_study(replace(a_machine(), gpus=gpus), scenario=claiming(gpu))

    (claim,) = judge_claims(result)

    assert (claim_verdict(claim).word, claim.detail) == (word, detail)


def test_a_record_keeps_gpus_and_peak_and_an_older_one_says_that_they_are_unknown() -> None:
    run = a_run(host=replace(a_machine(), gpus=(GPU,)))
    line = codec.encode(a_run(host=replace(a_machine(), gpus=None, peak=None)))
    before = line.replace(b',"gpus":null,"peak":null', b"")

    assert codec.decode_run(codec.encode(run)) == run
    assert before != line
    host = codec.decode_run(before).host
    assert (host.gpus, host.peak) == (None, None)


def test_versions_of_several_environments_name_their_environment() -> None:
    scenario = a_scenario(workload="gemm", matrix={"environment": ["numpy-1.26", "numpy"]})
    launches = tuple(
        a_launch(
            cell=cell,
            position=position,
            workers=(replace(a_worker(), versions={"numpy": version}, blas=f"OpenBLAS {version}"),),
        )
        for position, (cell, version) in enumerate(
            zip(expand(scenario, "a.yaml"), ("1.26.4", "2.4.6"), strict=True)
        )
    )
    result = latest_results([(a_run(scenarios=(scenario,)), launches)])[0]

    found = environment_facts(result, records_file="r.jsonl")

    assert [fact.value for fact in found if fact.term in {"Libraries", "BLAS"}] == [
        "numpy-1.26: numpy 1.26.4",
        "numpy: numpy 2.4.6",
        "numpy-1.26: OpenBLAS 1.26.4",
        "numpy: OpenBLAS 2.4.6",
    ]


# As the driver 550 writes it.
INFORMATION = """\
Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 150
GPU UUID: \t GPU-{letter}4c1d7a2-0000-0000-0000-000000000000
Bus Type: \t PCIe
Bus Location: \t 0000:{minor}b:00.0
Device Minor: \t {minor}
GPU Excluded:\t No
"""


def a_machine_of(folder: Path, *, described: int, nodes: tuple[int, ...]) -> Path:
    """A root with what NVIDIA's driver shows of so many GPUs, and these device nodes."""
    for minor in range(described):
        bus = folder / f"proc/driver/nvidia/gpus/0000:{minor}b:00.0"
        bus.mkdir(parents=True)
        (bus / "information").write_text(INFORMATION.format(minor=minor, letter="abcdef"[minor]))
    (folder / "dev").mkdir()
    for name in ("nvidiactl", "nvidia-uvm", "nvidia-caps", "null", *(f"nvidia{n}" for n in nodes)):
        (folder / "dev" / name).touch()
    return folder


H100 = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("described", "nodes", "expected"),
    [
        (2, (0, 1), [H100, H100]),
        # A container has only its own, which CUDA counts from 0.
        (4, (3,), [H100]),
        # One that the driver does not describe counts.
        (0, (0,), ["NVIDIA GPU"]),
        (0, (), []),
    ],
)
def test_gpus_are_device_nodes_named_by_the_driver(
    tmp_path: Path, described: int, nodes: tuple[int, ...], expected: list[str]
) -> None:
    assert gpus(tmp_path, None) == gpus(tmp_path, "0") == ()

    root = a_machine_of(tmp_path, described=described, nodes=nodes)

    found = tuple(Gpu(id=str(number), name=name) for number, name in enumerate(expected))
    assert gpus(root, None) == found


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        ("", []),
        ("-1", []),
        ("2, 0", ["2", "0"]),
        ("1,9,0", ["1"]),
        ("1,1", ["1"]),
        ("GPU-b4", ["1"]),
        ("GPU-", []),
        ("MIG-1-2-3", ["MIG-1-2-3"]),
        ("all", []),
    ],
)
def test_cuda_visible_devices_applies_up_to_its_first_invalid_entry(
    tmp_path: Path, visible: str, ids: list[str]
) -> None:
    root = a_machine_of(tmp_path, described=3, nodes=(0, 1, 2))

    assert [gpu.id for gpu in gpus(root, visible)] == ids


@given(visible=st.text())
def test_no_value_of_cuda_visible_devices_adds_a_gpu(
    visible: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = a_machine_of(tmp_path_factory.mktemp("root"), described=2, nodes=(0, 1))

    found = [gpu.id for gpu in gpus(root, visible)]

    assert len(set(found)) == len(found)
    assert all(one in {"0", "1"} or one.startswith("MIG-") for one in found)


def planned(scenario: Scenario, have: tuple[str, ...]) -> tuple[PlannedCell, ...]:
    means = HostCapabilities(
        topology=a_host(),
        tools=frozenset({"taskset", "numactl"}),
        pythons={"host": "/usr/bin/python3", "pytorch": None},
        gpus=have,
    )
    cells = expand(scenario, "a.yaml")
    return plan_cells(scenario, cells, means, folder="/suite", profile=None, seed=1)


def test_a_cell_that_needs_more_gpus_than_exist_is_skipped_with_a_reason() -> None:
    scenario = a_scenario(workload="m:f", matrix={"gpus": [0, 1, 2]})

    none, one, two = planned(scenario, ("0",))

    assert (none.unfit, one.unfit) == (None, None)
    assert in_order(known(two.unfit).what, "`gpus: 2`", "has 1")
    assert "/dev/nvidia0" in known(two.unfit).fix


def test_the_missing_gpu_is_named_before_the_missing_environment() -> None:
    scenario = a_scenario(workload="gemm", environment="pytorch", gpus=1, matrix={})

    (cell,) = planned(scenario, ())

    assert in_order(known(cell.unfit).what, "`gpus: 1`", "none that CUDA")


@given(asked=st.integers(0, 64), have=st.integers(0, 8))
def test_a_cell_sees_exactly_its_gpus_or_cannot_run(asked: int, have: int) -> None:
    scenario = a_scenario(workload="m:f", gpus=asked, matrix={})

    (cell,) = planned(scenario, tuple(f"GPU-{number}" for number in range(have)))

    if asked > have:
        assert cell.unfit is not None
        assert cell.commands == ()
    else:
        seen = dict(cell.commands[0].env).get("CUDA_VISIBLE_DEVICES")
        expected = ",".join(f"GPU-{number}" for number in range(asked))
        # Where there is no GPU there is nothing to hide.
        assert seen == (expected if have else None)
        assert cell.requests[0].gpus == asked


def test_a_cell_without_gpus_keeps_its_name() -> None:
    (cell,) = expand(a_scenario(workload="m:f", gpus=1, matrix={"threads": [2]}), "a.yaml")

    assert (cell.gpus, cell.key) == (1, "threads=2")
    assert a_cell().gpus == 0
    assert replace(a_cell(), gpus=1).key == "default"


def a_request(target: str, gpus: int) -> Request:
    return Request(
        target=target,
        command=None,
        parameters={},
        framework="none",
        intra_op=None,
        inter_op=None,
        iterations=1,
        seed=1,
        path=[],
        gpus=gpus,
    )


def deaf() -> object:
    return list


def hearing(*, gpus: int = 0) -> object:
    return lambda: gpus


def taking_all(**told: int) -> object:
    return lambda: told


def test_a_function_receives_the_gpus_that_its_cell_requests_and_may_not_ignore_them() -> None:
    assert make_workload(a_request(f"{__name__}:deaf", 0)).step() == []
    assert make_workload(a_request(f"{__name__}:hearing", 0)).step() == 0
    assert make_workload(a_request(f"{__name__}:hearing", 2)).step() == 2
    assert make_workload(a_request(f"{__name__}:taking_all", 1)).step() == {"gpus": 1}
    with pytest.raises(WorkloadError, match="has no parameter `gpus`"):
        make_workload(a_request(f"{__name__}:deaf", 1))
