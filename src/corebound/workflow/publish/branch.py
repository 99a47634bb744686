"""Publish a site as a commit on a branch, such as gh-pages, without touching a checkout.

Blobs, tree and commit are written first and are not yet visible. Then one reference moves from
its known commit to the new one. If the process is killed, the branch is at one of the two.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from corebound import git
from corebound.errors import InputError, LaunchError
from corebound.launch import scratch
from corebound.workflow.publish.folder import MARKER, Site

# Files for the page host that corebound does not write; kept from the previous commit.
KEPT = ("CNAME",)
# Without this file, GitHub Pages omits names that begin with an underscore.
PLAIN = ".nojekyll"
# git's notation for a reference that does not exist.
_NONE = "0" * 40


class Branch(Struct, frozen=True, kw_only=True):
    """The branch to publish a site to.

    Attributes:
        repository: A folder of the repository.
        name: The branch's name.
        remote: The remote to push to and to fetch the branch's last commit from; None does neither.
        squash: Whether the branch keeps only this commit, without earlier ones.
    """

    repository: Path
    name: str
    remote: str | None
    squash: bool


class Published(Struct, frozen=True, kw_only=True):
    """The commit that the branch is at; `new` is False if the site was already there."""

    sha: str
    new: bool


def publish(site: Site, branch: Branch) -> Published:
    """Commit a site to a branch, and push it if requested.

    Raises:
        InputError: There is no repository or no such remote, or the branch is checked out.
        HostError: git is not installed.
        LaunchError: git refuses, for example to push to a branch that has moved meanwhile.
    """
    repository = _Repository(folder=branch.repository)
    _check(repository, branch)
    own = repository.query("rev-parse", "--verify", "--quiet", f"refs/heads/{branch.name}")
    last = _last_of_remote(repository, branch.name, branch.remote) if branch.remote else own
    with scratch.made() as folder:
        tree = _tree(repository, site, last, folder)
    is_there = last is not None and _same(repository, last, tree)
    parents = () if branch.squash or last is None else ("-p", last)
    if last is not None and is_there and not (branch.squash and _has_parent(repository, last)):
        sha = last
    else:
        sha = repository.do("commit-tree", tree, *parents, "-m", f"Site of {site.at}")
    if branch.remote and sha != last:
        # Push only if the remote is still at the parent commit, so that no other push is lost.
        lease = f"--force-with-lease=refs/heads/{branch.name}:{last or ''}"
        repository.do("push", "--quiet", lease, branch.remote, f"{sha}:refs/heads/{branch.name}")
    if sha != own:
        repository.do("update-ref", f"refs/heads/{branch.name}", sha, own or _NONE)
    return Published(sha=sha, new=sha != last)


class _Repository(Struct, frozen=True, kw_only=True):
    """Runs git in one folder."""

    folder: Path

    def do(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """Run git and return its output.

        Raises:
            LaunchError: git fails.
        """
        environment = {**self._identity(), **environment}
        result = git.run(self.folder, *arguments, stdin=os.fsencode(stdin), environment=environment)
        if not result.succeeded:
            raise LaunchError(
                what=f"git {arguments[0]} failed: {result.error}",
                where=str(self.folder),
                fix="The branch is unchanged. Fix what git reports, and publish again.",
            )
        return result.text

    def query(self, *arguments: str) -> str | None:
        """Run git and return its output; None if it fails."""
        result = git.run(self.folder, *arguments)
        return result.text if result.succeeded else None

    def _identity(self) -> dict[str, str]:
        """A committer identity if git has none, as in continuous integration."""
        if "GIT_COMMITTER_EMAIL" in os.environ or self.query("config", "user.email") is not None:
            return {}
        return {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "corebound"), ("EMAIL", "corebound@localhost"))
        }


def _check(repository: _Repository, branch: Branch) -> None:
    if repository.query("rev-parse", "--git-dir") is None:
        raise InputError(
            what="this is no git repository.",
            where=str(branch.repository),
            fix="Name one with --repo, or publish to a folder with --to.",
        )
    if repository.query("check-ref-format", "--branch", branch.name) is None:
        raise InputError(
            what=f"`{branch.name}` is no name of a branch.",
            where="--branch",
            fix="Write one like gh-pages.",
        )
    if branch.remote and repository.query("remote", "get-url", branch.remote) is None:
        raise InputError(
            what=f"there is no remote `{branch.remote}`.",
            where=str(branch.repository),
            fix="Name one that `git remote` shows.",
        )
    shown = repository.do("worktree", "list", "--porcelain").splitlines()
    if f"branch refs/heads/{branch.name}" in shown:
        raise InputError(
            what=f"the branch {branch.name} is checked out, and its files would seem changed.",
            where=str(branch.repository),
            fix="Publish to another branch, or check out another one there.",
        )


def _last_of_remote(repository: _Repository, name: str, remote: str) -> str | None:
    """Fetch the branch's last commit from the remote; None if it has no such branch."""
    found = repository.do("ls-remote", remote, f"refs/heads/{name}").split()
    if not found:
        return None
    repository.do("fetch", "--quiet", "--no-tags", remote, f"refs/heads/{name}")
    return found[0]


def _tree(repository: _Repository, site: Site, last: str | None, folder: Path) -> str:
    """Write the site's files and the kept ones as a tree, through a separate index."""
    index = {"GIT_INDEX_FILE": str(folder / "index")}
    empty = folder / "empty"
    empty.touch()
    files = {name: file.resolve() for name, file in site.files() if name != MARKER}
    files[PLAIN] = empty
    # Store the bytes unchanged: the user's line-ending settings and filters must not apply.
    blobs = repository.do(
        "hash-object", "-w", "--no-filters", "--stdin-paths",
        stdin="".join(f"{file}\n" for file in files.values()),
    ).split()  # fmt: skip
    lines = [f"100644 {blob}\t{name}" for name, blob in zip(files, blobs, strict=True)]
    if last is not None:
        kept = repository.do("ls-tree", last, "--", *KEPT).splitlines()
        # Lines of `ls-tree` include the type, which an index line does not.
        lines += [
            line.replace(" blob ", " ", 1) for line in kept if line.partition("\t")[2] not in files
        ]
    entries = "".join(f"{line}\0" for line in lines)
    repository.do("update-index", "-z", "--index-info", stdin=entries, **index)
    return repository.do("write-tree", **index)


def _same(repository: _Repository, commit: str, tree: str) -> bool:
    return repository.do("rev-parse", f"{commit}^{{tree}}") == tree


def _has_parent(repository: _Repository, commit: str) -> bool:
    return repository.query("rev-parse", "--verify", "--quiet", f"{commit}^") is not None
