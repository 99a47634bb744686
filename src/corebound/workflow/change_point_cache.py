"""The steps that were found in histories before, kept beside the records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corebound.records import cache
from corebound.stats.history.incremental import SegmentCache, SegmentResult

_NAME = "steps"


@contextmanager
def known_steps(records: Path, *, of_all: bool) -> Iterator[SegmentCache]:
    """What was found before; what is found meanwhile is kept in the end, however that comes.

    Args:
        records: The folder of records.
        of_all: Whether all series there are looked at: what none of them asks for is forgotten.
    """
    version = cache.code("stats")
    before = cache.load(dict[str, SegmentResult], records, _NAME, version=version) or {}
    memory = SegmentCache(before)
    is_whole = False
    try:
        yield memory
        is_whole = of_all
    finally:
        # Who was interrupted has looked at some only.
        if is_whole or memory.asked.keys() - before.keys():
            kept = memory.asked if is_whole else before | memory.asked
            cache.keep(kept, records, _NAME, version=version)
