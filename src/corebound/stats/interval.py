"""Intervals: how far off a figure may be, never without its confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

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
