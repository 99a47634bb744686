"""The commands that measure again what a page shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from corebound.model.plan import Cell
from corebound.report.view.study import Study


def reproduce_command(study: Study, cells: Sequence[Cell]) -> str:
    """The command that measures these cells again, with the run's seed and profile.

    Args:
        study: The scenario.
        cells: Which of its cells; none means all.
    """
    words = ["corebound", "run", study.source.path]
    for cell in cells:
        words += ["--only", cell.key]
    words += ["--seed", str(study.run.seed)]
    if study.run.profile is not None:
        words += ["--profile", study.run.profile]
    return shlex.join(words)
