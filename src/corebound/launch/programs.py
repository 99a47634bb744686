"""Which programs the commands and servers of a scenario find, before anything is launched."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from corebound.planning.models import CannotRun
from corebound.planning.plan import started_programs
from corebound.scenario.cell import HOST, Cell
from corebound.scenario.models import Scenario


def missing_program(
    scenario: Scenario, cell: Cell, *, folder: Path, python: Path | None
) -> CannotRun | None:
    """Why a cell cannot start its command or its server; None if it can, or if nobody knows yet.

    Args:
        scenario: The scenario.
        cell: One of its cells.
        folder: The folder of the scenario.
        python: The interpreter of the cell's environment; None if it has not been made.
    """
    if python is None:
        return None
    path = dict(cell.env).get("PATH", os.environ.get("PATH", os.defpath))
    if cell.environment != HOST:
        path = os.pathsep.join((str(python.parent), path))
    programs = started_programs(scenario.workload, cell, str(folder))
    return next(filter(None, (_missing(program, path) for program in programs)), None)


def _missing(program: str, path: str) -> CannotRun | None:
    if shutil.which(program, path=path) is not None:
        return None
    if "/" not in program:
        return CannotRun(
            what=f"the program `{program}` is not on PATH.",
            fix="Install it; or activate the environment that has it, or name that under"
            " `environment`.",
            cause="environment",
        )
    if Path(program).is_file():
        return CannotRun(
            what=f"`{program}` is not executable.",
            fix=f"Run `chmod +x {shlex.quote(program)}`.",
            cause="environment",
        )
    return CannotRun(
        what=f"there is no program `{program}`.",
        fix="Build it, or correct its path, which is relative to the scenario file.",
        cause="environment",
    )
