"""What a repository says of itself: its name, its branch, whether it can be installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from msgspec import Struct

# What pip installs by.
_INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")


class Repository(Struct, frozen=True, kw_only=True):
    """A folder that is to be measured.

    Attributes:
        folder: It.
        project: Its name.
        branch: The one that is checked out; `main` where none is.
        is_built: Whether asv can build its commits: it is the top of a git repository, has a
            commit, and pip can install it.
        has_remote: Whether it can be updated from elsewhere.
    """

    folder: Path
    project: str
    branch: str
    is_built: bool
    has_remote: bool


def look(folder: Path) -> Repository:
    """Look at a folder; it may be none of git's."""
    folder = folder.resolve()
    top = _git(folder, "rev-parse", "--show-toplevel")
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    installable = any((folder / name).is_file() for name in _INSTALLABLE)
    is_top = top is not None and Path(top) == folder
    return Repository(
        folder=folder,
        project=folder.name or "project",
        branch=_git(folder, "branch", "--show-current") or "main",
        is_built=is_top and commit is not None and installable,
        has_remote=bool(_git(folder, "remote")),
    )


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ("git", "-C", str(folder), *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError:
        return None  # no git here
    return done.stdout.strip() if done.returncode == 0 else None
