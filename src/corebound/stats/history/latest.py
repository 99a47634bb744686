"""The latest value of a series that is too short for detectors, beside the values before it."""

import math

import numpy as np
from msgspec import Struct

from corebound.stats.distributions import student_quantile
from corebound.stats.history.change_point import HistoryArrays, ratio_of
from corebound.stats.intervals import CONFIDENCE, NORMAL_REACH, Interval

# The spread of fewer values is unknown.
_LEAST_FOR_SPREAD = 2


class LatestDifference(Struct, frozen=True, kw_only=True):
    """The latest value relative to the geometric mean of those before it.

    Attributes:
        ratio: The latest value over that mean.
        interval: The 95 % interval of `ratio`; None if the spread of the values is unknown. Without
            a change, the interval of 95 of 100 latest values contains 1.
        before: How many values there are before it.
    """

    ratio: float
    interval: Interval | None
    before: int


def latest_difference(history: HistoryArrays) -> LatestDifference | None:
    """Compare the latest value with those before it in the same environment.

    Three values are enough for an interval, but a wide one: with two before the latest, Student's
    factor is 12.7. The logarithms of the values are assumed to be normal and independent, which so
    few values can neither show nor refute.

    Returns:
        The difference; None with fewer than two values.

    Source: the prediction interval of one further normal value; Hahn & Meeker, Statistical
    Intervals (1991), section 4.3.
    """
    places = history.level_since(0)
    if places.size < 2:
        return None
    values, errors = history.logs[places], history.errors[places]
    before = values[:-1]
    shift = float(values[-1] - before.mean())
    interval = None
    if before.size >= _LEAST_FOR_SPREAD:
        factor = student_quantile(before.size - 1, (1 + CONFIDENCE) / 2)
        reach = factor * float(before.std(ddof=1)) * math.sqrt(1 + 1 / before.size)
        # A point cannot be more certain than its own launches.
        own = math.hypot(float(errors[-1]), float(np.linalg.norm(errors[:-1])) / before.size)
        reach = max(reach, NORMAL_REACH * own)
        interval = Interval(
            low=ratio_of(shift - reach), high=ratio_of(shift + reach), confidence=CONFIDENCE
        )
    return LatestDifference(ratio=ratio_of(shift), interval=interval, before=before.size)
