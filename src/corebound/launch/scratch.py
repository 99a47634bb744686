"""Temporary folders that are removed, by a later command at the latest.

Each is locked for as long as a process works in it. The kernel releases that lock however the
process ends, so whatever is not locked was left by a process that was killed.

A folder's path leaves room for sockets below it. A socket's address in the file system has at most
107 bytes. Where the path of the temporary folder fills them, a server or torch's DataLoader cannot
make its sockets; the loaders then wait for each other until the launch's time is over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from corebound.errors import HostError, refusals_told

_PREFIX = "corebound-scratch-"
# As tempfile draws names; nothing else below a temporary folder is ours to remove.
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
# unix(7): 108, of which one ends it.
_ADDRESS_BYTES = 107
# A launch's own temporary folder takes up to 25 of them, and what is known to make sockets
# there, torch's manager of shared memory, up to 34; the rest is to spare.
_BELOW_BYTES = 64
# Where a short name for the folder goes; POSIX has every host keep it for such files. What S108
# warns of, that others lay a file there first, fails: nobody guesses the name, and `symlink`
# never replaces a file.
_SHORT = Path("/tmp")  # noqa: S108 - names below it are drawn, and symlink replaces nothing


@contextlib.contextmanager
def made(short: Path = _SHORT) -> Iterator[Path]:
    """An empty folder below the temporary one, removed in the end.

    Where its path is too long, what is yielded is a link to it, so that the files are still
    on the disk that TMPDIR chooses. What killed processes left is removed first.

    Args:
        short: Where such a link goes.

    Raises:
        HostError: a link is needed and cannot be made.
        InputError: the temporary folder cannot be written.
    """
    _sweep(short)
    with contextlib.ExitStack() as stack:
        with refusals_told(
            "no temporary folder can be made",
            where=Path(tempfile.gettempdir()),
            mend="Make room, or set TMPDIR to a folder that can be written.",
        ):
            folder = _locked(stack)
        yield _shortened(folder, short, stack)


def _locked(stack: contextlib.ExitStack) -> Path:
    """A new folder, which the stack removes and then releases."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).absolute()
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # another process has just taken it for one that was left
        stack.callback(os.close, descriptor)
        if _hold(descriptor) and folder.exists():
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            return folder


def _hold(descriptor: int) -> bool:
    """Lock a folder for as long as its descriptor is open, beside others that do so.

    Returns:
        False where another process is removing it. Where the file system has no locks it is
        held without, and never taken for one that was left.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _shortened(folder: Path, short: Path, stack: contextlib.ExitStack) -> Path:
    most_bytes = _ADDRESS_BYTES - _BELOW_BYTES
    if len(os.fsencode(folder)) <= most_bytes:
        return folder
    link = short / f"{_PREFIX}{secrets.token_hex(4)}"
    try:
        link.symlink_to(folder)
    except OSError as error:
        longest_bytes = most_bytes - len(os.fsencode(folder.name)) - 1
        raise HostError(
            what=f"its path is too long for sockets below it, and no short name for it can be "
            f"made in {short} ({error.strerror}).",
            where=str(folder.parent),
            mend=f"Set TMPDIR to a folder whose path has at most {longest_bytes} characters.",
        ) from error
    stack.callback(link.unlink, missing_ok=True)
    return link


def _sweep(short: Path) -> None:
    """Remove what this user's killed processes left in the temporary folder and in `short`."""
    for place in {Path(tempfile.gettempdir()), short}:
        try:
            found = [path for path in place.iterdir() if _NAME.fullmatch(path.name)]
        except OSError:
            continue  # it may be written and not read
        for path in found:
            with contextlib.suppress(OSError):
                _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove a folder that nobody holds, or a link to one, if it is this user's."""
    found = path.lstat()
    if found.st_uid != os.geteuid():
        return
    if stat.S_ISLNK(found.st_mode):
        folder = path.readlink()
        if not _NAME.fullmatch(folder.name):
            return
        with contextlib.suppress(FileNotFoundError):
            _remove_left(folder)
        if not folder.exists():
            path.unlink()
    elif stat.S_ISDIR(found.st_mode):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)
