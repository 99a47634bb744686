"""Latencies of many requests: HDR histograms, percentiles, MLPerf's early stopping."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from corebound.errors import InputError
from corebound.stats import special

HIGHEST_US = 3_600_000_000
DIGITS = 3
SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)

# Points of a curve each time that the share left over is halved.
POINTS_A_HALVING = 5


class Percentiles(Struct, frozen=True, kw_only=True):
    """Latencies that a share of the requests stayed within, and how many there were."""

    count: int
    p50_ns: int
    p90_ns: int
    p99_ns: int
    p99_9_ns: int
    max_ns: int


class PercentilePoint(Struct, frozen=True, kw_only=True):
    """A share of the requests, in (0, 1], and the latency that they stayed within."""

    share: float
    latency_ns: int


def encode(durations_ns: ArrayLike) -> str:
    """Count durations; those above an hour count as one.

    Args:
        durations_ns: Any number of them, from 0 up, in any order.

    Raises:
        ValueError: One is negative.
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
    """One histogram of all that several have counted.

    Raises:
        InputError: One of them is no histogram.
    """
    merged = HdrHistogram(1, HIGHEST_US, DIGITS)
    for text in encoded:
        merged.add(_decode(text))
    return _text(merged)


def percentiles(encoded: str) -> Percentiles | None:
    """The percentiles that pages show; None where nothing was counted.

    Raises:
        InputError: It is no histogram.
    """
    histogram = _decode(encoded)
    if not histogram.get_total_count():
        return None
    # Of its tens of thousands of classes the library reads one at a time.
    up_to = np.cumsum(_counts(histogram))
    wanted = [histogram.get_target_count_at_percentile(share * 100) for share in SHARES]
    p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns = (
        _highest_us(histogram, index) * 1000 for index in np.searchsorted(up_to, wanted)
    )
    return Percentiles(
        count=histogram.get_total_count(),
        p50_ns=p50_ns,
        p90_ns=p90_ns,
        p99_ns=p99_ns,
        p99_9_ns=p99_9_ns,
        max_ns=max_ns,
    )


def mean_ns(encoded: str) -> float | None:
    """The mean, by the middles of the classes; None where nothing was counted.

    Raises:
        InputError: It is no histogram.
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
    """The points of a percentile chart, the closer the nearer they are to the worst.

    Returns:
        Shares and latencies, both never falling; the last has a share of 1. Empty
        where nothing was counted.

    Raises:
        InputError: It is no histogram.
    """
    histogram = _decode(encoded)
    counts = _counts(histogram)
    counted = np.flatnonzero(counts)
    if not counted.size:
        return ()
    reached = 100.0 * np.cumsum(counts[counted]) / histogram.get_total_count()
    levels, places = [0.0], [0]
    while places[-1] < counted.size - 1:
        levels.append(_next_level(levels[-1]))
        places.append(int(np.searchsorted(reached, levels[-1])))
    # The last class is that of the level before, and of all.
    ends = zip((*levels, 100.0), (*places, places[-1]), strict=True)
    return tuple(
        PercentilePoint(share=level / 100, latency_ns=_highest_us(histogram, counted[place]) * 1000)
        for level, place in ends
    )


def _next_level(level: float) -> float:
    """The next share of a curve in per cent, in (0, 100).

    Source: HdrHistogram's percentile iterator, which itself reads one class after the other.
    """
    halvings = math.log(100 / (100.0 - level)) / math.log(2) + 1
    return level + 100.0 / (POINTS_A_HALVING * math.pow(2, halvings))


def throughput_per_s(ok: int, duration_ns: int) -> float | None:
    """Good answers a second of a launch; None where it took no time.

    >>> throughput_per_s(300, 2_000_000_000)
    150.0
    """
    return ok / duration_ns * 1e9 if duration_ns > 0 else None


def _counts(histogram: HdrHistogram) -> NDArray[np.int64]:
    """How many values each class has, from the lowest."""
    return np.ctypeslib.as_array(histogram.counts).astype(np.int64)


def _highest_us(histogram: HdrHistogram, index: np.int64) -> int:
    """The upper end of a class."""
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
            what=f"this is no HDR histogram ({error}).",
            where="a record's latencies",
            mend="The record was changed since it was written: run again, or restore it.",
        ) from error


CONFIDENCE = 0.99


class Estimate(Struct, frozen=True, kw_only=True):
    """A latency that the percentile does not exceed, with MLPerf's confidence.

    Attributes:
        needed: The least queries there can be an estimate from.
        value: In the unit of the latencies; None where there are fewer.
        discarded: The queries above it; None likewise.
    """

    needed: int
    value: float | None
    discarded: int | None


def least_within(
    over: int, *, share: float, tolerance: float = 0.0, confidence: float = CONFIDENCE
) -> int:
    """How many queries have to be within the latency for `over` others to be few enough.

    Args:
        over: Queries over the latency, from 0 up.
        share: The percentile as a share, in (0, 1).
        tolerance: How much less than `share` is acceptable, below `share`.
        confidence: In (0, 1).

    Raises:
        ValueError: An argument lies outside its range.

    >>> least_within(0, share=0.99)
    459
    """
    if over < 0 or not 0 < share - tolerance <= share < 1 or not 0 < confidence < 1:
        raise ValueError("queries are counted from 0, and shares lie between 0 and 1")

    def few_enough(within: int) -> bool:
        chance = special.betainc(within, over + 1, share - tolerance)
        return bool(chance <= 1 - confidence)

    high = 1
    while not few_enough(high):
        high *= 2
    low = high // 2 + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if few_enough(middle) else (middle + 1, high)
    return low


def estimate(latencies: Sequence[float], *, share: float) -> Estimate:
    """Estimate a percentile from above: the largest value that may not be discarded.

    Args:
        latencies: n, in any order and unit; infinite where a query was never answered.
        share: The percentile as a share, in (0, 1).

    >>> estimate(range(1, 65), share=0.9)
    Estimate(needed=64, value=64, discarded=0)
    """
    n = len(latencies)
    needed = least_within(1, share=share) + 1
    if n < needed:
        return Estimate(needed=needed, value=None, discarded=None)
    # least_within(t) + t grows with t: the greatest t that still fits into n.
    low, high = 1, n
    while low < high:
        middle = (low + high + 1) // 2
        fits = least_within(middle, share=share) + middle <= n
        low, high = (middle, high) if fits else (low, middle - 1)
    return Estimate(needed=needed, value=sorted(latencies)[n - low], discarded=low - 1)
