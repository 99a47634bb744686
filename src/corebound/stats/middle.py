"""The middle of numbers of which some may be far out, and how sure it is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

from corebound.stats import special
from corebound.stats.interval import CONFIDENCE

# With fewer numbers none is left out.
LEAST = 6
# Of so many one is left out at either end, one at least.
ONE_OF = 5
# What leaving any out has to make of the interval to be worth it. A mean of all is the better
# one as long as none stands out, and where numbers are of two equal kinds; and whoever chooses
# after the fact pays for it, the more so the more often. Of factors from 0.4 to 0.7 this has
# the best coverage of six numbers; docs/statistics.md has the figures.
WORTH = 0.4


class Middle(Struct, frozen=True, kw_only=True):
    """A mean, its standard error and that error's degrees of freedom."""

    mean: float
    error: float
    freedom: int

    @property
    def reach(self) -> float:
        """Half the width of its interval, by Student's t."""
        return float(special.stdtrit(self.freedom, (1 + CONFIDENCE) / 2)) * self.error


def middle(values: Sequence[float]) -> Middle:
    """Mean of the values; without the outermost, where these alone make it uncertain.

    The fifth that is lowest and the fifth that is highest are left out if the interval is
    then less than `WORTH` as wide.

    Args:
        values: At least two, of which one may as well be far above as far below.

    Source: the trimmed mean and its t, Tukey & McLaughlin, "Less vulnerable confidence
    and significance procedures for location based on a single sample" (1963). To choose
    by what is seen: Hogg, "Adaptive robust procedures" (1974).

    >>> middle([1.0, 2.0, 3.0, 4.0, 5.0, 9.0]).mean
    4.0
    >>> middle([1.0, 2.0, 3.0, 4.0, 5.0, 9000.0]).mean
    3.5
    """
    whole = _trimmed(values, 0)
    if len(values) < LEAST:
        return whole
    without = _trimmed(values, max(1, len(values) // ONE_OF))
    return without if without.reach < WORTH * whole.reach else whole


def _trimmed(values: Sequence[float], out: int) -> Middle:
    """The mean without so many at either end, which its error takes to lie where others begin."""
    n = len(values)
    kept = n - 2 * out
    inner = sorted(values)[out : n - out]
    drawn_in = [inner[0]] * out + inner + [inner[-1]] * out
    return Middle(
        mean=statistics.fmean(inner),
        error=math.sqrt((n - 1) * statistics.variance(drawn_in) / (kept * (kept - 1))),
        freedom=kept - 1,
    )
