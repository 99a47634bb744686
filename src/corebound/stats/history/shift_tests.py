"""Two-sample tests and shift estimates: do two sets of points lie at different levels?"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from corebound.stats.distributions import normal_quantile, student_below
from corebound.stats.intervals import Array

# This many differences are held in memory; narrowing down further would take longer.
_IN_HAND = 20_000
# A float has 52 bits; after this many halvings only one value is left between the bounds.
_MOST_HALVINGS = 60


def ranked_differences(left: Array, right: Array, ranks: Sequence[int]) -> tuple[float, ...]:
    """The differences `right` minus `left` of these ranks, where the least has rank 0.

    Args:
        left: m finite numbers.
        right: n finite numbers.
        ranks: Each at least 0 and less than m times n.
    """
    if left.size * right.size <= _IN_HAND:
        all_values = (right[:, np.newaxis] - left[np.newaxis, :]).ravel()
        all_values.partition(sorted(set(ranks)))
        return tuple(float(all_values[rank]) for rank in ranks)
    lower, upper = np.sort(left), np.sort(right)
    return tuple(_ranked(lower, upper, rank) for rank in ranks)


def _ranked(left: Array, right: Array, rank: int) -> float:
    """The difference of one rank, of sorted values, found by bisection between two bounds.

    The number of differences below a bound follows from the position of each value of the
    right, minus the bound, among those of the left.
    """
    low, high = float(right[0] - left[-1]), float(right[-1] - left[0])
    # For each value of the right: how many of the left's lie too far above to be counted.
    first, last = np.zeros(right.size, dtype=np.int64), np.full(right.size, left.size)
    below = 0
    for _ in range(_MOST_HALVINGS):
        if int((last - first).sum()) <= _IN_HAND:
            break
        middle = low + (high - low) / 2
        # From here on, values of the left are so close, or above, that the difference is less.
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


# The share trimmed at each end before a mean is taken: enough for one spike in twenty points.
_TRIMMED = 0.1
# Standard deviations per median distance from the level.
_NORMAL = 1 / 0.6745
# With fewer values, a side's own spread is not reliable.
_OWN_SPREAD = 8


def inflation(n: int, correlation: float) -> float:
    """The variance of the mean of n correlated values, relative to independent values.

    Source: Bayley & Hammersley, "The effective number of independent
    observations in an autocorrelated time series" (1946), for AR(1).

    >>> inflation(2, 0.5)
    1.5
    """
    if n < 2:
        return 1.0
    # Closed form of the sum over lags of (1 - lag / n) correlation**lag.
    left = 1 - correlation
    return 1 + 2 * correlation / left * (1 - (1 - correlation**n) / (n * left))


def correlation(pieces: list[Array]) -> float:
    """Correlation of successive points, within pieces of one level each, in [0, 0.9].

    It uses ranks of the residuals, so that a spike neither hides nor causes it. It corrects
    the bias from subtracting each piece's own level.

    Source: the bias, Marriott & Pope (1954); normal scores, van der Waerden.
    """
    return correlation_of([piece - median(piece) for piece in pieces])


def correlation_of(residuals: list[Array]) -> float:
    """The same as `correlation`, for pieces whose levels are already subtracted."""
    n = sum(piece.size for piece in residuals)
    pairs = n - len(residuals)
    if pairs < 3:
        return 0.0
    scores = _normal_scores(n)[np.rint(2 * ranks(np.concatenate(residuals))).astype(int) - 2]
    products = scores[1:] * scores[:-1]
    spread = float(np.mean(scores**2))
    if spread == 0:
        return 0.0
    # Two neighbours in different pieces are not a pair.
    products[np.cumsum([piece.size for piece in residuals])[:-1] - 1] = 0.0
    observed = float(products.sum()) / pairs / spread
    return min(max(observed + (1 + 3 * max(observed, 0.0)) * len(residuals) / n, 0.0), 0.9)


@lru_cache(maxsize=64)
def _normal_scores(n: int) -> Array:
    """Normal scores of the ranks 1, 1.5, 2, ... n."""
    shares = (np.arange(2, 2 * n + 1) / 2 - 0.5) / n
    return np.array([normal_quantile(share) for share in shares.tolist()])


def ranks(values: Array) -> Array:
    """Ranks from 1 up; equal values share the mean of their ranks."""
    order = values.argsort()
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    ends = np.append(starts[1:], values.size)
    shared = np.empty(values.size)
    shared[order] = np.repeat((starts + 1 + ends) / 2, ends - starts)
    return shared


class Trimmed(Struct, frozen=True, kw_only=True):
    """A sample without its extremes.

    Attributes:
        size: Number of values.
        kept: Number of values kept.
        mean: Mean of the values kept.
        square: Winsorised sum of squares about its mean.
    """

    size: int
    kept: int
    mean: float
    square: float


def trimmed(values: Array) -> Trimmed:
    """Trim a tenth of the values at each end."""
    ordered = np.sort(values)
    cut = int(_TRIMMED * values.size)
    remaining = ordered[cut : values.size - cut]
    winsorised = np.clip(ordered, remaining[0], remaining[-1])
    return Trimmed(
        size=values.size,
        kept=remaining.size,
        mean=float(remaining.mean()),
        square=float(np.sum((winsorised - winsorised.mean()) ** 2)),
    )


def t_p_value(left: Trimmed, right: Trimmed, *, rho: float, own_error: float) -> float:
    """Two-sided p-value of equal levels: Student's or Welch's t on trimmed means.

    Welch's, with a spread for each side, is used if both sides are long enough for their own
    spread and it has the larger variance. Otherwise Student's with a common spread is used.

    Args:
        left: Of the first sample; with `right` at least 3 values.
        right: Of the second sample.
        rho: Correlation from one value to the next, in [0, 1).
        own_error: Standard error of the difference from the values' own
            intervals, or 0; the lower limit of the test's error.

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
    # Correlated values determine a spread as well as fewer independent ones.
    freedom = max(freedom * (1 - rho) / (1 + rho), 1.0)
    error = math.sqrt(max(variance, own_error**2))
    difference = abs(right.mean - left.mean)
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return min(1.0, 2 * student_below(freedom, -difference / error))


