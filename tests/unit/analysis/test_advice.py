"""The largest effect over all scenarios, and what to set in each."""

import math
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.advice import Advice, advise, greatest_difference, headline
from corebound.analysis.effects import Effect
from corebound.analysis.scenario_result import ScenarioResult, may_lead
from corebound.analysis.selection import latest_results
from corebound.analysis.unconfirmed import Unconfirmed, unconfirmed, why_open
from corebound.records.telemetry import Disturbance
from support.build import a_scenario
from support.duplicates import result_with_duplicates
from support.examples import examples
from support.known import known
from support.results import a_result
from support.texts import in_order

THREADS = {"binding": ["none"], "threads": ["default", 1]}
DEFAULT, ONE_THREAD = "binding=none,threads=default", "binding=none,threads=1"
NONE, ONE_CPU = "binding=none", "binding=one-cpu"


def bindings(none_ms: float, one_cpu_ms: float, name: str = "a", **options: Any) -> ScenarioResult:
    return a_result(a_scenario(name=name), {NONE: none_ms, ONE_CPU: one_cpu_ms}, **options)


def the_advice(*results: ScenarioResult) -> Advice:
    (advice,) = advise(results)
    return advice


def test_a_faster_configuration_is_recommended_with_the_line_that_sets_it() -> None:
    scenario = a_scenario(matrix={"workers": [4], **THREADS})
    key = f"workers=4,{DEFAULT}", f"workers=4,{ONE_THREAD}"

    advice = the_advice(a_result(scenario, {key[0]: 1240.0, key[1]: 234.0}))

    assert (advice.kind, advice.says) == ("use", "Run with 1 thread.")
    assert known(advice.set).line == "OMP_NUM_THREADS=1"
    assert "4 commands" in known(advice.set).where
    assert advice.largest == advice.use
    assert known(advice.largest).reference == "the default"
    assert known(advice.largest).comparison.speedup_ratio == pytest.approx(1240 / 234, rel=0.05)


@pytest.mark.parametrize(("disturbed", "holds"), [((NONE, ONE_CPU), False), ((ONE_CPU,), True)])
def test_a_difference_measured_beside_others_is_said_to_hold_beside_them(
    disturbed: tuple[str, ...], *, holds: bool
) -> None:
    result = bindings(1240.0, 234.0)
    others = Disturbance(share=0.9, by=("foreign load",), evidence=("busy",))
    launches = (
        replace(launch, disturbance=others if launch.cell.key in disturbed else None)
        for launch in result.launches
    )

    advice = the_advice(*latest_results([(result.run, [*launches])]))

    assert (known(advice.use).condition == "") is holds
    assert advice.says.endswith("one CPU.") is holds


def test_the_default_is_kept_where_nothing_else_is_faster() -> None:
    slower, equal = the_advice(bindings(10.0, 20.8)), the_advice(bindings(10.0, 10.0, spread=0.001))
    same = the_advice(
        result_with_duplicates(
            matrix={"binding": ["none", "node"]}, duplicates={"binding=node": "binding=none"}
        )
    )

    assert {advice.kind for advice in (slower, equal, same)} == {"keep"}
    assert "one CPU" in slower.says
    assert (slower.set, slower.command) == (None, None)
    assert not known(slower.largest).is_faster
    assert equal.says == "Keep the default."
    assert "differs" in same.says
    assert [cell.key for cell in same.same] == ["binding=node"]


def test_too_little_data_names_the_command_that_decides() -> None:
    unclear = the_advice(bindings(10.0, 10.3, spread=0.2))
    result = a_result(a_scenario(), {})
    unmeasured = the_advice(result)
    quick = the_advice(replace(result, run=replace(result.run, profile="quick")))

    assert the_advice(a_result(a_scenario(), {NONE: 10.0})).kind == "measure"
    assert (unclear.kind, "difference" in unclear.says) == ("measure", True)
    command = ["corebound", "run", "scenarios/a.yaml", "--favour-doubtful"]
    assert shlex.split(known(unclear.command).line) == command
    assert unmeasured.says == "Not measured yet."
    again = "corebound run scenarios/a-scenario.yaml"
    assert known(unmeasured.command).line == again
    assert known(quick.command).line.startswith(again)
    assert "--profile quick" in known(quick.command).line


def seen_once(*, ms: dict[str, float], **options: Any) -> Unconfirmed | None:
    return unconfirmed(a_result(a_scenario(name="a", matrix=THREADS), ms, blocks=1, **options))


def test_a_difference_of_few_launches_leads_no_page_and_the_reason_is_their_number() -> None:
    scenario = a_scenario(name="a", matrix=THREADS)
    result = a_result(scenario, {DEFAULT: 20.0, ONE_THREAD: 14.0}, blocks=3, spread=0.05)
    (pair,) = result.ranked
    effect = Effect(cell=pair.cell, other=pair.baseline, comparison=pair.comparison)

    assert not may_lead(pair.cell, pair.baseline, pair.comparison)
    assert "3 launches" in why_open(effect, "correction")


def test_what_is_significant_after_too_few_launches_is_seen_and_not_lost() -> None:
    scenario = a_scenario(name="a", matrix=THREADS)
    result = a_result(scenario, {DEFAULT: 20.0, ONE_THREAD: 10.0}, blocks=4, spread=0.15)

    assert result.decided
    seen = known(unconfirmed(result))
    assert in_order(seen.text, "1 thread looks", "Only 4 launches of each", "6 launches")


