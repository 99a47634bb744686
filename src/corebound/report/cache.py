"""What the site keeps between reports: hashes of its files' inputs, and compiled templates."""

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import msgspec
from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket
from msgspec.structs import replace

from corebound.records import atomic_write, cache, codec
from corebound.records.cache import CacheFile
from corebound.records.history import HistoryPoints, Series

_NO_POINTS = HistoryPoints.of(())

# What unpickling and loading damaged data raises.
_DAMAGED = (
    OSError, EOFError, pickle.UnpicklingError, ArithmeticError, AttributeError, ImportError,
    LookupError, MemoryError, TypeError, ValueError,
)  # fmt: skip


class PageCache:
    """Remembers a hash of each file's inputs, and a hash of its content.

    It is stored beside the records, once for each folder that a site is written to.
    """

    def __init__(self, out: Path, records: Path | None, templates: Path) -> None:
        """Open the cache for a site folder; without a folder of records nothing is cached."""
        self._out = out
        self._file: CacheFile[dict[str, tuple[str, str]]] | None = None
        if records is not None:
            self._file = CacheFile(
                dict[str, tuple[str, str]],
                records,
                f"site-{cache.digest(os.fsencode(out.resolve()))}",
                version=cache.code(
                    "report", "present", "analysis", "stats", "records", "units.py", templates
                ),
            )
        self._before = (self._file and self._file.load()) or {}
        self._now: dict[str, tuple[str, str]] = {}
        self._keys: dict[str, str] = {}

    def is_fresh(self, path: str, key: str) -> bool:
        """Whether the site has this file, unchanged, made from inputs with this key."""
        # Remembered even if the file is up to date, because it may still be written again.
        self._keys[path] = key
        entry = self._before.get(path)
        if entry is not None and entry[0] == key and self._is_unchanged(path, entry[1]):
            self._now[path] = entry
            return True
        return False

    def record(self, path: str, data: bytes) -> None:
        """Remember a file that was made."""
        if path in self._keys:
            self._now[path] = self._keys[path], cache.digest(data)

    def close(self) -> None:
        """Save the cache."""
        if self._file is not None and self._now != self._before:
            self._file.keep(self._now)

    def _is_unchanged(self, path: str, digest: str) -> bool:
        try:
            return cache.digest(atomic_write.read(self._out / path)) == digest
        except OSError:
            return False


class SeriesDigests:
    """Hashes of everything that a series has, except for its launches, which no page shows."""

    def __init__(self) -> None:
        """Start empty."""
        # Most series share their columns, and columns their items. Each is kept with its hash, so
        # that its id stays valid.
        self._by_id: dict[int, tuple[object, bytes]] = {}

    def of(self, series: Series) -> str:
        """A hash of one series."""
        points = series.points
        return cache.digest(
            msgspec.json.encode(replace(series, points=_NO_POINTS), enc_hook=codec.encode_points),
            self._of_column(points.moments),
            self._of_column(points.environment_keys),
            repr(points.missing).encode(),
            *(column.tobytes() for column in (points.values, points.lows, points.highs)),
        )

    def _of_column(self, column: tuple[object, ...]) -> bytes:
        return self._shared(column, lambda: b"".join(map(self._of_item, column)))

    def _of_item(self, item: object) -> bytes:
        return self._shared(item, lambda: repr(item).encode())

    def _shared(self, item: object, content: Callable[[], bytes]) -> bytes:
        """The hash of an object's content, which is computed once."""
        known = self._by_id.get(id(item))
        if known is None:
            known = self._by_id[id(item)] = item, cache.digest(content()).encode()
        return known[1]


class TemplateCache(FileSystemBytecodeCache):
    """Stores compiled templates; compiling them takes a fifth of the time of a small report.

    The cache contains code, which runs unchecked. It therefore belongs into the user's own cache
    folder, never beside records, which may come from anybody. An entry that cannot be read or
    written only costs the time to compile.
    """

    def __init__(self, folder: Path) -> None:
        """Use this folder, which is corebound's cache folder of this user."""
        super().__init__(str(folder / "cache"), "template-%s")
        # Compiling a template applies filters to its constants, so the cache depends on their code.
        self._version = cache.code("report/render.py")

    def get_source_checksum(self, source: str) -> str:
        """A hash of a template's source and of the code that compiles it."""
        return super().get_source_checksum(f"{self._version}{source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template's bytecode; a damaged entry is ignored."""
        try:
            super().load_bytecode(bucket)
        except _DAMAGED:
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Store a template's bytecode if the folder can be written."""
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
