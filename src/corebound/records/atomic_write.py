"""Write files atomically; read only regular files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path


@contextlib.contextmanager
def atomic_write(file: Path) -> Iterator[Path]:
    """Yield a temporary file beside `file`, which replaces it when the block ends.

    The folder is created if necessary. If the block fails, the temporary file is removed.

    Raises:
        OSError: The file cannot be written.
    """
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield fresh
        fresh.replace(file)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()


def put(file: Path, data: bytes) -> None:
    """Write a file in one step; a reader sees either the old one or the new one.

    Raises:
        OSError: The file cannot be written; the old one remains.
    """
    with atomic_write(file) as fresh:
        fresh.write_bytes(data)


def put_durably(file: Path, data: bytes) -> None:
    """As `put`, and the file is on the disk when this returns.

    Raises:
        OSError: The file cannot be written; the old one remains.
    """
    make_folder(file.parent)
    with atomic_write(file) as fresh, fresh.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(file.parent)


def opened(file: Path) -> BufferedReader:
    """Open a regular file for reading; a pipe would block, and a device may never end.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    stream = os.fdopen(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise OSError(errno.EINVAL, "it is not a regular file", str(file))


def read(file: Path) -> bytes:
    """Read a whole file.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    with opened(file) as stream:
        return stream.read()


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, and wait until they are on the disk.

    Raises:
        OSError: The folder cannot be created.
    """
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for parent in reversed(missing):
        sync_folder(parent.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk: a file's own fsync does not cover its name.

    Source: fsync(2).

    Raises:
        OSError: The folder cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
