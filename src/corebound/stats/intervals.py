"""Confidence intervals, geometric means and the adaptive trimmed mean."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.distributions import (
    chi_squared_upper_quantile,
    normal_quantile,
    student_quantile,
)

# The confidence of every interval that a verdict is based on.
CONFIDENCE = 0.95
# From the middle of a normal value's interval of that confidence to its ends, in standard errors.
NORMAL_REACH = normal_quantile((1 + CONFIDENCE) / 2)
# An interval whose ends differ by more than this factor is not usable. A ratio may then be anything
# from 2 times slower to 2 times faster, and a factor of 2 is what a shared core alone can cost.
_MOST_FACTOR = 4.0
# An interval of a ratio that excludes 1 gives the direction of a difference however wide it is, and
# an interval of a spread is wide by nature: of six launches, its ends differ by a factor of 4.
# Beyond these factors, the far end of these says nothing either.
_MOST_FACTOR_OF_DIFFERENCE, _MOST_FACTOR_OF_SPREAD = 1_000.0, 100.0


Ends = tuple[float, float]


class Interval(Struct, frozen=True, kw_only=True):
    """The range that holds a quantity with the given confidence, in the quantity's own unit."""

    low: float
    high: float
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("an interval's low end is not above its high end")

    @property
    def ends(self) -> Ends:
        """The low and the high end."""
        return self.low, self.high

    @property
    def relative_half_width(self) -> float:
        """How far the ends lie from their geometric mean, as a share of it.

        0.02 means that the value is known to within 2 % either way. Ratios and times are
        positive and vary by factors, so the centre is the geometric mean. The result is
        infinite if the low end is 0.

        >>> round(Interval(low=0.98, high=1.02, confidence=0.95).relative_half_width, 3)
        0.02
        """
        if self.low == self.high:
            return 0.0
        return math.sqrt(self.high / self.low) - 1.0 if self.low > 0 else math.inf

    def contains(self, value: float) -> bool:
        """Whether the value lies inside the interval, ends included."""
        return self.low <= value <= self.high

    def is_beyond(self, margin: float) -> bool:
        """Whether all of an interval of a ratio is further from 1 than the margin, a share.

        >>> Interval(low=2.8, high=3.2, confidence=0.95).is_beyond(0.02)
        True
        >>> Interval(low=0.9, high=0.985, confidence=0.95).is_beyond(0.02)
        False
        """
        return self.low > 1 + margin or self.high < 1 / (1 + margin)


def is_usable(low: float, high: float) -> bool:
    """Whether an interval of an amount from 0 up is narrow enough to be worth showing.

    >>> is_usable(10.0, 40.0), is_usable(10.0, 41.0), is_usable(0.0, 0.0)
    (True, False, True)
    """
    return _spans_at_most(_MOST_FACTOR, low, high)


def is_usable_ratio(low: float, high: float) -> bool:
    """Whether an interval of a ratio is worth showing: narrow, or without 1 in it.

    >>> is_usable_ratio(0.5, 2.0), is_usable_ratio(0.1, 0.9), is_usable_ratio(0.1, 9.0)
    (True, True, False)
    >>> is_usable_ratio(3.8e-05, 0.9), is_usable_ratio(1.5, float("inf"))
    (False, False)
    """
    excludes_1 = low > 1 or high < 1
    return _spans_at_most(_MOST_FACTOR_OF_DIFFERENCE if excludes_1 else _MOST_FACTOR, low, high)


def is_usable_spread(low: float, high: float) -> bool:
    """Whether an interval of a spread, such as a coefficient of variation, is worth showing."""
    return _spans_at_most(_MOST_FACTOR_OF_SPREAD, low, high)


def interval_pair(interval: Interval | None) -> Ends | None:
    """An interval of an amount as its two ends; None without one that is usable."""
    return interval.ends if interval and is_usable(*interval.ends) else None


def ratio_interval_pair(interval: Interval | None) -> Ends | None:
    """An interval of a ratio as its two ends; None without one that is usable."""
    return interval.ends if interval and is_usable_ratio(*interval.ends) else None


def _spans_at_most(factor: float, low: float, high: float) -> bool:
    return low == high or (low > 0 and high <= low * factor)


