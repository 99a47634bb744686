"""What a worker inherits from the user's shell: a few names, and nothing that steers it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from corebound.planning.slots import Command

# What a process may inherit. Anything else of the user's shell, a stray
# OMP_NUM_THREADS above all, would make a cell depend on who ran it.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")


def environment(command: Command, *, python_path: Path, scratch: Path) -> Mapping[str, str]:
    """A worker's whole environment: a few inherited names, ours, then the cell's.

    Args:
        command: What starts the worker, with what its cell adds.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: For the worker's temporary files.
    """
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    ours = {
        "PYTHONPATH": str(python_path),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(scratch),
    }
    return {**inherited, **ours, **dict(command.env)}
