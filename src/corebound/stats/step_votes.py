"""Is there a step here? Five detectors are asked, each blind in its own way."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special  # scipy.stats would take half a second to import

from corebound.stats.energy import split_p_value
from corebound.stats.potts import cut_gain
from corebound.stats.step_place import likelihood_gain
from corebound.stats.step_tests import (
    inflation,
    least_rank_p_value,
    rank_p_value,
    shift,
    t_p_value,
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
_REACH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What one detector says: yes, no, or None where so few nights cannot tell it."""

    detector: Detector
    found: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Two neighbouring pieces of a series and the noise about its pieces.

    Attributes:
        left: Logarithms of the piece before the cut, at least 2.
        right: Of the piece after it.
        spread: Standard deviation about the pieces' levels, robust.
        rho: Correlation from one night to the next, in [0, 1).
        others: Distances of all nights but those of the shorter piece from their own
            pieces' levels.
        own_error: Standard error of the difference by the nights' own intervals, or 0.
    """

    left: Array
    right: Array
    spread: float
    rho: float
    others: Array
    own_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The votes on one cut.

    Attributes:
        votes: Of every detector that was asked; the costliest is asked only
            where its vote decides.
        p_value: Of the likelihood ratio, for this place.
        elected: Whether enough of them say yes.
    """

    votes: tuple[Vote, ...]
    p_value: float
    elected: bool


def elect(stretch: Stretch, *, least: int, threshold: float, rng: np.random.Generator) -> Election:
    """Ask the detectors about a cut.

    At least three of five must say yes, and the likelihood not plainly no; the shift must be
    at least the threshold, as a logarithm; and a short run must be unlike the single
    nights that stood out before.
    """
    left, right = stretch.left[-_REACH:], stretch.right[:_REACH]
    size = shift(left, right)
    # Exactly the threshold may be a hair less, for it is a difference of logarithms.
    least_size = max(threshold * (1 - 1e-9), _OWN_DOUBT * stretch.own_error)
    if abs(size) < least_size or _like_earlier_spikes(stretch, size):
        return Election(votes=(), p_value=1.0, elected=False)
    nights = inflation(left.size + right.size, stretch.rho)
    gain = likelihood_gain(np.concatenate((left, right)), left.size) / nights
    t_level = t_p_value(left, right, rho=stretch.rho, own_error=stretch.own_error)
    votes: tuple[Vote, ...] = (
        Vote(detector="likelihood", found=gain >= _LIKELIHOOD_GAIN),
        Vote(detector="segmentation", found=cut_gain(left, right) > _penalty(stretch, nights)),
        Vote(detector="t", found=t_level <= _T_LEVEL),
        _rank_vote(left, right, stretch.rho),
    )
    if gain >= _LEAST_GAIN and _yes(votes) == _QUORUM - 1:
        votes = (*votes, _energy_vote(left, right, stretch.rho, least=least, rng=rng))
    return Election(
        votes=votes,
        p_value=float(special.chdtrc(1, 2 * max(gain, 0.0))),
        elected=gain >= _LEAST_GAIN and _yes(votes) >= _QUORUM,
    )


def _yes(votes: tuple[Vote, ...]) -> int:
    return sum(vote.found is True for vote in votes)


def _penalty(stretch: Stretch, inflated: float) -> float:
    """What a cut must gain, as a distance: more where nights go with their neighbours."""
    return SEGMENT_PENALTY * stretch.spread * inflated


def _rank_vote(left: Array, right: Array, rho: float) -> Vote:
    if least_rank_p_value(left.size, right.size, rho=rho) > _RANK_LEVEL:
        return Vote(detector="ranks", found=None)
    return Vote(detector="ranks", found=rank_p_value(left, right, rho=rho) <= _RANK_LEVEL)


def _energy_vote(
    left: Array, right: Array, rho: float, *, least: int, rng: np.random.Generator
) -> Vote:
    p_value = split_p_value(
        np.concatenate((left, right)),
        least=least,
        correlation=rho,
        permutations=_PERMUTATIONS,
        rng=rng,
    )
    return Vote(detector="energy", found=p_value <= _ENERGY_LEVEL)


def _like_earlier_spikes(stretch: Stretch, size: float) -> bool:
    """Whether so many nights in a row could be spikes of the kind that occur anyway.

    A night counts as one that stands out if it lies as far as most of a step off its level, to
    the side on which the shorter piece lies.
    """
    shorter_is_right = stretch.right.size <= stretch.left.size
    short = stretch.right if shorter_is_right else stretch.left
    if short.size >= _SHORT:
        return False
    longer = stretch.left if shorter_is_right else stretch.right
    side = math.copysign(1.0, size if shorter_is_right else -size)
    far = _STANDS_OUT * abs(size)
    standing_out = int(np.count_nonzero(side * stretch.others > far))
    # Jeffreys' estimate: none seen yet is not never.
    rate = (standing_out + 0.5) / (stretch.others.size + 1)
    beyond = int(np.count_nonzero(side * (short - np.median(longer)) > far))
    return bool(special.bdtrc(beyond - 1, short.size, rate) > _SPIKES_LEVEL)
