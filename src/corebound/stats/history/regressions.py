"""Changes in a suite's history: which series stepped, and which end without a figure."""

from __future__ import annotations

import hashlib
import itertools
import math
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from corebound.parallel import Mapper, serial_map
from corebound.records.decisions import ChangeLocation
from corebound.records.history import HistoryPoint, HistoryPoints, Series, is_failure
from corebound.stats.distributions import normal_quantile
from corebound.stats.history.arrays import HistoryArrays, segments_of
from corebound.stats.history.change_point import ChangePoint
from corebound.stats.history.detection import change_points_of
from corebound.stats.history.early_warnings import early_warning
from corebound.stats.history.incremental import News, SegmentCache
from corebound.stats.history.shift_tests import median, spread_of
from corebound.stats.multiplicity import benjamini_hochberg

# Fewer points hardly tell how far they differ.
_OF_A_LEVEL = 5


class Change(Struct, frozen=True, kw_only=True):
    """A lasting change in one series; `step` has indices into its points.

    `clear`: it stands as one of all the suite's steps, of which some look like
    one by chance; `back_is_clear`: so does that which its recovery ends with.
    """

    series: Series
    step: ChangePoint
    clear: bool
    back_is_clear: bool = False

    @property
    def id(self) -> str:
        """Stays itself from night to night: of the series, and the point it was first seen at."""
        first = self.series.points.moments[self.step.first_bad]
        named = f"{self.series.id} {first.commit.sha if first.commit else first.at}"
        return hashlib.sha256(named.encode()).hexdigest()[:10]

    @property
    def is_regression(self) -> bool:
        """Whether it got worse: figures went up, or down where more is better."""
        return self.is_up != self.series.more_is_better

    @property
    def is_up(self) -> bool:
        """Whether figures went up, for better or worse."""
        return self.step.direction == "up"

    @property
    def since(self) -> str:
        """When it began, by an even bet: the moment of the first point after it."""
        return self.series.points.moments[self.step.at].at

    @property
    def last_good(self) -> HistoryPoint:
        """The last point that is surely before it."""
        return self.series.points[self.step.last_good]

    @property
    def first_bad(self) -> HistoryPoint:
        """The first point that is surely after it."""
        return self.series.points[self.step.first_bad]

    @property
    def back_between(self) -> tuple[HistoryPoint, HistoryPoint] | None:
        """The points that its recovery ends between; None where nothing took any of it back."""
        recovery, points = self.step.recovery, self.series.points
        if recovery is None:
            return None
        return points[recovery.last_good], points[recovery.first_bad]

    @property
    def place(self) -> ChangeLocation:
        """Where it is, for what is decided or measured of it."""
        return ChangeLocation(
            series=self.series.id,
            direction=self.step.direction,
            after=self.last_good.at,
            by=self.first_bad.at,
        )


class NotAnalysed(Struct, frozen=True, kw_only=True):
    """A series whose analysis failed, and the error in a line."""

    series: Series
    reason: str


class Analysis(Struct, frozen=True, kw_only=True):
    """What the histories of a suite show.

    Attributes:
        changes: Every step of every series, largest first.
        early_warnings: The series whose last two nights stand out, before a vote can tell;
            largest first, and none is `clear`.
        not_analysed: The series that nothing is known of, by id.
    """

    changes: tuple[Change, ...]
    early_warnings: tuple[Change, ...]
    not_analysed: tuple[NotAnalysed, ...]


class Failing(Struct, frozen=True, kw_only=True):
    """A series that was measured and ends in points that were not.

    Attributes:
        series: The series.
        since: Its first point without a figure, after the last that was measured.
        points: How many points have had none since.
    """

    series: Series
    since: HistoryPoint
    points: int


def course_of(series: Series) -> HistoryArrays:
    """The points as `steps_of` takes them.

    Raises:
        ValueError: a figure is not above 0, or infinite: it has no logarithm.
    """
    points = series.points
    figures = np.array(points.figures)
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
    segments = segments_of(points.circumstances, points.borders)
    return HistoryArrays(logs=np.log(figures), errors=errors, segments=segments)


class _Shown(Struct, frozen=True, kw_only=True):
    """What one series shows: its steps and early warning, or the error that it ended with."""

    steps: tuple[ChangePoint, ...] = ()
    early: ChangePoint | None = None
    news: News = ((), {})
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

    A series whose analysis raises an error is named in `not_analysed` and left out of the rest.

    Args:
        suite: All the series that are judged together.
        ended: Ids of those that get no early warning, for they have had no point of late.
        memory: What was found before, as in `steps_of`.
        mapper: Looks at the series, each by itself.
        progress: Called with how many series are looked at, of how many.

    Source: of the steps that the detectors' votes let through, `clear` are those that
    Benjamini & Hochberg keep over the suite.
    """
    remembered = memory or SegmentCache()

    def looked_at(series: Series) -> _Shown:
        # The only place where an error in the analysis of one series is held back, whichever
        # process it runs in: it must not cost all the others their answer. What is caught is
        # a bug of ours, so any error is, and each is told wherever changes are.
        try:
            own = remembered.apart()
            course = course_of(series)
            steps = change_points_of(course, threshold=series.margin, memory=own)
            early = None
            if series.id not in ended:
                early = early_warning(course, steps, threshold=series.margin)
        except Exception as error:  # noqa: BLE001 - as said above
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
    """What was raised and where: what a report of the bug needs."""
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
    """How far points of the latest level differ, as a logarithm; None of fewer than 5.

    A standard deviation by the median distance from the median, so that spikes are not in it.

    Args:
        series: The series.
        steps: Its steps.
    """
    course = course_of(series)
    logs = course.logs[course.level_since(max((step.at for step in steps), default=0))]
    if logs.size < _OF_A_LEVEL:
        return None
    return spread_of(logs - median(logs))


def failing(suite: Iterable[Series]) -> tuple[Failing, ...]:
    """The series that end in points that were not measured, longest first.

    One that never was is new, or was never sound: its run said so. One that came to 0 or
    below has no figure to be compared, and has not failed.
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
    ends = zip(reversed(points.figures), reasons, strict=True)
    failed = (math.isnan(figure) and is_failure(why) for figure, why in ends)
    return sum(itertools.takewhile(bool, failed))


def _largest_first(change: Change) -> tuple[float, str]:
    return -abs(change.step.ratio - 1), change.series.id
