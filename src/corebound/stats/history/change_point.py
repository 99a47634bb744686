"""A lasting change in a history, as it is found."""

from __future__ import annotations

import math
import sys
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.stats.history.detectors import Vote
from corebound.stats.intervals import Interval

Direction = Literal["up", "down"]
Status = Literal["new", "recovered", "old"]
# Of a ratio that a float can tell, and the other way round too.
_MOST_SHIFT = 700.0
# From here on a level is no float; up to here it is, by rounding at the end of both.
_MOST_LEVEL = math.log(sys.float_info.max)


def ratio_of(shift: float) -> float:
    """The ratio that a shift of logarithms is; beyond what a float can tell, about 10 to the 304.

    >>> ratio_of(0.0), ratio_of(1e4) == ratio_of(1e5)
    (1.0, True)
    """
    return math.exp(min(max(shift, -_MOST_SHIFT), _MOST_SHIFT))


def level_of(log: float) -> float:
    """The figure that a logarithm is; beyond what a float can tell, the largest one.

    >>> level_of(0.0), level_of(1e4) == sys.float_info.max
    (1.0, True)
    """
    return math.exp(log) if log < _MOST_LEVEL else sys.float_info.max


class Recovery(Struct, frozen=True, kw_only=True):
    """What later steps the other way took back of a step: the level came nearer to what it was.

    Attributes:
        at, last_good, first_bad: As of a `Step`: the one with which the level came back to what it
            was, or beyond; where none did, the last one that went that way.
        steps: How many went that way, that one included.
        left: Level after that one over the level before the step: 1.0 is all taken back.
        whole: Whether the level came back, but for what matters to nobody, or went beyond.
    """

    at: int
    last_good: int
    first_bad: int
    steps: int
    left: float
    whole: bool


class ChangePoint(Struct, frozen=True, kw_only=True):
    """A lasting change within one segment.

    Attributes:
        at: Index of the first night after it; the step is as likely to lie before as beyond.
        last_good: Index of the last night before every place that is not ruled out.
        first_bad: Index of the first night after all of these: what changed it came after
            `last_good` and no later than `first_bad`, in 97 % or more of simulated steps.
        direction: Whether figures went up or down.
        before: Level before, in the unit of the figures.
        ratio: Level after over level before.
        interval: Of the ratio, 95 %; None where the nights are too few.
        votes: What each detector says.
        p_value: A score on the scale of p-values (`step_votes.score`), times the places where
            the segment might have been cut; for `multiplicity.benjamini_hochberg` over a suite.
        status: `recovered` where a later step undid it; else `old` where it was known or
            began more than 30 nights ago; else `new`.
        recovery: What later steps took back of it; None where there is none the other way.
    """

    at: int
    last_good: int
    first_bad: int
    direction: Direction
    before: float
    ratio: float
    interval: Interval | None
    votes: tuple[Vote, ...]
    p_value: float
    status: Status
    recovery: Recovery | None = None

    def moved(self, nights: NDArray[np.int64]) -> ChangePoint:
        """The same with indices of what these nights are a part of."""
        return replace(
            self,
            at=int(nights[self.at]),
            last_good=int(nights[self.last_good]),
            first_bad=int(nights[self.first_bad]),
        )
