"""Search the change points of one segment: propose cuts, vote on them and locate them."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from corebound.stats.history.detectors import (
    REACH,
    SEGMENT_PENALTY,
    CutContext,
    CutDecision,
    CutSides,
    best_split,
    decide,
    is_short,
    p_value_of,
    potts_cuts_of_many,
    resembles_earlier_spikes,
)
from corebound.stats.history.location import LocationInterval, locate
from corebound.stats.history.shift_tests import correlation_of, mean_error, median, spread_of
from corebound.stats.intervals import Array

Cuts = tuple[int, ...]

# A single point is never a level of its own.
MIN_LEVEL_POINTS = 2


class SegmentNoise(Struct, frozen=True, kw_only=True):
    """How points vary about the levels between given cuts.

    Attributes:
        rho: Correlation between successive points, in [0, 1).
        residuals: The distance of each point from the level of its piece.
    """

    rho: float
    residuals: Array


class CutEvaluator:
    """Scores the cuts of one series; caches what does not depend on the other cuts.

    A cut is the first index of the piece that follows it. Cuts are in order.
    """

    def __init__(self, values: Array, own_errors: Array, *, threshold: float) -> None:
        """Take n logarithms in time order, their standard errors and the threshold."""
        self._values = values
        self._own_errors = own_errors
        self._threshold = threshold
        self._pieces: dict[tuple[int, int], tuple[float, Array]] = {}
        self._errors: dict[tuple[int, int], float] = {}
        self._large: dict[tuple[int, int, int], bool] = {}
        self._sides: dict[tuple[int, int, int], CutSides] = {}
        self._short_sides: dict[tuple[Cuts, int], CutSides] = {}
        self._places: dict[tuple[int, int, int], LocationInterval] = {}
        self._splits: dict[tuple[int, int], int] = {}
        self._noises: dict[Cuts, SegmentNoise] = {}
        self._decisions: dict[tuple[Cuts, int], CutDecision] = {}
        self._p_values: dict[tuple[Cuts, int], float] = {}

    def p_value(self, cuts: Cuts, at: int) -> float:
        """The likelihood's score alone, because `decide` takes much more work."""
        p_value = self._p_values.get((cuts, at))
        if p_value is None:
            p_value = self._p_values[cuts, at] = self._p_value(cuts, at)
        return p_value

    def _p_value(self, cuts: Cuts, at: int) -> float:
        start, end = self._neighbours(cuts, at)
        if not self._is_large(start, at, end):
            return 1.0
        if is_short(at - start, end - at) and resembles_earlier_spikes(self._stretch(cuts, at)):
            return 1.0
        return p_value_of(self._judged_sides(cuts, at), self.noise(cuts).rho)

    def decide(self, cuts: Cuts, at: int) -> CutDecision:
        """The votes on one of the cuts, given the others."""
        decision = self._decisions.get((cuts, at))
        if decision is None:
            decision = self._decisions[cuts, at] = decide(self._stretch(cuts, at))
        return decision

    def may_be_cut(self, cuts: Cuts, at: int) -> bool:
        """Whether an additional cut could be accepted, given the others, whatever the noise."""
        start, end = self._neighbours(cuts, at)
        if at - start < MIN_LEVEL_POINTS or end - at < MIN_LEVEL_POINTS:
            return False
        return self._is_large(start, at, end) and self._judged_sides(cuts, at).may_pass()

    def explains(self, cuts: Cuts, at: int) -> bool:
        """Whether an additional cut has a shift that matters and raises the likelihood at all."""
        sides = self._judged_sides(cuts, at)
        return sides.is_large(self._threshold, 0.0) and sides.likelihood > 0

    def splits(self, cuts: Cuts, since: int) -> set[int]:
        """The best place to cut each piece in two, if it lies at or after an index."""
        places = set()
        for begin, end in itertools.pairwise((0, *cuts, self._values.size)):
            start = max(begin, since - REACH)
            if end - start < 2 * MIN_LEVEL_POINTS:
                continue
            if (start, end) not in self._splits:
                cut, _ = best_split(self._values[start:end], least=MIN_LEVEL_POINTS)
                self._splits[start, end] = start + cut
            if self._splits[start, end] >= since:
                places.add(self._splits[start, end])
        return places

    def located(self, cuts: Cuts, at: int) -> LocationInterval:
        """The location of a cut between its neighbours."""
        return self._located(*self._between(cuts, at))

    def _located(self, start: int, at: int, end: int) -> LocationInterval:
        start, end = max(start, at - REACH), min(end, at + REACH)
        if (start, at, end) not in self._places:
            size = self._sides_of(start, at, end).size
            location = locate(
                self._values[start:end], at - start, size=size, least=MIN_LEVEL_POINTS
            )
            self._places[start, at, end] = location.moved(start)
        return self._places[start, at, end]

    def noise(self, cuts: Cuts) -> SegmentNoise:
        """How the points vary about the levels."""
        if cuts not in self._noises:
            pieces = self._residuals(cuts)
            residuals = np.concatenate(pieces)
            # Slightly more than observed, to allow for what a short history has not shown yet.
            rho = min(correlation_of(pieces) + 2 / self._values.size, 0.9)
            self._noises[cuts] = SegmentNoise(rho=rho, residuals=residuals)
        return self._noises[cuts]

    def _stretch(self, cuts: Cuts, at: int) -> CutContext:
        start, end = self._neighbours(cuts, at)
        noise = self.noise(cuts)
        shorter = (at, end) if end - at <= at - start else (start, at)
        return CutContext(
            sides=self._judged_sides(cuts, at),
            large=self._is_large(start, at, end),
            lengths=(at - start, end - at),
            levels=(self._piece(start, at)[0], self._piece(at, end)[0]),
            rho=noise.rho,
            all_=noise.residuals,
            shorter=self._piece(*shorter)[1],
            own_error=self._own_error(start, at, end),
        )

    def _neighbours(self, cuts: Cuts, at: int) -> tuple[int, int]:
        """The start and the end of the pieces on both sides of a cut."""
        before, after = bisect_left(cuts, at), bisect_right(cuts, at)
        start = cuts[before - 1] if before else 0
        return start, cuts[after] if after < len(cuts) else self._values.size

    def _between(self, cuts: Cuts, at: int) -> tuple[int, int, int]:
        start, end = self._neighbours(cuts, at)
        return start, at, end

    def _own_error(self, start: int, at: int, end: int) -> float:
        return math.hypot(self._piece_error(start, at), self._piece_error(at, end))

    def _piece_error(self, start: int, end: int) -> float:
        if (start, end) not in self._errors:
            self._errors[start, end] = mean_error(self._own_errors[start:end])
        return self._errors[start, end]

    def _is_large(self, start: int, at: int, end: int) -> bool:
        if (start, at, end) not in self._large:
            sides, own_error = self._sides_of(start, at, end), self._own_error(start, at, end)
            self._large[start, at, end] = sides.is_large(self._threshold, own_error)
        return self._large[start, at, end]

    def _residuals(self, cuts: Cuts) -> list[Array]:
        edges = (0, *cuts, self._values.size)
        return [self._piece(start, end)[1] for start, end in itertools.pairwise(edges)]

    def _piece(self, start: int, end: int) -> tuple[float, Array]:
        """A piece's level, and the distances of its points from it."""
        if (start, end) not in self._pieces:
            piece = self._values[start:end]
            level = median(piece)
            self._pieces[start, end] = level, piece - level
        return self._pieces[start, end]

    def _judged_sides(self, cuts: Cuts, at: int) -> CutSides:
        """The pieces on both sides of a cut; if one is short, with the noise of points nearby."""
        start, end = self._neighbours(cuts, at)
        if not is_short(at - start, end - at):
            return self._sides_of(start, at, end)
        if (cuts, at) not in self._short_sides:
            residuals = self.noise(cuts).residuals
            others = residuals[max(at - REACH, 0) : start], residuals[end : at + REACH]
            self._short_sides[cuts, at] = CutSides(
                self._values[start:at], self._values[at:end], np.concatenate(others)
            )
        return self._short_sides[cuts, at]

    def _sides_of(self, start: int, at: int, end: int) -> CutSides:
        key = (max(start, at - REACH), at, min(end, at + REACH))
        if key not in self._sides:
            self._sides[key] = CutSides(self._values[key[0] : at], self._values[at : key[2]])
        return self._sides[key]


