"""No input makes loading fail in any way but the one it promises."""

import json
import math
from contextlib import suppress
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from corebound.errors import Fault, ScenarioFaults
from corebound.planning.host_support import HostCapabilities
from corebound.planning.placement import TOOLS
from corebound.planning.plan import plan_cells
from corebound.scenario.loader import load, load_document
from corebound.scenario.matrix import expand
from corebound.scenario.models import ProfileName, Scenario, measure_for
from support.build import a_host
from support.examples import examples
from support.known import known
from support.paths import ROOT

SCENARIOS = ROOT / "scenarios"
SOUND = (SCENARIOS / "resnet50-inference.yaml").read_text(encoding="utf-8")
LINES = SOUND.splitlines()
SERVED = (SCENARIOS / "serving-load.yaml").read_text(encoding="utf-8").splitlines()
HOST = a_host(nodes=2, cores_per_node=2, cpus_per_core=2)

# What someone might type where something else belongs, and what fuzzers try.
WORDS = st.sampled_from(
    [
        *["none", "node", "default", "per-core", "gemm", "numpy", "host", "x:y", "auto", "~", "{}"],
        *["0", "1", "2", "-1", "0.02", ".nan", "1e999", "9" * 30, "true", "yes", "[]", "''", "'2'"],
        *["binding", "threads", "matrix", "include", "exclude", "parameters", "cpus", "iterations"],
        *["{cpus: 0-3}", "{cpus: 9-}", "[1, 2]", "[none, node]", "{threads: 2}", "{a: [1, 1]}"],
        *["&a", "*a", "<<", "!!int", "- ", ": ", "? ", "\t", "|", ">", "%", "---", "#", "\x85"],
    ]
)


def loaded_or_faults(data: bytes) -> Scenario | tuple[Fault, ...]:
    """What `load` makes of a file; whatever else it raises escapes."""
    try:
        return load(data, "f.yaml")
    except ScenarioFaults as error:
        return error.faults


def assert_planned(scenario: Scenario, profile: ProfileName | None) -> None:
    """Whatever `load` accepts can be planned, with any profile."""
    cells = expand(scenario, "f.yaml", profile)
    pythons = {cell.environment: "/made/bin/python" for cell in cells}
    host = HostCapabilities(topology=HOST, tools=TOOLS, pythons=pythons)

    planned = plan_cells(scenario, cells, host, folder="/f", profile=profile, seed=0)

    assert [planned_cell.cell for planned_cell in planned] == list(cells)


def survives(data: bytes) -> None:
    """The file gives a scenario with cells, or faults that can be read and found."""
    result = loaded_or_faults(data)
    if isinstance(result, Scenario):
        cells = expand(result, "f.yaml")
        assert cells
        assert len({cell.key for cell in cells}) == len(cells)
        assert measure_for(result, "quick").requests >= 1
        for profile in (None, "quick", "nightly"):
            assert_planned(result, profile)
        return
    assert result
    for fault in result:
        assert 1 <= known(fault.line) <= len(data.splitlines()) + 1
        assert fault.what.endswith(".")
        assert fault.fix.endswith((".", "?"))
        assert str(fault).isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_rejected(data: bytes) -> None:
    survives(data)


@given(st.text(max_size=200))
@example('"\\U0FFFFFFF"')
@example("%YAML 1.2.3.4\n--- a")
def test_any_text_loads_or_is_rejected(text: str) -> None:
    survives(text.encode("utf-8", errors="replace"))


@given(st.lists(WORDS, max_size=30), st.sampled_from(["", " ", "\n", ": ", "\n  "]))
def test_fragments_of_yaml_load_or_are_rejected(scraps: list[str], between: str) -> None:
    survives(between.join(scraps).encode())


@examples(80)
@given(st.data())
def test_a_mutated_scenario_loads_or_is_rejected(data: st.DataObject) -> None:
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["lose", "double", "indent", "value", "insert"]))
        if change == "lose" and len(lines) > 1:
            del lines[at]
        elif change == "double":
            lines.insert(at, lines[at])
        elif change == "indent":
            lines[at] = "  " + lines[at]
        elif change == "value":
            lines[at] = lines[at].partition(":")[0] + ": " + data.draw(WORDS)
        else:
            lines.insert(at, data.draw(WORDS) + data.draw(st.sampled_from(["", ": "])))
    survives("\n".join(lines).encode())


NUMBERS = st.sampled_from(
    [
        *["0", "-1", "-0.0", "5e-324", "1e-320", "0.5", "1.0", "3", "65537", "1e308", "1e999"],
        *[str(2**63 - 1), str(-(2**63)), ".nan", "true", "null", "[1]", "closed", "multi-stream"],
    ]
)
TRAFFIC = st.sampled_from(["rate", "query", "bound_ms", "concurrency", "image", "traffic"])


