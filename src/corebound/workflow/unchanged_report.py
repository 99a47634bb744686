"""Whether a report has anything new to show: if not, its site stays as it is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from corebound.errors import encodable
from corebound.records import cache
from corebound.records.cache import CacheFile
from corebound.report import site


class ReportStamp:
    """A hash of everything that a site is made from: records, decisions, options, day and code.

    Files count as unchanged if size and modification time are, as in the index of runs.
    """

    def __init__(
        self, records: Path, out: Path, *, status: Path, options: Sequence[str], day: str
    ) -> None:
        """Take the inputs of a report as they are now, before anything is read from them."""
        self._out = out
        self._file = CacheFile(
            str,
            records,
            f"report-{cache.digest(os.fsencode(out.resolve()))}",
            version=cache.digest(cache.code("").encode(), *site.sources()),
        )
        inputs = (str(records), day, *options, state_of((records, status)))
        self._inputs = cache.digest(*(encodable(text).encode() for text in inputs))

    def is_current(self) -> bool:
        """Whether the site was made from these inputs, and nobody has touched it since."""
        return self._file.load() == self._inputs and site.SiteDirectory(self._out).is_intact()

    def keep(self) -> None:
        """Remember that the site is made from these inputs."""
        self._file.keep(self._inputs)


def state_of(paths: Iterable[Path]) -> str:
    """A hash of name, size and modification time of every file.

    Files that vanish meanwhile are skipped.
    """
    hasher = hashlib.sha256()
    for path in paths:
        for file in _files(path):
            try:
                status = file.stat()
            except OSError:
                continue
            hasher.update(
                f"{encodable(str(file))} {status.st_size} {status.st_mtime_ns}\n".encode()
            )
    return hasher.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """The path itself, or every file below it, in order; one folder's names are in memory."""
    if path.is_file():
        yield path
    if path.is_dir() and not path.is_symlink():
        for each in sorted(path.iterdir()):
            # Hidden files are incomplete; `cache` holds data derived from files read before.
            if not each.name.startswith(".") and not (each.name == "cache" and each.is_dir()):
                yield from _files(each)
