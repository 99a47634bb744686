"""Find changes in a suite's history, and series that now fail."""

import contextlib
import hashlib
import itertools
import math
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.parallel import Mapper, serial_map
from corebound.records.decisions import ChangeLocation
from corebound.records.history import HistoryPoint, Series, is_failure, is_refusal
from corebound.stats.distributions import normal_quantile
from corebound.stats.history.anchored import models_of, pooled_arrays
from corebound.stats.history.change_point import ChangePoint, HistoryArrays, segments_of
from corebound.stats.history.change_point_search import MIN_LEVEL_POINTS, search
from corebound.stats.history.detection import (
    THRESHOLD,
    change_points_of,
    deduplicate_change_points,
    measured_segments,
)
from corebound.stats.history.early_warnings import early_warning
from corebound.stats.history.incremental import NewResults, SegmentCache
from corebound.stats.history.shift_tests import median, spread_of
from corebound.stats.history.weighted_shifts import weighted_warning
from corebound.stats.multiplicity import benjamini_hochberg

# Fewer points hardly determine a spread.
_MIN_LEVEL = 5


class Change(Struct, frozen=True, kw_only=True, dict=True):
    """A lasting change in one series; `change_point` has indices into its points.

    `clear`: it is significant after correction over the whole suite, where some changes
    appear by chance, and its interval does not contain 1. `back_is_clear`: so is the change that
    its recovery ends with.
    """

    series: Series
    change_point: ChangePoint
    clear: bool
    back_is_clear: bool = False

    @cached_property
    def id(self) -> str:
        """A stable id, made from the series and the first point certainly after the change."""
        first = self.first_bad
        named = f"{self.series.id} {first.commit.sha if first.commit else first.at}"
        return hashlib.sha256(named.encode()).hexdigest()[:10]

    @property
    def is_regression(self) -> bool:
        """Whether it got worse: values went up, or down if more is better."""
        return self.is_up != self.series.more_is_better

    @property
    def is_up(self) -> bool:
        """Whether values went up, for better or worse."""
        return self.change_point.direction == "up"

    @property
    def since(self) -> str:
        """When it most likely began: the moment of the first point after it."""
        return self.series.points[self.change_point.at].at

    @cached_property
    def last_good(self) -> HistoryPoint:
        """The last point that is certainly before it."""
        return self.series.points[self.change_point.last_good]

    @cached_property
    def first_bad(self) -> HistoryPoint:
        """The first point that is certainly after it."""
        return self.series.points[self.change_point.first_bad]

    @property
    def recovered_between(self) -> tuple[HistoryPoint, HistoryPoint] | None:
        """The points that its recovery ends between; None without any recovery."""
        recovery, points = self.change_point.recovery, self.series.points
        if recovery is None:
            return None
        return points[recovery.last_good], points[recovery.first_bad]

    @cached_property
    def only_on(self) -> tuple[str, ...]:
        """The CPU models that show it, if others do not; empty if nothing says so.

        Only series that are anchored know machines of several models.
        """
        if not self.series.is_anchored:
            return ()
        models = models_of(self.series, arrays_of(self.series), self.change_point)
        return models.with_change if models.without else ()

    @property
    def location(self) -> ChangeLocation:
        """Its location, for decisions and re-runs that refer to it."""
        return ChangeLocation(
            series=self.series.id,
            direction=self.change_point.direction,
            after=self.last_good.at,
            by=self.first_bad.at,
        )


class Analysis(Struct, frozen=True, kw_only=True):
    """The results of analysing a suite's histories.

    Attributes:
        changes: Every change point of every series, largest first.
        early_warnings: The series whose last two points stand out, before the detectors can
            confirm a change; largest first, and none is `clear`.
        too_short: The ids of series that cannot show a change yet. Only values from the latest
            environment count, because no commit accounts for differences from earlier ones. A
            series without any such value failed, and is not included.
        not_analysed: Why the analysis of a series failed, in one line, by its id.
    """

    changes: tuple[Change, ...]
    early_warnings: tuple[Change, ...]
    too_short: frozenset[str]
    not_analysed: Mapping[str, str]


