"""A lasting change in a history, as it is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from corebound.stats.interval import Interval
from corebound.stats.step_votes import Vote

Direction = Literal["up", "down"]
Status = Literal["new", "recovered", "old"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A lasting change within one segment.

    Attributes:
        at: Index of the first night after it; the step is as likely to lie before as beyond.
        last_good: Index of the last night that is surely before it.
        first_bad: Index of the first that is surely after it: what changed it
            came after `last_good` and no later than `first_bad`.
        direction: Whether figures went up or down.
        before: Level before, in the unit of the figures.
        ratio: Level after over level before.
        interval: Of the ratio, 95 %; None where the nights are too few.
        votes: What each detector says.
        p_value: How likely so clear a step is to be seen somewhere in the segment
            if nothing changed; for `multiplicity.benjamini_hochberg` over a suite.
        status: `recovered` where a later step undid it; else `old` where it was known or
            began more than 30 nights ago; else `new`.
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
