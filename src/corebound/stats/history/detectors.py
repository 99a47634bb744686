"""Decide whether a cut is a change point, by two complementary detectors."""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from corebound.stats.distributions import binomial_above
from corebound.stats.history import shift_tests
from corebound.stats.history.location import likelihood_gain
from corebound.stats.intervals import Array

# How much is compared at once: data beyond the processor's cache is slow to sum.
_ROWS = 64
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
    scores = _scores(series)
    cut = least + int(scores[least - 1 : series.size - least].argmax())
    return cut, float(scores[cut - 1])


def _scores(series: Array) -> Array:
    """The statistic of every cut: n numbers to n - 1 scores."""
    n = series.size
    left = np.arange(1, n, dtype=np.float64)
    right = n - left
    # Sums over ordered pairs: within the left, across, within the right.
    within_left = 2 * np.cumsum(_to_earlier(series))[:-1]
    upto = np.cumsum(_to_all(series))
    across = upto[:-1] - within_left
    within_right = upto[-1] - within_left - 2 * across
    energy = 2 * across / (left * right) - within_left / left**2 - within_right / right**2
    scores: Array = left * right / n * energy
    return scores


def _to_all(series: Array) -> Array:
    """The sum of each value's distances to all values of the series.

    For a sorted series it follows from the sums of the values below and above.
    """
    n = series.size
    order = series.argsort()
    ordered = series[order]
    upto = np.cumsum(ordered)
    below = np.arange(1, n + 1)
    result = np.empty_like(series)
    result[order] = ordered * (2 * below - n) + upto[-1] - 2 * upto
    return result


def _to_earlier(series: Array) -> Array:
    """The sum of each value's distances to earlier values of the series."""
    result = np.empty_like(series)
    # A few rows at a time, so that the distances stay in the processor's cache.
    for first in range(0, series.size, _ROWS):
        last = min(first + _ROWS, series.size)
        apart = np.abs(series[first:last, np.newaxis] - series[:last])
        # Within the block, only earlier values count.
        apart[:, first:] *= _BEFORE[: last - first, : last - first]
        result[first:last] = apart.sum(axis=1)
    return result


def potts_cuts(values: ArrayLike, *, penalty: float) -> tuple[int, ...]:
    """Segment a series into few pieces whose values lie close to the piece's median.

    The method minimises the sum of distances from the pieces' medians plus the penalty for
    each cut. It uses distances, not squares: one point that took twice as long costs
    more to cut out than to leave in. Each piece has two values or more, because a single one
    is never a level; an odd one between two levels joins the nearer of them.

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
    (cuts,) = potts_cuts_of_many([np.asarray(values, dtype=np.float64)], [penalty])
    return cuts


def potts_cuts_of_many(
    all_values: Sequence[NDArray[np.float64]], penalties: Sequence[float]
) -> list[tuple[int, ...]]:
    """`potts_cuts` of several series at once.

    A step of one series is so short that calling NumPy takes most of its time.

    Args:
        all_values: m series of finite numbers.
        penalties: That of each series.

    Raises:
        ValueError: A penalty is not above 0.
    """
    if min(penalties, default=1.0) <= 0:
        raise ValueError("a cut costs more than nothing")
    sizes = [values.size for values in all_values]
    if not max(sizes, default=0):
        return [()] * len(sizes)
    # Paths are read backwards from the last value, so what follows it does not matter.
    series = _filled(all_values)
    levels = _filled([np.unique(values) for values in all_values])
    starts, best = _shortest_paths(series, levels, np.array(penalties))
    return [_trace(starts[:n, row], best[:n, row]) for row, n in enumerate(sizes)]


def _filled(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Rows of equal length, by repeating the last value of each."""
    filled = np.zeros((len(rows), max(row.size for row in rows)))
    for to, row in zip(filled, rows, strict=True):
        if row.size:
            to[: row.size] = row
            to[row.size :] = row[-1]
    return filled


