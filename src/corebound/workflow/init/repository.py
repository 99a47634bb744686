"""What `corebound init` detects about a repository: name, branch, and whether it is installable."""

from __future__ import annotations

import subprocess
from pathlib import Path

from msgspec import Struct

# Files by which pip can install a project.
_INSTALLABLE = ("pyproject.toml", "setup.py", "setup.cfg")


class Repository(Struct, frozen=True, kw_only=True):
    """The repository to measure.

    Attributes:
        folder: Its folder.
        project: The project's name.
        branch: The checked-out branch, or `main` if there is none.
        lacks: What is missing before asv can build commits: a git repository with this folder at
            its top, a commit, or a file by which pip installs. Empty if nothing is missing.
        has_remote: Whether the repository has a remote to update from.
    """

    folder: Path
    project: str
    branch: str
    lacks: tuple[str, ...]
    has_remote: bool

    @property
    def is_built(self) -> bool:
        """Whether asv can build the repository's commits."""
        return not self.lacks


def look(folder: Path) -> Repository:
    """Inspect a folder, which need not be a git repository."""
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
        return None  # git is not installed
    return done.stdout.strip() if done.returncode == 0 else None
