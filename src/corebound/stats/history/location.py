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
# are not a continuous parameter. docs/explanation/statistics/change-points.md says how
# often the range is right.
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

    The residuals of a cut are the values before it, and those after it minus the shift. The
    density at a point is the sum of its kernels with all others: with those on its own side as the
    values are, with those on the other side one shift apart. From one cut to the next one point
    changes sides. So sums along the cuts give all densities.
    """
    n = values.size
    points = np.arange(n)
    # Single precision suffices for values compared by their logarithms, and takes half the work.
    side = np.sign(points - points[:, np.newaxis])
    # Positive where the later value is the higher one.
    apart = ((values - values[:, np.newaxis]) * side / width).astype(np.float32)
    shifts = (sizes / width).astype(np.float32)
    spans = np.ptp(values) + np.abs(sizes)
    weight = (1 - _ANYTHING) / ((n - 1) * width * math.sqrt(2 * math.pi))
    # Row k, column i: by how much the density at i grows as point k moves before the cut.
    steps = (weight * side).astype(np.float32)[:, np.newaxis]
    other = _kernels_of(apart[:, np.newaxis] - shifts[:, np.newaxis])
    other *= steps
    own = _kernels_of(apart[:, np.newaxis])
    own *= -steps
    # With the cut before all points, all are on one side.
    begin = np.abs(own).sum(axis=0)
    for kernels in (own, other):
        kernels[points, :, points] = -kernels.sum(axis=0).T
    own[0] += begin
    anything = (_ANYTHING / (spans + 10 * width)).astype(np.float32)[:, np.newaxis]
    other[0] += anything
    densities = _summed(other)[:-1]
    densities += _summed(own)[:-1]
    # Kernels are positive; only rounding makes a sum of steps lower than this.
    np.maximum(densities, anything, out=densities)
    total: Array = np.log(densities, out=densities).sum(axis=2, dtype=np.float64)
    return total


def _kernels_of(apart: NDArray[np.float32]) -> NDArray[np.float32]:
    """Kernels of distances, computed in place: allocating such arrays takes longer."""
    apart *= apart
    apart *= np.float32(-0.5)
    return np.exp(apart, out=apart)


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
