"""Contradictions in a scenario that are reported: the traffic of servers, and profiles."""

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand
from support.texts import in_order

SCENARIO = """schema: 1
name: s
title: S
question: Q?
workload: image-serving
environment: torchserve
"""


def faults(text: str) -> str:
    with pytest.raises(ScenarioFaults) as caught:
        load((SCENARIO + text).encode(), "f.yaml")
    return str(caught.value)


def of_a_profile(parameters: str) -> str:
    """A complete closed loop, of which a profile changes parameters."""
    return f"image: 224, concurrency: 9}}\nprofiles:\n  quick: {{parameters: {{{parameters}}}"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("image: 224", "`traffic: closed` needs `concurrency`"),
        ("concurrency: 2", "f.yaml:7: `image-serving` needs `image`"),
        ("image: 224, concurrency: 2, rate: 5.0", "`rate` does not apply to `traffic: closed`"),
        ("image: 224, traffic: poisson, rate: 5.0, client: ab", "`client: ab` cannot send"),
        ("image: 224, traffic: multi-stream, query: 7", "100 requests do not make whole queries"),
        ("image: 224, traffic: poisson, rate: 0", "f.yaml:7: `rate: 0` is not"),
        ("image: 224, traffic: poisson, rate: -1", "f.yaml:7: `rate: -1` is not"),
        ("image: 224, traffic: server, rate: 5, bound_ms: 0.0", "f.yaml:7: `bound_ms: 0.0` is not"),
        ("image: 224, traffic: constant, rate: 1e-320", "f.yaml:7: 100 requests at 1e-320"),
        (of_a_profile("rate: 3.0"), "f.yaml:9: `rate` does not apply to `traffic: closed`."),
        (of_a_profile("query: 2"), "f.yaml:9: `query` does not apply to `traffic: closed`."),
        (
            of_a_profile("traffic: poisson"),
            "f.yaml:7: `concurrency` does not apply to `traffic: poisson`.",
        ),
    ],
)
def test_contradictory_traffic_is_a_fault_also_under_a_profile(
    parameters: str, message: str
) -> None:
    assert message in faults(f"parameters: {{model: resnet18, {parameters}}}\n")


def test_cells_that_a_profile_leaves_out_are_not_checked_under_it() -> None:
    text = """parameters: {model: resnet18, image: 224}
matrix:
  include:
    - {parameters: {traffic: poisson, rate: 0.01}}
    - {parameters: {concurrency: 2}}
measure: {timeout_s: 36000}
profiles:
  quick: {timeout_s: 60%s}
"""
    only = ", only: [{parameters: {concurrency: 2}}]"

    assert "100 requests at 0.01 a second" in faults(text % "")
    assert load((SCENARIO + text % only).encode(), "f.yaml")


@pytest.mark.parametrize(
    ("workload", "runtime", "parameters", "facts"),
    [
        ("mine:step", "torchserve", "", ("torchserve is a server",)),
        (
            "decoder-inference", "pytorch", "model: my.gguf",
            ("does not apply to pytorch", "Remove it"),
        ),
        (
            "resnet50-inference", "onnxruntime", "mode: compiled",
            ("7", "`mode: compiled`", "onnxruntime"),
        ),
        (
            "resnet50-inference", "onnxruntime", "mode: fast",
            ("`mode: fast`", "`resnet50-inference`"),
        ),
        ("onnx-inference", "onnxruntime", "shapes: 1x3", ("7", "`onnx-inference`", "`model`")),
    ],
)  # fmt: skip
def test_what_a_runtime_does_not_support_is_a_fault(
    workload: str, runtime: str, parameters: str, facts: tuple[str, ...]
) -> None:
    text = SCENARIO.replace("image-serving", workload).replace("torchserve", runtime)
    with pytest.raises(ScenarioFaults) as caught:
        load(f"{text}parameters: {{{parameters}}}\n".encode(), "f.yaml")

    assert in_order(str(caught.value), *facts)


CLOSED = (
    "parameters: {image: 224, concurrency: 9}\n"
    "matrix: {workers: [1, 2], parameters: {model: [resnet18, resnet50]}}\n"
)


def test_a_profile_keeps_some_cells_and_changes_parameters() -> None:
    profile = "{parameters: {concurrency: 2}, only: [{workers: 2, parameters: {model: resnet18}}]}"
    scenario = load(f"{SCENARIO}{CLOSED}profiles:\n  quick: {profile}\n".encode(), "f.yaml")

    (cell,) = expand(scenario, "f.yaml", "quick")

    assert dict(cell.parameters)["concurrency"] == 2
    assert len(expand(scenario, "f.yaml")) == 4
    assert cell.key in {other.key for other in expand(scenario, "f.yaml")}


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("{only: [{workers: 3}]}", "no cell matches it"),
        ("{only: [{}]}", "this entry is empty"),
        ("{parameters: {model: resnet18}}", "`model` is an axis of the matrix"),
        ("{parameters: {concurency: 2}}", "Did you mean `concurrency`?"),
    ],
)
def test_a_profile_without_effect_is_a_fault(profile: str, message: str) -> None:
    assert message in faults(f"{CLOSED}profiles:\n  quick: {profile}\n")
