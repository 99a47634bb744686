"""Find changes of level where each point counts by its own precision.

Ratios of one night may be three times as precise as those of the next. A point's variance is that
of its own error, plus one that all points share: a build may be laid out differently in memory.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.stats.between_hosts import between_variance
from corebound.stats.distributions import (
    chi_squared_upper_quantile,
    student_below,
    student_quantile,
)
from corebound.stats.history.change_point import (
    ChangePoint,
    HistoryArrays,
    level_of,
    ratio_of,
)
from corebound.stats.history.shift_tests import correlation, inflation, median, spread_of
from corebound.stats.intervals import CONFIDENCE, Array, Interval

# One point may be an outlier; a second one that agrees with it is unlikely to be one too.
_LEAST_POINTS = 2
# The longer side of a change takes at least this many.
_LEAST_BEFORE = 5
# A shorter side has to have a level of its own, unlike outliers; at this error probability.
_SHORT = 8
_ONE_LEVEL = 0.01
# A share of the change, beyond which a point counts as an outlier like it.
_STANDS_OUT = 0.6
# The error probability of a change among all places of its level, and of an early warning at one.
_CHANGE, _WARNING = 0.001, 0.005
# The probability that a short side consists of outliers of the kind that occurred.
_OUTLIERS, _OUTLIERS_WARNING = 0.002, 0.01
# An early warning began within this many points.
_WARNING_POINTS = 5
# In standard errors: clearer places are looked at closely.
_CANDIDATE = 2.5
# The share of the likelihood on either side of the possible locations.
_RULED_OUT = 0.01
# Normal values' standard deviation of a difference of two.
_OF_TWO = math.sqrt(2)
# Nothing is more exact than this, as a logarithm.
_LEAST_ERROR = 1e-6


def error_variances(logs: Array, errors: Array) -> Array:
    """The variance of each point's own error; unknown ones are as large as the others'."""
    known = errors[errors > 0]
    typical = median(known) if known.size else successive_spread(logs)
    return np.maximum(np.where(errors > 0, errors, typical), _LEAST_ERROR) ** 2


def successive_spread(logs: Array) -> float:
    """The spread of points from one to the next, which a change moves once."""
    return spread_of(np.diff(logs)) / _OF_TWO if logs.size > 1 else 0.0


class _Shift(Struct, frozen=True, kw_only=True):
    """The levels on both sides of a cut.

    Attributes:
        before: The level before it, a logarithm.
        size: The level after less the level before.
        error: Standard error of `size`, with `freedom` degrees of freedom.
        weights: What each point counts.
        rho: Correlation of successive points.
    """

    before: float
    size: float
    error: float
    freedom: float
    weights: Array
    rho: float

    @property
    def p_value(self) -> float:
        """The probability of a shift this large in either direction without a change."""
        return 2 * student_below(self.freedom, -abs(self.size) / self.error)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the ratio."""
        reach = self.error * student_quantile(self.freedom, (1 + CONFIDENCE) / 2)
        low, high = (ratio_of(self.size + side * reach) for side in (-1, 1))
        return Interval(low=low, high=high, confidence=CONFIDENCE)


def _shift(values: Array, variances: Array, at: int) -> _Shift:
    """The levels on both sides of a cut, with random effects.

    Source: the shared variance, Paule & Mandel (1982); the error, Hartung & Knapp, Statistics in
    Medicine 20 (2001); degrees of freedom with as many points as their weights are worth, Kish,
    "Survey sampling" (1965).
    """
    residuals = values - _levels(values, 1 / variances, at)
    weights = 1 / (between_variance(residuals, variances) + variances)
    levels = _levels(values, weights, at)
    rho = correlation([values[:at], values[at:]])
    # Intervals of points allow for much that a history has not; it shows how exact points are.
    scatter = float(np.sum(weights * (values - levels) ** 2)) / max(values.size - 2, 1)
    error = math.sqrt(
        scatter
        * sum(
            inflation(side.size, rho) / float(side.sum()) for side in (weights[:at], weights[at:])
        )
    )
    worth = float(weights.sum() ** 2 / np.sum(weights**2))
    return _Shift(
        before=float(levels[0]),
        size=float(levels[-1] - levels[0]),
        error=max(error, _LEAST_ERROR),
        freedom=max(worth - 2, 1.0),
        weights=weights,
        rho=rho,
    )


