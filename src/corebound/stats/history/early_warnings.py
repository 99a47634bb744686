"""Early warnings from the last two points of a history, and the evaluation of their re-runs.

The detectors need several points on either side of a change, because a false alarm is
expensive. An early warning is cheap: it costs one re-run. So two points that both stand out
from all before them are enough for a warning, and the re-run decides.
"""

import math
from collections.abc import Sequence

import numpy as np

from corebound.records.decisions import Answer, Direction
from corebound.stats.comparison import Comparison
from corebound.stats.distributions import normal_quantile, student_below
from corebound.stats.history.change_point import (
    ChangePoint,
    HistoryArrays,
    level_of,
    ratio_of,
)
from corebound.stats.history.detection import THRESHOLD
from corebound.stats.history.incremental import limit_errors
from corebound.stats.history.shift_tests import correlation, hodges_lehmann_shift, median
from corebound.stats.intervals import Array

# The first point may be a spike; a second one like it is unlikely to be one too.
WARNING_POINTS = 2
# After a re-run refutes or is inconclusive, this many new points can still overturn it.
RERUN_EXPIRES_POINTS = 3
# With fewer earlier points, none stands out.
_LEAST_BEFORE = 5
# If points were normal, one in a hundred would lie this far off in this direction.
_LEVEL = 0.99
# For any distribution: at most this share of the earlier points may lie as far off.
_SHARE = 0.05
# The midpoint between the good and the bad level decides.
_HALF = 0.5
# With a comparison every few points, a level of one in twenty would eventually give an error.
_CERTAIN = 0.01


def early_warning(
    history: HistoryArrays,
    change_points: Sequence[ChangePoint],
    *,
    threshold: float = THRESHOLD,
) -> ChangePoint | None:
    """Detect a change that began with the last two points, before the detectors can confirm it.

    Args:
        change_points: Its change points, from `change_points_of`. If one of them already covers the
            last two points, there is no early warning.
        threshold: Least change that matters, above 0; 0.02 is a ratio of 1.02.

    Returns:
        The change point, without an interval; None if there is none.
        Its p-value is that of the less extreme of the two points.
    """
    places = history.level_since(
        max((change_point.at for change_point in change_points), default=0)
    )
    values = history.logs[places]
    before, latest = values[:-WARNING_POINTS], values[-WARNING_POINTS:]
    if before.size < _LEAST_BEFORE or any(
        change_point.at >= places[-WARNING_POINTS] for change_point in change_points
    ):
        return None
    size = hodges_lehmann_shift(before, latest)
    side = math.copysign(1.0, size)
    if not all(stands_out(before, float(value), side=side) for value in latest):
        return None
    errors = limit_errors(history.errors[places], values)
    uncertainty = normal_quantile(_LEVEL) * float(errors[-WARNING_POINTS:].max())
    if abs(size) < max(math.log1p(threshold) * (1 - 1e-9), uncertainty):
        return None
    nearer = int(np.argmin(side * latest))
    first = int(places[-WARNING_POINTS])
    return ChangePoint(
        at=first,
        last_good=int(places[-WARNING_POINTS - 1]),
        first_bad=first,
        direction="up" if size > 0 else "down",
        before=level_of(median(before)),
        ratio=ratio_of(size),
        interval=None,
        is_early=True,
        p_value=_chance(before, float(latest[nearer]), side=side),
        status="new",
    )


def stands_out(before: Array, value: float, *, side: float) -> bool:
    """Whether a point stands out from those before it, above (`side` 1) or below (-1).

    It must lie beyond Student's prediction for one point in a hundred. It must also lie beyond
    all but one in twenty of the points themselves, which may form two groups or have spikes.

    Args:
        before: At least 2 logarithms.
        value: The point's logarithm.
        side: 1.0 or -1.0.
    """
    as_far = 1 + int(np.count_nonzero(side * before >= side * value))
    return (
        as_far <= max(_SHARE * (before.size + 1), 1.0)
        and _chance(before, value, side=side) <= 1 - _LEVEL
    )


