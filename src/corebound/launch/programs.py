"""What the programs of commands and servers are, before anything is launched."""

import os
import re
import shlex
import shutil
from pathlib import Path

from corebound.planning.models import CannotRun
from corebound.planning.plan import started_programs
from corebound.records import atomic_write
from corebound.scenario.cell import HOST, Cell
from corebound.scenario.matrix import axis_text
from corebound.scenario.models import CommandWorkload, Scenario
from corebound.scenario.placeholders import fill
from corebound.scenario.runtimes import RUNTIMES
from corebound.scenario.server_workload import ServerWorkload

# A larger program is not searched to its end.
_MOST_BYTES = 64 << 20
# What a program has in it that follows OMP_NUM_THREADS and its like: their names, the libraries
# that read them, or the import of a module that loads one of these.
_MODULES = "|".join(
    sorted(
        {
            module
            for runtime in RUNTIMES.values()
            if not runtime.server
            for module in runtime.packages
        }
    )
)
_FOLLOWS = re.compile(
    rb"(?:OMP|MKL|OPENBLAS)_NUM_THREADS|lib(?:gomp|omp|iomp5|openblas|blas|mkl_\w+)\.so"
    rb"|^[ \t]*(?:import|from)[ \t]+(?:scipy|pandas|%b)\b" % _MODULES.encode(),
    re.MULTILINE,
)


def missing_program(
    scenario: Scenario, cell: Cell, *, folder: Path, python: Path | None
) -> CannotRun | None:
    """Why a cell cannot start its command or its server; None if it can, or if nobody knows yet.

    Args:
        python: The interpreter of the cell's environment; None if it has not been made.
    """
    if python is None:
        return None
    path = dict(cell.env).get("PATH", os.environ.get("PATH", os.defpath))
    if cell.environment != HOST:
        path = os.pathsep.join((str(python.parent), path))
    programs = started_programs(scenario.workload, cell, str(folder))
    return next(filter(None, (_missing(program, path) for program in programs)), None)


def follows_threads(scenario: Scenario, cell: Cell, folder: Path) -> bool:
    """Whether a command or a server seems to follow variables that set its number of threads.

    Its program is searched for them, and so are the files and Python modules beside the scenario
    that its words name.
    """
    workload = scenario.workload
    texts: list[str] = []
    if isinstance(workload, ServerWorkload) and workload.server is not None:
        texts += workload.server.command
    elif isinstance(workload, CommandWorkload):
        command = workload.command
        texts += command.split() if isinstance(command, str) else command
    values = {name: axis_text(value) for name, value in cell.parameters}
    words = [fill(text, values).strip("\"';()") for text in texts]
    modules = (word.partition(":")[0].replace(".", "/") + ".py" for word in words)
    files = {folder / word for word in (*words, *modules)}
    files |= {Path(found) for word in words if (found := shutil.which(word)) is not None}
    return any(map(_mentions_threads, files))


def _mentions_threads(file: Path) -> bool:
    try:
        with atomic_write.opened(file) as stream:
            return _FOLLOWS.search(stream.read(_MOST_BYTES)) is not None
    except (OSError, ValueError):
        return False  # a word that is no file


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
