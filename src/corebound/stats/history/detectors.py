"""Is there a change point here? Five detectors vote, each blind in its own way."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from corebound.stats.distributions import binomial_above
from corebound.stats.history.location import likelihood_gain
from corebound.stats.history.shift_tests import (
    RankSum,
    Trimmed,
    hodges_lehmann_shift,
    inflation,
    least_rank_p_value,
    median,
    rank_p_value,
    rank_sum,
    shift_at_least,
    t_p_value,
    trimmed,
)

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


Detector = Literal["energy", "likelihood", "segmentation", "t", "ranks"]

# The levels were set by simulation (`python -m benchmarks.simulation history`): each by
# itself would alarm now and then, three of them hardly ever do at once.
_T_LEVEL = 3e-3
_RANK_LEVEL = 0.01
_ENERGY_LEVEL = 0.005
_PERMUTATIONS = 199
# Of a natural logarithm: 3,000 times as likely with a step as without.
_LIKELIHOOD_GAIN = 8.0
# Without at least this no quorum helps: it alone knows how the series at hand varies, and
# modes that happen to come in runs have deceived the other four together.
_LEAST_GAIN = 5.0
# 22,000 times as likely. Where nights are of two kinds a step may be as plain as this while means
# and ranks hardly tell: then these two need only agree, as they do by chance one time in ten.
_PLAIN_GAIN = 10.0
_AGREED_LEVEL = 0.1
# In standard deviations: what a cut must gain to be worth one more piece.
SEGMENT_PENALTY = 5.0
_QUORUM = 3
# A run this short may be spikes that happen to be neighbours.
_SHORT = 8
_SPIKES_LEVEL = 1e-4
# Of a step: with one of five standard deviations hardly a night reaches it by chance, and
# hardly one after the step does not.
_STANDS_OUT = 0.6
# In standard errors: a shift that the nights' own intervals, at 99 %, do not exclude to be
# none is not asked about.
_OWN_DOUBT = 2.58
# How far to either side is looked, in nights.
REACH = 100


class Vote(Struct, frozen=True, kw_only=True):
    """What one detector says: yes, no, or None where so few nights cannot tell it."""

    detector: Detector
    found: bool | None


class CutSides:
    """Two neighbouring pieces of a series, and what the detectors see in them alone.

    Each figure is taken once, when it is first asked for: a cut is voted on many times,
    with other cuts in place, and most of what is looked at stays as it was.
    """

    def __init__(self, left: Array, right: Array) -> None:
        """Take the logarithms of the piece before the cut and of that after, each at least 2."""
        self.left = left[-REACH:]
        self.right = right[:REACH]

    @property
    def nights(self) -> int:
        """How many nights are looked at."""
        return self.left.size + self.right.size

    @cached_property
    def both(self) -> Array:
        """All that is looked at."""
        return np.concatenate((self.left, self.right))

    @cached_property
    def size(self) -> float:
        """The shift."""
        return hodges_lehmann_shift(self.left, self.right)

    @cached_property
    def likelihood(self) -> float:
        """What the shift gains, were all nights independent."""
        return likelihood_gain(self.both, self.left.size, size=self.size)

    @cached_property
    def closer(self) -> float:
        """What the cut gains, as a distance."""
        return cut_gain(self.left, self.right)

    @cached_property
    def trimmed(self) -> tuple[Trimmed, Trimmed]:
        """The sides without their extremes."""
        return trimmed(self.left), trimmed(self.right)

    @cached_property
    def ranked(self) -> RankSum:
        """The sides by their ranks."""
        return rank_sum(self.left, self.right)

    def may_pass(self) -> bool:
        """Whether noise could let a large one pass: nights that go together only gain less."""
        return self.likelihood >= _LEAST_GAIN

    def is_large(self, threshold: float, own_error: float) -> bool:
        """Whether the shift matters, and the nights' own intervals do not account for it."""
        # Exactly the threshold may be a hair less, for it is a difference of logarithms.
        least = max(threshold * (1 - 1e-9), _OWN_DOUBT * own_error)
        # Of most places the shift itself is never asked for.
        return shift_at_least(self._ordered, self.right, least)

    @cached_property
    def _ordered(self) -> Array:
        ordered: Array = np.sort(self.left)
        return ordered


class CutContext(Struct, frozen=True, kw_only=True):
    """A cut, and the noise about the pieces of its series.

    Attributes:
        sides: What lies on either side of it.
        lengths: Of the whole pieces, in nights.
        levels: Medians of the whole pieces.
        spread: Standard deviation about the pieces' levels, robust.
        rho: Correlation from one night to the next, in [0, 1).
        all_: Distances of all nights from their own pieces' levels.
        shorter: Those of the shorter piece.
        own_error: Standard error of the difference by the nights' own intervals, or 0.
        large: Whether the shift matters, and these do not account for it.
    """

    sides: CutSides
    large: bool
    lengths: tuple[int, int]
    levels: tuple[float, float]
    spread: float
    rho: float
    all_: Array
    shorter: Array
    own_error: float


class CutDecision(Struct, frozen=True, kw_only=True):
    """The votes on one cut.

    Attributes:
        votes: Of every detector that was asked; the costliest is asked only
            where its vote decides.
        p_value: The `score` of this place.
        elected: Whether enough of them say yes; None where the costliest decides.
        plain: Whether the likelihood is so sure that means and ranks need only agree.
    """

    votes: tuple[Vote, ...]
    p_value: float
    elected: bool | None
    plain: bool = False


