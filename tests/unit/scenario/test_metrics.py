"""Metrics of commands: what a scenario may say, and what values become of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import ScenarioFaults
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand
from corebound.scenario.metrics import Better, Metric, parse_json_path

HEAD = "schema: 1\nname: a\ntitle: T\nquestion: Q?\n"
BENCH = HEAD + "workload: {command: [bench]}\n"


def faults(text: str) -> str:
    with pytest.raises(ScenarioFaults) as caught:
        load(text.encode(), "f.yaml", None, lambda _: True)
    return str(caught.value)


def test_the_metrics_of_a_scenario_are_part_of_the_identity_of_its_cells() -> None:
    def cell_with(metric: str) -> object:
        return expand(load((BENCH + metric).encode(), "f.yaml"), "f.yaml")[0]

    rate = cell_with("metric: {name: rate, unit: op/s, better: higher, json: rate}\n")

    assert rate == cell_with("metric: {name: rate, unit: op/s, better: higher, regex: '(1)'}\n")
    assert rate != cell_with("metric: {name: rate, unit: Mop/s, better: higher, json: rate}\n")
    assert rate != cell_with("metric: {name: rate, unit: op/s, better: lower, json: rate}\n")
    assert rate != cell_with("")


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            "{name: rate, better: higher, regex: 'rate: [0-9]+'}",
            "f.yaml:6: `regex` has no groups, not one. Put the number in ( ), as in",
        ),
        ("{name: rate, better: higher, regex: '(a)(b)'}", "`regex` has 2 groups, not one."),
        ("{name: rate, better: higher, regex: '(a'}", "`regex` is not a regular expression: "),
        (
            "{name: rate, better: higher, json: '[0].a[b'}",
            "`[0].a[b` is not a path into JSON, at `[b`.",
        ),
        ("{name: rate, better: higher}", "a metric is found by `json` or by `regex`."),
        ("{name: rate, better: higher, json: a, regex: (b)}", "is found by `json` or by `regex`."),
        ("{name: rate, better: more, json: a}", "`better: more` is not a direction."),
        ("{name: rate, json: a}", "Write higher or lower."),
        ("{name: rate, better: higher, regex: '(a)', samples: some}", "Write `all`."),
        ("{name: rate, better: higher, json: a, file: '{folder}'}", "`{folder}` has no value."),
        (
            "[{name: a, better: higher, json: a}, {name: a, better: lower, json: b}]",
            "another metric is called `a`.",
        ),
        ("{name: rate, better: higher, jason: a}", "Did you mean `json`?"),
    ],
)
def test_a_metric_that_cannot_be_found_is_a_fault(metric: str, message: str) -> None:
    assert message in faults(BENCH + f"metric: {metric}\n")


def test_only_a_command_has_metrics() -> None:
    text = HEAD + "workload: m:f\nmetric: {name: rate, better: higher, json: a}\n"

    assert "f.yaml:6: only a command has metrics." in faults(text)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b-c.d_2", ("a", "b-c", "d_2")),
        ("[0][1].a", (0, 1, "a")),
        ('["a.b"].c[*]', ("a.b", "c", None)),
    ],
)
def test_a_path_has_keys_and_indices(path: str, steps: tuple[object, ...]) -> None:
    assert parse_json_path(path) == steps


@pytest.mark.parametrize("path", ["", ".", ".a", "a.", "a..b", "a[", "a[x]", "[*", "a]"])
def test_other_text_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"^"):
        parse_json_path(path)


@given(value=st.floats(1e-12, 1e15), other=st.floats(1e-12, 1e15))
def test_a_better_value_is_a_shorter_time(value: float, other: float) -> None:
    directions: list[tuple[Better, bool]] = [("higher", value > other), ("lower", value < other)]
    for better, is_better in directions:
        metric = Metric(name="m", unit="u", better=better)

        assert metric.from_time_ns(metric.as_time_ns(value)) == pytest.approx(value)
        if abs(value / other - 1) > 1e-9:
            assert (metric.as_time_ns(value) < metric.as_time_ns(other)) == is_better
