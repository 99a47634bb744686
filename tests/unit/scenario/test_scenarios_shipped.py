"""The scenarios of this repository are sound and ask what they say they ask."""

import importlib
from pathlib import Path

import pytest

from corebound.scenario.loader import load
from corebound.scenario.matrix import baseline_of, claim_pairs, expand
from corebound.scenario.models import Scenario, measure_for
from support.known import known
from support.paths import ROOT

SCENARIOS = ROOT / "scenarios"
FILES = sorted(SCENARIOS.glob("*.yaml"))
BINDINGS = ("none", "one-cpu", "physical-cores", "logical-cpus", "smt-siblings", "node")


def shipped(name: str) -> Scenario:
    return load((SCENARIOS / f"{name}.yaml").read_bytes(), name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_valid_and_named_like_its_file(file: Path) -> None:
    scenario = load(file.read_bytes(), file.name)

    assert scenario.name == file.stem
    assert scenario.question.endswith("?")
    assert file.read_text(encoding="utf-8").startswith(
        "# yaml-language-server: $schema=../docs/scenario.schema.json\n"
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_cell_has_a_baseline_and_quick_still_gives_intervals(file: Path) -> None:
    scenario = load(file.read_bytes(), file.name)
    cells = expand(scenario, file.name)

    assert all(baseline_of(cell, cells, scenario) for cell in cells)
    # Two launches give an interval of t = 12.7 standard errors; three, of 4.3.
    assert measure_for(scenario, "quick").launches.min >= 3


def test_resnet50_is_the_exercise_of_the_study() -> None:
    scenario = shipped("resnet50-inference")
    cells = expand(scenario, "resnet50-inference.yaml")

    assert dict(scenario.parameters) == {"batch": 1, "image": 224, "dtype": "float32"}
    assert scenario.measure.iterations == 100
    assert [cell.key for cell in cells] == [
        f"binding={binding},threads={threads}"
        for binding in BINDINGS
        for threads in ("default", "2", "per-core")
    ]


def test_resnet50_claims_what_the_study_published() -> None:
    scenario = shipped("resnet50-inference")
    claim = scenario.claims[0]

    ((faster, slower),) = claim_pairs(claim, expand(scenario, "resnet50-inference.yaml"))

    assert faster.key == "binding=physical-cores,threads=2"
    assert slower.key == "binding=smt-siblings,threads=2"
    # 32 s with both threads on one core, 23 s on two.
    assert claim.published_ratio == round(32 / 23, 2)


def test_gemm_runs_in_both_environments_over_the_same_bindings() -> None:
    scenario = shipped("gemm")
    cells = expand(scenario, "gemm.yaml")

    assert {(cell.environment, cell.framework) for cell in cells} == {
        ("numpy", "numpy"),
        ("pytorch", "pytorch"),
    }
    assert {cell.binding.mode for cell in cells} == set(BINDINGS)
    for cell in cells:
        baseline = known(baseline_of(cell, cells, scenario))
        assert baseline.environment == cell.environment


def test_the_example_function_passes_its_own_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCENARIOS)
    module = importlib.import_module("example_function")
    made = module.setup(rows=3)

    result = made.step()
    made.check(result)
    with pytest.raises(ValueError, match="digest"):
        made.check("")
    made.teardown()