def evaluate_rerun(
    good: Sequence[float], rerun: float, *, direction: Direction, ratio: float
) -> Answer:
    """Evaluate a re-run of the present state for a suspected change.

    A re-run is one more point, taken by request and not because it looked bad. Points vary
    among themselves, so it is compared with the spread of the good points, not with
    their mean alone.

    Args:
        good: Values of the points before the change, above 0.
        rerun: The re-run's value, above 0.
        ratio: Of the change: bad level over good.

    Returns:
        `refuted` if it is closer to the good level than to the bad one. `confirmed` if
        it stands out from the good points in the direction of the change. Else `inconclusive`.
    """
    side = 1.0 if direction == "up" else -1.0
    before = np.log(np.array(good, dtype=np.float64))
    if not before.size:
        return "inconclusive"
    shift = math.log(rerun) - float(np.median(before))
    if side * shift < _HALF * abs(math.log(ratio)):
        return "refuted"
    if before.size >= 2 and stands_out(before, math.log(rerun), side=side):
        return "confirmed"
    return "inconclusive"


def evaluate_commit_comparison(
    comparison: Comparison, *, direction: Direction, ratio: float
) -> Answer:
    """Evaluate a comparison of the bad commit with the good one for a suspected change.

    Args:
        comparison: The bad commit's cell, with the good commit's as its baseline, interleaved.
        ratio: Of the change: bad level over good.

    Returns:
        `confirmed` if the bad commit is `slower` (for a change down, `faster`), by at least half
        of the change, with a p-value of at most one in a hundred. `inconclusive` if the evidence is
        weaker, or the comparison cannot tell. Else `refuted`.
    """
    expected = "slower" if direction == "up" else "faster"
    if comparison.verdict not in {expected, "inconclusive"}:
        return "refuted"
    is_half = abs(math.log(comparison.speedup_ratio)) >= _HALF * abs(math.log(ratio))
    is_certain = comparison.p_value is not None and comparison.p_value <= _CERTAIN
    return (
        "confirmed" if is_half and is_certain and comparison.verdict == expected else "inconclusive"
    )


def raises_alarm(*, is_accepted: bool, answer: Answer | None, is_commit_comparison: bool) -> bool:
    """Whether a change raises an alarm.

    A comparison of the two commits, launched in turns, decides by itself. A re-run of the
    present state only shows whether the points were an accident, because the host may
    still be in the same state. So it can refute a change, but cannot turn an early warning
    into an alarm.

    Args:
        is_accepted: Whether the detectors accepted it and it is significant in the whole suite.
        answer: The result of the latest valid re-run; None without one.
        is_commit_comparison: Whether that re-run measured both commits.
    """
    return (is_commit_comparison and answer == "confirmed") or (is_accepted and answer != "refuted")


def is_final(answer: Answer, *, is_commit_comparison: bool, is_covered: bool) -> bool:
    """Whether a re-run's result holds whatever further points show.

    A confirmation is final. A refutation from a comparison of the commits is final too, because
    commits do not change. A refutation by the present state is only one point.

    Args:
        is_commit_comparison: Whether it measured both commits.
        is_covered: Whether all the commits that may hold the change lay between these two.
    """
    return answer == "confirmed" or (is_commit_comparison and is_covered and answer == "refuted")


def _chance(before: Array, value: float, *, side: float) -> float:
    """The probability that one more normal value lies as far off in this direction.

    Student's prediction; autocorrelated points count as fewer.
    """
    rho = correlation([before])
    freedom = max((before.size - 1) * (1 - rho) / (1 + rho), 1.0)
    spread = float(before.std(ddof=1)) * math.sqrt(1 + 1 / (freedom + 1))
    off = side * (value - float(before.mean()))
    if spread == 0:
        return 0.0 if off > 0 else 1.0
    below = student_below(freedom, -abs(off) / spread)
    return below if off > 0 else 1 - below
