"""Find changes in a suite's history, and series that now fail."""

from __future__ import annotations

import hashlib
import itertools
import math
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from msgspec import Struct

from corebound.parallel import Mapper, serial_map
from corebound.records.decisions import ChangeLocation
from corebound.records.history import HistoryPoint, HistoryPoints, Series, is_failure
from corebound.stats.distributions import normal_quantile
from corebound.stats.history.change_point import ChangePoint, HistoryArrays, segments_of
from corebound.stats.history.detection import THRESHOLD, change_points_of
from corebound.stats.history.early_warnings import early_warning
from corebound.stats.history.incremental import NewResults, SegmentCache
from corebound.stats.history.search import MIN_LEVEL_POINTS, search
from corebound.stats.history.shift_tests import median, spread_of
from corebound.stats.multiplicity import benjamini_hochberg

# Fewer points hardly determine a spread.
_OF_A_LEVEL = 5


class Change(Struct, frozen=True, kw_only=True):
    """A lasting change in one series; `step` has indices into its points.

    `clear`: it is significant after correction over the whole suite, where some changes
    appear by chance. `back_is_clear`: so is the change that its recovery ends with.
    """

    series: Series
    step: ChangePoint
    clear: bool
    back_is_clear: bool = False

    @property
    def id(self) -> str:
        """A stable id, made from the series and the first point certainly after the change."""
        first = self.series.points.moments[self.step.first_bad]
        named = f"{self.series.id} {first.commit.sha if first.commit else first.at}"
        return hashlib.sha256(named.encode()).hexdigest()[:10]

    @property
    def is_regression(self) -> bool:
        """Whether it got worse: values went up, or down if more is better."""
        return self.is_up != self.series.more_is_better

    @property
    def is_up(self) -> bool:
        """Whether values went up, for better or worse."""
        return self.step.direction == "up"

    @property
    def since(self) -> str:
        """When it most likely began: the moment of the first point after it."""
        return self.series.points.moments[self.step.at].at

    @property
    def last_good(self) -> HistoryPoint:
        """The last point that is certainly before it."""
        return self.series.points[self.step.last_good]

    @property
    def first_bad(self) -> HistoryPoint:
        """The first point that is certainly after it."""
        return self.series.points[self.step.first_bad]

    @property
    def back_between(self) -> tuple[HistoryPoint, HistoryPoint] | None:
        """The points that its recovery ends between; None without any recovery."""
        recovery, points = self.step.recovery, self.series.points
        if recovery is None:
            return None
        return points[recovery.last_good], points[recovery.first_bad]

    @property
    def place(self) -> ChangeLocation:
        """Its location, for decisions and re-runs that refer to it."""
        return ChangeLocation(
            series=self.series.id,
            direction=self.step.direction,
            after=self.last_good.at,
            by=self.first_bad.at,
        )


class NotAnalysed(Struct, frozen=True, kw_only=True):
    """A series whose analysis failed, and the error in one line."""

    series: Series
    reason: str


class Analysis(Struct, frozen=True, kw_only=True):
    """The results of analysing a suite's histories.

    Attributes:
        changes: Every change point of every series, largest first.
        early_warnings: The series whose last two points stand out, before the detectors can
            confirm a change; largest first, and none is `clear`.
        not_analysed: The series whose analysis failed, by id.
    """

    changes: tuple[Change, ...]
    early_warnings: tuple[Change, ...]
    not_analysed: tuple[NotAnalysed, ...]


class Failing(Struct, frozen=True, kw_only=True):
    """A series that was measured before and whose latest points failed.

    Attributes:
        series: The series.
        since: Its first point without a value after the last measured one.
        points: How many points since then have no value.
    """

    series: Series
    since: HistoryPoint
    points: int


def arrays_of(series: Series) -> HistoryArrays:
    """Convert a series' points to the arrays that `change_points_of` takes.

    Raises:
        ValueError: A value is not above 0, or infinite, so it has no logarithm.
    """
    points = series.points
    figures = np.array(points.values)
    if not np.all(np.isnan(figures) | (figures > 0) & (figures < math.inf)):
        raise ValueError("a figure is above 0 and finite, or absent")
    errors = np.zeros_like(figures)
    if points.lows:
        low, high = np.array(points.lows), np.array(points.highs)
        sound = (low > 0) & (low <= high) & (high < math.inf)
        figures[~np.isnan(low) & ~sound] = math.nan
        reach = np.log(high, where=sound, out=np.zeros_like(high))
        reach -= np.log(low, where=sound, out=np.zeros_like(low))
        errors = reach / 2 / normal_quantile((1 + series.confidence) / 2)
    segments = segments_of(points.environment_keys, points.environment_changes)
    return HistoryArrays(logs=np.log(figures), errors=errors, segments=segments)


class _Shown(Struct, frozen=True, kw_only=True):
    """The result for one series: its change points and early warning, or the error."""

    steps: tuple[ChangePoint, ...] = ()
    early: ChangePoint | None = None
    news: NewResults = ((), {})
    error: str | None = None


