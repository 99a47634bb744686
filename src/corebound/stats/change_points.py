"""When did it change, by how much, and between which two nights?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special  # scipy.stats would take half a second to import

from corebound.stats.interval import Interval
from corebound.stats.step_search import Cut, search
from corebound.stats.step_tests import mean_error, shift, shift_bounds
from corebound.stats.step_votes import Vote

Direction = Literal["up", "down"]
Status = Literal["new", "recovered", "old"]

# Smaller steps matter to nobody; a scenario may say otherwise.
THRESHOLD = 0.02
CONFIDENCE = 0.95
# A step that began longer ago is no news, even to who first looks at the history.
RECENT_NIGHTS = 30
# Two findings of one step may differ by so many nights.
SAME_STEP_NIGHTS = 3

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One point of a history: a night, or a commit.

    Attributes:
        figure: A time, or anything positive that varies by factors; None or NaN
            where the night has none.
        key: Host, kernel and environment in one. Where it changes, another
            segment begins, and what differs from then on is no commit's doing.
        interval: Where the figure truly lies, by the night's own launches; None
            where that is not known.
    """

    figure: float | None
    key: str = ""
    interval: Interval | None = None

    def __post_init__(self) -> None:
        if self.figure is not None and (self.figure <= 0 or math.isinf(self.figure)):
            raise ValueError("a figure is above 0 and finite, or absent")

    @property
    def seen(self) -> bool:
        """Whether the night tells anything."""
        return (
            self.figure is not None
            and not math.isnan(self.figure)
            and (self.interval is None or 0 < self.interval.low <= self.interval.high < math.inf)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A lasting change within one segment.

    Attributes:
        at: Index of the likeliest first night after it.
        last_good: Index of the last night that is surely before it.
        first_bad: Index of the first that is surely after it: what changed it
            came after `last_good` and no later than `first_bad`.
        direction: Whether figures went up or down.
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
    ratio: float
    interval: Interval | None
    votes: tuple[Vote, ...]
    p_value: float
    status: Status


def find_steps(
    nights: Sequence[Night],
    *,
    threshold: float = THRESHOLD,
    known: Sequence[Step] = (),
    seed: int = 0,
) -> tuple[Step, ...]:
    """Find where a history changed its level, up or down, and stayed there a while.

    Each segment is looked at by itself. Four detectors vote; docs/statistics.md says
    how, and how often they are right.

    Args:
        nights: In time order; those that have no figure are passed over.
        threshold: Least change that matters, above 0; 0.02 is a ratio of 1.02
            or of its reciprocal.
        known: Steps that were reported before, with indices into the same nights.
        seed: Of the permutation test. The same nights and seed give the same steps.

    Returns:
        In time order.

    Raises:
        ValueError: `threshold` is not above 0.
    """
    if threshold <= 0:
        raise ValueError("a threshold is above 0")
    steps: list[Step] = []
    for start, end in itertools.pairwise((*segment_starts(nights), len(nights))):
        present = [i for i in range(start, end) if nights[i].seen]
        found = _steps_of_segment([nights[i] for i in present], present, threshold, seed)
        steps += _with_recoveries(found, threshold)
    return tuple(
        replace(step, status="old")
        if step.status == "new" and (_long_ago(step, nights) or _is_known(step, known))
        else step
        for step in steps
    )


def segment_starts(nights: Sequence[Night]) -> tuple[int, ...]:
    """Name the first night of every segment; of no nights, none.

    >>> segment_starts([Night(figure=1.0, key=key) for key in "aabba"])
    (0, 2, 4)
    """
    return tuple(
        index
        for index, night in enumerate(nights)
        if index == 0 or night.key != nights[index - 1].key
    )


def same_step(one: Step, other: Step) -> bool:
    """Whether two findings are of one step: alike in direction, hardly apart in time."""
    return one.direction == other.direction and abs(one.at - other.at) <= SAME_STEP_NIGHTS


def _steps_of_segment(
    nights: Sequence[Night], at: Sequence[int], threshold: float, seed: int
) -> list[Step]:
    """The steps of nights that all have a figure; `at` are their indices in the history."""
    values = np.array([math.log(night.figure) for night in nights if night.figure is not None])
    errors = np.array([own_error_of(night) for night in nights])
    cuts = search(values, errors, threshold=math.log1p(threshold), seed=seed)
    edges = [0, *(cut.at for cut in cuts), len(nights)]
    return [
        _step(
            cut,
            (values[edges[i] : cut.at], values[cut.at : edges[i + 2]]),
            (errors[edges[i] : cut.at], errors[cut.at : edges[i + 2]]),
            at,
        )
        for i, cut in enumerate(cuts)
    ]


def _step(
    cut: Cut, levels: tuple[Array, Array], errors: tuple[Array, Array], at: Sequence[int]
) -> Step:
    size = shift(*levels)
    bounds = shift_bounds(
        *levels,
        rho=cut.rho,
        own_error=math.hypot(*(mean_error(side) for side in errors)),
        confidence=CONFIDENCE,
    )
    return Step(
        at=at[cut.at],
        last_good=at[cut.earliest - 1],
        first_bad=at[cut.latest],
        direction="up" if size > 0 else "down",
        ratio=math.exp(size),
        interval=bounds
        and Interval(low=math.exp(bounds[0]), high=math.exp(bounds[1]), confidence=CONFIDENCE),
        votes=cut.election.votes,
        # Bonferroni over the places where the segment might have been cut.
        p_value=min(1.0, cut.election.p_value * len(at)),
        status="new",
    )


def own_error_of(night: Night) -> float:
    """Standard error of a night's logarithm by its own launches; 0 where not known."""
    if night.interval is None:
        return 0.0
    reach = math.log(night.interval.high / night.interval.low) / 2
    return reach / float(special.ndtri((1 + night.interval.confidence) / 2))


def _with_recoveries(steps: Sequence[Step], threshold: float) -> list[Step]:
    """Mark the steps of one segment after which the level came back to what it was."""
    return [
        replace(step, status="recovered")
        if any(_undone(steps[index : later + 1], threshold) for later in range(index, len(steps)))
        else step
        for index, step in enumerate(steps)
    ]


def _undone(steps: Sequence[Step], threshold: float) -> bool:
    """Whether the steps cancel, but for what matters to nobody."""
    return abs(sum(math.log(step.ratio) for step in steps)) < math.log1p(threshold)


def _long_ago(step: Step, nights: Sequence[Night]) -> bool:
    return len(nights) - step.at > RECENT_NIGHTS


def _is_known(step: Step, known: Sequence[Step]) -> bool:
    return any(same_step(step, other) for other in known)
