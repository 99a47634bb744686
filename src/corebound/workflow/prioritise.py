"""`corebound run --favour-doubtful`: more of the time for what the last run could not decide."""

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

# So many runs back it is looked for what a scenario last came to.
_MOST_BACK = 10


def favoured(tasks: Sequence[Task], run: Run, records: Path) -> tuple[Task, ...]:
    """The doubtful scenarios first, and with more blocks a turn.

    Whole scenarios are favoured, not cells: cells are compared within a block, and those
    that are certain enough are left out of later blocks anyway.

    Args:
        tasks: A run's.
        run: That run; records of it do not count, so that it goes on as it began.
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
    """Each scenario as this host last measured it."""
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
            continue  # damaged; `report` says so
        for source in stored.run.scenarios:
            name = str(source.document.get("name"))
            if name not in left or name not in {one.cell.scenario for one in stored.launches}:
                continue
            try:
                yield name, study(stored.run, source, stored.launches)
            except ScenarioFaults:
                continue  # of another corebound
            left.discard(name)


def _is_doubtful(one: ScenarioResult) -> bool:
    baselines = {cell.baseline.key for cell in one.cells if cell.baseline is not None}
    return any(_counts(cell, baselines, one) for cell in one.cells)


def _counts(cell: CellStudy, baselines: set[str], one: ScenarioResult) -> bool:
    # A baseline is launched as often as what is compared with it.
    if cell.comparison is None and cell.cell.key in baselines:
        return False
    return needs_more_launches(cell.summary, cell.comparison, one.measure.launches)