@examples(80)
@given(
    st.dictionaries(TRAFFIC, NUMBERS, max_size=3),
    st.dictionaries(TRAFFIC, NUMBERS, max_size=2),
    st.dictionaries(st.sampled_from(["iterations", "timeout_s", "margin"]), NUMBERS, max_size=2),
    st.booleans(),
)
def test_unusual_traffic_is_planned_or_rejected(
    parameters: dict[str, str], changed: dict[str, str], measure: dict[str, str], varied: bool
) -> None:
    def written(values: dict[str, str]) -> str:
        return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"

    given = written({"model": "resnet18", "image": "224", **parameters})
    lines = [
        *SERVED[:6],
        f"parameters: {given}",
        "environment: torchserve",
        "matrix: {parameters: {rate: [5, 10]}}" if varied else "",
        f"measure: {written(measure)}",
        f"profiles: {{quick: {{iterations: 20, parameters: {written(changed)}}}}}",
    ]
    survives("\n".join(lines).encode())


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["none", "node", "default", "auto", "gemm", "numpy", "0-3", "x"])
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *Scenario.model_fields,
                    "iterations",
                    "seconds",
                    "min",
                    "max",
                    "cpus",
                    "command",
                    "include",
                    "exclude",
                    "quick",
                    "says",
                    "faster",
                    "than",
                    "smt",
                    "size",
                    "odd",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@examples(100)
@given(
    st.dictionaries(st.sampled_from([*Scenario.model_fields, "odd"]), JSON, max_size=6),
    st.booleans(),
)
def test_any_mapping_loads_or_is_rejected(changes: dict[str, Any], through_yaml: bool) -> None:
    document: dict[str, Any] = {
        "schema": 1, "name": "a", "title": "T", "question": "Q?", "workload": "m:f", **changes
    }  # fmt: skip
    if through_yaml:
        # JSON is YAML, but for its names of numbers that are none.
        survives(json.dumps(document).encode())
        return
    with suppress(ScenarioFaults):
        load_document(document, "records.jsonl")


FINITE = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "binding": st.sampled_from(["none", "node", "cache"])
    | st.builds(lambda low: {"cpus": f"{low},{low + 2}-{low + 3}"}, st.integers(0, 9)),
    "threads": st.sampled_from(["default", "per-core"]) | st.integers(1, 9),
    "smt": st.none() | st.booleans(),
    "workers": st.integers(1, 4),
    "memory": st.sampled_from(["default", "local", "interleave"]),
}


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Sound scenarios: each setting on an axis, at the top, or left out."""
    top: dict[str, Any] = {}
    matrix: dict[str, Any] = {}
    for name in draw(st.permutations(sorted(SETTINGS))):
        where = draw(st.sampled_from(["axis", "top", "out"]))
        if where == "axis":
            values = st.lists(SETTINGS[name], min_size=1, max_size=3, unique_by=str)
            matrix[name] = draw(values)
        elif where == "top":
            top[name] = draw(SETTINGS[name])
    if draw(st.booleans()):
        matrix["parameters"] = draw(
            st.dictionaries(
                st.sampled_from(["a", "b"]),
                st.lists(FINITE | st.booleans(), min_size=1, max_size=3, unique_by=str),
                max_size=2,
            )
        )
    measure = {"timeout_s": draw(st.floats(1, 100)), "warmup": {"seconds": 0.5}}
    return {
        "schema": 1, "name": "a", "title": "Täglich ≤ 3", "question": "Q?", "workload": "m:f",
        **top, "matrix": matrix, "measure": measure,
    }  # fmt: skip


@given(documents())
def test_a_scenarios_document_loads_as_the_same_scenario(document: dict[str, Any]) -> None:
    loaded = load(json.dumps(document).encode(), "f.yaml")
    remaining = json.loads(json.dumps(loaded.document()))

    reloaded = load_document(remaining, "f.yaml")

    assert reloaded.document() == loaded.document()
    assert list(reloaded.document()["matrix"]) == list(document["matrix"])
    assert [cell.key for cell in expand(reloaded, "f.yaml")] == [
        cell.key for cell in expand(loaded, "f.yaml")
    ]


@given(documents())
def test_a_matrix_without_include_and_exclude_is_the_product_of_its_axes(
    document: dict[str, Any],
) -> None:
    matrix = dict(document["matrix"])
    axes = [*matrix.pop("parameters", {}).values(), *matrix.values()]

    cells = expand(load(json.dumps(document).encode(), "f.yaml"), "f.yaml")

    assert len(cells) == math.prod(len(values) for values in axes)
