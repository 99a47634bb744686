"""How far off the spread of a few launches may be."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from corebound.stats import special
from corebound.stats.interval import CONFIDENCE, Interval


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
