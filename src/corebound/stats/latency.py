"""Request latencies: HDR histograms, percentiles and MLPerf's early stopping."""

import math
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from corebound.errors import InputError
from corebound.stats.distributions import beta_below

HIGHEST_US = 3_600_000_000
DIGITS = 3
SHARES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99, "p99_9_ns": 0.999, "max_ns": 1.0}

# Points of a curve for each halving of the remaining share.
POINTS_A_HALVING = 5


class Percentiles(Struct, frozen=True, kw_only=True):
    """Latency percentiles, and the number of requests."""

    count: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p99_9_ns: int
    max_ns: int


class PercentilePoint(Struct, frozen=True, kw_only=True):
    """A share of the requests, in (0, 1], and the latency that they do not exceed."""

    share: float
    latency_ns: int


def encode(durations_ns: ArrayLike) -> str:
    """Encode durations as an HDR histogram; those above one hour are recorded as one hour.

    Args:
        durations_ns: Any number of durations, from 0 up, in any order.

    Raises:
        ValueError: A duration is negative.
    """
    durations = np.asarray(durations_ns, dtype=np.float64)
    if durations.size and durations.min() < 0:
        raise ValueError("a duration is not negative")
    histogram = HdrHistogram(1, HIGHEST_US, DIGITS)
    in_us = np.minimum(np.rint(durations / 1e3), HIGHEST_US).astype(np.int64)
    for value, count in zip(*np.unique(in_us, return_counts=True), strict=True):
        histogram.record_value(int(value), int(count))
    return _text(histogram)


def merge(encoded: Sequence[str]) -> str:
    """Add up several histograms.

    Raises:
        InputError: One of them is not a valid histogram.
    """
    merged = HdrHistogram(1, HIGHEST_US, DIGITS)
    for text in encoded:
        merged.add(_decode(text))
    return _text(merged)


def percentiles(encoded: str) -> Percentiles | None:
    """The percentiles that pages show; None if the histogram is empty.

    Raises:
        InputError: The text is not a valid histogram.
    """
    histogram = _decode(encoded)
    if not histogram.get_total_count():
        return None
    # The library would read its tens of thousands of buckets one at a time.
    cumulative = np.cumsum(_counts(histogram))
    targets = [histogram.get_target_count_at_percentile(share * 100) for share in SHARES.values()]
    known_ns = {
        name: _highest_us(histogram, index) * 1000
        for name, index in zip(SHARES, np.searchsorted(cumulative, targets), strict=True)
    }
    return Percentiles(count=histogram.get_total_count(), **known_ns)