class Failing(Struct, frozen=True, kw_only=True):
    """A series that was measured before and whose latest points failed.

    Attributes:
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
    values = np.array(points.values)
    if not np.all(np.isnan(values) | (values > 0) & (values < math.inf)):
        raise ValueError("a figure is above 0 and finite, or absent")
    errors = np.zeros_like(values)
    if points.lows:
        low, high = np.array(points.lows), np.array(points.highs)
        is_valid = (low > 0) & (low <= high) & (high < math.inf)
        values[~np.isnan(low) & ~is_valid] = math.nan
        reach = np.log(high, where=is_valid, out=np.zeros_like(high))
        reach -= np.log(low, where=is_valid, out=np.zeros_like(low))
        errors = reach / 2 / normal_quantile((1 + series.confidence) / 2)
    segments = segments_of(points.environment_keys, points.environment_changes)
    return HistoryArrays(logs=np.log(values), errors=errors, segments=segments)


class _SeriesResult(Struct, frozen=True, kw_only=True):
    """The result for one series: its change points and early warning, or the error.

    `values` is the number of its values in the latest environment.
    """

    change_points: tuple[ChangePoint, ...] = ()
    early: ChangePoint | None = None
    values: int = 0
    error: str | None = None


def _analyse_one(
    series: Series, history: HistoryArrays | None, cache: SegmentCache, *, is_retired: bool
) -> _SeriesResult:
    # The only place that catches an error in the analysis of one series, in any process. The error
    # must not lose the results of all other series. It is a bug in corebound, so any exception is
    # caught, and each is reported with the changes.
    try:
        history = history or arrays_of(series)
        change_points = change_points_of(
            history,
            threshold=series.margin,
            cache_before=cache,
            weighted=series.is_anchored,
        )
        if series.is_anchored:
            return _analyse_anchored(series, history, change_points, cache, is_retired=is_retired)
        early = (
            None if is_retired else early_warning(history, change_points, threshold=series.margin)
        )
    except Exception as error:  # noqa: BLE001  # one series must not cost the site
        return _SeriesResult(error=_one_line(error))
    values = history.level_since(0).size
    return _SeriesResult(change_points=change_points, early=early, values=values)


# This many series share the work of proposing cuts, and go to one process: more of a large suite,
# because few of its series have anything to propose.
_LEAST_TOGETHER, _MOST_TOGETHER = 16, 128
# A suite is divided into at least this many parts, for hosts with many CPUs.
_PARTS = 64


def analyse(
    suite: Sequence[Series],
    *,
    retired: Container[str] = (),
    cache: SegmentCache | None = None,
    mapper: Mapper = serial_map,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Analysis:
    """Look for changes in every series.

    A series whose analysis raises an error is listed in `not_analysed` and left out of the rest.

    Args:
        suite: All the series that are judged together.
        retired: Ids of retired series, which get no early warning.
        cache: Results of earlier analyses, as in `change_points_of`.
        mapper: Applies the analysis to a few series at a time.
        progress: Called with the number of series done and their total.

    Source: among the change points that the detectors accept, `clear` are those that
    Benjamini & Hochberg keep over the suite.
    """
    segment_cache = cache or SegmentCache()

    def analyse_several(several: Sequence[Series]) -> tuple[list[_SeriesResult], NewResults]:
        own_cache = segment_cache.apart()
        histories: dict[str, HistoryArrays] = {}
        # An error here is reported for its own series, which is analysed below.
        with contextlib.suppress(Exception):
            for series in several:
                histories[series.id] = arrays_of(series)
            own_cache.propose(
                segment
                for series in several
                for _, segment in measured_segments(histories[series.id], threshold=series.margin)
            )
        results = [
            _analyse_one(
                series, histories.get(series.id), own_cache, is_retired=series.id in retired
            )
            for series in several
        ]
        return results, own_cache.results

    change_points: list[tuple[Series, ChangePoint]] = []
    early: list[Change] = []
    too_short: set[str] = set()
    not_analysed: dict[str, str] = {}
    size = min(max(len(suite) // _PARTS, _LEAST_TOGETHER), _MOST_TOGETHER)
    together = [suite[at : at + size] for at in range(0, len(suite), size)]
    done = 0
    for several, (results, cached) in zip(together, mapper(analyse_several, together), strict=True):
        for series, result in zip(several, results, strict=True):
            if result.error is not None:
                not_analysed[series.id] = result.error
            change_points += [(series, change_point) for change_point in result.change_points]
            if 0 < result.values < min_values_to_detect():
                too_short.add(series.id)
            if result.early is not None:
                early.append(Change(series=series, change_point=result.early, clear=False))
        segment_cache.merge(cached)
        done += len(several)
        progress(done, len(suite))
    return Analysis(
        changes=tuple(sorted(_correct_over_suite(change_points), key=_largest_first)),
        early_warnings=tuple(sorted(early, key=_largest_first)),
        too_short=frozenset(too_short),
        not_analysed=not_analysed,
    )


def _analyse_anchored(
    series: Series,
    history: HistoryArrays,
    of_models: tuple[ChangePoint, ...],
    cache: SegmentCache,
    *,
    is_retired: bool,
) -> _SeriesResult:
    """The changes that all CPU models together show, and those that only some of them show."""
    pooled = pooled_arrays(series, history)

    def is_shared(change_point: ChangePoint) -> bool:
        # One that a model contradicts would be an average; models that show it do so themselves.
        return not models_of(series, history, change_point).without

    shared = change_points_of(pooled, threshold=series.margin, cache_before=cache, weighted=True)
    change_points = tuple(deduplicate_change_points([tuple(filter(is_shared, shared)), of_models]))
    early = None
    if not is_retired:
        early = weighted_warning(pooled, change_points, threshold=series.margin)
        if early is None or not is_shared(early):
            early = weighted_warning(history, change_points, threshold=series.margin)
    values = pooled.level_since(0).size
    return _SeriesResult(change_points=change_points, early=early, values=values)


def _one_line(error: Exception) -> str:
    """The exception and its location in one line, for a bug report."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(traceback.format_exception_only(error)[-1].split())
    return f"{text} ({Path(last.filename).name}, line {last.lineno})"


