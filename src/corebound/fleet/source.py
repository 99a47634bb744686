"""The planned commit as a git bundle, and its checkout on a host."""

import shutil
from pathlib import Path

from corebound import git
from corebound.errors import LaunchError


def _ref(sha: str) -> str:
    """A name for the commit: a bundle holds only what has a name."""
    return f"refs/corebound/fleet-{sha}"


def pack(repository: Path, sha: str, bundle: Path) -> None:
    """Pack a commit with its history into a bundle.

    Raises:
        LaunchError: git cannot pack it.
    """
    name = _ref(sha)
    _git(repository, "update-ref", name, sha)
    try:
        _git(repository, "bundle", "create", "--quiet", str(bundle.absolute()), name)
    finally:
        git.run(repository, "update-ref", "-d", name)


def check_out(bundle: Path, sha: str, folder: Path) -> None:
    """Make a repository of a bundle, with the commit checked out.

    Args:
        bundle: The bundle, which is no longer needed afterwards.
        folder: The repository; what is there is replaced.

    Raises:
        LaunchError: The bundle is damaged, or lacks the commit.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet")
    _git(folder, "fetch", "--quiet", str(bundle.absolute()), _ref(sha))
    _git(folder, "checkout", "--quiet", "--detach", sha)


def _git(folder: Path, *arguments: str) -> None:
    result = git.run(folder, *arguments)
    if not result.succeeded:
        raise LaunchError(
            what=f"git {arguments[0]} failed: {result.error}.",
            where=str(folder),
            fix="Check the repository with `git fsck`, and plan again.",
        )
