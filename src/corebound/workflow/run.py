"""Runs scenarios: what `corebound run` and `corebound.run` do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from corebound.workflow.execute import Reporter, RunResult, execute_run, hold_host
from corebound.workflow.host_checks import preflight
from corebound.workflow.plan import plan_suite
from corebound.workflow.prepare import PreparedRun, RunRequest, begin_run


def run_suite(
    request: RunRequest,
    reporter: Reporter,
    *,
    budget_s: float | None,
    resume: bool,
    operators: bool,
    launches: int | None,
    favour_doubtful: bool,
    unlocked: bool,
    wait_s: float,
    announce: Callable[[PreparedRun], PreparedRun] = lambda prepared: prepared,
) -> RunResult:
    """Measure every cell of the scenarios, or continue an interrupted run.

    Args:
        request: The user's request.
        reporter: Called with the progress.
        budget_s: No launch starts after this many seconds; None is no limit.
        resume: As in `begin_run`.
        operators: As in `begin_run`.
        launches: As in `begin_run`.
        favour_doubtful: As in `begin_run`.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        announce: Called before the first launch; what it returns is run.

    Raises:
        CoreboundError: The scenarios, environments or host do not allow the run.
    """
    with ExitStack() as stack:
        hold_host(
            stack,
            reporter.notify,
            unlocked=unlocked,
            wait_s=wait_s,
            # Mistakes are reported at once, not after waiting for another run.
            validate=lambda: plan_suite(request, None) if request.files else None,
        )
        prepared = begin_run(
            request,
            reporter.notify,
            resume=resume,
            operators=operators,
            launches=launches,
            favour_doubtful=favour_doubtful,
        )
        prepared = preflight(announce(prepared), reporter)
        return execute_run(prepared, budget_s, reporter, stack, operators=operators)
