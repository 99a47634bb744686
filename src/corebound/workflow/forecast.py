"""Forecast how long a run takes and how precise it gets, from the last run of its scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corebound.analysis.forecast import Forecast, experience, forecast_run
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
        A forecast for each task; none if a scenario has not been measured on this host before,
        because the time that it takes is not known.
    """
    before = {
        name: known
        for name, result in last_results({task.scenario.name for task in tasks}, host, records)
        if (known := experience(result)) is not None
    }
    launched = {
        task.scenario.name: [
            planned
            for planned in task.planned
            if planned.unfit is None and planned.duplicate_of is None
        ]
        for task in tasks
    }
    if not all(name in before for name, cells in launched.items() if cells):
        return ()
    return forecast_run(
        [
            (name, len(cells), cells[0].measure.launches, before[name])
            for name, cells in launched.items()
            if cells
        ],
        budget_s,
    )
