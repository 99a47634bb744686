"""Builds a worker's environment variables; few are inherited from the user's shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from corebound.planning.models import Command

# The variables a worker may inherit. Any other variable of the user's shell, such as a
# stray OMP_NUM_THREADS, would make results depend on who started the run.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")


def environment(command: Command, *, python_path: Path, scratch: Path) -> Mapping[str, str]:
    """A worker's complete environment: inherited variables, corebound's own, then the cell's.

    Args:
        command: The command that starts the worker; its `env` holds the cell's variables.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: The folder for the worker's temporary files.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    ours = {
        "PYTHONPATH": str(python_path),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(scratch),
    }
    return {**inherited, **ours, **dict(command.env)}
