"""Locate a change point within a history, with a range of possible locations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.intervals import Array

# The share of points that may have any value at all, however unlike the others.
_ANYTHING = 0.02
# A cut whose log likelihood is lower than the best by this much is ruled out. This is half
# the 95 % point of chi squared with one degree of freedom, plus as much again because cuts
# are not a continuous parameter. docs/explanation/statistics.md says how often the range is right.
_RULED_OUT = 3.0
# Multiples of the initial shift that are tried: if points fall into two groups, the initial
# shift may be far off.
_SHIFTS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)


class LocationInterval(Struct, frozen=True, kw_only=True):
    """The possible locations of a cut, as first indices after the change.

    Attributes:
        likeliest: The location with the greatest likelihood.
        middle: The median location: the change is equally likely to lie before or after it. If
            several successive points could belong to either level, the likeliest location is
            often at one end of them; the median is closer to the truth on average.
        first: The first location that is not ruled out.
        last: The last location that is not ruled out.
    """

    likeliest: int
    middle: int
    first: int
    last: int

    def moved(self, by: int) -> LocationInterval:
        """The same locations, with indices shifted by an offset."""
        return LocationInterval(
            likeliest=self.likeliest + by,
            middle=self.middle + by,
            first=self.first + by,
            last=self.last + by,
        )


def locate(values: Array, cut: int, *, size: float, least: int) -> LocationInterval:
    """Find the location of a cut that gives the values the greatest likelihood.

    Both sides have the same distribution, of any shape, and differ by a shift. The distribution
    is a density estimated from the values. So the noise of the series itself decides about a
    point between the two levels, and modes, tails and spikes are covered.

    Args:
        values: n logarithms with one change, in time order.
        cut: First index after the change, approximately.
        size: The shift there, from `hodges_lehmann_shift`.
        least: How many must lie on each side.
    """
    cuts = np.arange(least, values.size - least + 1)
    residuals = values.copy()
    residuals[cut:] -= size
    scores = _log_likelihoods(values, size * np.array(_SHIFTS), _width(residuals))[cuts - 1]
    likelihoods = scores.max(axis=1)
    possible = cuts[likelihoods >= likelihoods.max() - _RULED_OUT]
    # All locations and all shifts tried have the same prior probability.
    chances = np.exp(scores - scores.max()).sum(axis=1).cumsum()
    middle = cuts[np.searchsorted(chances, chances[-1] / 2)]
    return LocationInterval(
        likeliest=int(cuts[likelihoods.argmax()]),
        middle=int(np.clip(middle, possible[0], possible[-1])),
        first=int(possible[0]),
        last=int(possible[-1]),
    )


def _log_likelihoods(values: Array, sizes: Array, width: float) -> Array:
    """Log likelihoods for every cut from 1 to n - 1 (rows) and every shift (columns).

    The residuals of a cut are the values before it, and those after it minus the shift.
    So only the kernels of differences, as they are and one shift apart, are needed,
    summed up to the cut and from it on.
    """
    n = values.size
    # Single precision suffices for values compared by their logarithms, and takes half the work.
    apart = ((values[np.newaxis, :] - values[:, np.newaxis]) / width).astype(np.float32)
    shifts = (sizes / width).astype(np.float32)[np.newaxis, :, np.newaxis]
    shifted = _kernels_of(apart[:, np.newaxis, :] + shifts)
    # Row j, column i: the part of the sum for point i from the points up to j: from points
    # alike, from those one shift above point i, and from those one shift below.
    alike = _summed(_kernels_of(apart[:, np.newaxis, :]))
    # A point is as far below another as the other is above it.
    below = _summed(np.ascontiguousarray(shifted.transpose(2, 1, 0)))
    above = _summed(shifted)
    # In place from here on: allocating arrays of this size takes longer than summing them.
    sums = alike[:-1] + above[-1:]
    sums -= above[:-1]
    after = below[:-1]
    after += alike[-1:]
    after -= alike[:-1]
    # Row k - 1 for the cut at k: whether point i is after it.
    is_after = ~np.tri(n - 1, n, dtype=np.bool_)[:, np.newaxis, :]
    np.copyto(sums, after, where=is_after)
    spans = np.float32(np.ptp(values)) + np.abs(sizes, dtype=np.float32)
    logs = _log_mixture(sums, n, width, spans[np.newaxis, :, np.newaxis])
    total: Array = logs.sum(axis=2, dtype=np.float64)
    return total


def _kernels_of(apart: NDArray[np.float32]) -> NDArray[np.float32]:
    """Kernels of distances (n, any, n), computed in place; 0 for a point with itself."""
    apart *= apart
    apart *= np.float32(-0.5)
    np.exp(apart, out=apart)
    nights = np.arange(apart.shape[0])
    apart[nights, :, nights] = 0.0
    return apart


def _summed(kernels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cumulative sums along the first axis, in place."""
    # Adding row by row is many times as fast here as NumPy's cumulative sum.
    for row in range(1, kernels.shape[0]):
        np.add(kernels[row], kernels[row - 1], out=kernels[row])
    return kernels


def likelihood_gain(values: Array, cut: int, *, size: float) -> float:
    """How much likelier, as a logarithm, values are with a shift at the cut than without.

    The densities are estimated from the values, as in `locate`. So modes, tails and spikes of
    the values do not increase the gain that a shift has by chance.
    """
    left, right = values[:cut], values[cut:]
    moved = right - size
    residuals = np.concatenate((left, moved))
    width = _width(residuals)
    # A shift of a side does not change the kernels among its own values.
    own = np.concatenate((_to_others(left, width), _to_others(right, width)))
    logs = (
        _log_mixture(own + _across(left, beyond, width), values.size, width, np.ptp(all_))
        for beyond, all_ in ((moved, residuals), (right, values))
    )
    with_shift, without = (float(log.sum()) for log in logs)
    return with_shift - without


def _width(residuals: Array) -> float:
    """Silverman's bandwidth, with the spread of a single mode if there are several.

    The shortest interval that holds a quarter of a normal sample is 0.637 standard
    deviations wide.
    """
    ordered = np.sort(residuals)
    quarter = max(1, round(ordered.size / 4))
    spread = float((ordered[quarter:] - ordered[:-quarter]).min()) / 0.637
    # Nearly equal values can still tell a shift from none.
    floor = max(1e-3 * float(np.ptp(ordered)), 1e-12)
    return max(0.9 * spread * float(ordered.size**-0.2), floor)


def _kernels(at: Array, of: Array, width: float) -> Array:
    """The kernel of each value (columns) at each place (rows)."""
    kernels: Array = at[:, np.newaxis] - of[np.newaxis, :]
    kernels *= kernels
    kernels *= -0.5 / width**2
    return np.exp(kernels, out=kernels)


def _to_others(values: Array, width: float) -> Array:
    """The sum of the kernels of all other values at each value (leave-one-out)."""
    summed: Array = _kernels(values, values, width).sum(axis=1) - 1.0
    return summed


def _across(left: Array, right: Array, width: float) -> Array:
    """The sum of the other side's kernels at each value, for the left side and then the right."""
    kernels = _kernels(left, right, width)
    return np.concatenate((kernels.sum(axis=1), kernels.sum(axis=0)))


def _log_mixture(sums: Any, n: int, width: float, span: Any) -> Any:
    """Logarithms of the density of n - 1 kernels plus a small uniform part, computed in place."""
    sums *= (1 - _ANYTHING) / ((n - 1) * width * math.sqrt(2 * math.pi))
    sums += _ANYTHING / (span + 10 * width)
    return np.log(sums, out=sums)
