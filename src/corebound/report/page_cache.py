"""Finds the files of a site that need not be made again because their inputs did not change."""

from __future__ import annotations

import os
from pathlib import Path

from corebound.records import cache


class Shelf:
    """Remembers a hash of each file's inputs, and a hash of its content.

    It is stored beside the records, once for each folder that a site is written to.
    """

    def __init__(self, out: Path, kept: Path | None, templates: Path) -> None:
        """Open the cache for a site folder; `kept` is the records folder, None for no cache."""
        self._out = out
        self._kept = kept
        self._name = f"site-{cache.digest(os.fsencode(out.resolve()))}"
        self._version = cache.code("report", "analysis", "stats", "records", "units.py", templates)
        self._before: dict[str, tuple[str, str]] = {}
        if kept is not None:
            kind = dict[str, tuple[str, str]]
            self._before = cache.load(kind, kept, self._name, version=self._version) or {}
        self._now: dict[str, tuple[str, str]] = {}
        self._wanted: dict[str, str] = {}

    def holds(self, path: str, key: str) -> bool:
        """Whether the site has this file, unchanged, made from inputs with this key."""
        # Remembered even if the file is up to date, because it may still be written again.
        self._wanted[path] = key
        known = self._before.get(path)
        if known is not None and known[0] == key and self._is_whole(path, known[1]):
            self._now[path] = known
            return True
        return False

    def took(self, path: str, data: bytes) -> None:
        """Remember a file that was made."""
        if path in self._wanted:
            self._now[path] = self._wanted[path], cache.digest(data)

    def close(self) -> None:
        """Save the cache."""
        if self._kept is not None and self._now != self._before:
            cache.keep(self._now, self._kept, self._name, version=self._version)

    def _is_whole(self, path: str, digest: str) -> bool:
        try:
            return cache.digest((self._out / path).read_bytes()) == digest
        except OSError:
            return False
