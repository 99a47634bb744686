"""Compare the launches of two cells by their ranks, however far single launches lie away.

Student's t says nothing where one launch in ten takes forty times as long, although every launch of
one cell may be faster than every one of the other. Ranks see that.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

import numpy as np
from msgspec import Struct

from corebound.stats.intervals import Array, Interval, exp

# With four launches a side, the most extreme order of equal launches is too frequent (2 in 70).
LEAST_LAUNCHES = 5
# The confidence of a difference by ranks: it is a second look, after Student's t. At 95 %, equal
# cells would look different in 7 % of comparisons.
CONFIDENCE = 0.99


class RankComparison(Struct, frozen=True, kw_only=True):
    """How the launches of two cells compare by rank.

    Attributes:
        interval: The ratio of baseline time over cell time, at `CONFIDENCE`. Its end nearer to 1
            is a bound; the other one is the most extreme ratio of two launches.
        p_value: The probability that launches of equal cells are at least as far apart.
    """

    interval: Interval
    p_value: float


def compare_ranks(
    logs: Sequence[float], baseline_logs: Sequence[float], *, confidence: float = CONFIDENCE
) -> RankComparison | None:
    """Compare two cells by the ranks of their launches.

    The launches are those of one run: two runs differ by more than their launches show.

    Args:
        logs: Logarithms of the cell's times, one for each launch.
        baseline_logs: The same of its baseline.
        confidence: That of the interval, in (0, 1).

    Returns:
        The comparison; None with fewer than five launches of either.

    Source: Mann & Whitney, "On a test of whether one of two random variables is stochastically
    larger than the other" (1947), exact; the interval, Hodges & Lehmann, "Estimates of location
    based on rank tests" (1963). Ties count half, which makes the test conservative.

    >>> comparison = compare_ranks([0.0, 0.1, 0.2, 0.3, 0.4], [1.0, 1.1, 1.2, 1.3, 1.4])
    >>> round(comparison.p_value, 4), round(math.log(comparison.interval.low), 1)
    (0.0079, 0.6)
    """
    m, n = len(logs), len(baseline_logs)
    if min(m, n) < LEAST_LAUNCHES:
        return None
    differences = np.sort(np.subtract.outer(baseline_logs, logs), axis=None)
    below = sum(differences.searchsorted(0.0, side) for side in ("left", "right")) / 2
    tails = _lower_tails(m, n)
    p_value = min(1.0, 2 * float(tails[math.floor(min(below, m * n - below))]))
    # The shifts that the test does not reject; with few launches it may reject none.
    outside = int(tails.searchsorted((1 - confidence) / 2, side="right"))
    low, high = (
        (float(differences[outside - 1]), float(differences[-outside]))
        if outside
        else (-math.inf, math.inf)
    )
    return RankComparison(
        interval=Interval(low=exp(low), high=exp(high), confidence=confidence), p_value=p_value
    )


@cache
def _lower_tails(m: int, n: int) -> Array:
    """The probability that at most u of the m · n pairs are in order, for each u, by chance.

    Source: the recursion of Mann & Whitney (1947), as a product of polynomials: the number of
    orders with u inversions has the Gaussian binomial coefficient as its generating function.
    """
    counts = [1]
    for i in range(1, m + 1):
        # Multiply by 1 - x^(n + i), then divide by 1 - x^i; integers, so without any rounding.
        product = counts + [0] * (n + i)
        for u in range(len(counts)):
            product[u + n + i] -= counts[u]
        for u in range(i, len(product)):
            product[u] += product[u - i]
        counts = product[: len(counts) + n]
    total = math.comb(m + n, m)
    return np.array([cumulated / total for cumulated in accumulate(counts)])
