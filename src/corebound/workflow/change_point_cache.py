"""A cache of the change points found in histories, kept beside the records."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corebound.records import cache
from corebound.records.cache import CacheFile
from corebound.stats.history.incremental import SegmentCache, SegmentResult


@contextmanager
def cached_change_points(records: Path, *, all_series: bool) -> Iterator[SegmentCache]:
    """Load the cached change points; save the new ones on exit, even after an error.

    Args:
        all_series: Whether the caller analyses all series of the folder. If so, entries that no
            series requests are removed from the cache.
    """
    cache_file = CacheFile(dict[str, SegmentResult], records, "steps", version=cache.code("stats"))
    cached = cache_file.load() or {}
    segment_cache = SegmentCache(cached)
    is_complete = False
    try:
        yield segment_cache
        is_complete = all_series
    finally:
        # An interrupted analysis has seen only some of the series.
        kept = segment_cache.asked if is_complete else cached | segment_cache.asked
        # A key determines its result.
        if kept.keys() != cached.keys():
            cache_file.keep(kept)