def _correct_over_suite(change_points: Sequence[tuple[Series, ChangePoint]]) -> Iterator[Change]:
    clear = benjamini_hochberg([change_point.p_value for _, change_point in change_points])
    significant = {
        (series.id, change_point.at)
        for (series, change_point), is_clear in zip(change_points, clear, strict=True)
        # The votes may see a change that the interval of its size does not exclude to be none.
        if is_clear
        and not (change_point.interval is not None and change_point.interval.contains(1.0))
    }
    for series, change_point in change_points:
        yield Change(
            series=series,
            change_point=change_point,
            clear=(series.id, change_point.at) in significant,
            back_is_clear=change_point.recovery is not None
            and (series.id, change_point.recovery.at) in significant,
        )


def level_spread(series: Series, change_points: Sequence[ChangePoint]) -> float | None:
    """The spread of the points of the latest level, as a logarithm; None with fewer than 5.

    It is a standard deviation computed from the median distance from the median, so spikes do
    not affect it.
    """
    start = max((change_point.at for change_point in change_points), default=0)
    history = arrays_of(replace(series, points=series.points[start:]))
    logs = history.logs[history.level_since(0)]
    if logs.size < _MIN_LEVEL:
        return None
    return spread_of(logs - median(logs))


def failing(suite: Iterable[Series]) -> tuple[Failing, ...]:
    """The series that end in points that were not measured, longest first.

    A series without any measured point is not included: it is new or never worked, and its run
    reports that. A result of 0 or below cannot be compared, but is not a failure. Points whose
    launches were all refused count as if they did not exist.
    """
    results = []
    for series in suite:
        failed = _trailing_failures(series)
        if failed:
            since = series.points[failed[-1]]
            results.append(Failing(series=series, since=since, points=len(failed)))
    return tuple(sorted(results, key=lambda failure: (-failure.points, failure.series.id)))


def _trailing_failures(series: Series) -> list[int]:
    """The failed points since the last measured one, latest first; empty if none was measured."""
    points = series.points
    reasons = points.missing or [None] * len(points)
    failed: list[int] = []
    for at in reversed(range(len(points))):
        if not math.isnan(points.values[at]) or not is_failure(reasons[at]):
            return failed
        if not is_refusal(reasons[at]):
            failed.append(at)
    return []


def _largest_first(change: Change) -> tuple[float, str]:
    return -abs(change.change_point.ratio - 1), change.series.id


# A change a hundred times the threshold, with little noise.
_CLEAR_SHIFT = 100 * THRESHOLD
_NOISE = 1e-3
# Uncorrelated noise: fractional parts of multiples of the golden ratio.
_GOLDEN = 0.6180339887


@cache
def min_values_to_detect() -> int:
    """How many values in one environment the search needs to find the clearest change.

    The result comes from the search itself: its detectors and its spike rule each need some values.
    """
    return next(
        length
        for length in itertools.count(2 * MIN_LEVEL_POINTS)
        if any(
            _is_found(at, length) for at in range(MIN_LEVEL_POINTS, length - MIN_LEVEL_POINTS + 1)
        )
    )


def _is_found(at: int, length: int) -> bool:
    noise = _NOISE * (np.arange(length) * _GOLDEN % 1)
    levels = np.repeat([0.0, _CLEAR_SHIFT], [at, length - at])
    return bool(search(levels + noise, np.zeros(length), threshold=THRESHOLD))
