"""Two stretches of points: do they lie at different levels, and how far apart?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.distributions import normal_below, normal_quantile, student_below

Array = NDArray[np.float64]

# So many are had in hand, and looked through; to narrow down further takes longer.
_IN_HAND = 20_000
# A float has 52 bits: halved so often, what is between two bounds is one value.
_MOST_HALVINGS = 60


def ranked_differences(left: Array, right: Array, ranks: Sequence[int]) -> tuple[float, ...]:
    """The differences `right` less `left` of these ranks, the least of which is 0.

    Args:
        left: m finite numbers.
        right: n finite numbers.
        ranks: Each at least 0 and less than m times n.
    """
    if left.size * right.size <= _IN_HAND:
        every = (right[:, np.newaxis] - left[np.newaxis, :]).ravel()
        every.partition(sorted(set(ranks)))
        return tuple(float(every[rank]) for rank in ranks)
    lower, upper = np.sort(left), np.sort(right)
    return tuple(_ranked(lower, upper, rank) for rank in ranks)


def _ranked(left: Array, right: Array, rank: int) -> float:
    """The difference of one rank, of sorted values: found between two bounds that close in.

    How many differences lie below a bound is told by where each value of the right less the
    bound falls among those of the left.
    """
    low, high = float(right[0] - left[-1]), float(right[-1] - left[0])
    # Of the right's values: how many of the left's lie too far above to be counted.
    first, last = np.zeros(right.size, dtype=np.int64), np.full(right.size, left.size)
    below = 0
    for _ in range(_MOST_HALVINGS):
        if int((last - first).sum()) <= _IN_HAND:
            break
        middle = low + (high - low) / 2
        # Those of the left from here on are so near, or above, that the difference is less.
        at = left.searchsorted(right - middle, side="right")
        less = left.size * right.size - int(at.sum())
        if less <= rank:
            low, below, last = middle, less, at
        else:
            high, first = middle, at
    counts = last - first
    starts = np.repeat(first - np.concatenate(([0], counts.cumsum()[:-1])), counts)
    between = np.repeat(right, counts) - left[starts + np.arange(starts.size)]
    return float(np.partition(between, rank - below)[rank - below])


# Of each end, before a mean is taken: what one spiky night in twenty needs.
_TRIMMED = 0.1
# Per median distance from the level.
_NORMAL = 1 / 0.6745
# A side with fewer has no spread of its own that is worth anything.
_OWN_SPREAD = 8


def inflation(n: int, correlation: float) -> float:
    """How many times as uncertain, as a variance, the mean of n correlated values is.

    Source: Bayley & Hammersley, "The effective number of independent
    observations in an autocorrelated time series" (1946), for AR(1).

    >>> inflation(2, 0.5)
    1.5
    """
    if n < 2:
        return 1.0
    # The sum over lags of (1 - lag / n) correlation**lag, added up once and for all.
    left = 1 - correlation
    return 1 + 2 * correlation / left * (1 - (1 - correlation**n) / (n * left))


def correlation(pieces: list[Array]) -> float:
    """From one night to the next within pieces of one level each, in [0, 0.9].

    By ranks of the residuals, so that a spike does not hide or make it. What
    taking off each piece's own level hides is put back.

    Source: the bias, Marriott & Pope (1954); normal scores, van der Waerden.
    """
    return correlation_of([piece - median(piece) for piece in pieces])


def correlation_of(residuals: list[Array]) -> float:
    """As `correlation`, of pieces whose levels are taken off already."""
    n = sum(piece.size for piece in residuals)
    pairs = n - len(residuals)
    if pairs < 3:
        return 0.0
    scores = _normal_scores(n)[np.rint(2 * ranks(np.concatenate(residuals))).astype(int) - 2]
    products = scores[1:] * scores[:-1]
    spread = float(np.mean(scores**2))
    if spread == 0:
        return 0.0
    # Two neighbours that a border parts are no pair.
    products[np.cumsum([piece.size for piece in residuals])[:-1] - 1] = 0.0
    seen = float(products.sum()) / pairs / spread
    return min(max(seen + (1 + 3 * max(seen, 0.0)) * len(residuals) / n, 0.0), 0.9)


@lru_cache(maxsize=64)
def _normal_scores(n: int) -> Array:
    """Of the ranks 1, 1.5, 2, ... n."""
    shares = (np.arange(2, 2 * n + 1) / 2 - 0.5) / n
    return np.array([normal_quantile(share) for share in shares.tolist()])


def ranks(values: Array) -> Array:
    """From 1 up; equal values share the mean of their ranks."""
    order = values.argsort()
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], values.size)
    shared = np.empty(values.size)
    shared[order] = np.repeat((starts + 1 + ends) / 2, ends - starts)
    return shared


class Trimmed(Struct, frozen=True, kw_only=True):
    """A stretch without its extremes.

    Attributes:
        size: How many values it has.
        kept: How many stay.
        mean: Of those that stay.
        square: Winsorised sum of squares about its mean.
    """

    size: int
    kept: int
    mean: float
    square: float


def trimmed(values: Array) -> Trimmed:
    """Leave out a tenth of the values at each end."""
    ordered = np.sort(values)
    cut = int(_TRIMMED * values.size)
    kept = ordered[cut : values.size - cut]
    winsorised = np.clip(ordered, kept[0], kept[-1])
    return Trimmed(
        size=values.size,
        kept=kept.size,
        mean=float(kept.mean()),
        square=float(np.sum((winsorised - winsorised.mean()) ** 2)),
    )


def t_p_value(left: Trimmed, right: Trimmed, *, rho: float, own_error: float) -> float:
    """Two-sided p of equal levels: Student's or Welch's t on trimmed means.

    Welch's, with a spread for each side, where both are long enough to have one
    and it is the more careful of the two; else Student's with a common one.

    Args:
        left: Of one stretch; with `right` at least 3 values.
        right: Of the other.
        rho: Correlation from one value to the next, in [0, 1).
        own_error: Standard error of the difference by what the values' own
            intervals say, or 0; the test's is never taken for less.

    Source: Yuen, "The two-sample trimmed t for unequal population variances" (1974).
    """
    n_l, n_r = left.kept, right.kept
    inflate_l, inflate_r = inflation(left.size, rho), inflation(right.size, rho)
    freedom = float(n_l + n_r - 2)
    common = (left.square + right.square) / freedom
    variance = common * (inflate_l / n_l + inflate_r / n_r)
    if min(left.size, right.size) >= _OWN_SPREAD:
        shares = (
            left.square / (n_l - 1) / n_l * inflate_l,
            right.square / (n_r - 1) / n_r * inflate_r,
        )
        if sum(shares) > variance:
            variance = sum(shares)
            freedom = variance**2 / (shares[0] ** 2 / (n_l - 1) + shares[1] ** 2 / (n_r - 1))
    # Correlated values tell as much about a spread as fewer independent ones.
    freedom = max(freedom * (1 - rho) / (1 + rho), 1.0)
    error = math.sqrt(max(variance, own_error**2))
    difference = abs(right.mean - left.mean)
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return min(1.0, 2 * student_below(freedom, -difference / error))


class RankSum(Struct, frozen=True, kw_only=True):
    """Two stretches by their ranks.

    Attributes:
        m, n: How many values they have.
        excess: How far the ranks of one add up to more or less than their share.
        variance: Of that, were all values independent; ties make it less.
    """

    m: int
    n: int
    excess: float
    variance: float


def rank_sum(left: Array, right: Array) -> RankSum:
    """Rank both stretches together."""
    m, n = left.size, right.size
    both = ranks(np.concatenate((left, right)))
    _, counts = np.unique(both, return_counts=True)
    ties = float(np.sum(counts**3 - counts)) / ((m + n) * (m + n - 1))
    return RankSum(
        m=m,
        n=n,
        excess=abs(float(both[:m].sum()) - m * (m + n + 1) / 2),
        variance=m * n / 12 * (m + n + 1 - ties),
    )


def rank_p_value(told: RankSum, *, rho: float) -> float:
    """Two-sided p of Mann and Whitney's rank test, with ties, by normal approximation."""
    variance = told.variance * _pair_inflation(told.m, told.n, rho)
    if variance <= 0:
        return 1.0
    return min(1.0, 2 * normal_below(-max(told.excess - 0.5, 0.0) / math.sqrt(variance)))