def _levels(values: Array, weights: Array, at: int) -> Array:
    """For each point the weighted mean of its side of a cut."""
    means = [float(np.average(values[side], weights=weights[side])) for side in _both(at)]
    return np.repeat(means, [at, values.size - at])


def _both(at: int) -> tuple[slice, slice]:
    return slice(None, at), slice(at, None)


def _statistics(values: Array, weights: Array) -> tuple[Array, Array]:
    """For each cut from 1 on, its shift, and that in standard errors (generalised likelihood)."""
    left = weights.cumsum()[:-1]
    right = weights.sum() - left
    sums = (weights * values).cumsum()
    shifts = (sums[-1] - sums[:-1]) / right - sums[:-1] / left
    return shifts, np.abs(shifts) / np.sqrt(1 / left + 1 / right)


def _clearest(
    values: Array, variances: Array, *, least: float, since: int = 0
) -> tuple[ChangePoint, float] | None:
    """The clearest change of a level, and the chance that it is outliers; None without any.

    Its p-value is that of this place alone.

    Source: the generalised likelihood ratio of a change of level at an unknown place, Siegmund &
    Venkatraman, "Using the generalized likelihood ratio statistic for sequential detection of a
    change-point", Annals of Statistics 23 (1995).
    """
    n = values.size
    if n < _LEAST_BEFORE + _LEAST_POINTS:
        return None
    cuts = np.arange(max(_LEAST_POINTS, since), n - _LEAST_POINTS + 1)
    shifts, clear = _statistics(values, 1 / variances)

    def candidates() -> list[int]:
        is_possible = (
            (np.abs(shifts[cuts - 1]) >= least)
            & (clear[cuts - 1] >= _CANDIDATE)
            & (np.maximum(cuts, n - cuts) >= _LEAST_BEFORE)
        )
        possible = cuts[is_possible]
        return [int(at) for at in possible[np.argsort(-clear[possible - 1], kind="stable")]]

    first = candidates()
    if not first:
        return None
    # With the shared variance, which the clearest cut shows, another one may be the clearest.
    weights = _shift(values, variances, first[0]).weights
    shifts, clear = _statistics(values, weights)
    for at in candidates():
        shift = _shift(values, variances, at)
        if abs(shift.size) < least or not _has_levels(values, shift.weights, at):
            continue
        side = math.copysign(1.0, shift.size)
        # The last night may be the only one after it, if the one before seems to be by chance.
        chances = np.where(side * shifts > 0, clear**2 / 2 / inflation(n, shift.rho), 0.0)
        location = np.exp(chances - chances.max()).cumsum()
        earliest, middle, latest = (
            1 + int(np.searchsorted(location, share * location[-1]))
            for share in (_RULED_OUT, 0.5, 1 - _RULED_OUT)
        )
        middle = min(max(middle, _LEAST_POINTS), n - _LEAST_POINTS)
        change_point = ChangePoint(
            at=middle,
            last_good=earliest - 1,
            first_bad=latest,
            direction="up" if shift.size > 0 else "down",
            before=level_of(shift.before),
            ratio=ratio_of(shift.size),
            interval=shift.interval,
            p_value=shift.p_value,
            status="new",
        )
        return change_point, _chance_of_outliers(values, shift, at)
    return None


def _has_levels(values: Array, weights: Array, at: int) -> bool:
    """Whether the points of a short side agree with each other.

    Source: Cochran's Q, Biometrics 10 (1954).
    """
    for side in _both(at):
        size = values[side].size
        if size < _SHORT:
            off = values[side] - np.average(values[side], weights=weights[side])
            if np.sum(weights[side] * off**2) > chi_squared_upper_quantile(size - 1, _ONE_LEVEL):
                return False
    return True


