"""Publish the site, from a script."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from corebound.workflow.publish import DEFAULT_SITE, Publication, publish_site


def publish(
    site: str | PathLike[str] = DEFAULT_SITE,
    *,
    to: str | PathLike[str] | None = None,
    branch: str | None = None,
    repository: str | PathLike[str] = ".",
    push: str | None = None,
    squash: bool = False,
) -> Publication:
    """Publish a site to a folder or to a git branch, as `corebound publish` does.

    Readers see the previous site or the new one, never a mixture.

    Args:
        site: A site that `write_site` has written.
        to: The folder, or a symbolic link to one. Name either this or a branch.
        branch: The branch, such as `gh-pages`.
        repository: A folder of the branch's repository.
        push: The remote to push the branch to; None pushes it nowhere.
        squash: Whether the branch keeps only this commit, without earlier ones.

    Returns:
        Where the site is; `document` is what `corebound publish --json` prints.

    Raises:
        InputError: There is no site or not exactly one place, or the place is not suitable.
        HostError: The file system cannot exchange two folders, or git is not installed.
        LaunchError: git refuses, for example to push to a branch that has moved meanwhile.
    """
    return publish_site(
        Path(site),
        to=Path(to) if to is not None else None,
        branch=branch,
        repository=Path(repository),
        push=push,
        squash=squash,
    )
