"""Which files of a site need not be made again, for nothing that they follow from has changed."""

from __future__ import annotations

import os
from pathlib import Path

from corebound.records import cache


class Shelf:
    """Remembers what each file was made from, and what it then was.

    Kept beside the records, one for each folder a site is written to.
    """

    def __init__(self, out: Path, kept: Path | None, templates: Path) -> None:
        """Take the site's folder, and that of the records; None: nothing is remembered."""
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
        """Whether the site has this file as it was made from what this key is a hash of."""
        # Whoever makes it all the same has to be remembered too.
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
        """Keep what there is now."""
        if self._kept is not None and self._now != self._before:
            cache.keep(self._now, self._kept, self._name, version=self._version)

    def _is_whole(self, path: str, digest: str) -> bool:
        try:
            return cache.digest((self._out / path).read_bytes()) == digest
        except OSError:
            return False