def geometric_mean_interval(
    ratios: Sequence[float], *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Bound the geometric mean of positive numbers: Student's t on their logarithms.

    Times and ratios of times vary by factors. Their logarithms are therefore closer to
    normal than the values themselves, and the interval never reaches below 0.

    Args:
        ratios: n numbers above 0, one for each launch or block.
        confidence: Coverage wanted, in (0, 1).

    Returns:
        The interval in the unit of the numbers, or None if n < 2 or a number
        is not above 0 (such a number has no logarithm).

    Raises:
        ValueError: `confidence` lies outside (0, 1).

    Source: Student (1908); on logarithms, Limpert, Stahel & Abbt, BioScience 51 (2001).

    >>> geometric_mean_interval([2.0, 2.0, 2.0])
    Interval(low=2.0, high=2.0, confidence=0.95)
    """
    _check(confidence)
    n = len(ratios)
    if n < 2 or min(ratios) <= 0:
        return None
    logs = [math.log(ratio) for ratio in ratios]
    return log_interval(
        statistics.fmean(logs),
        standard_error=statistics.stdev(logs) / math.sqrt(n),
        freedom=n - 1,
        confidence=confidence,
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of numbers from 0 up; 0 if any of them is 0.

    Raises:
        ValueError: There are none, or one is negative.

    >>> round(geometric_mean([1.0, 4.0]), 12)
    2.0
    """
    if min(values) == 0:
        return 0.0
    return math.exp(statistics.fmean([math.log(value) for value in values]))


# From this many launches on, the two most extreme ones have the median between them with a
# probability of 95 % (1 - 2 / 2**6 = 96.9 %), whatever the distribution.
LEAST_FOR_MEDIAN = 6


def typical_launch_value(values: Sequence[float]) -> float:
    """The value of a typical launch: of six or more the median, of fewer their geometric mean.

    Of few launches the median is less precise. Of many, single ones that take ten times as long
    would move the geometric mean away from every launch. Of an even number it is the geometric
    mean of the two in the middle.

    Args:
        values: n numbers from 0 up, one for each launch, n at least one.

    >>> typical_launch_value([1.0, 1.0, 1.0, 1.0, 1.0, 32.0])
    1.0
    """
    if len(values) < LEAST_FOR_MEDIAN:
        return geometric_mean(values)
    in_order, half = sorted(values), (len(values) - 1) // 2
    return geometric_mean(in_order[half : len(values) - half])


def typical_launch_interval(values: Sequence[float]) -> Interval | None:
    """The 95 % interval of `typical_launch_value`, in the unit of the values.

    Of six or more launches, order alone gives it: whatever the distribution, the median lies
    between the d-th launch from below and the d-th from above with a probability of
    1 - 2 P(fewer than d of n tosses are heads). Between the two d around 95 % it is interpolated.

    Args:
        values: n numbers, one for each launch.

    Returns:
        None if n < 2 or a number is not above 0.

    Source: Hettmansperger & Sheather, "Confidence intervals based on interpolated order
    statistics" (1986).
    """
    n = len(values)
    if n < LEAST_FOR_MEDIAN or min(values) <= 0:
        return geometric_mean_interval(values)
    logs = sorted(math.log(value) for value in values)
    depth, coverage = 1, 1 - 2 / 2**n
    while (narrower := coverage - 2 * math.comb(n, depth) / 2**n) >= CONFIDENCE:
        depth, coverage = depth + 1, narrower
    share = (coverage - CONFIDENCE) / (coverage - narrower)
    inwards = (n - depth) * share / (depth + (n - 2 * depth) * share)
    low = (1 - inwards) * logs[depth - 1] + inwards * logs[depth]
    high = (1 - inwards) * logs[-depth] + inwards * logs[-depth - 1]
    return Interval(low=exp(low), high=exp(high))


def log_interval(
    middle: float, *, standard_error: float, freedom: float, confidence: float = CONFIDENCE
) -> Interval:
    """Student's t interval of the logarithm of a quantity, converted back to a factor.

    Args:
        middle: Natural logarithm of the estimate.
        standard_error: Of `middle`.
        freedom: Degrees of freedom of the standard error.
        confidence: Coverage wanted, in (0, 1).
    """
    reach = standard_error * student_quantile(freedom, (1 + confidence) / 2)
    return Interval(low=exp(middle - reach), high=exp(middle + reach), confidence=confidence)


def share_interval(count: int, total: int) -> Interval:
    """The 95 % interval of the probability of what happened `count` times out of `total`.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference"
    (1927).

    >>> bounds = share_interval(5, 14)
    >>> round(bounds.low, 2), round(bounds.high, 2)
    (0.16, 0.61)
    """
    share, weight = count / total, NORMAL_REACH**2 / total
    middle = share + weight / 2
    reach = NORMAL_REACH * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return Interval(
        low=max((middle - reach) / (1 + weight), 0.0),
        high=min((middle + reach) / (1 + weight), 1.0),
    )


def exp(power: float) -> float:
    """The exponential, infinite instead of an overflow: two launches can give a huge interval."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError("confidence lies between 0 and 1")


def variation_interval(values: Sequence[float]) -> Interval | None:
    """The 95 % interval of the coefficient of variation: standard deviation over mean.

    The interval assumes that launches vary normally. It is close to the exact interval while
    the share is below a third. It is too narrow if single launches are outliers.

    Args:
        values: n numbers above 0, one for each launch, in any unit.

    Returns:
        The interval of the share. Its high end is infinite if so few values give no bound. None
        if n < 2 or a number is not above 0.

    Source: Vangel, "Confidence intervals for a normal coefficient of variation",
    The American Statistician 50 (1996), the modified McKay interval.
    """
    n = len(values)
    if n < 2 or min(values) <= 0:
        return None
    ratio = statistics.stdev(values) / statistics.fmean(values)

    def end(above: float) -> float:
        quantile = chi_squared_upper_quantile(n - 1, above)
        square = ((quantile + 2) / n - 1) * ratio**2 + quantile / (n - 1)
        return ratio / math.sqrt(square) if square > 0 else math.inf

    beyond = (1 - CONFIDENCE) / 2
    return Interval(low=end(beyond), high=end(1 - beyond))


# With fewer values, none is trimmed.
LEAST = 6
# One in this many values is trimmed at either end, at least one.
ONE_OF = 5
# Trimming is used only if it shrinks the interval below this share. The mean of all values is
# better if none is an outlier, and if the values fall into two equal groups. Choosing after seeing
# the data has a cost, which grows with how often it happens. Among shares from 0.4 to 0.7 this one
# has the best coverage with six values; docs/explanation/statistics/comparisons.md has the numbers.
WORTH = 0.4

Array = NDArray[np.float64]


class TrimmedMean(Struct, frozen=True, kw_only=True):
    """A mean, its standard error and that error's degrees of freedom."""

    mean: float
    error: float
    freedom: int

    @property
    def reach(self) -> float:
        """Half the width of its interval, by Student's t."""
        return student_quantile(self.freedom, (1 + CONFIDENCE) / 2) * self.error


def adaptive_trimmed_mean(values: Sequence[float]) -> TrimmedMean:
    """The mean of the values, trimmed only if a few outliers make the full mean uncertain.

    Trimming leaves out the lowest and the highest fifth. It is used if it makes the interval
    less than `WORTH` times as wide.

    Args:
        values: At least two; a value must be as likely to lie far above as far below.

    Source: the trimmed mean and its t, Tukey & McLaughlin, "Less vulnerable confidence
    and significance procedures for location based on a single sample" (1963). Choosing
    after seeing the data: Hogg, "Adaptive robust procedures" (1974).

    >>> adaptive_trimmed_mean([1.0, 2.0, 3.0, 4.0, 5.0, 9.0]).mean
    4.0
    >>> adaptive_trimmed_mean([1.0, 2.0, 3.0, 4.0, 5.0, 9000.0]).mean
    3.5
    """
    return middles(np.array([values], dtype=np.float64))[0]


def middles(rows: Array) -> list[TrimmedMean]:
    """The `adaptive_trimmed_mean` of each row of a (k, n) array, with n of at least two.

    A calibration needs thousands at once; a comparison needs one.
    """
    n, ordered = rows.shape[1], np.sort(rows, axis=1)
    whole = _trimmed(ordered, 0)
    if n < LEAST:
        return whole
    without = _trimmed(ordered, max(1, n // ONE_OF))
    return [
        less if less.reach < WORTH * all_.reach else all_
        for less, all_ in zip(without, whole, strict=True)
    ]


def _trimmed(ordered: Array, out: int) -> list[TrimmedMean]:
    """Means without `out` values at either end; errors by winsorising those to the nearest kept."""
    n = ordered.shape[1]
    remaining = n - 2 * out
    # Subtract one of the values, so that rounding gives equal values no spread.
    origins = ordered[:, n // 2, None]
    centred = ordered - origins
    means = origins[:, 0] + centred[:, out : n - out].sum(axis=1) / remaining
    drawn_in = centred.clip(centred[:, out, None], centred[:, n - out - 1, None])
    spread = drawn_in - drawn_in.sum(axis=1, keepdims=True) / n
    errors = np.sqrt((spread * spread).sum(axis=1) / (remaining * (remaining - 1)))
    return [
        TrimmedMean(mean=mean, error=error, freedom=remaining - 1)
        for mean, error in zip(means.tolist(), errors.tolist(), strict=True)
    ]
