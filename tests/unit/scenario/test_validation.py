"""What is wrong with a scenario is said once each, in words, with its line."""

import pytest

from corebound.errors import ScenarioFaults
from corebound.scenario.json_schema import schema
from corebound.scenario.loader import load, load_document
from corebound.scenario.validation import EXPECTED
from support.faults import fault_cases, unlike

HEAD = "schema: 1\nname: a\ntitle: T\nquestion: Q?\n"
FUNCTION = HEAD + "workload: my_module:setup\n"
GEMM = HEAD + "workload: gemm\nenvironment: numpy\n"


def faults(text: str) -> str:
    with pytest.raises(ScenarioFaults) as caught:
        load(text.encode(), "f.yaml")
    return str(caught.value)


@fault_cases("scenario", head=HEAD, function=FUNCTION, gemm=GEMM)
def test_all_that_is_wrong_is_reported_once_with_its_line(text: str, expected: list[str]) -> None:
    assert not unlike(faults(text), expected)


def test_faults_of_both_kinds_are_reported_together() -> None:
    text = GEMM + (
        "bindng: none\nparameters: {size: 0}\nmatrix:\n  threads: [1, many]\n"
        "measure: {warmup: {iterations: 500}, iterations: 100}\n"
    )

    assert [line.partition(". ")[0] for line in faults(text).splitlines()] == [
        "f.yaml:7: `bindng` is not a known key",
        "f.yaml:8: `size: 0` is not what `gemm` takes",
        "f.yaml:10: `threads: many` is not a thread count",
        "f.yaml:11: a warm-up of 500 leaves none of the 100 iterations",
    ]


@pytest.mark.parametrize(
    "text",
    [
        # In each, what is wrong would, left out, make something else look wrong.
        FUNCTION + "binding: nodes\nbind: after-start\n",
        HEAD + "workload: gemm\nenvironment: [numpy]\n",
        FUNCTION + "matrix: {binding: [none, nodes]}\nbaseline: {binding: node}\n",
        FUNCTION + "matrix: {threads: [1], include: [{threads: 0}]}\nbaseline: {threads: 2}\n",
        FUNCTION + "measure: {warmup: {iterations: 500}, iterations: 1e3}\n",
        FUNCTION + "matrix: {bindng: [none, node]}\nbaseline: {binding: node}\n",
        FUNCTION + "matrix: {threads: [0]}\n",
    ],
)
def test_one_mistake_is_reported_once(text: str) -> None:
    assert len(faults(text).splitlines()) == 1


def test_every_key_of_the_model_has_an_error_message() -> None:
    parts = schema()["$defs"].values()
    keys = {key for part in (schema(), *parts) for key in part["properties"]}

    assert keys | {"quick", "nightly"} == set(EXPECTED)


def test_a_recorded_scenario_of_a_newer_version_is_rejected() -> None:
    document = load((FUNCTION + "threads: 2\n").encode(), "f.yaml").document()

    with pytest.raises(ScenarioFaults) as caught:
        load_document({**document, "quantum": True}, "r.jsonl")

    assert str(caught.value) == "r.jsonl: `quantum` is not a known key. Remove it."


def test_a_recorded_scenario_may_name_a_workload_that_no_longer_exists() -> None:
    document = load(GEMM.encode(), "f.yaml").document()

    assert load_document({**document, "workload": "gone-since"}, "r.jsonl").workload == "gone-since"