_REFUSED = CutDecision(votes=(), p_value=1.0, elected=False)


def p_value_of(sides: CutSides, rho: float) -> float:
    """The likelihood's score, for a shift that is large and no spikes."""
    return _on_p_scale(sides.likelihood / inflation(sides.nights, rho))


def _on_p_scale(gain: float) -> float:
    """A gain in likelihood on the scale of p-values: as if twice it were chi squared, 1 degree.

    That would be its p-value (Wilks, 1938) if the densities were known but for the shift. They are
    kernel estimates from the same nights, so it is a score: `score` says how it was calibrated.
    """
    return math.erfc(math.sqrt(max(gain, 0.0)))


def score(sides: CutSides, *, rho: float, own_error: float) -> float:
    """How little a place looks like chance, on the scale of p-values: 0 clear, 1 not at all.

    That of the likelihood or the p-value of the t test, whichever is less; twice that, for two
    are asked. Where nights go with their neighbours the likelihood of few is never sure, even if
    none of them overlap; where nights are of two kinds means hardly tell.

    Calibrated by simulation (`python -m benchmarks.simulation scores`): in series without a step
    it is at most 5 % at a place in 3 to 8 % of them, and at most 0.1 % in 0.05 to 0.7 %.
    docs/statistics.md has the figures.
    """
    gain = sides.likelihood / inflation(sides.nights, rho)
    t_level = t_p_value(*sides.trimmed, rho=rho, own_error=own_error)
    return min(1.0, 2 * min(_on_p_scale(gain), t_level))


def poll(stretch: CutContext) -> CutDecision:
    """Ask all detectors about a cut but the costliest.

    At least three of five must say yes, and the likelihood not plainly no; where it plainly says
    yes and neither side is short, the t test and the ranks are asked less strictly. The shift must
    be large; and a short run must be unlike the single nights that stood out before.
    """
    sides, rho = stretch.sides, stretch.rho
    if not stretch.large or like_earlier_spikes(stretch):
        return _REFUSED
    nights = inflation(sides.nights, rho)
    gain = sides.likelihood / nights
    plain = gain >= _PLAIN_GAIN and min(stretch.lengths) >= _SHORT
    t_level = t_p_value(*sides.trimmed, rho=rho, own_error=stretch.own_error)
    votes = (
        Vote(detector="likelihood", found=gain >= _LIKELIHOOD_GAIN),
        Vote(detector="segmentation", found=sides.closer > _penalty(stretch, nights)),
        Vote(detector="t", found=t_level <= (_AGREED_LEVEL if plain else _T_LEVEL)),
        _rank_vote(sides, rho, _AGREED_LEVEL if plain else _RANK_LEVEL),
    )
    yes = _yes(votes)
    open_ = gain >= _LEAST_GAIN and yes == _QUORUM - 1
    return CutDecision(
        votes=votes,
        p_value=score(sides, rho=rho, own_error=stretch.own_error),
        elected=None if open_ else gain >= _LEAST_GAIN and yes >= _QUORUM,
        plain=plain,
    )


def decide(
    polled: CutDecision, stretch: CutContext, *, least: int, rng: np.random.Generator
) -> CutDecision:
    """Ask the costliest detector too, where its vote decides."""
    if polled.elected is not None:
        return polled
    vote = _energy_vote(stretch.sides.both, stretch.rho, least=least, rng=rng)
    return replace(polled, votes=(*polled.votes, vote), elected=vote.found is True)


def _yes(votes: tuple[Vote, ...]) -> int:
    return sum(vote.found is True for vote in votes)


def _penalty(stretch: CutContext, inflated: float) -> float:
    """What a cut must gain, as a distance: more where nights go with their neighbours."""
    return SEGMENT_PENALTY * stretch.spread * inflated


def _rank_vote(sides: CutSides, rho: float, level: float) -> Vote:
    if least_rank_p_value(sides.left.size, sides.right.size, rho=rho) > level:
        return Vote(detector="ranks", found=None)
    return Vote(detector="ranks", found=rank_p_value(sides.ranked, rho=rho) <= level)


def _energy_vote(both: Array, rho: float, *, least: int, rng: np.random.Generator) -> Vote:
    p_value = split_p_value(both, least=least, correlation=rho, permutations=_PERMUTATIONS, rng=rng)
    return Vote(detector="energy", found=p_value <= _ENERGY_LEVEL)


def is_short(*lengths: int) -> bool:
    """Whether the shortest of these pieces may be a few spikes."""
    return min(lengths) < _SHORT


def like_earlier_spikes(stretch: CutContext) -> bool:
    """Whether so many nights in a row could be spikes of the kind that occur anyway.

    A night counts as one that stands out if it lies as far as most of a step off its level, to
    the side on which the shorter piece lies.
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
    # Jeffreys' estimate: none seen yet is not never.
    rate = (standing_out - among + 0.5) / (stretch.all_.size - stretch.shorter.size + 1)
    beyond = int(np.count_nonzero(side * (short - level) > far))
    return binomial_above(beyond - 1, short.size, rate) > _SPIKES_LEVEL
