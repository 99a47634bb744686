"""Claims count what the terminal counts: differences that remain after the correction."""

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.claims import judge_claims
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.records.telemetry import Disturbance
from corebound.report.pages.claims import claims_page
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from support.build import a_launch, a_run, a_scenario, a_worker
from support.examples import examples
from support.known import known
from support.results import a_result

SIZES = tuple(range(1, 9))


def a_claiming_scenario(name: str) -> Scenario:
    """A scenario that claims every alternative, and one pair that is no baseline's."""
    return a_scenario(
        name=name,
        matrix={"binding": ["none"], "threads": list(SIZES)},
        baseline={"binding": "none", "threads": 1},
        claims=[
            {"says": f"{size}", "faster": {"threads": size}, "than": {"threads": than}}
            for size, than in [*((size, 1) for size in SIZES[1:]), (3, 2)]
        ],
    )


def results_of(seed: int, *, spread: float) -> tuple[ScenarioResult, ...]:
    """Two scenarios of one run whose cells hardly differ."""
    noise = random.Random(seed)  # no secret
    scenarios = tuple(a_claiming_scenario(name) for name in ("one", "two"))
    launches = []
    for scenario in scenarios:
        for cell in expand(scenario, "s.yaml"):
            level = 10e6 * noise.lognormvariate(0, spread)
            for block in range(6):
                wall_ns = (round(level * noise.lognormvariate(0, 0.02)),) * 6
                launch = a_launch(cell=cell, block=block, workers=(a_worker(wall_ns=wall_ns),))
                launches.append(replace(launch, id=f"{cell.id}-{block}"))
    return latest_results([(a_run(scenarios=scenarios), tuple(launches))])


@examples(5)
@given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.0, 0.01, 0.02, 0.05]))
def test_a_claim_about_a_cell_and_its_baseline_is_decided_as_in_the_terminal(
    seed: int, spread: float
) -> None:
    for result in results_of(seed, spread=spread):
        for claim in judge_claims(result)[:-1]:
            cell, comparison = result.find(claim.faster), claim.comparison
            assert cell is not None
            assert comparison is not None
            in_brackets = cell.cell.id not in result.decided
            if comparison.verdict in {"faster", "slower"}:
                assert (claim.judgement == "inconclusive") == in_brackets


def test_what_is_decided_depends_on_all_scenarios_of_the_run() -> None:
    alone, together = 0, 0
    for seed in range(3):
        results = results_of(seed, spread=0.015)
        together += sum(len(result.decided) for result in results)
        for result in results:
            only = result.launches
            run = replace(result.run, scenarios=(result.source,))
            alone += len(latest_results([(run, only)])[0].decided)

    # A family of twice the size may decide otherwise; that of a run is used everywhere.
    assert together != alone


def test_a_claim_that_was_measured_beside_others_says_so() -> None:
    claim = {"says": "one CPU is faster", "faster": {"binding": "one-cpu"},
             "than": {"binding": "none"}}  # fmt: skip
    result = a_result(a_scenario(claims=[claim]), {"binding=none": 20.0, "binding=one-cpu": 10.0})
    others = Disturbance(share=0.9, by=("foreign load",), evidence=("busy",))
    busy = [replace(launch, disturbance=others) for launch in result.launches]

    (beside,) = judge_claims(*latest_results([(result.run, busy)]))
    (alone,) = judge_claims(result)

    assert (beside.judgement, alone.judgement) == ("reproduces", "reproduces")
    assert (beside.detail, alone.detail) == ("while others use the CPUs", "")


def test_the_page_counts_no_claim_that_is_not_decided() -> None:
    results = results_of(3, spread=0.02)

    page = known(claims_page(results))

    judged = [claim for result in results for claim in judge_claims(result)]
    held = sum(claim.judgement == "reproduces" for claim in judged)
    assert f"{held} of {len(judged)}" in "".join(piece.text for piece in page.hero.verdict)