def mean_ns(encoded: str) -> float | None:
    """The mean, from the midpoints of the buckets; None if the histogram is empty.

    Raises:
        InputError: The text is not a valid histogram.
    """
    histogram = _decode(encoded)
    counts = _counts(histogram)
    sum_us = 0
    for index in np.flatnonzero(counts):
        lowest_us = histogram.get_value_from_index(int(index))
        width_us = histogram.get_highest_equivalent_value(lowest_us) - lowest_us + 1
        sum_us += int(counts[index]) * (lowest_us + width_us // 2)
    count = histogram.get_total_count()
    return sum_us / count * 1e3 if count else None


def curve(encoded: str) -> tuple[PercentilePoint, ...]:
    """The points of a percentile chart, denser towards the maximum.

    Returns:
        Shares and latencies, both non-decreasing; the last share is 1. Empty
        if the histogram is empty.

    Raises:
        InputError: The text is not a valid histogram.
    """
    histogram = _decode(encoded)
    counts = _counts(histogram)
    counted = np.flatnonzero(counts)
    if not counted.size:
        return ()
    reached = 100.0 * np.cumsum(counts[counted]) / histogram.get_total_count()
    levels, indices = [0.0], [0]
    while indices[-1] < counted.size - 1:
        levels.append(_next_level(levels[-1]))
        indices.append(int(np.searchsorted(reached, levels[-1])))
    # The last bucket is the one of the previous level, and of 100 %.
    ends = zip((*levels, 100.0), (*indices, indices[-1]), strict=True)
    return tuple(
        PercentilePoint(share=level / 100, latency_ns=_highest_us(histogram, counted[index]) * 1000)
        for level, index in ends
    )


def _next_level(level: float) -> float:
    """The next share of a curve in per cent, in (0, 100).

    Source: HdrHistogram's percentile iterator, which itself reads the buckets one by one.
    """
    halvings = math.log(100 / (100.0 - level)) / math.log(2) + 1
    return level + 100.0 / (POINTS_A_HALVING * math.pow(2, halvings))


def throughput_per_s(ok: int, duration_ns: int) -> float | None:
    """Successful requests per second of a launch; None if its duration is 0.

    >>> throughput_per_s(300, 2_000_000_000)
    150.0
    """
    return ok / duration_ns * 1e9 if duration_ns > 0 else None


def _counts(histogram: HdrHistogram) -> NDArray[np.int64]:
    """The number of values in each bucket, from the lowest bucket."""
    return np.ctypeslib.as_array(histogram.counts).astype(np.int64)


def _highest_us(histogram: HdrHistogram, index: np.int64) -> int:
    """The upper end of a bucket."""
    highest_us: int = histogram.get_highest_equivalent_value(
        histogram.get_value_from_index(int(index))
    )
    return highest_us


def _text(histogram: HdrHistogram) -> str:
    encoded: bytes = histogram.encode()
    return encoded.decode("ascii")


def _decode(encoded: str) -> HdrHistogram:
    try:
        return HdrHistogram.decode(encoded.encode())
    except (HdrCookieException, HdrLengthException, zlib.error, ValueError, TypeError) as error:
        raise InputError(
            what=f"not an HDR histogram ({error}).",
            where="a record's latencies",
            fix="The record was modified after it was written: restore it, or measure again.",
        ) from error


MLPERF_CONFIDENCE = 0.99


class PercentileBound(Struct, frozen=True, kw_only=True):
    """An upper bound of a percentile, with MLPerf's confidence.

    Attributes:
        needed: The least number of queries that allows an estimate.
        value: In the unit of the latencies; None with fewer queries.
        discarded: How many queries exceed it; None with fewer queries.
    """

    needed: int
    value: float | None
    discarded: int | None


def least_within(over: int, *, share: float) -> int:
    """How many queries must stay within the latency if `over` others exceed it.

    Args:
        over: Queries that exceed the latency, from 0 up.
        share: The percentile as a share, in (0, 1).

    Raises:
        ValueError: An argument lies outside its range.

    >>> least_within(0, share=0.99)
    459
    """
    if over < 0 or not 0 < share < 1:
        raise ValueError("queries are counted from 0, and shares lie between 0 and 1")

    def few_enough(within: int) -> bool:
        return beta_below(within, over + 1, share) <= 1 - MLPERF_CONFIDENCE

    high = 1
    while not few_enough(high):
        high *= 2
    return bisect_left(range(high), 1, lo=high // 2 + 1, key=few_enough)


def bound_percentile(latencies: Sequence[float], *, share: float) -> PercentileBound:
    """Bound a percentile from above: the largest value that must not be discarded.

    Args:
        latencies: n, in any order and unit; infinite if a query had no response.
        share: The percentile as a share, in (0, 1).

    >>> bound_percentile(range(1, 65), share=0.9)
    PercentileBound(needed=64, value=64, discarded=0)
    """
    n = len(latencies)
    needed = least_within(1, share=share) + 1
    if n < needed:
        return PercentileBound(needed=needed, value=None, discarded=None)
    # least_within(t) + t grows with t: find the greatest t for which the sum is at most n.
    after = bisect_right(range(n), n, lo=2, key=lambda t: least_within(t, share=share) + t)
    greatest = after - 1
    return PercentileBound(
        needed=needed, value=sorted(latencies)[n - greatest], discarded=greatest - 1
    )