def analyse(
    suite: Sequence[Series],
    *,
    ended: Container[str] = (),
    memory: SegmentCache | None = None,
    mapper: Mapper = serial_map,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Analysis:
    """Look for changes in every series.

    A series whose analysis raises an error is listed in `not_analysed` and left out of the rest.

    Args:
        suite: All the series that are judged together.
        ended: Ids of retired series, which get no early warning.
        memory: Results of earlier analyses, as in `change_points_of`.
        mapper: Applies the analysis to each series separately.
        progress: Called with the number of series done and their total.

    Source: among the change points that the detectors accept, `clear` are those that
    Benjamini & Hochberg keep over the suite.
    """
    remembered = memory or SegmentCache()

    def looked_at(series: Series) -> _Shown:
        # The only place that catches an error in the analysis of one series, in any process. The
        # error must not lose the results of all other series. It is a bug in corebound, so any
        # exception is caught, and each is reported with the changes.
        try:
            own = remembered.apart()
            course = arrays_of(series)
            steps = change_points_of(course, threshold=series.margin, memory=own)
            early = None
            if series.id not in ended:
                early = early_warning(course, steps, threshold=series.margin)
        except Exception as error:  # noqa: BLE001  # one series must not cost the site
            return _Shown(error=_in_a_line(error))
        return _Shown(steps=steps, early=early, news=own.news)

    found: list[tuple[Series, ChangePoint]] = []
    early: list[Change] = []
    lost: list[NotAnalysed] = []
    for done, shown in enumerate(mapper(looked_at, suite), start=1):
        series = suite[done - 1]
        if shown.error is not None:
            lost.append(NotAnalysed(series=series, reason=shown.error))
        found += [(series, step) for step in shown.steps]
        if shown.early is not None:
            early.append(Change(series=series, step=shown.early, clear=False))
        remembered.learn(shown.news)
        progress(done, len(suite))
    return Analysis(
        changes=tuple(sorted(_judged_together(found), key=_largest_first)),
        early_warnings=tuple(sorted(early, key=_largest_first)),
        not_analysed=tuple(sorted(lost, key=lambda one: one.series.id)),
    )


def _in_a_line(error: Exception) -> str:
    """The exception and its location in one line, for a bug report."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(traceback.format_exception_only(error)[-1].split())
    return f"{words} ({Path(last.filename).name}, line {last.lineno})"


def _judged_together(found: Sequence[tuple[Series, ChangePoint]]) -> Iterator[Change]:
    clear = benjamini_hochberg([step.p_value for _, step in found])
    stand = {
        (series.id, step.at)
        for (series, step), is_clear in zip(found, clear, strict=True)
        if is_clear
    }
    for series, step in found:
        yield Change(
            series=series,
            step=step,
            clear=(series.id, step.at) in stand,
            back_is_clear=step.recovery is not None and (series.id, step.recovery.at) in stand,
        )


def level_spread(series: Series, steps: Sequence[ChangePoint]) -> float | None:
    """The spread of the points of the latest level, as a logarithm; None with fewer than 5.

    It is a standard deviation computed from the median distance from the median, so spikes do
    not affect it.

    Args:
        series: The series.
        steps: Its change points.
    """
    course = arrays_of(series)
    logs = course.logs[course.level_since(max((step.at for step in steps), default=0))]
    if logs.size < _OF_A_LEVEL:
        return None
    return spread_of(logs - median(logs))


def failing(suite: Iterable[Series]) -> tuple[Failing, ...]:
    """The series that end in points that were not measured, longest first.

    A series without any measured point is not included: it is new or never worked, and its run
    reports that. A result of 0 or below cannot be compared, but is not a failure.
    """
    found = []
    for series in suite:
        missing = _failures_at_the_end(series.points)
        if 0 < missing < len(series.points):
            since = series.points[-missing]
            found.append(Failing(series=series, since=since, points=missing))
    return tuple(sorted(found, key=lambda one: (-one.points, one.series.id)))


def _failures_at_the_end(points: HistoryPoints) -> int:
    reasons = reversed(points.missing or [None] * len(points))
    ends = zip(reversed(points.values), reasons, strict=True)
    failed = (math.isnan(figure) and is_failure(why) for figure, why in ends)
    return sum(itertools.takewhile(bool, failed))


def _largest_first(change: Change) -> tuple[float, str]:
    return -abs(change.step.ratio - 1), change.series.id


# A change a hundred times the threshold, with little noise.
_PLAIN = 100 * THRESHOLD
_NOISE = 1e-3
# Uncorrelated noise: fractional parts of multiples of the golden ratio.
_GOLDEN = 0.6180339887


@cache
def least_figures() -> int:
    """How many values in one environment the search needs to find the clearest change.

    The result comes from the search itself: its detectors and its spike rule each need some values.
    """
    return next(
        nights
        for nights in itertools.count(2 * MIN_LEVEL_POINTS)
        if any(
            _is_found(at, nights) for at in range(MIN_LEVEL_POINTS, nights - MIN_LEVEL_POINTS + 1)
        )
    )


def _is_found(at: int, nights: int) -> bool:
    noise = _NOISE * (np.arange(nights) * _GOLDEN % 1)
    plain = np.repeat([0.0, _PLAIN], [at, nights - at])
    return bool(search(plain + noise, np.zeros(nights), threshold=THRESHOLD, seed=0))


def too_short(suite: Iterable[Series]) -> tuple[Series, ...]:
    """The series that cannot show a change yet, in their order.

    Only values from the latest environment count, because no commit accounts for differences
    from earlier ones. A series without any value failed, and is not included.
    """
    return tuple(one for one in suite if 0 < _figures(one) < least_figures())


def _figures(series: Series) -> int:
    course = arrays_of(series)
    return int(np.count_nonzero(~np.isnan(course.logs[course.latest])))
