"""Forecast how long a run takes and how precise it gets, from the last run of its scenarios."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.forecast import (
    Experience,
    Forecast,
    TimeLeft,
    experience,
    forecast_run,
    guess,
    shortage_note,
)
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Launch
from corebound.runner import Task
from corebound.workflow.prepare import PreparedRun, RunRequest, last_results
from corebound.workflow.projects import Notify


def with_forecasts(prepared: PreparedRun, records: Path, budget_s: float | None) -> PreparedRun:
    """A run with its forecasts, and with its scenarios in the order of a budget.

    A budget that has no time for all begins with those that were measured longest ago, so that
    several runs together measure all of them.

    Args:
        budget_s: The time limit in seconds; None is no limit.
    """
    host, own = prepared.run.host.id, prepared.run.id
    forecasts = forecast_tasks(prepared.tasks, host, records, budget_s, other_than=own)
    tasks = prepared.tasks
    if budget_s is not None:
        order = [forecast.scenario for forecast in forecasts]
        launched = [task for task in tasks if task.scenario.name in order]
        launched.sort(key=lambda task: order.index(task.scenario.name))
        tasks = (*launched, *(task for task in tasks if task.scenario.name not in order))
    return replace(prepared, tasks=tasks, forecasts=forecasts)


def announced(prepared: PreparedRun, request: RunRequest, notify: Notify) -> PreparedRun:
    """As `with_forecasts`, for a request; says what a new run's budget does not hold."""
    prepared = with_forecasts(prepared, request.records, request.budget_s)
    note = shortage_note(prepared.forecasts, request.budget_s)
    if note is not None and not prepared.done:
        notify(note)
    return prepared


def forecast_tasks(
    tasks: Sequence[Task],
    host: str,
    records: Path,
    budget_s: float | None,
    *,
    other_than: str | None = None,
) -> tuple[Forecast, ...]:
    """Forecast each scenario of a run.

    Args:
        budget_s: The time limit in seconds; None is no limit.
        other_than: The id of a run that does not count.

    Returns:
        A forecast for each task that has launches: from the last run of its scenario on this host,
        or without one, a guess. With a budget, those that were measured longest ago come first.
    """
    launched = {task.scenario.name: _launched(task) for task in tasks}
    before = {
        name: _with_iterations(known, launched[name])
        for name, result in last_results({*launched}, host, records, other_than=other_than)
        if (known := experience(result)) is not None and launched[name]
    }
    scenarios = [
        (name, len(cells), cells[0].measure.launches, known)
        for name, cells in launched.items()
        if (known := before.get(name) or guess(cells)) is not None
    ]
    if budget_s is not None:
        scenarios.sort(key=lambda scenario: scenario[3].since or "")
    return forecast_run(scenarios, budget_s)


def time_left_of(
    tasks: Sequence[Task], forecasts: Sequence[Forecast], done: Sequence[Launch]
) -> TimeLeft:
    """Follow the time that a run still takes.

    Args:
        forecasts: Those of the run; scenarios without one are guessed.
    """
    expected_s = {
        task.scenario.name: known.launch_s
        for task in tasks
        if (known := guess(_launched(task))) is not None
    }
    expected_s |= {forecast.scenario: forecast.launch_s for forecast in forecasts}
    time_left = TimeLeft(expected_s)
    for launch in done:
        if launch.status != "skipped":
            time_left.add(launch)
    return time_left


def _launched(task: Task) -> list[PlannedCell]:
    return [
        planned for planned in task.planned if planned.unfit is None and not planned.duplicate_of
    ]


def _with_iterations(known: Experience, cells: Sequence[PlannedCell]) -> Experience:
    """The experience for the number of iterations of this run, such as another profile's."""
    number = cells[0].measure.iterations
    return replace(known, launch_s=known.launch_s_with(None if number == "auto" else number))
