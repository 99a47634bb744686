"""MLPerf's early stopping: how many queries it takes to speak of a tail.

Source: MLCommons, "Early Stopping" in the MLPerf inference rules, and
`loadgen/early_stopping.cc` and `results.cc` of mlcommons/inference. With a share p of
queries to be within a latency and confidence c, `t` queries over it among `h + t` are
few enough where a server whose true share is only p - d would show as few with a
probability of at most 1 - c. That probability is a binomial tail, so a regularized
incomplete beta function. MLPerf uses d = 0 and c = 0.99.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.stats import special

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
