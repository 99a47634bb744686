"""A cache of the change points found in histories, kept beside the records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corebound.records import cache
from corebound.stats.history.incremental import SegmentCache, SegmentResult

_NAME = "steps"


@contextmanager
def known_steps(records: Path, *, of_all: bool) -> Iterator[SegmentCache]:
    """Load the cached change points; save the new ones on exit, even after an error.

    Args:
        records: The folder of records.
        of_all: Whether the caller analyses all series of the folder. If so, entries that no
            series requests are removed from the cache.
    """
    version = cache.code("stats")
    before = cache.load(dict[str, SegmentResult], records, _NAME, version=version) or {}
    memory = SegmentCache(before)
    is_whole = False
    try:
        yield memory
        is_whole = of_all
    finally:
        # An interrupted analysis has seen only some of the series.
        if is_whole or memory.asked.keys() - before.keys():
            kept = memory.asked if is_whole else before | memory.asked
            cache.keep(kept, records, _NAME, version=version)
