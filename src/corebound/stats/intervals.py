"""Intervals: how far off a value may be, never without its confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats import special

# Of every interval that a verdict rests on.
CONFIDENCE = 0.95
# A quantity between one and a hundred of something is not known.
_MOST_FACTOR = 100.0


class Interval(Struct, frozen=True, kw_only=True):
    """Where a quantity lies with the confidence given, in the quantity's own unit."""

    low: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError("an interval's low end is not above its high end")

    @property
    def relative_half_width(self) -> float:
        """How far the ends lie from their geometric middle, as a share of it.

        0.02 says: true within 2 % either way. Ratios and times are positive
        and uncertain by factors, so the middle is the geometric one; infinite
        where the low end is 0.

        >>> round(Interval(low=0.98, high=1.02, confidence=0.95).relative_half_width, 3)
        0.02
        """
        if self.low == self.high:
            return 0.0
        return math.sqrt(self.high / self.low) - 1.0 if self.low > 0 else math.inf

    def contains(self, value: float) -> bool:
        """Whether the value lies inside, ends included."""
        return self.low <= value <= self.high


def is_usable(low: float, high: float) -> bool:
    """Whether the ends of an interval of a factor, from 0 up, say anything to a reader.

    >>> is_usable(0.5, 2.0), is_usable(3.8e-05, float("inf")), is_usable(0.0, 0.0)
    (True, False, True)
    """
    return low == high or (low > 0 and high <= low * _MOST_FACTOR)


def geometric_mean_interval(
    ratios: Sequence[float], *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Bound the geometric mean of positive numbers: Student's t on their logarithms.

    Times and ratios of times vary by factors, so their logarithms are closer to
    normal than they are, and the interval can never reach below 0.

    Args:
        ratios: n numbers above 0, one for each launch or block.
        confidence: Coverage wanted, in (0, 1).

    Returns:
        The interval in the unit of the numbers, or None where n < 2 or a number
        is not above 0 (it has no logarithm, and no factor leads to it).

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
    """The factor-wise mean of numbers from 0 up; 0 as soon as one of them is 0.

    Raises:
        ValueError: There are none, or one is negative.

    >>> round(geometric_mean([1.0, 4.0]), 12)
    2.0
    """
    if min(values) == 0:
        return 0.0
    return math.exp(statistics.fmean([math.log(value) for value in values]))


def log_interval(
    middle: float, *, standard_error: float, freedom: float, confidence: float = CONFIDENCE
) -> Interval:
    """Student's t interval about the logarithm of a quantity, given back as a factor.

    Args:
        middle: Natural logarithm of the estimate.
        standard_error: Of `middle`.
        freedom: Degrees of freedom of the standard error.
        confidence: Coverage wanted, in (0, 1).
    """
    reach = standard_error * float(special.stdtrit(freedom, (1 + confidence) / 2))
    return Interval(low=math.exp(middle - reach), high=_exp(middle + reach), confidence=confidence)


def _exp(power: float) -> float:
    """Infinite rather than an overflow: two launches may tell next to nothing."""
    try:
        return math.exp(power)
    except OverflowError:
        return math.inf


def _check(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError("confidence lies between 0 and 1")


def variation_interval(
    values: Sequence[float], *, confidence: float = CONFIDENCE
) -> Interval | None:
    """Bound the coefficient of variation: standard deviation as a share of the mean.

    Right where launches vary like normal numbers, and near the exact interval of these while
    the share is below a third. Where single launches stand far out it is too narrow.

    Args:
        values: n numbers above 0, one for each launch, in any unit.
        confidence: Coverage wanted, in (0, 1).

    Returns:
        The interval of the share; its high end is infinite where so few tell nothing. None
        where n < 2 or a number is not above 0.

    Source: Vangel, "Confidence intervals for a normal coefficient of variation",
    The American Statistician 50 (1996), the modified McKay interval.
    """
    n = len(values)
    if n < 2 or min(values) <= 0:
        return None
    ratio = statistics.stdev(values) / statistics.fmean(values)

    def end(above: float) -> float:
        # `chdtri` takes the probability above.
        quantile = float(special.chdtri(n - 1, above))
        square = ((quantile + 2) / n - 1) * ratio**2 + quantile / (n - 1)
        return ratio / math.sqrt(square) if square > 0 else math.inf

    beyond = (1 - confidence) / 2
    return Interval(low=end(beyond), high=end(1 - beyond), confidence=confidence)


# With fewer numbers none is left out.
LEAST = 6
# Of so many one is left out at either end, one at least.
ONE_OF = 5
# What leaving any out has to make of the interval to be worth it. A mean of all is the better
# one as long as none stands out, and where numbers are of two equal kinds; and whoever chooses
# after the fact pays for it, the more so the more often. Of factors from 0.4 to 0.7 this has
# the best coverage of six numbers; docs/statistics.md has the figures.
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
        return float(special.stdtrit(self.freedom, (1 + CONFIDENCE) / 2)) * self.error


def adaptive_trimmed_mean(values: Sequence[float]) -> TrimmedMean:
    """Mean of the values; without the outermost, where these alone make it uncertain.

    The fifth that is lowest and the fifth that is highest are left out if the interval is
    then less than `WORTH` as wide.

    Args:
        values: At least two, of which one may as well be far above as far below.

    Source: the trimmed mean and its t, Tukey & McLaughlin, "Less vulnerable confidence
    and significance procedures for location based on a single sample" (1963). To choose
    by what is seen: Hogg, "Adaptive robust procedures" (1974).

    >>> adaptive_trimmed_mean([1.0, 2.0, 3.0, 4.0, 5.0, 9.0]).mean
    4.0
    >>> adaptive_trimmed_mean([1.0, 2.0, 3.0, 4.0, 5.0, 9000.0]).mean
    3.5
    """
    return middles(np.array([values], dtype=np.float64))[0]


def middles(rows: Array) -> list[TrimmedMean]:
    """The `middle` of each of k rows of n values, (k, n) with n of at least two.

    A calibration asks for thousands at once; a comparison for one.
    """
    whole = _trimmed(rows, 0)
    n = rows.shape[1]
    if n < LEAST:
        return whole
    without = _trimmed(rows, max(1, n // ONE_OF))
    return [
        less if less.reach < WORTH * all_.reach else all_
        for less, all_ in zip(without, whole, strict=True)
    ]


def _trimmed(rows: Array, out: int) -> list[TrimmedMean]:
    """Means without so many at either end, which the errors take to lie where others begin."""
    n = rows.shape[1]
    kept = n - 2 * out
    ordered = np.sort(rows, axis=1)
    # From a value of its own, so that rounding gives equal values no spread.
    origins = ordered[:, n // 2, None]
    inner = (ordered - origins)[:, out : n - out]
    drawn_in = np.pad(inner, ((0, 0), (out, out)), mode="edge")
    means = origins[:, 0] + inner.mean(axis=1)
    errors = np.sqrt((n - 1) * drawn_in.var(axis=1, ddof=1) / (kept * (kept - 1)))
    return [
        TrimmedMean(mean=mean, error=error, freedom=kept - 1)
        for mean, error in zip(means.tolist(), errors.tolist(), strict=True)
    ]
