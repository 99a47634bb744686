"""What every test here has in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Unit tests know no real time: on a busy host one example may take a second.
settings.register_profile("corebound", deadline=None)
settings.load_profile("corebound")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], list[bytes | list[str]]]:
    """What the disk has of a path after each fsync of it: a file's bytes, or a folder's names.

    What is written or created after the last fsync may be gone after a power failure.
    """
    fsync = os.fsync
    kept: dict[tuple[int, int], list[bytes | list[str]]] = {}

    def keep(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}")
        found = [one.name for one in path.iterdir()] if path.is_dir() else path.read_bytes()
        kept.setdefault(_inode(path), []).append(found)

    monkeypatch.setattr(os, "fsync", keep)
    # By inode, for a file may be renamed after it is written.
    return lambda path: list(kept.get(_inode(path), []))


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
