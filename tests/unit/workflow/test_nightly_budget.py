"""How a nightly run shares its budget among its steps."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from corebound.errors import NO_ANSWER
from corebound.workflow import nightly
from corebound.workflow.nightly_steps import begin_journal
from support import repositories
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


def test_a_first_night_without_time_for_a_launch_ends_with_the_run(tmp_path: Path) -> None:
    journal = begin_journal(tmp_path / "nights", (), NOW)
    done = []

    for step in nightly.nightly_steps(
        nightly.NightlyRequest(records=tmp_path / "records"), journal, "host"
    ):
        done.append(step.name)
        journal.ended(step.name, NO_ANSWER if step.name == "run" else 0, "2026-03-14T02:17:03Z")

    assert done[-1] == "run"


def test_a_night_of_another_commit_is_another_night(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def opened() -> tuple[str, list[str]]:
        said: list[str] = []
        request = nightly.NightlyRequest(nights=tmp_path / "nights")
        return nightly._open_journal(request, said.append).stamp, said

    repositories.git(tmp_path, "init", "--quiet")
    repositories.git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "first")
    monkeypatch.chdir(tmp_path)
    first, _ = opened()
    again, resumed = opened()
    repositories.git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "second")
    second, began = opened()

    assert (again, bool(resumed)) == (first, True)
    assert second != first
    assert not began
