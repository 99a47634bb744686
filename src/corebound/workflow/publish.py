"""Publish a finished site, to a folder or to a git branch."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct

from corebound import clock, git
from corebound.errors import HostError, InputError, LaunchError, report_os_errors
from corebound.launch import scratch

# From <linux/fs.h> and <fcntl.h>.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
# Error codes of file systems that cannot exchange two folders.
_EXCHANGE_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}


# Where `corebound report` writes the site.
DEFAULT_SITE = Path("reports/site")


class Publication(Struct, frozen=True, kw_only=True):
    """Where a site was published: a folder, or a branch.

    Attributes:
        to: The folder; None for a branch.
        branch: The branch; None for a folder.
        commit: The commit that the branch is at.
        is_new: Whether the branch has a new commit; always so for a folder.
        pushed_to: The remote that the branch was pushed to; None if it was not.
    """

    to: Path | None = None
    branch: str | None = None
    commit: str | None = None
    is_new: bool = True
    pushed_to: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound publish --json` prints it."""
        if self.to is not None:
            return {"to": str(self.to)}
        return {"branch": self.branch, "commit": self.commit, "new": self.is_new}


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
    if (to is None) == (branch is None):
        raise InputError(
            what="there must be exactly one place to publish to.",
            where="corebound publish",
            fix="Pass either --to FOLDER or --branch NAME.",
        )
    require_branch(branch, push, where="corebound publish", squash=squash)
    finished = open_site(Path(site), clock.utc_now().isoformat(timespec="seconds"))
    if to is not None:
        publish_to_folder(finished, Path(to))
        return Publication(to=Path(to).absolute())
    return publish_to_branch(finished, branch or "", Path(repository), remote=push, squash=squash)


def require_branch(branch: str | None, push: str | None, *, squash: bool, where: str) -> None:
    """Check that what is about a branch comes with one.

    Raises:
        InputError: There is no branch to push or to squash.
    """
    if branch is None and (push is not None or squash):
        raise InputError(
            what="--push and --squash require --branch.",
            where=where,
            fix="Pass --branch as well, or omit them.",
        )


def publish_to_folder(site: Site, to: Path) -> None:
    """Replace a folder, or the target of a symbolic link, with a site.

    A link is switched to a new folder beside it. This also works on file systems that cannot
    exchange two folders.

    Args:
        to: A folder with a published site, an empty or missing folder, or a link.

    Raises:
        InputError: The folder holds something else, or cannot be written.
        HostError: The file system cannot exchange two folders.
    """
    to = to.absolute()  # not resolved: a link is switched, not followed
    if to.exists() and to.samefile(site.folder):
        raise InputError(
            what="the target is the site itself.",
            where=str(to),
            fix="Name another folder with --to.",
        )
    if not _may_replace(to):
        raise InputError(
            what="this folder contains something other than a published site.",
            where=str(to),
            fix="Name an empty folder, or one that does not exist yet.",
        )
    with report_os_errors(
        "the site cannot be published",
        where=to,
        fix="Free some space or make the folder writable. The published site is unchanged.",
    ):
        to.parent.mkdir(parents=True, exist_ok=True)
        with _publisher_lock(to):
            _remove_leftovers(to)
            try:
                _replace_site(site, to)
            finally:
                _remove_leftovers(to)


def _replace_site(site: Site, to: Path) -> None:
    fresh = to.with_name(f".{to.name}.new-{os.getpid()}")
    _copy_site(site, fresh)
    if to.is_symlink():
        _switch_link(to, fresh)
    else:
        _exchange_folders(to, fresh)
    _sync(to.parent)


def _may_replace(to: Path) -> bool:
    if not to.exists():
        return True
    return to.is_dir() and ((to / MARKER).is_file() or not any(to.iterdir()))


