"""When did it change, by how much, and between which two nights?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from corebound.stats.by_turns import steps_by_turns
from corebound.stats.course import Course, segments_of
from corebound.stats.distributions import normal_quantile
from corebound.stats.interval import Interval
from corebound.stats.segment import Memory, Segment, found_in
from corebound.stats.step import Recovery, Step, ratio_of

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
        key: Host, kernel and environment in one. Nights of another are of another
            segment, and what differs between the two is no commit's doing.
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

    Each segment is looked at by itself, also where nights of others lie between its own.
    Where several show one step the clearest tells it. Five detectors vote; docs/statistics.md says
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
    return steps_of(course_of_nights(nights), threshold=threshold)


def course_of_nights(nights: Sequence[Night]) -> Course:
    """The nights as columns."""
    seen = [night.figure if night.seen and night.figure is not None else np.nan for night in nights]
    keys = [night.key for night in nights]
    borders = [at for at in range(1, len(keys)) if keys[at] != keys[at - 1]]
    return Course(
        logs=np.log(np.array(seen, dtype=np.float64)),
        errors=np.array([own_error_of(night) if night.seen else 0.0 for night in nights]),
        segments=segments_of(keys, borders),
    )


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
    by_segment: list[list[Step]] = []
    for nights in course.segments:
        present = nights[~np.isnan(course.logs[nights])]
        values, errors = course.logs[present], course.errors[present]
        segment = Segment(values=values, errors=errors, threshold=threshold, seed=_SEED)
        found = found_in(segment, remembered).steps
        by_segment.append([step.moved(present) for step in found])
    more = steps_by_turns(
        course, told_once(by_segment), threshold=threshold, seed=_SEED, memory=remembered
    )
    told = told_once(
        [
            _with_recoveries(told_once([steps, more.get(which, ())]), threshold)
            for which, steps in enumerate(by_segment)
        ]
    )
    return tuple(
        replace(
            step,
            status="old" if step.status == "new" and _long_ago(step, n) else step.status,
            recovery=step.recovery and _as_told(step, step.recovery, told),
        )
        for step in told
    )


def told_once(by_segment: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps of several segments in time order, each that more than one shows once.

    It is told as the segment has it in which chance is the least likely, between the last
    night before it and the first after it of all of them.
    """
    told: list[tuple[int, Step]] = []
    every = ((which, step) for which, steps in enumerate(by_segment) for step in steps)
    for which, step in sorted(every, key=lambda one: (one[1].p_value, one[1].at)):
        same = (
            at for at, (other, one) in enumerate(told) if other != which and _are_one(one, step)
        )
        at = next(same, None)
        if at is None:
            told.append((which, step))
        else:
            told[at] = (told[at][0], _narrowed(told[at][1], step))
    return sorted((step for _, step in told), key=lambda step: step.at)


def _are_one(one: Step, other: Step) -> bool:
    """Whether two segments may show the same."""
    return one.direction == other.direction and _overlap(one, other)


def _overlap(one: Step, other: Step | Recovery) -> bool:
    return max(one.last_good, other.last_good) < min(one.first_bad, other.first_bad)


def _narrowed(step: Step, other: Step) -> Step:
    last_good = max(step.last_good, other.last_good)
    first_bad = min(step.first_bad, other.first_bad)
    at = min(max(step.at, last_good + 1), first_bad)
    return replace(step, last_good=last_good, first_bad=first_bad, at=at)


def own_error_of(night: Night) -> float:
    """Standard error of a night's logarithm by its own launches; 0 where not known."""
    if night.interval is None:
        return 0.0
    # Of logarithms: what lies between may be more than a float can tell.
    reach = (math.log(night.interval.high) - math.log(night.interval.low)) / 2
    return reach / normal_quantile((1 + night.interval.confidence) / 2)


def _with_recoveries(steps: Sequence[Step], threshold: float) -> list[Step]:
    """Say of the steps of one segment what later ones took back, and if the level is as it was."""
    return [
        replace(
            step,
            status="recovered"
            if any(
                _undone(steps[index : later + 1], threshold)
                for later in range(index + 1, len(steps))
            )
            else step.status,
            recovery=_recovery(step, steps[index + 1 :], threshold),
        )
        for index, step in enumerate(steps)
    ]


def _recovery(step: Step, later: Sequence[Step], threshold: float) -> Recovery | None:
    side = 1 if step.direction == "up" else -1
    moved = math.log(step.ratio)
    found, back = None, 0
    for one in later:
        moved += math.log(one.ratio)
        if one.direction == step.direction:
            continue
        back += 1
        if side * moved >= side * math.log(step.ratio):
            continue  # what it took back was of later steps
        found = Recovery(
            at=one.at,
            last_good=one.last_good,
            first_bad=one.first_bad,
            steps=back,
            left=ratio_of(moved),
            whole=side * moved < math.log1p(threshold),
        )
        if found.whole:
            break
    return found


def _as_told(step: Step, recovery: Recovery, told: Sequence[Step]) -> Recovery:
    """A recovery between the nights that the step which made it is told between."""
    for one in told:
        if one.direction != step.direction and _overlap(one, recovery):
            return replace(recovery, at=one.at, last_good=one.last_good, first_bad=one.first_bad)
    return recovery


def _undone(steps: Sequence[Step], threshold: float) -> bool:
    """Whether the steps cancel, but for what matters to nobody."""
    return abs(sum(math.log(step.ratio) for step in steps)) < math.log1p(threshold)


def _long_ago(step: Step, nights: int) -> bool:
    return nights - step.at > RECENT_NIGHTS
