"""How a nightly run shares its budget among its steps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from corebound.workflow import nightly
from corebound.workflow.nightly_steps import begin_journal
from support.nightly import NOW


@pytest.mark.parametrize(
    ("took_s", "run", "regressions"),
    [
        # 85 % for the run, without what the steps before it took and those after it will take.
        ({"doctor": 30, "run": 790}, "790s", "130s"),
        # A project was built: the steps after the run take a minute at most.
        ({"doctor": 300, "run": 490}, "490s", "160s"),
        # The run waited for another one.
        ({"doctor": 30, "run": 3000}, "790s", "50s"),
    ],
)
def test_each_step_has_what_those_before_it_left(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    took_s: dict[str, int],
    run: str,
    regressions: str,
) -> None:
    now_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr(nightly, "time", clock)
    monkeypatch.setattr("corebound.workflow.execute.time", clock)
    request = nightly.NightlyRequest(budget_s=1000, records=tmp_path)
    budgets = {}

    for step in nightly.nightly_steps(request, begin_journal(tmp_path, ("asked",), NOW), "host"):
        if "--budget" in step.command:
            budgets[step.name] = step.command[step.command.index("--budget") + 1]
        now_s += took_s.get(step.name, 0)

    assert budgets == {"run": run, "regressions": regressions}


def test_peak_memory_is_judged_as_well_on_request(tmp_path: Path) -> None:
    request = nightly.NightlyRequest(metric="memory", records=tmp_path)

    steps = {
        step.name: step.command
        for step in nightly.nightly_steps(request, begin_journal(tmp_path, (), NOW), "host")
    }

    assert "memory" not in steps["regressions"]
    assert "memory" in steps["memory"]
