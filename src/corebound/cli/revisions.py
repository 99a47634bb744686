"""Which commit git knows by a name: a tag, a branch, or steps back from one."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(name: str, folder: Path | None = None) -> str | None:
    """The hash of the commit that a name has in a repository.

    Args:
        name: As typed.
        folder: Somewhere in the repository; the current one by default.

    Returns:
        None where it names none, there is no repository, or no git.
    """
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        done = subprocess.run(
            ("git", *words), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except (OSError, ValueError):  # no git, and no program takes a name with a NUL
        return None
    # Older versions say the option back.
    said = done.stdout.decode(errors="replace").split()
    return said[-1] if done.returncode == 0 and said else None
