"""Whether a report has anything new to show: if not, its site stays as it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from corebound.errors import encodable
from corebound.records import cache
from corebound.report import site


class ReportStamp:
    """A hash of everything that a site is made from: records, decisions, options, day and code.

    Files count as unchanged if size and modification time are, as in the index of runs.
    """

    def __init__(
        self, records: Path, out: Path, *, status: Path, options: Sequence[str], day: str
    ) -> None:
        """Take the inputs of a report as they are now, before anything is read from them."""
        self._records, self._out = records, out
        self._name = f"report-{cache.digest(os.fsencode(out.resolve()))}"
        inputs = (str(records), day, *options, *map(repr, sorted(state_of((records, status)))))
        self._version = cache.digest(cache.code("").encode(), *site.sources())
        self._inputs = cache.digest(*(encodable(text).encode() for text in inputs))

    def is_current(self) -> bool:
        """Whether the site was made from these inputs, and nobody has touched it since."""
        known = cache.load(str, self._records, self._name, version=self._version)
        return known == self._inputs and site.SiteDirectory(self._out).is_intact()

    def keep(self) -> None:
        """Remember that the site is made from these inputs."""
        cache.keep(self._inputs, self._records, self._name, version=self._version)


def state_of(paths: Iterable[Path]) -> frozenset[tuple[str, int, int]]:
    """Name, size and modification time of every file; files that vanish meanwhile are skipped."""
    files = set()
    for path in paths:
        for file in (path, *path.rglob("*")):
            # Hidden files are incomplete; `cache` holds data derived from files read before.
            parts = file.relative_to(path).parts
            if "cache" in parts[:-1] or any(part.startswith(".") for part in parts):
                continue
            try:
                status = file.stat()
            except OSError:
                continue
            if file.is_file():
                files.add((str(file), status.st_size, status.st_mtime_ns))
    return frozenset(files)
