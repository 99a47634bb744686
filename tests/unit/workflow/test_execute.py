"""What a run requires of the host, and the exit code of its result."""

import contextlib
import resource
from pathlib import Path
from typing import Any, Literal

import pytest

from corebound.analysis.forecast import Forecast
from corebound.api.reporter import CallReporter
from corebound.errors import HostError
from corebound.planning.models import CannotRun
from corebound.records import jsonl
from corebound.records.launch_record import Status
from corebound.runner import Ending
from corebound.scenario.matrix import expand
from corebound.workflow import execute
from corebound.workflow.execute import RunResult, hold_host
from corebound.workflow.prepare import PreparedRun
from support.build import a_launch, a_run, a_scenario, a_worker


@pytest.mark.parametrize(
    ("statuses", "ending", "code"),
    [
        (("ok", "skipped"), "complete", 0),
        (("ok", "invalid"), "complete", 4),
        (("failed",), "out of time", 4),
        (("skipped", "skipped"), "complete", 3),
        (("dropped", "ok"), "complete", 0),
        (("dropped", "dropped"), "complete", 5),
        (("dropped", "skipped"), "complete", 5),
        (("skipped",), "out of time", 5),
        ((), "out of time", 5),
        (("ok",), "out of time", 5),
    ],
)
def test_the_exit_code_follows_from_the_launches(
    statuses: tuple[Status, ...], ending: Ending, code: int
) -> None:
    launches = tuple(a_launch(block=block, status=one) for block, one in enumerate(statuses))
    result = RunResult(run=a_run(), file=Path("run.jsonl"), launches=launches, ending=ending)

    assert result.exit_code == code


@pytest.mark.parametrize(
    ("blocks", "promised", "code"),
    [(6, ("a-scenario",), 0), (6, ("a-scenario", "b"), 5), (1, ("a-scenario",), 5)],
)
def test_a_run_out_of_time_has_an_answer_if_it_kept_its_forecast_and_decided_something(
    blocks: int, promised: tuple[str, ...], code: int
) -> None:
    scenario = a_scenario(matrix={"threads": [1, 2]})
    run = a_run(scenarios=(scenario,))
    launches = tuple(
        a_launch(
            cell=cell,
            block=block,
            position=position,
            workers=(a_worker(wall_ns=((position + 1) * (100 + block) * 100_000,) * 20),),
        )
        for block in range(blocks)
        for position, cell in enumerate(expand(scenario, "f.yaml", None))
    )
    result = RunResult(
        run=run,
        file=Path("f"),
        launches=launches,
        ending="out of time",
        forecasts=tuple(
            Forecast(
                scenario=name, since=None, cells=2, launches=1, launch_s=1, duration_s=1,
                requested_s=1, half_width=None,
            )
            for name in promised
        ),
    )  # fmt: skip

    assert result.exit_code == code


@pytest.mark.parametrize(("cause", "code"), [("host", 0), ("environment", 3), ("build", 4)])
def test_a_missing_environment_sets_the_exit_code_even_if_other_cells_were_measured(
    cause: Literal["host", "environment", "build"], code: int
) -> None:
    launches = (a_launch(status="ok"), a_launch(status="skipped"))
    not_launched = (CannotRun(what="it is not there.", fix="Make it.", cause=cause),)
    result = RunResult(
        run=a_run(), file=Path("f"), launches=launches, ending="complete", not_launched=not_launched
    )

    assert result.exit_code == code


@pytest.mark.parametrize(
    ("allowed", "is_enough"), [(8, False), (63, False), (64, True), (-1, True)]
)
def test_a_process_that_may_open_too_few_files_cannot_measure(
    monkeypatch: pytest.MonkeyPatch, allowed: int, is_enough: bool
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (allowed, allowed))
    if is_enough:
        with hold_host(print, unlocked=True):
            return
    with (
        pytest.raises(HostError, match=f"may open only {allowed} files") as refused,
        hold_host(print, unlocked=True),
    ):
        pass
    assert "ulimit -n" in refused.value.fix


@pytest.mark.parametrize(
    ("statuses", "ending", "is_kept"),
    [
        ((), "out of time", False),
        (("skipped",), "out of time", False),
        (("skipped",), "interrupted", False),
        (("skipped",), "complete", True),
        (("skipped", "failed"), "interrupted", True),
        (("ok",), "out of time", True),
    ],
)
def test_a_run_that_ends_before_its_first_launch_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statuses: tuple[Status, ...],
    ending: str,
    is_kept: bool,
) -> None:
    class EndingRunner:
        def __init__(self, *_arguments: object, append: Any, **_options: object) -> None:
            self.append = append

        def run(self) -> str:
            for block, status in enumerate(statuses):
                self.append(a_launch(block=block, status=status))
            if ending == "interrupted":
                raise KeyboardInterrupt
            return ending

    monkeypatch.setattr(execute, "Runner", EndingRunner)
    monkeypatch.setattr(execute, "launcher", lambda *_arguments, **_options: None)
    prepared = PreparedRun(run=a_run(), file=tmp_path / "host" / "r1.jsonl", tasks=())

    with contextlib.suppress(KeyboardInterrupt):
        result = execute.execute_run(prepared, execute.NO_LIMIT, CallReporter(None))
        assert (result.document["records"] is not None) == is_kept

    assert [*jsonl.files(tmp_path)] == [prepared.file] * is_kept


def test_planning_is_part_of_a_budget_and_what_follows_the_launches_has_as_much_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("corebound.workflow.execute.time.monotonic", lambda: 100.0)

    assert execute.Budget(60.0, since_s=99.0).for_launches_s == 58.0
    assert execute.Budget(60.0, since_s=70.0).for_launches_s == 28.0
    assert execute.Budget(10.0, since_s=95.0).for_launches_s == 4.0
    assert execute.Budget(None, since_s=70.0).for_launches_s is None
    assert execute.Budget(60.0, since_s=70.0).share(0.5).left_s == 0.0
