"""Find the change points of one segment, and update them as the segment grows."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.stats.history import shift_tests
from corebound.stats.history.change_point import ChangePoint, level_of, ratio_of
from corebound.stats.history.change_point_search import (
    MIN_LEVEL_POINTS,
    Cut,
    Cuts,
    ProposedCuts,
    extend_search,
    propose_cuts,
    propose_later_cuts,
    rough_spread,
    search,
)
from corebound.stats.history.detectors import REACH, CutSides
from corebound.stats.intervals import CONFIDENCE, Array, Interval

# After a change, this many points are few: all detectors run, whatever the values.
_MIN_POINTS_TO_SKIP = 16
# In standard errors of the rank test, for independent points. In a series without a change, the
# clearest of two hundred cuts rarely exceeds this value.
_CLEAR = 3.0
# In standard deviations: two independent points rarely both lie this far off.
_FAR = 2.0


def needs_rescan(values: Array, *, first: int, threshold: float) -> bool:
    """Whether the last level of a series may contain a change, so that the detectors must run.

    Args:
        values: Values of a single level as far as is known, in time order.
        first: The first index where a change would be new.
        threshold: Least shift that matters, as a logarithm.

    Returns:
        False if the last two points do not stand out, no cut is clear by ranks, and
        the likelihood does not favour the clearest cut.
    """
    n = values.size
    if n < _MIN_POINTS_TO_SKIP:
        return True
    off = values - shift_tests.median(values)
    spread = shift_tests.spread_of(off)
    latest = off[-MIN_LEVEL_POINTS:]
    if max(float(latest.min()), float(-latest.max())) >= max(_FAR * spread, threshold):
        return True
    left = np.arange(1.0, n)
    excess = np.abs(np.cumsum(shift_tests.ranks(values) - (n + 1) / 2)[:-1])
    clear = excess / np.sqrt(left * (n - left) * (n + 1) / 12)
    begin = max(first, MIN_LEVEL_POINTS)
    near = clear[begin - 1 : n - MIN_LEVEL_POINTS]
    if not near.size:
        return True
    at = begin + int(near.argmax())
    sides = CutSides(values[:at], values[at:])
    return float(near.max()) >= _CLEAR or (sides.is_large(threshold, 0.0) and sides.may_pass())


# The whole segment is analysed each time it has gained this many points. In between, only the
# new part is. docs/adr/0015 says how often that makes a difference.
_WHOLE_EVERY = 32
# A shorter segment is always analysed whole: its noise is uncertain, and the analysis is fast.
_WHOLE_UP_TO = 320
# Own errors may exceed the point-to-point variation by this factor.
_MAX_ERROR_RATIO = 2.0
# With fewer points that report an error, the typical error is unknown.
_MIN_REPORTED_ERRORS = 8
# This many points before the new ones are analysed again; votes use half as many.
_REANALYSED_POINTS = REACH


class Segment(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that determines the change points of a segment.

    Attributes:
        values: n logarithms in time order.
        errors: Their standard errors as the points report them; 0 if unknown.
        threshold: Least change that matters, as a ratio minus 1.
    """

    values: Array
    errors: Array
    threshold: float

    @cached_property
    def key(self) -> str:
        """A hash of all of it, as text."""
        reported = hashlib.blake2b(f"{self.threshold!r}".encode(), digest_size=16)
        reported.update(self.values.tobytes())
        reported.update(self.errors.tobytes())
        return reported.hexdigest()

    @property
    def believed(self) -> Array:
        """The errors, reduced to what the values support."""
        return limit_errors(self.errors, self.values)

    @cached_property
    def before(self) -> Segment | None:
        """The first points, up to the last analysis of the whole; None if it is analysed whole now.

        The number of these points depends on the segment alone, not on how it grew. The first
        values offset it, so that segments that began together are not all analysed at once.
        """
        n = self.values.size
        if n <= _WHOLE_UP_TO:
            return None
        first = hashlib.blake2b(self.values[:_WHOLE_UP_TO].tobytes(), digest_size=8).digest()
        over = (n + int.from_bytes(first, "little")) % _WHOLE_EVERY
        at = max(n - over, _WHOLE_UP_TO)
        return replace(self, values=self.values[:at], errors=self.errors[:at]) if over else None


class SegmentResult(Struct, frozen=True, kw_only=True):
    """The change points of a segment.

    Attributes:
        steps: In time order, with indices into its points; none is marked as recovered.
        places: For each, the index that was used while others were voted on.
        rho: Correlation between neighbouring points that their intervals use.
    """

    steps: tuple[ChangePoint, ...]
    places: tuple[int, ...]
    rho: float


