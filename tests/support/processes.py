"""Processes that a test looks for, of which it started only the first."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int) -> bool:
    """Whether a process is there and more than an exit code that nobody has asked for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
