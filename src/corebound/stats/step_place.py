"""On which night a step happened, and between which two it must have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corebound.stats.step_tests import shift

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


def place(values: Array, cut: int, *, least: int) -> tuple[int, int, int]:
    """Put a cut where the values on both sides are likeliest.

    Both sides vary alike, whichever way that is, and differ by a shift. How they vary
    is read off them, as a density; so a night that lies between two levels is
    told by the very noise of its series, and modes, tails and spikes are no surprise.

    Args:
        values: n logarithms of one stretch that has one step, in time order.
        cut: First index after the step, about.
        least: How many must lie on each side.

    Returns:
        The cut, and the first and last cut that are not ruled out.
    """
    cuts = np.arange(least, values.size - least + 1)
    first_size = shift(values[:cut], values[cut:])
    residuals = values.copy()
    residuals[cut:] -= first_size
    width = _width(residuals)
    scores = [_log_likelihoods(values, share * first_size, width) for share in _SHIFTS]
    likelihoods = np.max(scores, axis=0)[cuts - 1]
    possible = cuts[likelihoods >= likelihoods.max() - _RULED_OUT]
    return int(cuts[likelihoods.argmax()]), int(possible[0]), int(possible[-1])


def _log_likelihoods(values: Array, size: float, width: float) -> Array:
    """Of every cut from 1 to n - 1, each by the density that follows from itself.

    The residuals of a cut are the values before it and those after it less the shift.
    So all that is needed are kernels of differences as they are and one shift apart,
    summed up to the cut and from it on.
    """
    n = values.size
    apart = (values[:, np.newaxis] - values[np.newaxis, :]) / width
    alike = np.exp(-0.5 * apart**2)
    # Row i, column j: night i from before the shift, j from after it; and the reverse.
    above = np.exp(-0.5 * (apart + size / width) ** 2)
    below = above.T.copy()
    for kernels in (alike, above, below):
        np.fill_diagonal(kernels, 0.0)
    # Column k - 1 for the cut at k.
    alike_left = np.cumsum(alike, axis=1)
    alike_right = alike_left[:, -1:] - alike_left
    above_left = np.cumsum(above, axis=1)
    before = alike_left + above_left[:, -1:] - above_left
    after = np.cumsum(below, axis=1) + alike_right
    span = float(np.ptp(values)) + abs(size)
    cuts = np.arange(1, n)
    is_before = np.arange(n)[:, np.newaxis] < cuts[np.newaxis, :]
    sums = np.where(is_before, before[:, :-1], after[:, :-1])
    total: Array = _log_mixture(sums, n, width, span).sum(axis=0)
    return total


def likelihood_gain(values: Array, cut: int) -> float:
    """How much likelier, as a logarithm, values are with a shift at the cut than without.

    By densities read off the values, as in `place`; what the shift itself explains by
    chance grows with none of the values' modes, tails or spikes.
    """
    size = shift(values[:cut], values[cut:])
    residuals = values.copy()
    residuals[cut:] -= size
    width = _width(residuals)
    with_shift = _log_density(residuals, residuals, width)
    without = _log_density(values, values, width)
    return float(with_shift.sum() - without.sum())


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


def _log_density(at: Array, residuals: Array, width: float) -> Array:
    """The density of the other residuals at each place: none speaks for itself."""
    kernels = np.exp(-0.5 * ((at[:, np.newaxis] - residuals[np.newaxis, :]) / width) ** 2)
    np.fill_diagonal(kernels, 0.0)
    return _log_mixture(kernels.sum(axis=1), residuals.size, width, float(np.ptp(residuals)))


def _log_mixture(sums: Array, n: int, width: float, span: float) -> Array:
    """Logarithms of the density of n - 1 kernels' sums, and a little of anything."""
    density = sums / ((n - 1) * width * np.sqrt(2 * np.pi))
    logs: Array = np.log((1 - _ANYTHING) * density + _ANYTHING / (span + 10 * width))
    return logs
