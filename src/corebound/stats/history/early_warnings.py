"""Does tonight stand out? What the first two nights after a step say, and a re-run's answer.

A vote over a history needs several nights on either side of a step, for a false alarm is
dear. A suspicion is cheap: it costs a re-run. So two nights that both stand out from all
before them are enough for one, and the re-run decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from corebound.records.decisions import Answer
from corebound.stats.comparison import Comparison
from corebound.stats.distributions import normal_quantile, student_below
from corebound.stats.history.arrays import Array, HistoryArrays
from corebound.stats.history.change_point import ChangePoint, Direction, level_of, ratio_of
from corebound.stats.history.detection import THRESHOLD
from corebound.stats.history.incremental import believable
from corebound.stats.history.shift_tests import correlation, hodges_lehmann_shift, median

# The first night may be a spike; a second one like it is hardly one too.
EARLY_NIGHTS = 2
# What a re-run refuted or could not tell, so many nights may tell after all.
ASK_AGAIN_NIGHTS = 3
# With fewer before them no night stands out.
_LEAST_BEFORE = 5
# One night in a hundred lies so far off to this side, were nights normal.
_LEVEL = 0.99
# Whatever they are: no more than so many of those before may lie as far off.
_SHARE = 0.05
# What is told apart is good from bad, so the middle between the two decides.
_HALF = 0.5
# Asked every few nights, one comparison in twenty would err in the end.
_CERTAIN = 0.01


def early_warning(
    course: HistoryArrays, steps: Sequence[ChangePoint], *, threshold: float = THRESHOLD
) -> ChangePoint | None:
    """Suspect a step that began with the last two nights, before a vote can find it.

    Args:
        course: The history.
        steps: What `steps_of` found in it; one that holds the last two nights
            already is no suspicion any more.
        threshold: Least change that matters, above 0; 0.02 is a ratio of 1.02.

    Returns:
        The step, without votes and without an interval; None where there is none.
        Its p-value is of a night as far off as the nearer of the two.
    """
    present = course.level_since(max((step.at for step in steps), default=0))
    values = course.logs[present]
    before, latest = values[:-EARLY_NIGHTS], values[-EARLY_NIGHTS:]
    if before.size < _LEAST_BEFORE or any(step.at >= present[-EARLY_NIGHTS] for step in steps):
        return None
    size = hodges_lehmann_shift(before, latest)
    side = math.copysign(1.0, size)
    if not all(stands_out(before, float(value), side=side) for value in latest):
        return None
    errors = believable(course.errors[present], values)
    doubt = normal_quantile(_LEVEL) * float(errors[-EARLY_NIGHTS:].max())
    if abs(size) < max(math.log1p(threshold) * (1 - 1e-9), doubt):
        return None
    nearer = min(latest, key=lambda value: side * value)
    first = int(present[-EARLY_NIGHTS])
    return ChangePoint(
        at=first,
        last_good=int(present[-EARLY_NIGHTS - 1]),
        first_bad=first,
        direction="up" if size > 0 else "down",
        before=level_of(median(before)),
        ratio=ratio_of(size),
        interval=None,
        votes=(),
        p_value=_chance(before, float(nearer), side=side),
        status="new",
    )


def stands_out(before: Array, value: float, *, side: float) -> bool:
    """Whether a night lies off those before it, to the side that is 1 (above) or -1.

    Beyond what Student's prediction has for one night in a hundred, and beyond all but
    one in twenty of the nights themselves, for these may be of two kinds or have spikes.

    Args:
        before: At least 2 logarithms.
        value: The night's.
        side: 1.0 or -1.0.
    """
    as_far = 1 + int(np.count_nonzero(side * before >= side * value))
    return (
        as_far <= max(_SHARE * (before.size + 1), 1.0)
        and _chance(before, value, side=side) <= 1 - _LEVEL
    )


def rerun_says(
    good: Sequence[float], rerun: float, *, direction: Direction, ratio: float
) -> Answer:
    """What a re-run of the present state says of a suspected step.

    It is one night more, taken when it was asked for and not because it looked
    bad. Nights differ among themselves, so it is held against how the good ones
    did, not against their mean alone.

    Args:
        good: Figures of the nights before the step, above 0.
        rerun: The re-run's figure, above 0.
        direction: Of the step.
        ratio: Of the step: bad level over good.

    Returns:
        `refuted` where it is nearer to the good level than to the bad; `confirmed` where
        it stands out from the good nights to the step's side; else `undecided`.
    """
    side = 1.0 if direction == "up" else -1.0
    before = np.log(np.array(good, dtype=np.float64))
    if not before.size:
        return "undecided"
    moved = math.log(rerun) - float(np.median(before))
    if side * moved < _HALF * abs(math.log(ratio)):
        return "refuted"
    if before.size >= 2 and stands_out(before, math.log(rerun), side=side):
        return "confirmed"
    return "undecided"


def both_say(compared: Comparison, *, direction: Direction, ratio: float) -> Answer:
    """What a comparison of the bad commit with the good one says of a suspected step.

    Args:
        compared: The bad commit's cell, its baseline the good commit's, launched in turns.
        direction: Of the step.
        ratio: Of the step: bad level over good.

    Returns:
        `confirmed` where the bad one is `slower` (of a step down `faster`), by at least half
        of the step and so clearly that one in a hundred is by chance; `undecided` where it is
        so less clearly, or the comparison cannot tell; else `refuted`.
    """
    expected = "slower" if direction == "up" else "faster"
    if compared.verdict not in {expected, "undecided"}:
        return "refuted"
    half = abs(math.log(compared.speedup_ratio)) >= _HALF * abs(math.log(ratio))
    certain = compared.p_value is not None and compared.p_value <= _CERTAIN
    return "confirmed" if half and certain and compared.verdict == expected else "undecided"


def alarms(*, voted: bool, said: Answer | None, both: bool) -> bool:
    """Whether a step is told as an alarm.

    A comparison of the two commits, launched in turns, decides by itself. The present
    state measured again only tells whether the nights were an accident: the host may
    still be as it was in them. So it refutes, and makes no alarm of a suspicion.

    Args:
        voted: Whether it was voted for, and stands among the whole suite's steps.
        said: What the latest re-run says that still counts; None where there is none.
        both: Whether that re-run was of both commits.
    """
    return (both and said == "confirmed") or (voted and said != "refuted")


def is_final(said: Answer, *, both: bool, covered: bool) -> bool:
    """Whether more nights change nothing about what a re-run said.

    What confirmed stands. What the commits compared refuted does too, for commits do not
    change; what the present state refuted was of one night.

    Args:
        said: What the re-run said.
        both: Whether it was of both commits.
        covered: Whether all the commits that the step may be in were between these.
    """
    return said == "confirmed" or (both and covered and said == "refuted")


def _chance(before: Array, value: float, *, side: float) -> float:
    """How likely one more normal night is to lie as far off to this side.

    Student's prediction; nights that go with the night before count for fewer.
    """
    rho = correlation([before])
    freedom = max((before.size - 1) * (1 - rho) / (1 + rho), 1.0)
    spread = float(before.std(ddof=1)) * math.sqrt(1 + 1 / (freedom + 1))
    off = side * (value - float(before.mean()))
    if spread == 0:
        return 0.0 if off > 0 else 1.0
    below = student_below(freedom, -abs(off) / spread)
    return below if off > 0 else 1 - below