def test_one_launch_each_says_what_was_seen_and_what_confirms_it() -> None:
    seen = known(seen_once(ms={DEFAULT: 900.0, ONE_THREAD: 2.0}, spread=0.0))

    assert seen.reason == "one launch"
    assert in_order(seen.says, "1 thread", "450× faster", "default")
    assert seen.text.startswith(seen.says)
    assert in_order(seen.text, "One launch", "6 launches", "10 seconds")
    expected = f"run scenarios/a.yaml --only {DEFAULT} --only {ONE_THREAD} --seed 1 --launches 6"
    assert shlex.split(seen.text.split("`")[1]) == ["corebound", *expected.split()]


def test_what_is_small_or_decided_is_not_called_unconfirmed() -> None:
    assert seen_once(ms={DEFAULT: 10.5, ONE_THREAD: 10.0}, spread=0.0) is None
    assert unconfirmed(bindings(10.0, 5.0)) is None


def test_as_many_launches_as_did_not_decide_confirm_at_least() -> None:
    scenario = a_scenario(name="a", matrix={"threads": [2, 1, 4]})
    ms = {"threads=2": 11.5, "threads=1": 10.0, "threads=4": 11.5}

    seen = known(unconfirmed(a_result(scenario, ms, blocks=9, spread=0.2)))

    assert (seen.reason, seen.launches) == ("correction", 9)


@given(one_ms=st.floats(1.0, 1000.0), other_ms=st.floats(1.0, 1000.0), spread=st.floats(0.0, 2.0))
@examples(20)
def test_what_is_seen_is_beyond_the_margin(one_ms: float, other_ms: float, spread: float) -> None:
    result = bindings(one_ms, other_ms, spread=spread, blocks=3)
    seen = unconfirmed(result)

    assert seen is None or (seen.effect.distance > math.log1p(result.measure.margin))
    leading = [
        pair.cell.cell.id
        for pair in result.ranked
        if may_lead(pair.cell, pair.baseline, pair.comparison)
    ]
    assert seen is None or result.decided.isdisjoint(leading)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [((10.0, 20.0), (10.0, 15.0), "a"), ((10.0, 15.0), (20.0, 10.0), "b")],
)
def test_the_headline_is_the_largest_effect_in_either_direction(
    first: tuple[float, float], second: tuple[float, float], expected: str
) -> None:
    top = known(headline(advise([bindings(*first, name="a"), bindings(*second, name="b")])))

    assert top.result.scenario.name == expected


def test_a_large_but_uncertain_effect_does_not_come_first() -> None:
    sure, unsure = bindings(10.0, 14.0, name="sure"), bindings(10.0, 16.0, name="a", spread=0.3)

    top = known(headline(advise([unsure, sure])))

    assert top.result.scenario.name == "sure"


def test_libraries_are_compared_where_they_do_the_same_work() -> None:
    scenario = a_scenario(
        workload="gemm",
        matrix={
            "environment": ["numpy", "pytorch"],
            "threads": ["default", 1],
            "parameters": {"size": [64, 128]},
        },
        baseline={"threads": "default"},
    )
    ms = {"numpy": 12.4, "pytorch": 10.0}
    advice = the_advice(
        a_result(
            scenario,
            {
                f"environment={library},threads={threads},size={size}": ms[library]
                * (1 if size == 64 else 8)
                for library in ms
                for threads in ("default", "1")
                for size in (64, 128)
            },
        )
    )

    assert advice.largest is not None
    assert (advice.largest.subject, advice.largest.reference) == ("pytorch", "numpy")
    assert in_order(advice.says, "pytorch", "numpy", "1.2")
    assert advice.largest.comparison.speedup_ratio == pytest.approx(1.24, rel=0.05)
    # A larger product is other work.
    assert advice.largest.title in {"size 64", "size 128"}


def test_what_is_slower_because_it_has_more_to_do_is_no_headline() -> None:
    scenario = a_scenario(
        workload="gemm",
        environment="numpy",
        matrix={"parameters": {"size": [64, 128]}},
        baseline={"parameters": {"size": 64}},
    )
    result = a_result(scenario, {"size=64": 1.0, "size=128": 8.0})

    assert headline(advise([result])) is None
    assert the_advice(result).avoid is None


def test_more_threads_than_cpus_are_no_headline_where_another_effect_is_known() -> None:
    scenario = a_scenario(
        matrix={"binding": ["none", "one-cpu"], "threads": ["default", 2]},
        baseline={"binding": "none", "threads": "default"},
    )
    advice = the_advice(
        a_result(
            scenario,
            {
                "binding=none,threads=default": 10.0,
                "binding=none,threads=2": 10.0,
                "binding=one-cpu,threads=default": 20.8,
                "binding=one-cpu,threads=2": 200.0,
            },
        )
    )

    assert known(advice.largest).cell.cell.key == "binding=one-cpu,threads=default"


def test_what_is_still_possible_is_bounded_by_the_widest_interval() -> None:
    advices = advise([bindings(10.0, 10.2, spread=0.02), bindings(10.0, 10.1, name="b")])
    most = known(greatest_difference(advices))

    assert 1.0 < most < 1.2
    assert greatest_difference(advise([a_result(a_scenario(), {})])) is None


@examples(15)
@given(
    times=st.lists(
        st.tuples(st.floats(1.0, 1000.0), st.floats(1.0, 1000.0)), min_size=1, max_size=4
    )
)
def test_each_scenario_gets_exactly_one_kind_of_advice(times: list[tuple[float, float]]) -> None:
    advices = advise([bindings(*pair, name=f"s{index}") for index, pair in enumerate(times)])
    top = headline(advices)

    for advice in advices:
        assert (advice.use is not None) == (advice.kind == "use")
        assert (advice.command is not None) == (advice.kind == "measure")
        assert advice.says.endswith(".")
        if advice.largest is not None:
            assert advice.largest.least_ratio >= 1
            assert top is not None
            assert advice.largest.least_ratio <= known(top.largest).least_ratio
