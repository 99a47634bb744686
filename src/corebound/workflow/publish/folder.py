"""Publish a site to a folder that a web server serves, completely or not at all.

The new site is written beside the folder and flushed to disk. Then one system call puts it in
the folder's place. If the process is killed, the folder holds the old site or the new one.
"""

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
from pathlib import Path

from msgspec import Struct

from corebound.errors import HostError, InputError, report_os_errors

# From <linux/fs.h> and <fcntl.h>.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
# Error codes of file systems that cannot exchange two folders.
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}


def publish(site: Site, to: Path) -> None:
    """Replace a folder, or the target of a symbolic link, with a site.

    A link is switched to a new folder beside it. This also works on file systems that cannot
    exchange two folders.

    Args:
        site: A complete site.
        to: A folder with a published site, an empty or missing folder, or a link.

    Raises:
        InputError: The folder holds something else, or cannot be written.
        HostError: The file system cannot exchange two folders.
    """
    to = to.absolute()  # not resolved: a link is switched, not followed
    if to.exists() and to.samefile(site.folder):
        raise InputError(
            what="this is the site itself.", where=str(to), fix="Name another folder with --to."
        )
    if not _is_ours(to):
        raise InputError(
            what="this folder holds something that is no published site.",
            where=str(to),
            fix="Name an empty folder, or one that does not exist yet.",
        )
    with report_os_errors(
        "the site cannot be published",
        where=to,
        fix="Make room or make that folder writable; what was there is as it was.",
    ):
        to.parent.mkdir(parents=True, exist_ok=True)
        with _alone(to):
            _clear(to)
            try:
                _put(site, to)
            finally:
                _clear(to)


def _put(site: Site, to: Path) -> None:
    fresh = to.with_name(f".{to.name}.new-{os.getpid()}")
    _copy(site, fresh)
    if to.is_symlink():
        _turn(to, fresh)
    else:
        _exchange(to, fresh)
    _sync(to.parent)


def _is_ours(to: Path) -> bool:
    if not to.exists():
        return True
    return to.is_dir() and ((to / MARKER).is_file() or not any(to.iterdir()))


@contextmanager
def _alone(to: Path) -> Iterator[None]:
    """Allow one publisher at a time; the kernel releases the lock however this one ends."""
    with to.with_name(f".{to.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _clear(to: Path) -> None:
    """Remove the leftovers of interrupted publications, and replaced sites."""
    shown = to.resolve() if to.is_symlink() else None
    for left in to.parent.glob(f".{to.name}.new-*"):
        if left == shown:
            continue
        if left.is_symlink():
            left.unlink()
        else:
            shutil.rmtree(left)


def _copy(site: Site, fresh: Path) -> None:
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


def _turn(to: Path, fresh: Path) -> None:
    """Switch a link to the new folder."""
    # The name differs from what `_clear` removes once the link points to the new folder.
    turned = to.with_name(f".{to.name}.new-link-{os.getpid()}")
    kept = to.with_name(f".{to.name}.new-{_stamp(fresh)}")
    fresh.rename(kept)
    turned.symlink_to(kept.name)
    turned.replace(to)


def _stamp(fresh: Path) -> str:
    found = fresh.stat()
    return f"{found.st_mtime_ns:x}-{found.st_ino:x}"


def _exchange(to: Path, fresh: Path) -> None:
    """Swap two folders; if the target does not exist, move the new one there."""
    if not to.exists():
        fresh.rename(to)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.renameat2(
        _AT_FDCWD, os.fsencode(fresh), _AT_FDCWD, os.fsencode(to), _RENAME_EXCHANGE
    )
    if done == 0:
        return
    code = ctypes.get_errno()
    if code not in _CANNOT:
        raise OSError(code, os.strerror(code), str(to))
    raise HostError(
        what="this file system cannot exchange two folders in one step.",
        where=str(to),
        fix=f"Let the server show a symbolic link instead, which is turned in one step:"
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


def opened(folder: Path, at: str) -> Site:
    """Check that a folder contains a site.

    Raises:
        InputError: It does not.
    """
    if not (folder / INDEX).is_file():
        raise InputError(
            what="there is no site here.",
            where=str(folder),
            fix="Write it with `corebound report`, or name another with --site.",
        )
    return Site(folder=folder, at=at)
