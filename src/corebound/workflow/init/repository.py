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
        lacks: What asv would need to build its commits: to be the top of a git repository, a
            commit, and what pip installs by; empty where it can.
        has_remote: Whether it can be updated from elsewhere.
    """

    folder: Path
    project: str
    branch: str
    lacks: tuple[str, ...]
    has_remote: bool

    @property
    def is_built(self) -> bool:
        """Whether asv can build its commits."""
        return not self.lacks


def look(folder: Path) -> Repository:
    """Look at a folder; it may be none of git's."""
    folder = folder.resolve()
    top = _git(folder, "rev-parse", "--show-toplevel")
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    needs = {
        "a git repository of its own": top is not None and Path(top) == folder,
        "a commit": commit is not None,
        _INSTALLABLE[0]: any((folder / name).is_file() for name in _INSTALLABLE),
    }
    return Repository(
        folder=folder,
        project=folder.name or "project",
        branch=_git(folder, "branch", "--show-current") or "main",
        lacks=tuple(what for what, is_there in needs.items() if not is_there),
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