def limit_errors(errors: Array, values: Array) -> Array:
    """Reduce the points' own standard errors to what their variation supports.

    A random error also shows as a difference between successive points. So most errors should
    not exceed the point-to-point variation, or twice that, because a few points may differ less
    by chance. If they do, all errors are scaled down by the same factor. asv's intervals of
    two samples, which most slow benchmarks have, are ten times too wide. A point that is
    less precise than most remains so. With fewer than 8 reported errors, all are used as they are.

    Args:
        errors: Standard errors of n points of one segment; 0 if unknown.
        values: Their logarithms, in time order.
    """
    reported = errors[errors > 0]
    if reported.size < _MIN_REPORTED_ERRORS:
        return errors
    return errors * min(1.0, _MAX_ERROR_RATIO * rough_spread(values) / shift_tests.median(reported))


# The keys of the requested results, and the results among them that are new.
NewResults: TypeAlias = tuple[tuple[str, ...], dict[str, SegmentResult]]


class SegmentCache:
    """Results of segment analyses, by a hash of everything that determines them.

    Attributes:
        asked: The requested results, cached or new: all that is worth keeping.
        proposed: The cuts proposed for segments that will be analysed whole.
        proposed_later: The cuts proposed for the new part of segments that have grown.
    """

    def __init__(self, before: Mapping[str, SegmentResult] | None = None) -> None:
        """Take earlier results."""
        self._before = before or {}
        self.asked: dict[str, SegmentResult] = {}
        self.proposed: dict[str, ProposedCuts] = {}
        self.proposed_later: dict[str, Cuts] = {}

    def apart(self) -> SegmentCache:
        """A separate cache with the same earlier results, for work done in parallel."""
        return SegmentCache(self._before)

    def propose(self, segments: Iterable[Segment]) -> None:
        """Propose the cuts of all segments without a result together, which takes less time.

        A segment that has grown without a sign of a change gets its result at once.
        """
        whole, extended = {}, {}
        for segment in segments:
            part: Segment | None = segment
            while part is not None and part.key not in self._before:
                before = part.before
                if before is None:
                    whole[part.key] = part
                elif (known := self._before.get(before.key)) is not None:
                    if _may_have_changed(part, before, known):
                        extended[part.key] = part, before
                    else:
                        self.asked[part.key] = known
                part = before
        thresholds = [math.log1p(segment.threshold) for segment in whole.values()]
        proposed = propose_cuts([segment.values for segment in whole.values()], thresholds)
        self.proposed = dict(zip(whole, proposed, strict=True))
        later = propose_later_cuts(
            [segment.values for segment, _ in extended.values()],
            [math.log1p(segment.threshold) for segment, _ in extended.values()],
            [_reanalysed_since(before) for _, before in extended.values()],
        )
        self.proposed_later = dict(zip(extended, later, strict=True))

    @property
    def results(self) -> NewResults:
        """The requested keys, and the results among them that are new."""
        # Subtracting the keys would go through all earlier results.
        new = {key: found for key, found in self.asked.items() if key not in self._before}
        return tuple(self.asked), new

    def merge(self, results: NewResults) -> None:
        """Take the results of a separate cache."""
        keys, new = results
        for key in keys:
            self.asked[key] = new.get(key) or self._before[key]

    def get(self, key: str) -> SegmentResult | None:
        """The cached result for this key, or None."""
        result = self.asked.get(key) or self._before.get(key)
        if result is not None:
            self.asked[key] = result
        return result


def analyse_segment(segment: Segment, cache: SegmentCache) -> SegmentResult:
    """Find the change points of a segment.

    Args:
        cache: Earlier results; new ones are added.
    """
    key, before = segment.key, segment.before
    result = cache.get(key)
    if result is not None:
        if before is not None:
            cache.get(before.key)  # keep it for later points
        return result
    result = (
        _analyse_whole(segment, cache.proposed.get(key))
        if before is None
        else _extend(segment, before, analyse_segment(before, cache), cache.proposed_later.get(key))
    )
    cache.asked[key] = result
    return result


def _analyse_whole(segment: Segment, proposed: ProposedCuts | None = None) -> SegmentResult:
    cuts = search(
        segment.values,
        segment.believed,
        threshold=math.log1p(segment.threshold),
        proposed=proposed,
    )
    edges = (0, *(cut.at for cut in cuts), segment.values.size)
    return SegmentResult(
        steps=tuple(
            _change_point(segment, cut, around)
            for cut, around in zip(cuts, _around(edges), strict=True)
        ),
        places=tuple(cut.likeliest for cut in cuts),
        rho=cuts[0].rho if cuts else 0.0,
    )


