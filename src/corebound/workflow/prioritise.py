"""`corebound run --favour-doubtful`: spend more time on what the last run left inconclusive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.scenario_result import CellStudy, ScenarioResult, study
from corebound.errors import InputError, ScenarioFaults
from corebound.records import jsonl
from corebound.records.run_record import Run
from corebound.runner import Task
from corebound.stats.sample_size import DOUBTFUL_TURNS, needs_more_launches

# How many runs to search back for a scenario's last result.
_MOST_BACK = 10


def favoured(tasks: Sequence[Task], run: Run, records: Path) -> tuple[Task, ...]:
    """Put scenarios with inconclusive results first, and give them more blocks per turn.

    Whole scenarios are favoured, not cells. Cells are compared within a block, and later
    blocks omit those that are certain enough anyway.

    Args:
        tasks: The tasks of a run.
        run: The run itself; its own records are ignored, so that a resumed run keeps its order.
        records: The folder of records.
    """
    wanted = {task.scenario.name for task in tasks}
    doubtful = {name for name, one in _last(wanted, run, records) if _is_doubtful(one)}
    chosen = [
        replace(task, turns=DOUBTFUL_TURNS if task.scenario.name in doubtful else 1)
        for task in tasks
    ]
    return tuple(sorted(chosen, key=lambda task: -task.turns))


def _last(wanted: set[str], run: Run, records: Path) -> Iterable[tuple[str, ScenarioResult]]:
    """Find the result of each scenario's last run on this host."""
    left = set(wanted)
    files = sorted((records / run.host.id).glob("*.jsonl"), reverse=True)
    for file in files[:_MOST_BACK]:
        if not left:
            return
        try:
            before = jsonl.read_run(file)
            names = {str(source.document.get("name")) for source in before.scenarios}
            if before.id == run.id or not names & left:
                continue
            stored = jsonl.read(file)
        except InputError:
            continue  # damaged; `report` reports it
        for source in stored.run.scenarios:
            name = str(source.document.get("name"))
            if name not in left or name not in {one.cell.scenario for one in stored.launches}:
                continue
            try:
                yield name, study(stored.run, source, stored.launches)
            except ScenarioFaults:
                continue  # written by another version of corebound
            left.discard(name)


def _is_doubtful(one: ScenarioResult) -> bool:
    baselines = {cell.baseline.key for cell in one.cells if cell.baseline is not None}
    return any(_counts(cell, baselines, one) for cell in one.cells)


def _counts(cell: CellStudy, baselines: set[str], one: ScenarioResult) -> bool:
    # A baseline has as many launches as the cells compared with it.
    if cell.comparison is None and cell.cell.key in baselines:
        return False
    return needs_more_launches(cell.summary, cell.comparison, one.measure.launches)
