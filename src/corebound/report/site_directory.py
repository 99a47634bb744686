"""The output folder of a site: atomic writes, and removal of the previous site's files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from corebound.records import atomic_write, cache

# Hidden, so that it is not published.
LIST = ".corebound-files.json"


class Folder:
    """Writes files into a folder, and finally removes the files of the previous site.

    A list in the folder names the previous files, each with a hash. Files that somebody else added
    or replaced are kept.

    Attributes:
        at: The path of the folder.
    """

    def __init__(self, at: Path) -> None:
        """Use this folder; it is created with the first file."""
        self.at = at
        self._before: dict[str, str] = {}
        with contextlib.suppress(OSError, msgspec.DecodeError):
            self._before = msgspec.json.decode((at / LIST).read_bytes(), type=dict[str, str])
        self._now: dict[str, str] = {}

    def put(self, name: str, data: bytes) -> None:
        """Write a file atomically, unless it already has this content.

        Raises:
            OSError: it cannot be written.
        """
        _put(self.at / name, data)
        self._now[name] = cache.digest(data)

    def keep(self, name: str) -> None:
        """Keep an existing file that is up to date.

        Raises:
            OSError: it cannot be read.
        """
        self._now[name] = self._before.get(name) or _digest(self.at / name)

    def close(self) -> None:
        """Remove the files that the previous site had and this one does not.

        Raises:
            OSError: a file cannot be removed.
        """
        for name in sorted(self._before.keys() - self._now.keys()):
            if self._is_as_put(name):
                self._remove(name)
        # The list is written last, so that after an interruption the files to remove are still
        # known.
        _put(self.at / LIST, msgspec.json.encode(self._now, order="sorted"))

    def _remove(self, name: str) -> None:
        file = self.at / name
        file.unlink()
        for folder in file.relative_to(self.at).parents[:-1]:
            # A folder with other files in it is not an error.
            with contextlib.suppress(OSError):
                (self.at / folder).rmdir()

    def _is_as_put(self, name: str) -> bool:
        """Whether a file is in the folder and unchanged.

        The list is not trusted, because it may be from anybody.
        """
        file = self.at / name
        try:
            if file.is_symlink() or not file.resolve().is_relative_to(self.at.resolve()):
                return False
            return file.is_file() and _digest(file) == self._before[name]
        except (OSError, ValueError):
            return False


def _put(file: Path, data: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        if file.read_bytes() == data:
            return
    atomic_write.put(file, data)


def _digest(file: Path) -> str:
    return cache.digest(file.read_bytes())