def _pair_inflation(m: int, n: int, rho: float) -> float:
    return (inflation(m, rho) / m + inflation(n, rho) / n) / (1 / m + 1 / n)


def hodges_lehmann_shift(left: Array, right: Array) -> float:
    """How far the right lies above the left: the median of all differences.

    It is stable where a spike would move a mean, and where a median would jump from one of two
    levels to the other.

    Source: Hodges & Lehmann, "Estimates of location based on rank tests" (1963).
    """
    half = left.size * right.size // 2
    if left.size * right.size % 2:
        return ranked_differences(left, right, (half,))[0]
    before, after = ranked_differences(left, right, (half - 1, half))
    return (before + after) / 2


def shift_at_least(left: Array, right: Array, least: float) -> bool:
    """Whether `hodges_lehmann_shift` is at least this much, up or down, without all differences.

    A median is at least this much if more than half of the values are.

    Args:
        left: Any number of values, sorted.
        right: Any number of values, in any order.
        least: Above 0.
    """
    pairs = left.size * right.size
    up = int(left.searchsorted(right - least, side="right").sum())
    down = pairs - int(left.searchsorted(right + least, side="left").sum())
    most = 2 * max(up, down)
    # With exactly half of them above, the median lies between two differences.
    return abs(hodges_lehmann_shift(left, right)) >= least if most == pairs else most > pairs


def median(values: Array) -> float:
    """The median, in a quarter of the time of NumPy's, which checks for NaN; values have none."""
    half = values.size // 2
    if values.size % 2:
        return float(np.partition(values, half)[half])
    middle = np.partition(values, (half - 1, half))
    # As Python's numbers, whose sum may overflow without a warning.
    return (float(middle[half - 1]) + float(middle[half])) / 2


def spread_of(off: Array) -> float:
    """Standard deviation from residuals, by their median distance, so spikes do not affect it.

    The factor is that of normal noise.
    """
    return median(np.abs(off)) * _NORMAL


def shift_bounds(
    left: Array, right: Array, *, rho: float, own_error: float, confidence: float
) -> tuple[float, float] | None:
    """Confidence bounds of `hodges_lehmann_shift`: the shifts that the rank test does not reject.

    They are widened if the values' own intervals are wider. None if there are too few values
    for even the extremes to be bounds.
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
    """Standard error of the mean of values with these standard errors, at least one."""
    return float(np.sqrt(np.sum(errors**2))) / errors.size
