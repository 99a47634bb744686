"""The change points of one segment, and how those of a longer one follow from them."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.stats.history.change_point import ChangePoint, level_of, ratio_of
from corebound.stats.history.cut_evaluator import LEAST_NIGHTS
from corebound.stats.history.detectors import REACH, CutSides
from corebound.stats.history.search import Cut, rough_spread, search, search_on
from corebound.stats.history.shift_tests import (
    hodges_lehmann_shift,
    inflation,
    mean_error,
    median,
    ranks,
    shift_bounds,
    spread_of,
)
from corebound.stats.intervals import CONFIDENCE, Interval

Array = NDArray[np.float64]

# After a step, so many nights are few: whatever they are, all detectors are asked.
_FEW = 16
# In standard errors of the rank test, for independent nights: the level at which it votes is 2.58,
# and of two hundred cuts of a series without a step the clearest one is rarely at more.
_CLEAR = 3.0
# In standard deviations: nights that go with no other are rarely both so far off.
_FAR = 2.0


def needs_rescan(values: Array, *, first: int, threshold: float) -> bool:
    """Whether the last level of a series may end in another, so that detectors are to be asked.

    Args:
        values: What is of one level as far as is known, in time order.
        first: The first index where a step would be news.
        threshold: Least shift that matters, as a logarithm.

    Returns:
        False where neither the last two nights stand out, nor does any cut by ranks, nor
        does the likelihood speak for the clearest one.
    """
    n = values.size
    if n < _FEW:
        return True
    off = values - median(values)
    spread = spread_of(off)
    latest = off[-LEAST_NIGHTS:]
    if max(float(latest.min()), float(-latest.max())) >= max(_FAR * spread, threshold):
        return True
    left = np.arange(1.0, n)
    excess = np.abs(np.cumsum(ranks(values) - (n + 1) / 2)[:-1])
    clear = excess / np.sqrt(left * (n - left) * (n + 1) / 12)
    begin = max(first, LEAST_NIGHTS)
    near = clear[begin - 1 : n - LEAST_NIGHTS]
    if not near.size:
        return True
    at = begin + int(near.argmax())
    sides = CutSides(values[:at], values[at:])
    return float(near.max()) >= _CLEAR or (sides.is_large(threshold, 0.0) and sides.may_pass())


# A segment is looked at as a whole each time it has so many nights more, and in between only
# at what is new. docs/adr/0015 says how often that makes a difference.
_WHOLE_EVERY = 32
# A shorter one always is: its nights hardly tell their noise yet, and it takes no time.
_WHOLE_UP_TO = 320
# Times what is seen from night to night: what nights may say of themselves.
_BELIEVED = 2.0
# Of fewer nights that say anything it is not known what most say.
_TELLING = 8
# Before what is new, so many nights are looked at again: votes look half as far.
_AGAIN = REACH


class Segment(Struct, frozen=True, kw_only=True):
    """All that the steps of a segment follow from.

    Attributes:
        values: n logarithms in time order.
        errors: Their standard errors as the nights tell them, where they do, else 0.
        threshold: Least change that matters, as a ratio less 1.
        seed: Of the permutations.
    """

    values: Array
    errors: Array
    threshold: float
    seed: int

    @property
    def key(self) -> str:
        """The same in so many letters."""
        told = hashlib.blake2b(f"{self.threshold!r} {self.seed}".encode(), digest_size=16)
        told.update(self.values.tobytes())
        told.update(self.errors.tobytes())
        return told.hexdigest()

    @property
    def believed(self) -> Array:
        """The errors as far as the values bear them out."""
        return believable(self.errors, self.values)

    @property
    def before(self) -> Segment | None:
        """Its first nights, up to which it was looked at as a whole; None: as a whole itself.

        Which nights these are follows from the segment alone, however it came to grow. Segments
        that began together are looked at on different nights, by their first figures.
        """
        n = self.values.size
        if n <= _WHOLE_UP_TO:
            return None
        first = hashlib.blake2b(self.values[:_WHOLE_UP_TO].tobytes(), digest_size=8).digest()
        over = (n + int.from_bytes(first, "little")) % _WHOLE_EVERY
        at = max(n - over, _WHOLE_UP_TO)
        return replace(self, values=self.values[:at], errors=self.errors[:at]) if over else None


class SegmentResult(Struct, frozen=True, kw_only=True):
    """What was found in a segment.

    Attributes:
        steps: In time order, with indices into its nights; none is said to be recovered.
        places: Of each, the index where it stood while others were voted on.
        rho: Correlation between neighbouring nights that their intervals reckon with.
    """

    steps: tuple[ChangePoint, ...]
    places: tuple[int, ...]
    rho: float


def believable(errors: Array, values: Array) -> Array:
    """What nights say of their own errors, as far as they bear it out together.

    A night that is off by chance differs from the next by as much. So what most nights say
    of themselves is no more than what is seen from one to the next, or twice that, for few
    may differ less by chance; if it is, all say too much, in that proportion. asv's intervals
    of two samples, which most slow benchmarks have, say ten times too much. A night that is
    less sure than most stays so, and of fewer than 8 that say anything all are believed.

    Args:
        errors: Standard errors of n nights of one segment; 0 where not known.
        values: Their logarithms, in time order.
    """
    told = errors[errors > 0]
    if told.size < _TELLING:
        return errors
    return errors * min(1.0, _BELIEVED * rough_spread(values) / median(told))


# The keys of what was asked for, and what of it nobody knew before.
News: TypeAlias = tuple[tuple[str, ...], dict[str, SegmentResult]]


class SegmentCache:
    """What was found in segments, by a hash of all it follows from.

    Attributes:
        asked: What was asked for, found before or now: all that is worth keeping.
    """

    def __init__(self, before: Mapping[str, SegmentResult] | None = None) -> None:
        """Take what was found before."""
        self._before = before or {}
        self.asked: dict[str, SegmentResult] = {}

    def apart(self) -> SegmentCache:
        """One that knows what was found before, for who looks elsewhere meanwhile."""
        return SegmentCache(self._before)

    @property
    def news(self) -> News:
        """What was asked for, and what of it was not known before."""
        asked = self.asked
        return tuple(asked), {key: asked[key] for key in asked.keys() - self._before.keys()}

    def learn(self, news: News) -> None:
        """Take the news of one that was apart."""
        keys, found = news
        for key in keys:
            self.asked[key] = found.get(key) or self._before[key]

    def get(self, key: str) -> SegmentResult | None:
        """What follows from this, if it is known."""
        known = self.asked.get(key) or self._before.get(key)
        if known is not None:
            self.asked[key] = known
        return known


def analyse_segment(segment: Segment, memory: SegmentCache) -> SegmentResult:
    """Find the steps of a segment.

    Args:
        segment: Where.
        memory: What was found before; what is found now is added.
    """
    key, before = segment.key, segment.before
    known = memory.get(key)
    if known is not None:
        if before is not None:
            memory.get(before.key)  # for the nights to come
        return known
    found = (
        _whole(segment)
        if before is None
        else _grown(segment, before, analyse_segment(before, memory))
    )
    memory.asked[key] = found
    return found


def _whole(segment: Segment) -> SegmentResult:
    cuts = search(
        segment.values,
        segment.believed,
        threshold=math.log1p(segment.threshold),
        seed=segment.seed,
    )
    edges = (0, *(cut.at for cut in cuts), segment.values.size)
    return SegmentResult(
        steps=tuple(
            _step(segment, cut, around) for cut, around in zip(cuts, _around(edges), strict=True)
        ),
        places=tuple(cut.likeliest for cut in cuts),
        rho=cuts[0].rho if cuts else 0.0,
    )


def _grown(segment: Segment, before: Segment, known: SegmentResult) -> SegmentResult:
    """What is found given what was found in the segment's first nights."""
    since = before.values.size - _AGAIN
    last = max(known.places[-1] if known.places else 0, since - REACH)
    news = needs_rescan(
        segment.values[last:],
        first=max(since - last, 0),
        threshold=math.log1p(segment.threshold),
    )
    if not news:
        return known
    # A step that may lie beyond is asked about again: what is new may lie before its middle.
    stay = sum(1 for _ in itertools.takewhile(lambda step: step.first_bad < since, known.steps))
    cuts = search_on(
        segment.values,
        segment.believed,
        threshold=math.log1p(segment.threshold),
        seed=segment.seed,
        settled=tuple(step.at for step in known.steps[:stay]),
        known=known.places[stay:],
        since=since,
    )
    rho = cuts[0].rho if cuts else known.rho
    was = _around((0, *(step.at for step in known.steps), before.values.size))
    at = (*(step.at for step in known.steps[:stay]), *(cut.at for cut in cuts))
    now = tuple(_around((0, *at, segment.values.size)))
    old = (
        step if one == other else _levelled(segment, step, one, rho)
        for step, one, other in zip(known.steps[:stay], now, was, strict=False)
    )
    new = (_step(segment, cut, one) for cut, one in zip(cuts, now[stay:], strict=True))
    return SegmentResult(
        steps=(*old, *new),
        places=(*known.places[:stay], *(cut.likeliest for cut in cuts)),
        rho=rho,
    )


