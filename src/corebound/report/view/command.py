"""The commands that measure again what a page shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from corebound.model.plan import Cell
from corebound.model.run import Run, ScenarioSource
from corebound.report.view.study import CellStudy, Study


def reproduce_command(study: Study, cells: Sequence[Cell]) -> str:
    """The command that measures these cells again, with the run's seed and profile.

    Args:
        study: The scenario.
        cells: Which of its cells; none means all.
    """
    return _run(study.run, study.source, cells)


def row_command(study: Study, cell: CellStudy) -> str:
    """The command that measures a cell again, and beside it what its ratio is to."""
    return reproduce_command(study, (cell.baseline, cell.cell) if cell.baseline else (cell.cell,))


def again_command(before: Run, after: Run, cell: Cell) -> str:
    """The command that asks again what two runs of a cell were compared for.

    Two commits in turns, where each run was of a clean one of its own: that alone leaves
    out how the host drifted between two runs. Else the cell as the later run measured it.

    Args:
        before: The earlier run.
        after: The later one, which has the cell.
        cell: The cell.
    """
    source = next(one for one in after.scenarios if one.document["name"] == cell.scenario)
    one, two = before.commit, after.commit
    if one is None or two is None or one.dirty or two.dirty or one.sha == two.sha:
        return _run(after, source, (cell,))
    words = ["corebound", "compare-commits", one.sha[:10], two.sha[:10], source.path]
    words += ["--only", cell.key]
    if after.profile is not None:
        words += ["--profile", after.profile]
    return shlex.join(words)


def _run(run: Run, source: ScenarioSource, cells: Sequence[Cell]) -> str:
    words = ["corebound", "run", source.path]
    for cell in cells:
        words += ["--only", cell.key]
    words += ["--seed", str(run.seed)]
    if run.profile is not None:
        words += ["--profile", run.profile]
    return shlex.join(words)
