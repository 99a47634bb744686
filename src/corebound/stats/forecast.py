"""How many launches it would take to decide a comparison that is undecided so far."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats import special
from corebound.stats.interval import CONFIDENCE

# How likely so many launches are to decide. Half would disappoint every other time.
_LIKELY = 0.8
# Beyond what anyone would wait for, a forecast from the spread of a few launches is idle.
_MOST_LAUNCHES = 100_000
# In the middles of so many equally likely parts each of what is not known is looked at.
_PARTS = (np.arange(25) + 0.5) / 25

Array = NDArray[np.float64]


class Seen(Struct, frozen=True, kw_only=True):
    """What the launches say so far: a log ratio, the error of it, and how sure that is.

    `error` is the standard error of `middle`, above 0; `freedom` its degrees of freedom;
    `launches` how many there were of each. `fixed` is half the width of the interval that would
    be left with endless launches, 0 within one run.
    """

    middle: float
    error: float
    freedom: float
    launches: int
    fixed: float = 0.0


def launches_needed(seen: Seen, *, room: float) -> int | None:
    """The least number of launches that decides with a probability of four fifths.

    Decided is a comparison whose interval excludes 1 or fits the margin. How likely it is
    to be after n launches follows from the true ratio and the true spread; neither is known,
    so it is averaged over what both may be after the launches seen, which stay in the mean.

    Args:
        seen: What they say so far.
        room: The logarithm of the margin's end, above 0.

    Returns:
        The number of each in all, more than so far; None where even very many would not.

    Source: the predictive distribution of a normal sample, Gelman et al., "Bayesian Data
    Analysis" (2013), section 3.2; deciding by it whether to go on, Spiegelhalter, Freedman
    & Blackburn, "Monitoring clinical trials: conditional or predictive power?" (1986).
    """
    root = math.sqrt(seen.launches)
    sigmas = seen.error * root * np.sqrt(seen.freedom / special.chdtri(seen.freedom, _PARTS))
    # Each spread with each place of the truth that it allows.
    truths = seen.middle + np.outer(sigmas / root, special.ndtri(_PARTS))

    def decides(n: int) -> bool:
        return _decided(n, seen, truths, sigmas[:, None], room) >= _LIKELY

    low, high = seen.launches, _MOST_LAUNCHES
    if not decides(high):
        return None
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if decides(between) else (between, high)
    return high


def _decided(n: int, seen: Seen, truths: Array, sigmas: Array, room: float) -> float:
    """How likely a comparison of n launches is to be decided, over all truths."""
    # What the later launches add to the mean of those seen.
    later = n - seen.launches
    centre = (seen.launches * seen.middle + later * truths) / n
    wander = sigmas * math.sqrt(later) / n
    by_launches = float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * sigmas / math.sqrt(n)
    reach = np.hypot(by_launches, seen.fixed)

    def below(limit: Array) -> Array:
        chance: Array = special.ndtr((limit - centre) / wander)
        return chance

    differs = 1 - (below(reach) - below(-reach))
    fits = np.where(reach < room, below(room - reach) - below(reach - room), 0.0)
    return float(np.mean(np.minimum(differs + fits, 1.0)))
