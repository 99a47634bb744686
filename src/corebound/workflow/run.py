"""Runs scenarios: what `corebound run` and `corebound.run` do."""

from collections.abc import Callable
from typing import Annotated, ClassVar

from msgspec.structs import replace

from corebound.records.run_record import Run
from corebound.workflow import prepare
from corebound.workflow.anchor import prepare_anchored
from corebound.workflow.execute import Reporter, RunResult, execute_run, hold_host_for
from corebound.workflow.forecast import with_forecasts
from corebound.workflow.host_checks import preflight
from corebound.workflow.options import Anchor, Files, Option
from corebound.workflow.plan import plan_suite
from corebound.workflow.projects import Notify


class SuiteRequest(prepare.RunRequest, frozen=True, kw_only=True):
    """What `corebound run` measures; without files, it continues the latest run."""

    options: ClassVar = (
        "files", "profile", "only", "env", "budget_s", "seed", "metric", "resume", "unlocked",
        "wait_s", "operators", "launches", "favour_doubtful", "config", "project_python",
        "committed", "label", "anchor", "records",
    )  # fmt: skip

    files: Files = ()
    resume: Annotated[bool, Option("Continue the latest interrupted run.")] = False
    operators: Annotated[
        bool,
        Option(
            "Profile operators in scenarios that request it.", name="--operators/--no-operators"
        ),
    ] = True
    launches: Annotated[
        int | None, Option("Launches of each cell, instead of the scenario's.", min=1, max=1000)
    ] = None
    favour_doubtful: Annotated[bool, Option("Spend more time on inconclusive cells.")] = False
    anchor: Anchor = ()


def run_suite(
    request: SuiteRequest,
    reporter: Reporter,
    announce: Callable[[prepare.PreparedRun], None] = lambda _prepared: None,
) -> RunResult:
    """Measure every cell of the scenarios, or continue an interrupted run.

    Args:
        announce: Called before the first launch, with the forecasts.

    Raises:
        CoreboundError: The scenarios, environments or host do not allow the run.
    """

    def validate() -> None:
        # Mistakes are reported at once, not after waiting for another run.
        if request.files:
            plan_suite(request)

    with hold_host_for(request, reporter.notify, validate) as budget:
        prepared = with_forecasts(
            _begin(request, reporter.notify), request.records, request.budget_s
        )
        announce(prepared)
        prepared = preflight(prepared, reporter)
        return execute_run(
            prepared,
            budget,
            reporter,
            operators=request.operators,
            focuses=decides_some(prepared.run, request),
        )


def decides_some(run: Run, request: SuiteRequest) -> bool:
    """Whether a budget too short for all decides some; nights need the same of all cells."""
    is_night = run.profile == "nightly" or request.favour_doubtful or bool(run.anchors)
    return request.budget_s is not None and not is_night


def _begin(request: SuiteRequest, notify: Notify) -> prepare.PreparedRun:
    """Prepare a new run, or continue an interrupted one."""
    if request.anchor:
        prepared = prepare_anchored(request, request.anchor, notify, resume=request.resume)
    elif request.resume:
        prepared = prepare.resume_run(request, notify, operators=request.operators)
    else:
        prepared = prepare.prepare_run(request, notify)
    if prepared.note is not None:
        notify(prepared.note)
    tasks = prepare.with_launches(prepared.tasks, request.launches)
    if request.favour_doubtful:
        tasks = prepare.prioritise_inconclusive(tasks, prepared.run, request.records)
    return replace(prepared, tasks=tasks)
