"""What stands between backticks in a record is code on every page, as findings have it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corebound.records.run_record import ScenarioSource
from corebound.scenario.matrix import expand
from support.build import a_host_check, a_launch, a_run, a_scenario
from support.markup import parse_html
from support.report_sample import a_sample, pages_of

SCENARIO = a_scenario(matrix={"binding": ["none", "one-cpu", "smt-siblings"]})


def _made() -> dict[str, str]:
    free, bound, siblings = expand(SCENARIO, "s.yaml")
    check = a_host_check(
        state="warning",
        value="`always`",
        why="`khugepaged` takes time.",
        fix="Set `madvise`.",
    )
    run = replace(a_run(scenarios=(SCENARIO,), run_id="b1"), preflight=(check,))
    launches = (
        a_launch(cell=free),
        a_launch(
            cell=bound,
            status="invalid",
            reason="it was not `taskset`.",
            fix="`corebound doctor` names what else uses this host.",
            evidence=("`taskset -c 0` failed",),
        ),
        a_launch(
            cell=siblings,
            status="skipped",
            reason="`smt-siblings` need SMT.",
            fix="Leave `smt-siblings` out here.",
        ),
    )
    alone = replace(run, id="b2", scenarios=(_another(run.scenarios[0]),))
    refused = tuple(
        replace(launch, run="b2", cell=replace(launch.cell, scenario="another"))
        for launch in launches
        if launch.status != "ok"
    )
    profiles, profiled = a_sample()
    return pages_of([(run, launches), (alone, refused), (profiles, profiled)])


def _another(source: ScenarioSource) -> ScenarioSource:
    return replace(source, document={**source.document, "name": "another"})


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return _made()


@pytest.mark.parametrize(
    "page",
    [
        "scenario/a-scenario.html",
        "scenario/another.html",
        "run/b1.html",
        "run/b2.html",
        "host/a-host-0123456789ab.html",
        "operators.html",
    ],
)
def test_no_backtick_is_shown_raw(made: dict[str, str], page: str) -> None:
    (body,) = parse_html(made[page]).all("body")

    assert "`" not in body.text


def test_what_stood_between_them_is_code(made: dict[str, str]) -> None:
    assert "<code>always</code>" in made["host/a-host-0123456789ab.html"]
    assert "<code>always</code>" in made["scenario/a-scenario.html"]
    assert "<code>corebound doctor</code> names what else" in made["run/b1.html"]
    assert "<code>smt-siblings</code> need SMT." in made["scenario/a-scenario.html"]


def test_a_backtick_that_opens_nothing_stays_what_it_is() -> None:
    free = expand(SCENARIO, "s.yaml")[0]
    run = a_run(scenarios=(SCENARIO,))
    launch = a_launch(cell=free, status="failed", reason="it said <`> and ended.")

    pages = pages_of([(run, (launch,))])

    assert "It said &lt;`&gt; and ended." in pages["run/r1.html"]
