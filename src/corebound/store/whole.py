"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def begun(file: Path) -> Iterator[Path]:
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
    with begun(file) as fresh:
        fresh.write_bytes(data)