# A penalty for cuts that are clear whatever the noise; the search starts from these.
_PLAIN_PENALTY = 5 * SEGMENT_PENALTY


class Cut(Struct, frozen=True, kw_only=True):
    """A change point of one segment.

    Attributes:
        likeliest: Its location while others are voted on: the first index after it.
        at: The reported location; the change is equally likely to lie before or after.
        earliest: First location that is not ruled out.
        latest: Last location that is not ruled out.
        rho: Correlation between neighbouring points that the detectors used.
    """

    likeliest: int
    at: int
    earliest: int
    latest: int
    decision: CutDecision
    rho: float


class ProposedCuts(Struct, frozen=True, kw_only=True):
    """Where a series may change: cuts that are clear whatever the noise, and likely ones."""

    clear: Cuts
    likely: Cuts


# At most as many series, so that their distances from all levels stay in the processor's cache.
_MOST_TOGETHER = 32


def propose_cuts(all_values: Sequence[Array], thresholds: Sequence[float]) -> list[ProposedCuts]:
    """Propose the cuts of several series together, which takes a third of the time.

    Args:
        all_values: For each series its logarithms in time order.
        thresholds: For each the least shift that matters, as a logarithm.
    """
    proposed: list[ProposedCuts] = []
    for first in range(0, len(all_values), _MOST_TOGETHER):
        some = all_values[first : first + _MOST_TOGETHER]
        limits = thresholds[first : first + _MOST_TOGETHER]
        clear, likely = (
            potts_cuts_of_many(
                some,
                [
                    max(penalty * rough_spread(values), limit)
                    for values, limit in zip(some, limits, strict=True)
                ],
            )
            for penalty in (_PLAIN_PENALTY, SEGMENT_PENALTY)
        )
        proposed += (
            ProposedCuts(clear=clear_cuts, likely=likely_cuts)
            for clear_cuts, likely_cuts in zip(clear, likely, strict=True)
        )
    return proposed


