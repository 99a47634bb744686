"""What a launch's samples tell beside their median."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# One iteration in a hundred takes longer than p99: with fewer, none may.
LEAST_FOR_P99 = 100


def independent(samples: Sequence[float]) -> float:
    """As how many independent numbers a series counts, going by each and the one before.

    Args:
        samples: n numbers in time order and any unit, which only their ranks enter of, so
            that a few that are far out do not decide.

    Returns:
        n (1 - r) / (1 + r) where the correlation r is above 0, else n.

    Source: Bayley & Hammersley (1946), for a series of which each goes with the last alone.

    >>> independent([1, 5, 2, 4, 3])
    5.0
    """
    n = len(samples)
    ranks = np.argsort(np.argsort(samples, kind="stable"), kind="stable") - (n - 1) / 2
    square = float(ranks @ ranks)
    r = max(float(ranks[1:] @ ranks[:-1]) / square, 0.0) if square else 0.0
    return n * (1 - r) / (1 + r)


def p99_ns(wall_ns: Sequence[float]) -> float | None:
    """The 99th percentile, by the rule whose mean over launches is the least biased.

    Of a hundred samples it lies halfway between the two longest.

    Source: Hazen (1914), the fifth of Hyndman & Fan, "Sample quantiles in statistical
    packages" (1996); chosen by simulation, see docs/statistics.md.
    """
    if len(wall_ns) < LEAST_FOR_P99:
        return None
    return float(np.quantile(wall_ns, 0.99, method="hazen"))