@contextmanager
def _publisher_lock(to: Path) -> Iterator[None]:
    """Allow one publisher at a time; the kernel releases the lock however this one ends."""
    with to.with_name(f".{to.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _remove_leftovers(to: Path) -> None:
    """Remove the leftovers of interrupted publications, and replaced sites."""
    current = to.resolve() if to.is_symlink() else None
    for leftover in to.parent.glob(f".{to.name}.new-*"):
        if leftover == current:
            continue
        if leftover.is_symlink():
            leftover.unlink()
        else:
            shutil.rmtree(leftover)


def _copy_site(site: Site, fresh: Path) -> None:
    """Copy the site and flush it to disk."""
    fresh.mkdir()
    folders = {fresh}
    for name, file in site.files():
        target = fresh / name
        target.parent.mkdir(parents=True, exist_ok=True)
        folders |= {parent for parent in target.parents if parent.is_relative_to(fresh)}
        shutil.copyfile(file, target)
        _sync(target)
    (fresh / MARKER).write_text(site.note(), encoding="utf-8")
    _sync(fresh / MARKER)
    for folder in folders:
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _switch_link(to: Path, fresh: Path) -> None:
    """Switch a link to the new folder."""
    # The name differs from what `_clear` removes once the link points to the new folder.
    link = to.with_name(f".{to.name}.new-link-{os.getpid()}")
    status = fresh.stat()
    target = to.with_name(f".{to.name}.new-{status.st_mtime_ns:x}-{status.st_ino:x}")
    fresh.rename(target)
    link.symlink_to(target.name)
    link.replace(to)


def _exchange_folders(to: Path, fresh: Path) -> None:
    """Swap two folders; if the target does not exist, move the new one there."""
    if not to.exists():
        fresh.rename(to)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.renameat2(
        _AT_FDCWD, os.fsencode(fresh), _AT_FDCWD, os.fsencode(to), _RENAME_EXCHANGE
    )
    if result == 0:
        return
    code = ctypes.get_errno()
    if code not in _EXCHANGE_UNSUPPORTED:
        raise OSError(code, os.strerror(code), str(to))
    raise HostError(
        what="this file system cannot exchange two folders in one step.",
        where=str(to),
        fix=f"Let the server serve a symbolic link instead, which is switched in one step:"
        f" mv {to} {to}.first && ln -s {to.name}.first {to}",
    )


# A file in every published site; only a folder that contains it is ever replaced.
MARKER = "corebound-site.json"
INDEX = "index.html"


class Site(Struct, frozen=True, kw_only=True):
    """A folder written by `corebound report`.

    `at` is the time of publication, ISO 8601.
    """

    folder: Path
    at: str

    def files(self) -> Iterator[tuple[str, Path]]:
        """Each file, by its path within the site; hidden files are incomplete and left out."""
        for file in sorted(self.folder.rglob("*")):
            name = file.relative_to(self.folder)
            if file.is_file() and not any(part.startswith(".") for part in name.parts):
                yield name.as_posix(), file

    def note(self) -> str:
        """The marker's content: the time, and a hash of all files."""
        digest = hashlib.sha256()
        for name, file in self.files():
            digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return f"{json.dumps({'published_at': self.at, 'sha256': digest.hexdigest()})}\n"


def open_site(folder: Path, at: str) -> Site:
    """Check that a folder contains a site.

    Raises:
        InputError: It does not.
    """
    if not (folder / INDEX).is_file():
        raise InputError(
            what="no site here.",
            where=str(folder),
            fix="Write it with `corebound report`, or name another folder with --site.",
        )
    return Site(folder=folder, at=at)


# Files for the page host that corebound does not write; kept from the previous commit.
KEPT_FILES = ("CNAME",)
# Without this file, GitHub Pages omits names that begin with an underscore.
NO_JEKYLL = ".nojekyll"
# git's notation for a reference that does not exist.
_NO_REFERENCE = "0" * 40


def publish_to_branch(
    site: Site, name: str, folder: Path, *, remote: str | None = None, squash: bool = False
) -> Publication:
    """Commit a site to a branch, and push it if requested.

    Args:
        folder: A folder of its repository.
        remote: The remote to push to and to fetch the branch's last commit from; None does neither.
        squash: Whether the branch keeps only this commit, without earlier ones.

    Raises:
        InputError: There is no repository or no such remote, or the branch is checked out.
        HostError: git is not installed.
        LaunchError: git refuses, for example to push to a branch that has moved meanwhile.
    """
    _check_branch(folder, name, remote)
    local = git.query(folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
    remote_tip = _last_of_remote(folder, name, remote) if remote else local
    with scratch.scratch_folder() as temporary:
        tree = _tree(folder, site, remote_tip, temporary)
    parent = f"{remote_tip}^"
    if (
        remote_tip is not None
        and _git(folder, "rev-parse", f"{remote_tip}^{{tree}}") == tree
        and not (squash and git.query(folder, "rev-parse", "--verify", "--quiet", parent))
    ):
        sha = remote_tip
    else:
        parents = () if squash or remote_tip is None else ("-p", remote_tip)
        sha = _git(folder, "commit-tree", tree, *parents, "-m", f"Site of {site.at}")
    if remote and sha != remote_tip:
        # Push only if the remote is still at the parent commit, so that no other push is lost.
        lease = f"--force-with-lease=refs/heads/{name}:{remote_tip or ''}"
        _git(folder, "push", "--quiet", lease, remote, f"{sha}:refs/heads/{name}")
    if sha != local:
        _git(folder, "update-ref", f"refs/heads/{name}", sha, local or _NO_REFERENCE)
    is_new = sha != remote_tip
    pushed_to = remote if is_new else None
    return Publication(branch=name, commit=sha, is_new=is_new, pushed_to=pushed_to)


def _git(folder: Path, *arguments: str, stdin: str = "", **environment: str) -> str:
    """Run git and return its output.

    Raises:
        LaunchError: git fails.
    """
    if (
        "GIT_COMMITTER_EMAIL" not in os.environ
        and git.query(folder, "config", "user.email") is None
    ):
        # As in continuous integration.
        environment |= {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "corebound"), ("EMAIL", "corebound@localhost"))
        }
    result = git.run(folder, *arguments, stdin=os.fsencode(stdin), environment=environment)
    if not result.succeeded:
        raise LaunchError(
            what=f"git {arguments[0]} failed: {result.error}",
            where=str(folder),
            fix="The branch is unchanged. Fix what git reports, and publish again.",
        )
    return result.text


