"""What `corebound doctor` prints, and what a run records and its page shows."""

import os

import pytest
from msgspec.structs import replace

from corebound.analysis import scenario_result
from corebound.analysis.fairness import checks
from corebound.cli.commands.doctor import describe, setting_lines
from corebound.machine.doctor.host_settings import SettingResult
from corebound.machine.doctor.result import HostCheck
from corebound.records.run_record import Run
from corebound.report.scenario.provenance import environment_facts
from corebound.scenario.matrix import expand
from support import paths
from support.build import a_host_check, a_launch, a_run, a_scenario
from support.machine_trees import checks_of_a_busy_laptop
from support.texts import in_order

GOLDEN = paths.GOLDEN / "doctor.txt"


def test_checks_are_printed_as_in_the_golden_file() -> None:
    shown = describe(checks_of_a_busy_laptop()) + "\n"

    if os.environ.get("COREBOUND_GOLDEN") == "write":
        GOLDEN.write_text(shown, "utf-8")
    assert shown == GOLDEN.read_text("utf-8")


def test_on_a_narrow_terminal_values_are_below_their_names() -> None:
    lines = describe(checks_of_a_busy_laptop(), width=40).splitlines()

    assert "  governor: ! warning" in lines
    assert "    schedutil" in lines
    # Commands are never wrapped, and no other word is so long.
    assert all(len(line) <= 40 or "fix: " in line or "undo: " in line for line in lines[2:])


def test_a_setting_that_could_not_be_changed_is_reported() -> None:
    lines = tuple(
        setting_lines(
            (
                SettingResult(path="proc/a", before="1", after="0"),
                SettingResult(path="proc/b", before="1", after="1"),
                SettingResult(path="proc/c", before="1", after="1", fault="no"),
                SettingResult(path="proc/d", before="9", after="1", meanwhile="9"),
            )
        )
    )

    *settings, meanwhile = lines
    assert settings == [
        "  /proc/a: 1 → 0",
        "  /proc/b: already 1",
        "  /proc/c: failed",
        "    no",
        "  /proc/d: 9 → 1",
    ]
    assert in_order(meanwhile, "    ", "changed to 9", "--tune")


def _result_of(run: Run) -> scenario_result.ScenarioResult:
    cell = expand(a_scenario(), "a-scenario.yaml")[0]
    return scenario_result.analyse_scenario(run, run.scenarios[0], [a_launch(cell=cell)])


@pytest.mark.parametrize(
    ("preflight", "passed", "evidence", "facts"),
    [
        (None, None, "not checked", {"Host's state": "unavailable: not checked"}),
        (
            (
                a_host_check(check="load", state="ok", value="0.1"),
                a_host_check(check="steal", state="ok", value="0 %"),
            ),
            True,
            "2 checks",
            {"Host's state": "no warnings"},
        ),
        (
            (
                a_host_check(check="load", state="warning", value="2.3 over the last minute"),
                a_host_check(check="turbo", state="unavailable", value="no switch of turbo here"),
                a_host_check(check="governor", state="unavailable", value="no cpufreq here"),
                a_host_check(check="THP", state="warning", value="always"),
            ),
            False,
            "load, THP; 2 others unavailable",
            {
                "Host's state": "load 2.3 over the last minute; THP always",
                "Not shown by the host": "turbo, governor",
            },
        ),
    ],
)
def test_a_page_shows_the_warnings_at_the_start_of_the_run(
    preflight: tuple[HostCheck, ...] | None,
    passed: bool | None,
    evidence: str,
    facts: dict[str, str],
) -> None:
    result = _result_of(replace(a_run(), preflight=preflight))

    check = next(check for check in checks(result) if check.says.endswith("when the run started"))
    assert (check.passed, check.evidence) == (passed, evidence)
    shown = {fact.term: fact.value for fact in environment_facts(result, records_file="a.jsonl")}
    assert {term: shown.get(term) for term in facts} == facts
    assert ("Not shown" in shown) == ("Not shown" in facts)
