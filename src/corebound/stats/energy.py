"""Where a series changes its distribution: E-divisive, by energy distance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# In this many at a time, so that what is plainly no change is given up early.
_BATCH = 25
# Besag & Clifford, "Sequential Monte Carlo p-values" (1991): after so many that are as
# extreme, more permutations would only sharpen a p-value that is too large.
_ENOUGH_EXTREME = 5
# How much is compared at once: what lies beyond the processor's cache is slow to sum.
_ROWS = 64
_SERIES = 8
_BEFORE = np.tri(_ROWS, k=-1)


def best_split(series: Array, *, least: int) -> tuple[int, float]:
    """Find the cut whose sides differ most, by energy distance.

    Args:
        series: n numbers in time order, n at least twice `least`.
        least: How many must lie on each side, at least 1.

    Returns:
        First index right of the cut, and the scaled energy distance there.

    Raises:
        ValueError: The series is too short.

    Source: Matteson & James, "A nonparametric approach for multiple change point
    analysis of multivariate data" (2014), doi:10.1080/01621459.2013.849605; the
    distance as of Székely & Rizzo (2013), which is never negative.
    """
    if least < 1 or series.size < 2 * least:
        raise ValueError("each side of a cut has a value")
    scores = _scores(series[np.newaxis])[0]
    cut = least + int(scores[least - 1 : series.size - least].argmax())
    return cut, float(scores[cut - 1])


def _scores(series: Array) -> Array:
    """The statistic of every cut: (m, n) series to (m, n - 1) scores."""
    n = series.shape[1]
    left = np.arange(1, n, dtype=np.float64)
    right = n - left
    # Sums over ordered pairs: within the left, across, within the right.
    within_left = 2 * np.cumsum(_to_earlier(series), axis=1)[:, :-1]
    upto = np.cumsum(_to_all(series), axis=1)
    across = upto[:, :-1] - within_left
    within_right = upto[:, -1:] - within_left - 2 * across
    energy = 2 * across / (left * right) - within_left / left**2 - within_right / right**2
    scores: Array = left * right / n * energy
    return scores


def _to_all(series: Array) -> Array:
    """Each value's summed distance to all of its series; both (m, n).

    From a sorted series it follows by sums of what lies below and above.
    """
    n = series.shape[1]
    order = series.argsort(axis=1)
    ordered = np.take_along_axis(series, order, axis=1)
    upto = np.cumsum(ordered, axis=1)
    below = np.arange(1, n + 1)
    summed = ordered * (2 * below - n) + upto[:, -1:] - 2 * upto
    result = np.empty_like(series)
    np.put_along_axis(result, order, summed, axis=1)
    return result


def _to_earlier(series: Array) -> Array:
    """Each value's summed distance to those before it in its series; both (m, n)."""
    m, n = series.shape
    result = np.empty_like(series)
    # A few rows at a time, so that the distances stay in the processor's cache.
    for first in range(0, n, _ROWS):
        last = min(first + _ROWS, n)
        for begin in range(0, m, _SERIES):
            some = series[begin : begin + _SERIES]
            apart = some[:, first:last, np.newaxis] - some[:, np.newaxis, :last]
            np.abs(apart, out=apart)
            # Within the block, only what comes before counts.
            apart[:, :, first:] *= _BEFORE[: last - first, : last - first]
            result[begin : begin + _SERIES, first:last] = apart.sum(axis=2)
    return result


def split_p_value(
    series: Array, *, least: int, correlation: float, permutations: int, rng: np.random.Generator
) -> float:
    """How likely a series without a change has a cut as good as the best of this one.

    What is permuted is not the values but what is left of each when it is
    predicted from the one before; from these the series is built up anew. Nights
    that go with their neighbours would otherwise look like changes. Without
    correlation it is the ordinary permutation test.

    Args:
        series: n numbers in time order, n at least twice `least`.
        least: How many must lie on each side of a cut, at least 1.
        correlation: From one value to the next, in [0, 1).
        permutations: How many at most; fewer where the answer is plain.
        rng: Where the permutations come from.

    Returns:
        In [1 / (permutations + 1), 1].

    Raises:
        ValueError: The series is too short, or the correlation outside [0, 1).
    """
    if not 0 <= correlation < 1:
        raise ValueError("a correlation that can be undone lies in [0, 1)")
    _, seen = best_split(series, least=least)
    centred = series - np.median(series)
    # The first value has none before it; scaled to vary as the others do.
    surprises = centred.copy()
    surprises[1:] -= correlation * centred[:-1]
    surprises[0] *= np.sqrt(1 - correlation**2)
    done = extreme = 0
    while done < permutations and extreme < _ENOUGH_EXTREME:
        size = min(_BATCH, permutations - done)
        shuffled = rng.permuted(np.tile(surprises, (size, 1)), axis=1)
        scores = _scores(_rebuilt(shuffled, correlation))[:, least - 1 : series.size - least]
        # Equal but for rounding counts as equal.
        extreme += int(np.count_nonzero(scores.max(axis=1) >= seen * (1 - 1e-9)))
        done += size
    return (extreme + 1) / (done + 1)


def _rebuilt(surprises: Array, correlation: float) -> Array:
    """Series, (m, n), whose every value leans on the one before."""
    if correlation == 0:
        return surprises
    series = surprises.copy()
    series[:, 0] /= np.sqrt(1 - correlation**2)
    for index in range(1, series.shape[1]):
        series[:, index] += correlation * series[:, index - 1]
    return series
