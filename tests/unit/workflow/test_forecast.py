"""Specifies the order in which a budget measures scenarios."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.workflow import forecast
from corebound.workflow.forecast import with_forecasts
from corebound.workflow.prepare import PreparedRun
from support.build import a_cell, a_launch, a_run, a_scenario
from support.runs import a_task


@pytest.mark.parametrize(("budget_s", "order"), [(None, ["a", "b", "c"]), (60.0, ["c", "b", "a"])])
def test_a_budget_begins_with_the_scenarios_that_were_measured_longest_ago(
    monkeypatch: pytest.MonkeyPatch, budget_s: float | None, order: list[str]
) -> None:
    def before(*_: object, **__: object) -> list[tuple[str, ScenarioResult]]:
        results = []
        for name, since in (("a", "2026-01-03"), ("b", "2026-01-02")):
            run = replace(a_run(scenarios=(a_scenario(name=name),)), started_at=since)
            launch = a_launch(cell=replace(a_cell(), scenario=name))
            results.append((name, analyse_scenario(run, run.scenarios[0], [launch])))
        return results

    monkeypatch.setattr(forecast, "last_results", before)
    prepared = PreparedRun(
        run=a_run(), file=Path("f"), tasks=tuple(a_task(name=name) for name in "abc")
    )

    ordered = with_forecasts(prepared, Path("records"), budget_s)

    assert [task.scenario.name for task in ordered.tasks] == order