def _reanalysed_since(before: Segment) -> int:
    """The first point that is analysed again when a segment has grown since its last analysis."""
    return before.values.size - _REANALYSED_POINTS


def _may_have_changed(segment: Segment, before: Segment, result: SegmentResult) -> bool:
    """Whether the points added since an analysis may change its result."""
    since = _reanalysed_since(before)
    last = max(result.places[-1] if result.places else 0, since - REACH)
    return needs_rescan(
        segment.values[last:],
        first=max(since - last, 0),
        threshold=math.log1p(segment.threshold),
    )


def _extend(
    segment: Segment, before: Segment, result: SegmentResult, proposed: Cuts | None = None
) -> SegmentResult:
    """Update the result of the segment's first points with the points added since."""
    if proposed is None and not _may_have_changed(segment, before, result):
        return result
    since = _reanalysed_since(before)
    # Re-examine changes that may lie in the new part: their location may depend on the new points.
    settled_count = sum(
        1 for _ in itertools.takewhile(lambda step: step.first_bad < since, result.steps)
    )
    cuts = extend_search(
        segment.values,
        segment.believed,
        threshold=math.log1p(segment.threshold),
        settled=tuple(step.at for step in result.steps[:settled_count]),
        pending=result.places[settled_count:],
        since=since,
        proposed=proposed,
    )
    rho = cuts[0].rho if cuts else result.rho
    earlier_edges = _around((0, *(step.at for step in result.steps), before.values.size))
    at = (*(step.at for step in result.steps[:settled_count]), *(cut.at for cut in cuts))
    edges = tuple(_around((0, *at, segment.values.size)))
    settled = (
        step if around == other else _with_new_levels(segment, step, around, rho)
        for step, around, other in zip(
            result.steps[:settled_count], edges, earlier_edges, strict=False
        )
    )
    added = (
        _change_point(segment, cut, around)
        for cut, around in zip(cuts, edges[settled_count:], strict=True)
    )
    return SegmentResult(
        steps=(*settled, *added),
        places=(*result.places[:settled_count], *(cut.likeliest for cut in cuts)),
        rho=rho,
    )


def _around(edges: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Each inner edge, with its two neighbours."""
    return zip(edges, edges[1:], edges[2:], strict=False)


def _change_point(segment: Segment, cut: Cut, around: tuple[int, int, int]) -> ChangePoint:
    ratio, interval = _ratio(segment, around, cut.rho)
    begin, end, _ = around
    return ChangePoint(
        at=cut.at,
        last_good=cut.earliest - 1,
        first_bad=cut.latest,
        direction="up" if ratio > 1 else "down",
        before=level_of(shift_tests.median(segment.values[begin:end])),
        ratio=ratio,
        interval=interval,
        p_value=min(1.0, cut.decision.p_value * _places(segment.values.size, cut.rho)),
        status="new",
    )


def _places(n: int, rho: float) -> float:
    """The Bonferroni factor: the number of places where a segment of n points can change.

    With autocorrelated points the places are correlated too, so their effective number is that
    of the independent points.
    """
    return n / shift_tests.inflation(n, rho)


def _with_new_levels(
    segment: Segment, step: ChangePoint, around: tuple[int, int, int], rho: float
) -> ChangePoint:
    """An earlier change point, with its levels recomputed."""
    ratio, interval = _ratio(segment, around, rho)
    begin, end, _ = around
    return replace(
        step,
        direction="up" if ratio > 1 else "down",
        before=level_of(shift_tests.median(segment.values[begin:end])),
        ratio=ratio,
        interval=interval,
    )


def _ratio(
    segment: Segment, around: tuple[int, int, int], rho: float
) -> tuple[float, Interval | None]:
    """The level after over the level before, with its interval."""
    pieces = [slice(*ends) for ends in itertools.pairwise(around)]
    left, right = (segment.values[piece] for piece in pieces)
    errors = segment.believed
    bounds = shift_tests.shift_bounds(
        left,
        right,
        rho=rho,
        own_error=math.hypot(*(shift_tests.mean_error(errors[piece]) for piece in pieces)),
        confidence=CONFIDENCE,
    )
    interval = bounds and Interval(
        low=ratio_of(bounds[0]), high=ratio_of(bounds[1]), confidence=CONFIDENCE
    )
    return ratio_of(shift_tests.hodges_lehmann_shift(left, right)), interval