def _around(edges: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Each edge but the outer ones, between its neighbours."""
    return zip(edges, edges[1:], edges[2:], strict=False)


def _step(segment: Segment, cut: Cut, around: tuple[int, int, int]) -> ChangePoint:
    ratio, interval = _ratio(segment, around, cut.rho)
    begin, end, _ = around
    return ChangePoint(
        at=cut.at,
        last_good=cut.earliest - 1,
        first_bad=cut.latest,
        direction="up" if ratio > 1 else "down",
        before=level_of(median(segment.values[begin:end])),
        ratio=ratio,
        interval=interval,
        votes=cut.election.votes,
        p_value=min(1.0, cut.election.p_value * _places(segment.values.size, cut.rho)),
        status="new",
    )


def _places(n: int, rho: float) -> float:
    """Bonferroni's number: of the places where a segment of n nights might have been cut.

    Where nights go with their neighbours, so do the places, and there are as many apart from
    one another as there are independent nights.
    """
    return n / inflation(n, rho)


def _levelled(
    segment: Segment, step: ChangePoint, around: tuple[int, int, int], rho: float
) -> ChangePoint:
    """A step that was found before, with the levels of now."""
    ratio, interval = _ratio(segment, around, rho)
    begin, end, _ = around
    return replace(
        step,
        direction="up" if ratio > 1 else "down",
        before=level_of(median(segment.values[begin:end])),
        ratio=ratio,
        interval=interval,
    )


def _ratio(
    segment: Segment, around: tuple[int, int, int], rho: float
) -> tuple[float, Interval | None]:
    """The level after over the level before, and where it lies."""
    pieces = [slice(*ends) for ends in itertools.pairwise(around)]
    left, right = (segment.values[piece] for piece in pieces)
    errors = segment.believed
    bounds = shift_bounds(
        left,
        right,
        rho=rho,
        own_error=math.hypot(*(mean_error(errors[piece]) for piece in pieces)),
        confidence=CONFIDENCE,
    )
    interval = bounds and Interval(
        low=ratio_of(bounds[0]), high=ratio_of(bounds[1]), confidence=CONFIDENCE
    )
    return ratio_of(hodges_lehmann_shift(left, right)), interval
