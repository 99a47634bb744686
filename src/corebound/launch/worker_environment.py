"""Which environment variables a worker or a server has: few of the user's, and the cell's."""

import os
from collections.abc import Mapping
from pathlib import Path

from corebound.planning.models import Command

# The variables a worker may inherit. Any other variable of the user's shell, such as a
# stray OMP_NUM_THREADS, would make results depend on who started the run.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")


def worker_environment(command: Command, *, python_path: Path, scratch: Path) -> Mapping[str, str]:
    """A worker's complete environment: inherited variables, corebound's own, then the cell's.

    Args:
        command: The command that starts the worker; its `env` holds the cell's variables.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: The folder for the worker's temporary files.
    """
    names = (*INHERITED, *command.inherits)
    inherited = {name: os.environ[name] for name in names if name in os.environ}
    ours = {
        "PYTHONPATH": str(python_path),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(scratch),
    }
    return {**inherited, **ours, **dict(command.env)}