def _shortest_paths(
    series: NDArray[np.float64], levels: NDArray[np.float64], penalties: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Whether a piece started one before, (n values, m series, levels); best levels, (n, m)."""
    m, n = series.shape
    distances = np.abs(series[:, :1] - levels)
    costs = distances.copy()
    starts = np.zeros((n, *levels.shape), dtype=np.bool_)
    best = np.empty((n, m), dtype=np.intp)
    costs.argmin(axis=1, out=best[0])
    rows, jumps = np.arange(m), np.full((m, 1), np.inf)
    # In place, because allocating takes as long as calculating.
    for at in range(1, n):
        # A piece that starts with the value before has two values from here on.
        distances += jumps
        if at > 1:
            np.add(costs[rows, best[at - 1]], penalties, out=jumps[:, 0])
        np.greater(costs, distances, out=starts[at])
        np.minimum(costs, distances, out=costs)
        np.subtract(levels, series[:, at, np.newaxis], out=distances)
        costs += np.abs(distances, out=distances)
        costs.argmin(axis=1, out=best[at])
    return starts, best


def _trace(starts: NDArray[np.bool_], best: NDArray[np.intp]) -> tuple[int, ...]:
    """The cuts of one series: its (n, levels) starts and n best levels, read backwards."""
    cuts: list[int] = []
    index = best.size - 1
    level = best[-1] if best.size else 0
    while index > 0:
        if starts[index, level]:
            index -= 1
            cuts.append(index)
            level = best[index - 1]
        index -= 1
    return tuple(reversed(cuts))


# The levels were set by simulation (`python -m benchmarks.simulation history`).
T_LEVEL = 3e-3
# A natural logarithm: 3,000 times as likely with a change as without.
LIKELIHOOD_GAIN = 8.0
# Required whatever the other votes. Only the likelihood models how this series varies, and
# alternating modes that happen to form runs have misled the others together.
LEAST_GAIN = 5.0
# 22,000 times as likely. If points fall into two groups, a change can be this clear while means
# hardly show it.
_CLEAR_GAIN = 10.0
# In standard deviations: what a cut must gain to justify one more piece.
SEGMENT_PENALTY = 5.0
# A run this short may be adjacent spikes.
_SHORT = 8
_SPIKES_LEVEL = 1e-4
# A share of the change. For a change of five standard deviations, hardly any point reaches it by
# chance, and hardly any point after the change falls short of it.
_STANDS_OUT = 0.6
# In standard errors. A shift is not tested if the points' own intervals, at 99 %, include a shift
# of zero.
_OWN_DOUBT = 2.58
# How many points on either side are used.
REACH = 100


class CutSides:
    """Two neighbouring pieces of a series, and the statistics that depend on them alone.

    Each statistic is computed once, on first use. A cut is voted on many times, with
    different other cuts in place, and most of these statistics stay the same.
    """

    def __init__(self, left: Array, right: Array, others: Array | None = None) -> None:
        """Take the pieces.

        Args:
            left: The logarithms of the piece before the cut, at least 2.
            right: Those of the piece after it, at least 2.
            others: The distances of other points from their own levels; None or empty without any.
        """
        self.left = left[-REACH:]
        self.right = right[:REACH]
        self._others = others

    @property
    def points(self) -> int:
        """The number of points used."""
        return self.left.size + self.right.size

    @cached_property
    def both(self) -> Array:
        """All points used."""
        return np.concatenate((self.left, self.right))

    @cached_property
    def size(self) -> float:
        """The shift."""
        return shift_tests.hodges_lehmann_shift(self.left, self.right)

    @cached_property
    def likelihood(self) -> float:
        """The log-likelihood gain of the shift, if all points were independent.

        The noise of other points is added to the longer side, about its level: a few points
        hardly determine a density.
        """
        left, right = self.left, self.right
        if self._others is not None and left.size < right.size:
            right = np.concatenate((right, self._others + shift_tests.median(right)))
        elif self._others is not None:
            left = np.concatenate((self._others + shift_tests.median(left), left))
        return likelihood_gain(np.concatenate((left, right)), left.size, size=self.size)

    @cached_property
    def trimmed(self) -> tuple[shift_tests.Trimmed, shift_tests.Trimmed]:
        """Both sides without their extremes."""
        return shift_tests.trimmed(self.left), shift_tests.trimmed(self.right)

    def may_pass(self) -> bool:
        """Whether a large shift could pass; autocorrelation of the noise only lowers the gain."""
        return self.likelihood >= LEAST_GAIN

    def is_large(self, threshold: float, own_error: float) -> bool:
        """Whether the shift matters and exceeds what the points' own intervals explain."""
        # A shift of exactly the threshold may be slightly less after rounding of the logarithms.
        least = max(threshold * (1 - 1e-9), _OWN_DOUBT * own_error)
        # For most places the shift itself is never computed.
        return shift_tests.shift_at_least(self._ordered, self.right, least)

    @cached_property
    def _ordered(self) -> Array:
        ordered: Array = np.sort(self.left)
        return ordered


class CutContext(Struct, frozen=True, kw_only=True):
    """A cut, and the noise about the pieces of its series.

    Attributes:
        sides: The pieces on either side of it.
        lengths: Lengths of the whole pieces, in points.
        levels: Medians of the whole pieces.
        rho: Correlation between successive points, in [0, 1).
        all_: Distances of all points from their own pieces' levels.
        shorter: The distances of the points of the shorter piece.
        own_error: Standard error of the difference from the points' own intervals, or 0.
        large: Whether the shift matters and exceeds what these intervals explain.
    """

    sides: CutSides
    large: bool
    lengths: tuple[int, int]
    levels: tuple[float, float]
    rho: float
    all_: Array
    shorter: Array
    own_error: float


class CutDecision(Struct, frozen=True, kw_only=True):
    """The votes on one cut.

    Attributes:
        p_value: The `score` of this place.
        elected: Whether a vote is yes, without the likelihood's veto.
        plain: Whether the likelihood is clear by itself, and neither side is short.
    """

    p_value: float
    elected: bool
    plain: bool = False


REFUSED = CutDecision(p_value=1.0, elected=False)


def p_value_of(sides: CutSides, rho: float) -> float:
    """The likelihood's score, for a large shift that is not made of spikes."""
    return _on_p_scale(sides.likelihood / shift_tests.inflation(sides.points, rho))


def _on_p_scale(gain: float) -> float:
    """Convert a likelihood gain to the scale of p-values: twice the gain as chi squared, 1 degree.

    It would be a p-value (Wilks, 1938) if the densities were known except for the shift. They are
    kernel estimates from the same points, so it is a score. `score` describes its calibration.
    """
    return math.erfc(math.sqrt(max(gain, 0.0)))


def score(sides: CutSides, *, rho: float, own_error: float) -> float:
    """How little a place looks like chance, on the scale of p-values: 0 clear, 1 not at all.

    The score is twice the smaller of the likelihood's score and the p-value of the t test; it is
    doubled because there are two. Each covers a weakness of the other. With autocorrelation,
    the likelihood of few points is never certain, even if the sides do not overlap. If points
    fall into two groups, means hardly show a change.

    Calibrated by simulation (`python -m benchmarks.simulation scores`): in series without a change
    it is at most 5 % at a place in 3 to 8 % of them, and at most 0.1 % in 0.05 to 0.7 %.
    docs/explanation/statistics/change-points.md has the numbers.
    """
    gain = sides.likelihood / shift_tests.inflation(sides.points, rho)
    t_level = shift_tests.t_p_value(*sides.trimmed, rho=rho, own_error=own_error)
    return min(1.0, 2 * min(_on_p_scale(gain), t_level))


def decide(stretch: CutContext) -> CutDecision:
    """Vote on a cut.

    The likelihood or the t test must say yes, and the likelihood must not be clearly against.
    The shift must be large. A short run must differ from the single points that were outliers
    before.
    """
    sides, rho = stretch.sides, stretch.rho
    if not stretch.large or resembles_earlier_spikes(stretch):
        return REFUSED
    gain = sides.likelihood / shift_tests.inflation(sides.points, rho)
    plain = gain >= _CLEAR_GAIN and min(stretch.lengths) >= _SHORT
    t_level = shift_tests.t_p_value(*sides.trimmed, rho=rho, own_error=stretch.own_error)
    return CutDecision(
        p_value=score(sides, rho=rho, own_error=stretch.own_error),
        elected=gain >= LEAST_GAIN and (gain >= LIKELIHOOD_GAIN or t_level <= T_LEVEL),
        plain=plain,
    )


def is_short(*lengths: int) -> bool:
    """Whether the shortest of these pieces may be a few spikes."""
    return min(lengths) < _SHORT


def resembles_earlier_spikes(stretch: CutContext) -> bool:
    """Whether this run of points could be spikes of the kind that occur anyway.

    A point counts as a spike if its distance from its level is most of the change, in the
    direction of the shorter piece.
    """
    shorter_is_right = stretch.lengths[1] <= stretch.lengths[0]
    if not is_short(*stretch.lengths):
        return False
    sides = stretch.sides
    short = sides.right if shorter_is_right else sides.left
    level = stretch.levels[0 if shorter_is_right else 1]
    side = math.copysign(1.0, sides.size if shorter_is_right else -sides.size)
    far = _STANDS_OUT * abs(sides.size)
    standing_out, among = (
        int(np.count_nonzero(side * several > far)) for several in (stretch.all_, stretch.shorter)
    )
    # Jeffreys' estimate: the rate is above 0 even if no spike occurred yet.
    rate = (standing_out - among + 0.5) / (stretch.all_.size - stretch.shorter.size + 1)
    beyond = int(np.count_nonzero(side * (short - level) > far))
    return binomial_above(beyond - 1, short.size, rate) > _SPIKES_LEVEL
