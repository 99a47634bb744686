"""A visitor enters by what they do; scenarios are found by their workload and configurations."""

from __future__ import annotations

from typing import Any

import pytest

from corebound.analysis.situations import by_situation
from support.build import a_scenario
from support.results import a_result

TRAINING: dict[str, Any] = {
    "workload": "image-training",
    "environment": "pytorch",
    "parameters": {"model": "small", "batch": 16, "image": 64},
}


def situations(**scenario: Any) -> list[str]:
    return [situation for situation, _ in by_situation([a_result(a_scenario(**scenario), {})])]


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ({}, ["I run code of my own"]),
        (TRAINING, ["I train a network"]),
        (
            {**TRAINING, "matrix": {"workers": [1, 2]}},
            ["I train a network", "I run several processes on one host"],
        ),
        (
            {
                "workload": "resnet50-inference",
                "environment": "pytorch",
                "parameters": {"batch": 1, "image": 224},
                "matrix": {"parameters": {"dtype": ["float32", "bfloat16"]}},
            },
            ["I run a trained network", "I handle one item at a time", "I choose a precision"],
        ),
        (
            {
                "workload": "gemm",
                "parameters": {"size": 64},
                "matrix": {"environment": ["numpy", "pytorch"]},
            },
            ["I multiply matrices", "I choose a framework, a library or a version"],
        ),
    ],
)
def test_a_scenario_is_found_by_its_workload_and_by_what_it_varies(
    scenario: dict[str, Any], expected: list[str]
) -> None:
    assert situations(**scenario) == expected


def test_scenarios_of_one_situation_stand_together_in_their_order() -> None:
    own = [a_result(a_scenario(name=name), {}) for name in ("b", "a")]
    training = a_result(a_scenario(name="c", **TRAINING), {})

    groups = [
        (situation, [result.scenario.name for result in results])
        for situation, results in by_situation([own[0], training, own[1]])
    ]

    assert groups == [("I train a network", ["c"]), ("I run code of my own", ["b", "a"])]
