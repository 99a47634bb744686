"""On which night a step happened, and between which two it must have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[np.float64]

# What share of nights may be anything at all, however unlike the others.
_ANYTHING = 0.02
# A cut whose log likelihood is lower than the best's by this much is ruled out: half
# the 95 % point of chi squared with one degree of freedom, and as much again for cuts
# that are no continuous parameter. docs/statistics.md says how often it holds.
_RULED_OUT = 3.0
# Multiples of the shift as first seen that are tried: where nights are of two kinds that one
# may be far off.
_SHIFTS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)


class LocationInterval(Struct, frozen=True, kw_only=True):
    """Where a cut may be, as first indices after the step.

    Attributes:
        likeliest: The one with the greatest likelihood.
        middle: The one before which the step lies as likely as after it. Where several nights in
            a row could be of either level the likeliest is often at one end of them; their
            middle is nearer to the truth on average.
        first: The first that is not ruled out.
        last: The last.
    """

    likeliest: int
    middle: int
    first: int
    last: int

    def moved(self, by: int) -> LocationInterval:
        """The same in what the stretch is a part of."""
        return LocationInterval(
            likeliest=self.likeliest + by,
            middle=self.middle + by,
            first=self.first + by,
            last=self.last + by,
        )


def locate(values: Array, cut: int, *, size: float, least: int) -> LocationInterval:
    """Put a cut where the values on both sides are likeliest.

    Both sides vary alike, whichever way that is, and differ by a shift. How they vary
    is read off them, as a density; so a night that lies between two levels is
    told by the very noise of its series, and modes, tails and spikes are no surprise.

    Args:
        values: n logarithms of one stretch that has one step, in time order.
        cut: First index after the step, about.
        size: The shift there, by `shift`.
        least: How many must lie on each side.
    """
    cuts = np.arange(least, values.size - least + 1)
    residuals = values.copy()
    residuals[cut:] -= size
    scores = _log_likelihoods(values, size * np.array(_SHIFTS), _width(residuals))[cuts - 1]
    likelihoods = scores.max(axis=1)
    possible = cuts[likelihoods >= likelihoods.max() - _RULED_OUT]
    # Every place and every shift that is tried is as good as any other beforehand.
    chances = np.exp(scores - scores.max()).sum(axis=1).cumsum()
    middle = cuts[np.searchsorted(chances, chances[-1] / 2)]
    return LocationInterval(
        likeliest=int(cuts[likelihoods.argmax()]),
        middle=int(np.clip(middle, possible[0], possible[-1])),
        first=int(possible[0]),
        last=int(possible[-1]),
    )


def _log_likelihoods(values: Array, sizes: Array, width: float) -> Array:
    """Of every cut from 1 to n - 1 (rows) and shift (columns), by the density that follows.

    The residuals of a cut are the values before it and those after it less the shift.
    So all that is needed are kernels of differences as they are and one shift apart,
    summed up to the cut and from it on.
    """
    n = values.size
    # Seven digits are plenty for what is compared by its logarithm, and half the work.
    apart = ((values[np.newaxis, :] - values[:, np.newaxis]) / width).astype(np.float32)
    shifts = (sizes / width).astype(np.float32)[np.newaxis, :, np.newaxis]
    shifted = _kernels_of(apart[:, np.newaxis, :] + shifts)
    # Row j, column i: as much of the sum for night i as the nights up to j give; of nights
    # alike, of those that are one shift above night i, and of those that are one below.
    alike = _summed(_kernels_of(apart[:, np.newaxis, :]))
    # A night is as far below another as that is above it.
    below = _summed(np.ascontiguousarray(shifted.transpose(2, 1, 0)))
    above = _summed(shifted)
    # In place from here on: to get memory for what is so large takes longer than to sum it.
    sums = alike[:-1] + above[-1:]
    sums -= above[:-1]
    after = below[:-1]
    after += alike[-1:]
    after -= alike[:-1]
    # Row k - 1 for the cut at k: whether night i is after it.
    is_after = ~np.tri(n - 1, n, dtype=np.bool_)[:, np.newaxis, :]
    np.copyto(sums, after, where=is_after)
    spans = np.float32(np.ptp(values)) + np.abs(sizes, dtype=np.float32)
    logs = _log_mixture(sums, n, width, spans[np.newaxis, :, np.newaxis])
    total: Array = logs.sum(axis=2, dtype=np.float64)
    return total


def _kernels_of(apart: NDArray[np.float32]) -> NDArray[np.float32]:
    """Kernels of distances (n, any, n), in their place; none of a night's own."""
    apart *= apart
    apart *= np.float32(-0.5)
    np.exp(apart, out=apart)
    nights = np.arange(apart.shape[0])
    apart[nights, :, nights] = 0.0
    return apart


def _summed(kernels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Summed up along the first axis, in their place."""
    # Row upon row is many times as fast here as NumPy's cumulative sum.
    for row in range(1, kernels.shape[0]):
        np.add(kernels[row], kernels[row - 1], out=kernels[row])
    return kernels


def likelihood_gain(values: Array, cut: int, *, size: float) -> float:
    """How much likelier, as a logarithm, values are with a shift at the cut than without.

    By densities read off the values, as in `place`; what the shift itself explains by
    chance grows with none of the values' modes, tails or spikes.
    """
    left, right = values[:cut], values[cut:]
    moved = right - size
    residuals = np.concatenate((left, moved))
    width = _width(residuals)
    # What values of one side say of each other, a shift of both does not change.
    own = np.concatenate((_to_others(left, width), _to_others(right, width)))
    logs = (
        _log_mixture(own + _across(left, beyond, width), values.size, width, np.ptp(all_))
        for beyond, all_ in ((moved, residuals), (right, values))
    )
    with_shift, without = (float(log.sum()) for log in logs)
    return with_shift - without


def _width(residuals: Array) -> float:
    """A bandwidth: Silverman's, with a spread that is that of one mode if there are several.

    The shortest stretch that holds a quarter of a normal sample is 0.637 standard
    deviations wide.
    """
    ordered = np.sort(residuals)
    quarter = max(1, round(ordered.size / 4))
    spread = float((ordered[quarter:] - ordered[:-quarter]).min()) / 0.637
    # Values that are all but equal still tell a shift from none.
    floor = max(1e-3 * float(np.ptp(ordered)), 1e-12)
    return max(0.9 * spread * float(ordered.size**-0.2), floor)


def _kernels(at: Array, of: Array, width: float) -> Array:
    """The kernel of each value (columns) at each place (rows)."""
    kernels: Array = at[:, np.newaxis] - of[np.newaxis, :]
    kernels *= kernels
    kernels *= -0.5 / width**2
    return np.exp(kernels, out=kernels)


def _to_others(values: Array, width: float) -> Array:
    """The sum of the kernels of all others at each value: none speaks for itself."""
    summed: Array = _kernels(values, values, width).sum(axis=1) - 1.0
    return summed


def _across(left: Array, right: Array, width: float) -> Array:
    """The sum of the other side's kernels at each value, of the left side and of the right."""
    kernels = _kernels(left, right, width)
    return np.concatenate((kernels.sum(axis=1), kernels.sum(axis=0)))


def _log_mixture(sums: Any, n: int, width: float, span: Any) -> Any:
    """Logarithms of the density of n - 1 kernels, and a little of anything, in their place."""
    sums *= (1 - _ANYTHING) / ((n - 1) * width * math.sqrt(2 * math.pi))
    sums += _ANYTHING / (span + 10 * width)
    return np.log(sums, out=sums)
