"""When did it change, by how much, and between which two nights?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from corebound.stats.course import Course
from corebound.stats.distributions import normal_quantile
from corebound.stats.interval import Interval
from corebound.stats.segment import Memory, Segment, found_in
from corebound.stats.step import Step

# Smaller steps matter to nobody; a scenario may say otherwise.
THRESHOLD = 0.02
# A step that began longer ago is no news, even to who first looks at the history.
RECENT_NIGHTS = 30
# Of the permutation test: chance that is the same each time.
_SEED = 0


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


def find_steps(nights: Sequence[Night], *, threshold: float = THRESHOLD) -> tuple[Step, ...]:
    """Find where a history changed its level, up or down, and stayed there a while.

    Each segment is looked at by itself. Five detectors vote; docs/statistics.md says
    how, and how often they are right. The same nights give the same steps.

    Args:
        nights: In time order; those that have no figure are passed over.
        threshold: Least change that matters, above 0; 0.02 is a ratio of 1.02
            or of its reciprocal.

    Returns:
        In time order.

    Raises:
        ValueError: `threshold` is not above 0.
    """
    seen = [night.figure if night.seen and night.figure is not None else np.nan for night in nights]
    course = Course(
        logs=np.log(np.array(seen, dtype=np.float64)),
        errors=np.array([own_error_of(night) if night.seen else 0.0 for night in nights]),
        starts=segment_starts(nights),
    )
    return steps_of(course, threshold=threshold)


def steps_of(course: Course, *, threshold: float, memory: Memory | None = None) -> tuple[Step, ...]:
    """As `find_steps`, of columns.

    Args:
        course: The history.
        threshold: As there.
        memory: What was found before; what is found now is added.

    Raises:
        ValueError: `threshold` is not above 0.
    """
    if threshold <= 0:
        raise ValueError("a threshold is above 0")
    remembered = memory or Memory()
    n = course.logs.size
    steps: list[Step] = []
    for start, end in itertools.pairwise((*course.starts, n)):
        present = start + np.flatnonzero(~np.isnan(course.logs[start:end]))
        values, errors = course.logs[present], course.errors[present]
        segment = Segment(values=values, errors=errors, threshold=threshold, seed=_SEED)
        found = found_in(segment, remembered).steps
        steps += _with_recoveries([_moved(step, present) for step in found], threshold)
    return tuple(
        replace(step, status="old") if step.status == "new" and _long_ago(step, n) else step
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


def _moved(step: Step, nights: NDArray[np.int64]) -> Step:
    """A step with indices of what these nights are a part of."""
    return replace(
        step,
        at=int(nights[step.at]),
        last_good=int(nights[step.last_good]),
        first_bad=int(nights[step.first_bad]),
    )


def own_error_of(night: Night) -> float:
    """Standard error of a night's logarithm by its own launches; 0 where not known."""
    if night.interval is None:
        return 0.0
    reach = math.log(night.interval.high / night.interval.low) / 2
    return reach / normal_quantile((1 + night.interval.confidence) / 2)


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


def _long_ago(step: Step, nights: int) -> bool:
    return nights - step.at > RECENT_NIGHTS
