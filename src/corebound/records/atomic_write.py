"""Files that appear whole or not at all, read only where they are regular files."""

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
    """A file beside this one to write to, which takes its place once that is done.

    Its folder is made if need be. Of what was begun and not ended nothing stays.

    Raises:
        OSError: it cannot be written.
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
    """Write a file in one step; a reader sees the old one or the new one.

    Raises:
        OSError: it cannot be written; the old one is there still.
    """
    with atomic_write(file) as fresh:
        fresh.write_bytes(data)


def opened(file: Path) -> BufferedReader:
    """Open a file to read it: a pipe would be waited for, and a device may never end.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    stream = os.fdopen(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
    if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return stream
    stream.close()
    raise OSError(errno.EINVAL, "it is not a regular file", str(file))


def read(file: Path) -> bytes:
    """All of a file.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with opened(file) as stream:
        return stream.read()


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and wait until the disk has those that were missing.

    Raises:
        OSError: it cannot be made.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in reversed(missing):
        sync_folder(one.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder: a file's own fsync does not cover its name.

    Source: fsync(2).

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