def _check_branch(folder: Path, name: str, remote: str | None) -> None:
    if not git.run(folder, "rev-parse", "--git-dir").succeeded:
        raise InputError(
            what="not a git repository.",
            where=str(folder),
            fix="Name a repository with --repo, or publish to a folder with --to.",
        )
    if git.query(folder, "check-ref-format", "--branch", name) is None:
        raise InputError(
            what=f"`{name}` is not a valid branch name.",
            where="--branch",
            fix="Use a name like gh-pages.",
        )
    if remote and git.query(folder, "remote", "get-url", remote) is None:
        raise InputError(
            what=f"no remote `{remote}`.",
            where=str(folder),
            fix="Name one that `git remote` lists.",
        )
    worktrees = _git(folder, "worktree", "list", "--porcelain").splitlines()
    if f"branch refs/heads/{name}" in worktrees:
        raise InputError(
            what=f"the branch {name} is checked out; its files would appear as changed.",
            where=str(folder),
            fix="Publish to another branch, or check out another one in that worktree.",
        )


def _last_of_remote(folder: Path, name: str, remote: str) -> str | None:
    """Fetch the branch's last commit from the remote; None if it has no such branch."""
    references = _git(folder, "ls-remote", remote, f"refs/heads/{name}").split()
    if not references:
        return None
    _git(folder, "fetch", "--quiet", "--no-tags", remote, f"refs/heads/{name}")
    return references[0]


def _tree(folder: Path, site: Site, last: str | None, temporary: Path) -> str:
    """Write the site's files and the kept ones as a tree, through a separate index."""
    index = {"GIT_INDEX_FILE": str(temporary / "index")}
    empty = temporary / "empty"
    empty.touch()
    files = {name: file.resolve() for name, file in site.files() if name != MARKER}
    files[NO_JEKYLL] = empty
    # Store the bytes unchanged: the user's line-ending settings and filters must not apply.
    blobs = _git(
        folder, "hash-object", "-w", "--no-filters", "--stdin-paths",
        stdin="".join(f"{file}\n" for file in files.values()),
    ).split()  # fmt: skip
    lines = [f"100644 {blob}\t{name}" for name, blob in zip(files, blobs, strict=True)]
    if last is not None:
        kept_files = _git(folder, "ls-tree", last, "--", *KEPT_FILES).splitlines()
        # Lines of `ls-tree` include the type, which an index line does not.
        lines += [
            line.replace(" blob ", " ", 1)
            for line in kept_files
            if line.partition("\t")[2] not in files
        ]
    entries = "".join(f"{line}\0" for line in lines)
    _git(folder, "update-index", "-z", "--index-info", stdin=entries, **index)
    return _git(folder, "write-tree", **index)
