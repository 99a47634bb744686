"""What a page says of a host's GPUs and computed peak, and what it judges by them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.fairness import checks
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_studies
from corebound.machine.identity import Gpu, Host
from corebound.records import codec
from corebound.report.pages.claims import claim_rows
from corebound.report.scenario.provenance import provenance
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from support.build import a_launch, a_machine, a_peak, a_placement, a_run, a_scenario, a_worker

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
    return latest_studies([(a_run(scenarios=(asked,), host=host), launches)])[0]


def facts(host: Host) -> dict[str, str]:
    found = provenance(a_study(host), records_file="r.jsonl").facts
    return {fact.term: fact.value for fact in found}


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (None, "unavailable: not looked for"),
        ((), "none that CUDA could use"),
        ((GPU, replace(GPU, id="1")), "2 × NVIDIA H100"),
    ],
)
def test_the_gpus_are_a_fact_of_the_environment(gpus: tuple[Gpu, ...] | None, said: str) -> None:
    assert facts(replace(a_machine(), gpus=gpus))["GPUs"] == said


def test_the_peak_is_a_fact_with_its_factors_and_what_it_assumes() -> None:
    assert facts(a_machine())["Computed peak"] == (
        "float32 256 GFLOP/s, float64 128 GFLOP/s:"
        " 2 cores × 2 FMA × 16 lanes × 2 FLOP × 2.00 GHz, for AVX-512 on Zen 5;"
        " it assumes that the clock is the nominal one"
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (None, "unavailable: not looked for"),
        ({"simd_bits": None}, "unavailable: no instruction that multiplies and adds vectors"),
        ({"fma_units": None}, "unavailable: how many FMA units Zen 5 with AVX-512 has"),
        ({"fma_units": None, "core": None}, "unavailable: how many FMA units this design of core"),
        ({"clock_hz": None}, "unavailable: the clock of the cores is not shown"),
    ],
)
def test_an_unknown_peak_is_unavailable_and_says_why(
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
def test_a_figure_above_the_peak_fails_a_check(flop: float, passed: bool, evidence: str) -> None:
    check = checks(a_study(a_machine(), flop=flop))[-1]

    whom = "No cell" if passed else "A cell"
    assert check.says == f"{whom} exceeds the computed peak of its cores"
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
        (True, None, "needs a look for GPUs", "which this record was made without"),
        (False, (GPU,), "needs a host without a GPU", ""),
        # Nothing in the way: only one of the two cells was launched.
        (True, (GPU,), "not measured", "one of the two cells has no valid launch on this host"),
        (False, (), "not measured", "one of the two cells has no valid launch on this host"),
    ],
)
def test_a_claim_about_gpus_is_judged_by_the_hosts(
    gpu: bool, gpus: tuple[Gpu, ...] | None, word: str, detail: str
) -> None:
    study = a_study(replace(a_machine(), gpus=gpus), scenario=claiming(gpu))

    (row,) = claim_rows(study)

    assert (row.verdict.word, row.detail) == (word, detail)


def test_a_record_of_before_says_that_neither_was_looked_for() -> None:
    line = codec.encode(a_run(host=replace(a_machine(), gpus=None, peak=None)))
    before = line.replace(b',"gpus":null,"peak":null', b"")

    assert before != line
    host = codec.decode_run(before).host
    assert (host.gpus, host.peak) == (None, None)


def test_a_record_keeps_gpus_and_peak() -> None:
    run = a_run(host=replace(a_machine(), gpus=(GPU,)))

    assert codec.decode_run(codec.encode(run)) == run


def test_beside_another_environment_each_says_whose_versions_they_are() -> None:
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
    study = latest_studies([(a_run(scenarios=(scenario,)), launches)])[0]

    found = provenance(study, records_file="r.jsonl").facts

    assert [fact.value for fact in found if fact.term in {"Libraries", "BLAS"}] == [
        "numpy-1.26: numpy 1.26.4",
        "numpy: numpy 2.4.6",
        "numpy-1.26: OpenBLAS 1.26.4",
        "numpy: OpenBLAS 2.4.6",
    ]
