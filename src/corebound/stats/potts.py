"""A series as a few constant pieces: exact L1 segmentation after Potts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corebound.stats.step_tests import median


def potts_cuts(values: ArrayLike, *, penalty: float) -> tuple[int, ...]:
    """Cut a series so that pieces are few and the values lie close to their piece's median.

    Minimises the sum of distances from the pieces' medians plus the penalty for
    each cut. Distances, not squares: one night that took twice as long costs
    more to cut out than to leave in.

    The minimum is exact. A piece's best level is one of the values, so a
    shortest path over (position, level) finds it in n steps of n numbers.

    Args:
        values: n finite numbers in time order.
        penalty: What a cut must gain, in the unit of the values, above 0.

    Returns:
        The first index of each piece but the first, in order.

    Raises:
        ValueError: The penalty is not above 0.

    Source: Storath, Weinmann & Unser, "Jump-penalized least absolute values
    estimation of scalar or circle-valued signals" (2017), doi:10.1093/imaiai/iaw022.

    >>> potts_cuts([5, 5, 9, 5, 5, 8, 8, 9, 8], penalty=5)
    (5,)
    """
    if penalty <= 0:
        raise ValueError("a cut costs more than nothing")
    series = np.asarray(values, dtype=np.float64)
    if series.size == 0:
        return ()
    return _trace(*_shortest_paths(series, np.unique(series), penalty))


def _shortest_paths(
    series: NDArray[np.float64], levels: NDArray[np.float64], penalty: float
) -> tuple[NDArray[np.bool_], NDArray[np.int64], int]:
    """For each value and level whether its piece starts there, the best levels, the last."""
    costs = np.abs(series[0] - levels)
    starts = np.zeros((series.size, levels.size), dtype=np.bool_)
    best = np.zeros(series.size, dtype=np.int64)
    best[0] = costs.argmin()
    apart = np.empty_like(costs)
    # In place: a step of this loop is to be a few microseconds.
    for index in range(1, series.size):
        jump = costs[best[index - 1]] + penalty
        np.greater(costs, jump, out=starts[index])
        np.minimum(costs, jump, out=costs)
        np.subtract(levels, series[index], out=apart)
        np.abs(apart, out=apart)
        costs += apart
        best[index] = costs.argmin()
    return starts, best, int(best[-1])


def _trace(starts: NDArray[np.bool_], best: NDArray[np.int64], level: int) -> tuple[int, ...]:
    cuts: list[int] = []
    for index in range(best.size - 1, 0, -1):
        if starts[index, level]:
            cuts.append(index)
            level = int(best[index - 1])
    return tuple(reversed(cuts))


def cut_gain(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """How much closer to their medians two pieces are than the one they would make.

    The criterion of `potts_cuts` for one cut between two that stay.
    """
    both = np.concatenate((left, right))
    return float(_distances(both) - _distances(left) - _distances(right))


def _distances(values: NDArray[np.float64]) -> float:
    return float(np.abs(values - median(values)).sum())
