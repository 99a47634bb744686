"""Temporary folders that are always removed, if necessary by a later command.

A process locks each folder it works in. The kernel releases the lock when the process ends for
any reason, so an unlocked folder was left by a process that was killed.

A folder's path leaves room for Unix sockets below it, whose path has at most 107 bytes. If the path
of the temporary folder is too long, a server or PyTorch's DataLoader cannot create its sockets. The
DataLoader's processes then wait for each other until the launch times out.
"""

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

from corebound.errors import HostError, report_os_errors

_PREFIX = "corebound-scratch-"
# The pattern of names that tempfile generates. Nothing else in a temporary folder is removed.
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
# unix(7): 108 bytes, including the terminating null byte.
_ADDRESS_BYTES = 107
# A launch's own temporary folder needs up to 25 bytes. PyTorch's shared-memory manager, which
# creates sockets there, needs up to 34. The rest is a reserve.
_BELOW_BYTES = 64
# Where a short link to the folder is created; POSIX reserves this folder for temporary files.
_LINK_FOLDER = Path("/tmp")  # noqa: S108  # names are random, and symlink never replaces a file


@contextlib.contextmanager
def scratch_folder(link_folder: Path = _LINK_FOLDER) -> Iterator[Path]:
    """Create an empty scratch folder below the temporary folder, and remove it on exit.

    If the folder's path is too long, this yields a link to the folder, so that its files stay
    on the disk that TMPDIR selects. Folders left by killed processes are removed first.

    Raises:
        HostError: a link is needed and cannot be created.
        InputError: the temporary folder is not writable.
    """
    _remove_abandoned(link_folder)
    with contextlib.ExitStack() as stack:
        with report_os_errors(
            "no temporary folder can be made",
            where=Path(tempfile.gettempdir()),
            fix="Free some space, or set TMPDIR to a folder that can be written.",
        ):
            folder = _locked(stack)
        yield _shortened(folder, link_folder, stack)


def _locked(stack: contextlib.ExitStack) -> Path:
    """Create and lock a new folder; the stack removes and then unlocks it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).absolute()
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # another process has just removed it as abandoned
        stack.callback(os.close, descriptor)
        if _lock_shared(descriptor) and folder.exists():
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            return folder


def _lock_shared(descriptor: int) -> bool:
    """Take a shared lock on a folder, held for as long as its descriptor is open.

    Returns:
        False if another process is removing the folder. True without a lock if the file system
        does not support locks; such a folder is never removed as abandoned.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _shortened(folder: Path, link_folder: Path, stack: contextlib.ExitStack) -> Path:
    limit_bytes = _ADDRESS_BYTES - _BELOW_BYTES
    if len(os.fsencode(folder)) <= limit_bytes:
        return folder
    link = link_folder / f"{_PREFIX}{secrets.token_hex(4)}"
    try:
        link.symlink_to(folder)
    except OSError as error:
        allowed_bytes = limit_bytes - len(os.fsencode(folder.name)) - 1
        raise HostError(
            what=f"its path is too long for sockets below it, and no short name for it can be "
            f"made in {link_folder} ({error.strerror}).",
            where=str(folder.parent),
            fix=f"Set TMPDIR to a folder whose path has at most {allowed_bytes} characters.",
        ) from error
    stack.callback(link.unlink, missing_ok=True)
    return link


def _remove_abandoned(link_folder: Path) -> None:
    """Remove what this user's killed processes left in the temporary folder and `link_folder`."""
    for parent in {Path(tempfile.gettempdir()), link_folder}:
        try:
            folders = [path for path in parent.iterdir() if _NAME.fullmatch(path.name)]
        except OSError:
            continue  # it may be writable but not readable
        for path in folders:
            with contextlib.suppress(OSError):
                _remove_unlocked(path)


def _remove_unlocked(path: Path) -> None:
    """Remove an unlocked scratch folder, or a link to one, if this user owns it."""
    status = path.lstat()
    if status.st_uid != os.geteuid():
        return
    if stat.S_ISLNK(status.st_mode):
        folder = path.readlink()
        if not _NAME.fullmatch(folder.name):
            return
        with contextlib.suppress(FileNotFoundError):
            _remove_unlocked(folder)
        if not folder.exists():
            path.unlink()
    elif stat.S_ISDIR(status.st_mode):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)
