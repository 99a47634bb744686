"""Is there a step here? Five detectors are asked, each blind in its own way."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.stats.distributions import binomial_above
from corebound.stats.energy import split_p_value
from corebound.stats.potts import cut_gain
from corebound.stats.step_place import likelihood_gain
from corebound.stats.step_tests import (
    RankSum,
    Trimmed,
    are_apart,
    inflation,
    least_rank_p_value,
    rank_p_value,
    rank_sum,
    shift,
    t_p_value,
    trimmed,
)

Array = NDArray[np.float64]

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


class Sides:
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
        return shift(self.left, self.right)

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
        return are_apart(self._ordered, self.right, least)

    @cached_property
    def _ordered(self) -> Array:
        ordered: Array = np.sort(self.left)
        return ordered


class Stretch(Struct, frozen=True, kw_only=True):
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

    sides: Sides
    large: bool
    lengths: tuple[int, int]
    levels: tuple[float, float]
    spread: float
    rho: float
    all_: Array
    shorter: Array
    own_error: float


class Election(Struct, frozen=True, kw_only=True):
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


_REFUSED = Election(votes=(), p_value=1.0, elected=False)


def p_value_of(sides: Sides, rho: float) -> float:
    """The likelihood's score, for a shift that is large and no spikes."""
    return _on_p_scale(sides.likelihood / inflation(sides.nights, rho))


def _on_p_scale(gain: float) -> float:
    """A gain in likelihood on the scale of p-values: as if twice it were chi squared, 1 degree.

    That would be its p-value (Wilks, 1938) if the densities were known but for the shift. They are
    kernel estimates from the same nights, so it is a score: `score` says how it was calibrated.
    """
    return math.erfc(math.sqrt(max(gain, 0.0)))


def score(sides: Sides, *, rho: float, own_error: float) -> float:
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


def poll(stretch: Stretch) -> Election:
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
    return Election(
        votes=votes,
        p_value=score(sides, rho=rho, own_error=stretch.own_error),
        elected=None if open_ else gain >= _LEAST_GAIN and yes >= _QUORUM,
        plain=plain,
    )


def decide(polled: Election, stretch: Stretch, *, least: int, rng: np.random.Generator) -> Election:
    """Ask the costliest detector too, where its vote decides."""
    if polled.elected is not None:
        return polled
    vote = _energy_vote(stretch.sides.both, stretch.rho, least=least, rng=rng)
    return replace(polled, votes=(*polled.votes, vote), elected=vote.found is True)


def _yes(votes: tuple[Vote, ...]) -> int:
    return sum(vote.found is True for vote in votes)


def _penalty(stretch: Stretch, inflated: float) -> float:
    """What a cut must gain, as a distance: more where nights go with their neighbours."""
    return SEGMENT_PENALTY * stretch.spread * inflated


def _rank_vote(sides: Sides, rho: float, level: float) -> Vote:
    if least_rank_p_value(sides.left.size, sides.right.size, rho=rho) > level:
        return Vote(detector="ranks", found=None)
    return Vote(detector="ranks", found=rank_p_value(sides.ranked, rho=rho) <= level)


def _energy_vote(both: Array, rho: float, *, least: int, rng: np.random.Generator) -> Vote:
    p_value = split_p_value(both, least=least, correlation=rho, permutations=_PERMUTATIONS, rng=rng)
    return Vote(detector="energy", found=p_value <= _ENERGY_LEVEL)


def is_short(*lengths: int) -> bool:
    """Whether the shortest of these pieces may be a few spikes."""
    return min(lengths) < _SHORT


def like_earlier_spikes(stretch: Stretch) -> bool:
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