def search(
    values: Array,
    own_errors: Array,
    *,
    threshold: float,
    proposed: ProposedCuts | None = None,
) -> tuple[Cut, ...]:
    """Find the change points of a series from one host and one environment.

    The search starts from the clear cuts and adds accepted ones, clearest first.
    Then it votes on each cut once more with the others in place.

    Args:
        values: n logarithms in time order.
        own_errors: Their standard errors if known, else 0.
        threshold: Least shift that matters, as a logarithm.
        proposed: Its cuts of `propose_cuts`, if they are known.

    Returns:
        The cuts in time order.
    """
    if values.size < 2 * MIN_LEVEL_POINTS + 1:
        return ()
    evaluator = CutEvaluator(values, own_errors, threshold=threshold)
    if proposed is None:
        (proposed,) = propose_cuts([values], [threshold])
    cuts = _relocate(evaluator, _drop_rejected(evaluator, proposed.clear, 0), 0)
    cuts = _add_accepted(evaluator, cuts, proposed.likely, first=0, since=0)
    return _final_cuts(evaluator, cuts, 0)


def extend_search(
    values: Array,
    own_errors: Array,
    *,
    threshold: float,
    settled: Cuts,
    pending: Cuts,
    since: int,
    proposed: Cuts | None = None,
) -> tuple[Cut, ...]:
    """Find the later change points of a series whose earlier ones are known from fewer points.

    Works like `search`, with all points to determine the noise. But cuts are proposed, voted
    on and located only after the settled ones, which stay fixed and bound the others.

    Args:
        values: As in `search`.
        own_errors: As in `search`.
        threshold: As in `search`.
        settled: The fixed cuts, as reported (`Cut.at`), in order.
        pending: The later cuts that are voted on again (`Cut.likeliest`), in order, each at
            least `MIN_LEVEL_POINTS` after the one before it.
        since: The first index for additional cuts; from a new point, no detector looks
            further back.
        proposed: Its cuts of `propose_later_cuts`, if they are known.

    Returns:
        The cuts in time order, without the settled ones: each lies after all of them.
    """
    evaluator = CutEvaluator(values, own_errors, threshold=threshold)
    if proposed is None:
        (proposed,) = propose_later_cuts([values], [threshold], [since])
    first = len(settled)
    cuts = _relocate(evaluator, settled + pending, first)
    return _final_cuts(
        evaluator, _add_accepted(evaluator, cuts, proposed, first=first, since=since), first
    )


def propose_later_cuts(
    all_values: Sequence[Array], thresholds: Sequence[float], since: Sequence[int]
) -> list[Cuts]:
    """Propose the cuts of several series from an index on, as `extend_search` needs them.

    Args:
        all_values: As in `propose_cuts`.
        thresholds: As in `propose_cuts`.
        since: For each the first index of a cut.
    """
    proposed: list[Cuts] = []
    rows = [*zip(all_values, thresholds, since, strict=True)]
    for at in range(0, len(rows), _MOST_TOGETHER):
        some = rows[at : at + _MOST_TOGETHER]
        # Earlier points are needed to detect a change where the search begins.
        begins = [max(first - REACH, 0) for _, _, first in some]
        recent = [values[begin:] for (values, _, _), begin in zip(some, begins, strict=True)]
        penalties = [
            max(SEGMENT_PENALTY * rough_spread(values), threshold) for values, threshold, _ in some
        ]
        found = potts_cuts_of_many(recent, penalties)
        for (_, _, first), begin, cuts in zip(some, begins, found, strict=True):
            proposed.append(tuple(begin + cut for cut in cuts if begin + cut >= first))
    return proposed


