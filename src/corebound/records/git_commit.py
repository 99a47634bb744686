"""The commit that a folder has checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from corebound.records.run_record import Commit


def commit(folder: Path) -> Commit | None:
    """The commit checked out in `folder`; None if there is none."""
    shown = _git(folder, "log", "-1", "--format=%H%x00%s%x00%cI")
    if shown is None:
        return None
    sha, subject, committed_at = shown.split("\0")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Commit(sha=sha, subject=subject, committed_at=committed_at, dirty=bool(changed))


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ("git", "-C", str(folder), *words),
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, no repository, or no commit yet
    return done.stdout.decode("utf-8", errors="replace").strip()
