"""The folder of a site: files that appear whole, and nothing left of a site that was there."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from corebound.records import atomic_write, cache

# Hidden, so that it is not published.
LIST = ".corebound-files.json"


class Folder:
    """Puts files into a folder, and in the end removes those of the site before.

    Which these are stands in the folder itself, each with a hash: what somebody else put there,
    or has put in place of a file, stays.

    Attributes:
        at: Where it is.
    """

    def __init__(self, at: Path) -> None:
        """Take the folder; it is made with the first file."""
        self.at = at
        self._before: dict[str, str] = {}
        with contextlib.suppress(OSError, msgspec.DecodeError):
            self._before = msgspec.json.decode((at / LIST).read_bytes(), type=dict[str, str])
        self._now: dict[str, str] = {}

    def put(self, name: str, data: bytes) -> None:
        """Write a file in one step, if it is not so already.

        Raises:
            OSError: it cannot be written.
        """
        _put(self.at / name, data)
        self._now[name] = cache.digest(data)

    def keep(self, name: str) -> None:
        """Have a file stay that is there as it is to be.

        Raises:
            OSError: it cannot be read.
        """
        self._now[name] = self._before.get(name) or _digest(self.at / name)

    def close(self) -> None:
        """Remove what was put here before and not now.

        Raises:
            OSError: it cannot be removed.
        """
        for name in sorted(self._before.keys() - self._now.keys()):
            if self._is_as_put(name):
                self._remove(name)
        # Last: of one that ends before, what it would have removed is known still.
        _put(self.at / LIST, msgspec.json.encode(self._now, order="sorted"))

    def _remove(self, name: str) -> None:
        file = self.at / name
        file.unlink()
        for folder in file.relative_to(self.at).parents[:-1]:
            # One that holds something else is no error.
            with contextlib.suppress(OSError):
                (self.at / folder).rmdir()

    def _is_as_put(self, name: str) -> bool:
        """Whether a file is in the folder and as it was; the list of them may be from anybody."""
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