def rough_spread(values: Array) -> float:
    """Standard deviation from successive differences, among which a change is only one."""
    return spread_of(np.diff(values)) / math.sqrt(2)


def _final_cuts(evaluator: CutEvaluator, cuts: Cuts, first: int) -> tuple[Cut, ...]:
    """Vote on each cut from the first on with the others in place, and locate it."""
    cuts = _drop_rejected(evaluator, _relocate(evaluator, cuts, first), first)
    rho = evaluator.noise(cuts).rho
    # The votes apply to the likeliest locations; the median of those possible is reported.
    decisions = [evaluator.decide(cuts, at) for at in cuts[first:]]
    likeliest = cuts
    result = []
    for index, decision in enumerate(decisions, start=first):
        # Between the median before it and the likeliest location after it, so that medians ascend.
        location = evaluator.located(cuts, cuts[index])
        cuts = (*cuts[:index], location.middle, *cuts[index + 1 :])
        result.append(
            Cut(
                likeliest=likeliest[index],
                at=location.middle,
                earliest=location.first,
                latest=location.last,
                decision=decision,
                rho=rho,
            )
        )
    return tuple(result)


def _drop_rejected(evaluator: CutEvaluator, cuts: Cuts, first: int) -> Cuts:
    """Drop the least certain cut until every remaining one from the first on is accepted."""
    while (worst := _least_certain(evaluator, cuts, first)) is not None:
        cuts = tuple(cut for cut in cuts if cut != worst)
    return cuts


def _least_certain(evaluator: CutEvaluator, cuts: Cuts, first: int) -> int | None:
    """The rejected later cut that is most likely due to chance; None without any.

    Cuts before the first stay. The detectors run only on those that could be the result.
    """
    # The sort is stable: the first of equal cuts is used.
    for at in sorted(cuts[first:], key=lambda at: -evaluator.p_value(cuts, at)):
        if not evaluator.decide(cuts, at).elected:
            return at
    return None


def _add_accepted(
    evaluator: CutEvaluator, cuts: Cuts, proposed: Cuts, *, first: int, since: int
) -> Cuts:
    """Add the clearest cut that is accepted beside the others, until none is."""
    while True:
        candidates = sorted({*proposed, *evaluator.splits(cuts, since)} - set(cuts))
        p_values = {
            at: evaluator.p_value(_with_cut(cuts, at), at)
            for at in candidates
            if evaluator.may_be_cut(cuts, at)
        }
        # The clearest first, so that most detectors rarely run.
        for at in sorted(p_values, key=lambda at: p_values[at]):
            if evaluator.decide(_with_cut(cuts, at), at).elected:
                cuts = _relocate(evaluator, _with_cut(cuts, at), first)
                break
        else:
            elsewhere = _clear_cut_near_split(evaluator, cuts, since)
            if elsewhere is None:
                return cuts
            cuts = _relocate(evaluator, _with_cut(cuts, elsewhere), first)


def _clear_cut_near_split(evaluator: CutEvaluator, cuts: Cuts, since: int) -> int | None:
    """The first clear and accepted cut at the likeliest location near a piece's best split.

    If points fall into two groups, the split may lie a few points beside a change, and be
    rejected there.
    """
    for split in sorted(evaluator.splits(cuts, since)):
        if evaluator.explains(cuts, split):
            at = evaluator.located(cuts, split).likeliest
            extended = _with_cut(cuts, at)
            decision = evaluator.decide(extended, at)
            if decision.plain and decision.elected:
                return at
    return None


def _with_cut(cuts: Cuts, at: int) -> Cuts:
    return tuple(sorted((*cuts, at)))


def _relocate(evaluator: CutEvaluator, cuts: Cuts, first: int) -> Cuts:
    """Move every cut from the first on to its likeliest location between its neighbours."""
    for at in cuts[first:]:
        moved = evaluator.located(cuts, at).likeliest
        cuts = tuple(sorted({moved if cut == at else cut for cut in cuts}))
    return cuts