def _chance_of_outliers(values: Array, shift: _Shift, at: int) -> float:
    """The probability that the points of a short side are outliers like those of the other side.

    Points count by their weights, because an imprecise point far away is none.
    """
    is_right = at >= values.size - at
    short, long = reversed(_both(at)) if is_right else _both(at)
    if values[short].size >= _SHORT:
        return 0.0
    worth = np.minimum(shift.weights / median(shift.weights), 1.0)
    level = shift.before if is_right else shift.before + shift.size
    beyond = (values[long] - level) / (shift.size if is_right else -shift.size) > _STANDS_OUT
    # Jeffreys' estimate: the rate is above 0 even if no outlier occurred yet.
    rate = (float(worth[long][beyond].sum()) + 0.5) / (float(worth[long].sum()) + 1)
    return math.pow(min(rate, 1.0), float(worth[short].sum()))


def add_weighted(
    values: Array, errors: Array, voted: Sequence[ChangePoint], *, threshold: float
) -> list[ChangePoint]:
    """Add the changes that are clear once points count by their precision, and size all by it.

    Args:
        values: n logarithms in time order.
        errors: Their standard errors; 0 if unknown.
        voted: The change points that the detectors found, in time order.
        threshold: Least change that matters, as a ratio minus 1.

    Source: binary segmentation, Scott & Knott, "A cluster analysis method for grouping means in
    the analysis of variance", Biometrics 30 (1974).
    """
    variances = error_variances(values, errors)
    edges = (0, *(change_point.at for change_point in voted), values.size)
    found = [
        *voted,
        *itertools.chain.from_iterable(
            _within(values, variances, begin, end, math.log1p(threshold))
            for begin, end in itertools.pairwise(edges)
        ),
    ]
    found.sort(key=lambda change_point: change_point.at)
    edges = (0, *(change_point.at for change_point in found), values.size)
    return [
        _sized(change_point, values[begin:end], variances[begin:end], at - begin)
        for change_point, begin, at, end in zip(found, edges, edges[1:], edges[2:], strict=False)
    ]


def _within(
    values: Array, variances: Array, begin: int, end: int, least: float
) -> Iterator[ChangePoint]:
    found = _clearest(values[begin:end], variances[begin:end], least=least)
    if found is None:
        return
    change_point, outliers = found
    p_value = min(1.0, change_point.p_value * (end - begin))
    if p_value > _CHANGE or outliers > _OUTLIERS:
        return
    at = begin + change_point.at
    yield from _within(values, variances, begin, at, least)
    yield replace(change_point.moved(np.arange(begin, end)), p_value=p_value)
    yield from _within(values, variances, at, end, least)


def _sized(change_point: ChangePoint, values: Array, variances: Array, at: int) -> ChangePoint:
    shift = _shift(values, variances, at)
    if (shift.size > 0) != (change_point.direction == "up"):
        return change_point
    return replace(
        change_point,
        before=level_of(shift.before),
        ratio=ratio_of(shift.size),
        interval=shift.interval,
    )


def weighted_warning(
    history: HistoryArrays, change_points: Sequence[ChangePoint], *, threshold: float
) -> ChangePoint | None:
    """Detect a change among the last five points that is not clear enough to be reported.

    Args:
        change_points: Its change points. One that covers the last two points leaves no warning.
        threshold: Least change that matters, as a ratio minus 1.

    Returns:
        The change point, as an early warning, without an interval; None if there is none.
    """
    places = history.level_since(
        max((change_point.at for change_point in change_points), default=0)
    )
    values = history.logs[places]
    found = _clearest(
        values,
        error_variances(values, history.errors[places]),
        least=math.log1p(threshold) * (1 - 1e-9),
        since=max(values.size - _WARNING_POINTS, _LEAST_BEFORE),
    )
    if found is None:
        return None
    change_point, outliers = found
    if change_point.p_value > _WARNING or outliers > _OUTLIERS_WARNING:
        return None
    return replace(change_point.moved(places), interval=None, is_early=True)
