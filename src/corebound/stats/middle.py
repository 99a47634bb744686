"""The middle of numbers of which some may be far out, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

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

Array = NDArray[np.float64]


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
    return middles(np.array([values], dtype=np.float64))[0]


def middles(rows: Array) -> list[Middle]:
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


def _trimmed(rows: Array, out: int) -> list[Middle]:
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
        Middle(mean=mean, error=error, freedom=kept - 1)
        for mean, error in zip(means.tolist(), errors.tolist(), strict=True)
    ]
