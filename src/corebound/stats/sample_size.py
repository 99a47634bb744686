"""How many launches would decide an inconclusive comparison."""

import math

import numpy as np
from msgspec import Struct

from corebound.stats.distributions import (
    chi_squared_upper_quantile,
    normal_probabilities,
    normal_quantile,
    student_quantile,
)
from corebound.stats.intervals import CONFIDENCE, Array

# The probability that this many launches decide. With 50 %, every second forecast would fail.
_DECIDES_PROBABILITY = 0.8
# A forecast from the spread of a few launches is pointless beyond what anyone would wait for.
_MAX_LAUNCHES = 100_000
# Each unknown is evaluated at the midpoints of this many equally likely parts.
_PARTS = [(part + 0.5) / 25 for part in range(25)]


class ObservedEffect(Struct, frozen=True, kw_only=True):
    """The results so far: a log ratio, its standard error and that error's degrees of freedom.

    `error` is the standard error of `middle`, above 0, and `freedom` its degrees of freedom.
    `launches` is the number of launches of each side. `fixed` is half the width of the interval
    that would remain with infinitely many launches; 0 within one run.
    """

    middle: float
    error: float
    freedom: float
    launches: int
    fixed: float = 0.0


def launches_needed(effect: ObservedEffect, *, room: float) -> int | None:
    """The least number of launches that decides with a probability of four fifths.

    A comparison is decided if its interval excludes 1 or lies within the margin. The
    probability of that after n launches depends on the true ratio and the true spread. Neither
    is known, so it is averaged over their distributions given the launches seen. Those launches
    stay in the mean.

    Args:
        effect: The results so far.
        room: The logarithm of the margin's end, above 0.

    Returns:
        The total number for each side, more than so far; None if even very many would not decide.

    Source: the predictive distribution of a normal sample, Gelman et al., "Bayesian Data
    Analysis" (2013), section 3.2; using it to decide whether to continue, Spiegelhalter, Freedman
    & Blackburn, "Monitoring clinical trials: conditional or predictive power?" (1986).
    """
    root = math.sqrt(effect.launches)
    squares = np.array([chi_squared_upper_quantile(effect.freedom, part) for part in _PARTS])
    sigmas = effect.error * root * np.sqrt(effect.freedom / squares)
    # Each spread, combined with each true ratio that it allows.
    truths = effect.middle + np.outer(sigmas / root, [normal_quantile(part) for part in _PARTS])

    def decides(n: int) -> bool:
        return _decided(n, effect, truths, sigmas[:, None], room) >= _DECIDES_PROBABILITY

    low, high = effect.launches, _MAX_LAUNCHES
    if not decides(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high


def _decided(n: int, effect: ObservedEffect, truths: Array, sigmas: Array, room: float) -> float:
    """The probability that a comparison of n launches is decided, over all true ratios."""
    # How the later launches change the mean of those seen.
    later = n - effect.launches
    centre = (effect.launches * effect.middle + later * truths) / n
    wander = sigmas * math.sqrt(later) / n
    by_launches = student_quantile(n - 1, (1 + CONFIDENCE) / 2) * sigmas / math.sqrt(n)
    reach = np.hypot(by_launches, effect.fixed)

    def below(limit: Array) -> Array:
        return normal_probabilities((limit - centre) / wander)

    differs = 1 - (below(reach) - below(-reach))
    fits = np.where(reach < room, below(room - reach) - below(reach - room), 0.0)
    return float(np.mean(np.minimum(differs + fits, 1.0)))