def least_rank_p_value(m: int, n: int, *, rho: float) -> float:
    """The p of sides that do not overlap at all: what the test could say at best."""
    variance = m * n / 12 * (m + n + 1) * _pair_inflation(m, n, rho)
    return 2 * normal_below(-(m * n / 2 - 0.5) / math.sqrt(variance))


def _pair_inflation(m: int, n: int, rho: float) -> float:
    return (inflation(m, rho) / m + inflation(n, rho) / n) / (1 / m + 1 / n)


def hodges_lehmann_shift(left: Array, right: Array) -> float:
    """How far the right lies above the left: the median of all differences.

    Stays put where a mean is drawn by a spike and a median jumps from one of two
    levels to the other.

    Source: Hodges & Lehmann, "Estimates of location based on rank tests" (1963).
    """
    half = left.size * right.size // 2
    if left.size * right.size % 2:
        return ranked_differences(left, right, (half,))[0]
    before, after = ranked_differences(left, right, (half - 1, half))
    return (before + after) / 2


def shift_at_least(left: Array, right: Array, least: float) -> bool:
    """Whether `shift` is at least so much, up or down, without all the differences.

    A median is at least so much where more than half of what it is the middle of is.

    Args:
        left: Any number of values, sorted.
        right: The same, in any order.
        least: Above 0.
    """
    pairs = left.size * right.size
    up = int(left.searchsorted(right - least, side="right").sum())
    down = pairs - int(left.searchsorted(right + least, side="left").sum())
    most = 2 * max(up, down)
    # With exactly half of them above, the middle lies between two differences.
    return abs(hodges_lehmann_shift(left, right)) >= least if most == pairs else most > pairs


def median(values: Array) -> float:
    """As NumPy's, at a quarter of its time: it looks for NaN, which is not here."""
    half = values.size // 2
    if values.size % 2:
        return float(np.partition(values, half)[half])
    middle = np.partition(values, (half - 1, half))
    return float(middle[half - 1] + middle[half]) / 2


def spread_of(off: Array) -> float:
    """Standard deviation of what lies so far off its level, so that spikes are not in it.

    Of normal noise it is this many times the median distance.
    """
    return median(np.abs(off)) * _NORMAL


def shift_bounds(
    left: Array, right: Array, *, rho: float, own_error: float, confidence: float
) -> tuple[float, float] | None:
    """Bounds of `shift`: those the rank test would not refute.

    Widened where the values' own intervals are wider. None where the values are
    too few for even their extremes to do.
    """
    m, n = left.size, right.size
    z = normal_quantile((1 + confidence) / 2)
    spread = math.sqrt(m * n * (m + n + 1) / 12 * _pair_inflation(m, n, rho))
    outside = math.floor(m * n / 2 - z * spread)
    if outside < 1:
        return None
    middle = hodges_lehmann_shift(left, right)
    low, high = ranked_differences(left, right, (outside - 1, m * n - outside))
    return min(low, middle - z * own_error), max(high, middle + z * own_error)


def mean_error(errors: Array) -> float:
    """Standard error of the mean of values that have these, at least one."""
    return float(np.sqrt(np.sum(errors**2))) / errors.size
