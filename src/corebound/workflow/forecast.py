"""Forecast how long a run takes and how precise it gets, from the last run of its scenarios."""

from __future__ import annotations

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
)
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Launch
from corebound.runner import Task
from corebound.workflow.prepare import last_results


def forecast_tasks(
    tasks: Sequence[Task], host: str, records: Path, budget_s: float | None
) -> tuple[Forecast, ...]:
    """Forecast each scenario of a run.

    Args:
        tasks: The scenarios.
        host: The id of the host.
        records: The folder of records.
        budget_s: The time limit in seconds; None is no limit.

    Returns:
        A forecast for each task that has launches: from the last run of its scenario on this host,
        or without one, a guess.
    """
    launched = {task.scenario.name: _launched(task) for task in tasks}
    before = {
        name: _with_iterations(known, launched[name])
        for name, result in last_results({*launched}, host, records)
        if (known := experience(result)) is not None and launched[name]
    }
    return forecast_run(
        [
            (name, len(cells), cells[0].measure.launches, known)
            for name, cells in launched.items()
            if (known := before.get(name) or guess(cells)) is not None
        ],
        budget_s,
    )


def time_left_of(
    tasks: Sequence[Task], forecasts: Sequence[Forecast], done: Sequence[Launch]
) -> TimeLeft:
    """Follow the time that a run still takes.

    Args:
        tasks: The scenarios.
        forecasts: Those of the run; scenarios without one are guessed.
        done: The launches that a resumed run has already.
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
