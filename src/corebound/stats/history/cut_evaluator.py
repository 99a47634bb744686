"""Score candidate change points of one series, and cache results that can be reused."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.history.detectors import (
    REACH,
    CutContext,
    CutDecision,
    CutSides,
    best_split,
    decide,
    is_short,
    like_earlier_spikes,
    p_value_of,
    poll,
)
from corebound.stats.history.location import LocationInterval, locate
from corebound.stats.history.shift_tests import correlation_of, mean_error, median, spread_of

Array = NDArray[np.float64]
Cuts = tuple[int, ...]

# A single point is never a level of its own.
LEAST_NIGHTS = 2


class SegmentNoise(Struct, frozen=True, kw_only=True):
    """How points vary about the levels between given cuts.

    Attributes:
        spread: Standard deviation, robust.
        rho: Correlation between successive points, in [0, 1).
        residuals: The distance of each point from the level of its piece.
    """

    spread: float
    rho: float
    residuals: Array


class CutEvaluator:
    """Scores the cuts of one series; caches what does not depend on the other cuts.

    A cut is the first index of the piece that follows it. Cuts are in order.
    """

    def __init__(self, values: Array, own_errors: Array, *, threshold: float, seed: int) -> None:
        """Take n logarithms in time order, their standard errors and the threshold."""
        self._values = values
        self._own_errors = own_errors
        self._threshold = threshold
        self._seed = seed
        self._pieces: dict[tuple[int, int], tuple[float, Array]] = {}
        self._errors: dict[tuple[int, int], float] = {}
        self._large: dict[tuple[int, int, int], bool] = {}
        self._sides: dict[tuple[int, int, int], CutSides] = {}
        self._places: dict[tuple[int, int, int], LocationInterval] = {}
        self._splits: dict[tuple[int, int], int] = {}
        self._noises: dict[Cuts, SegmentNoise] = {}
        self._polls: dict[tuple[Cuts, int], CutDecision] = {}
        self._p_values: dict[tuple[Cuts, int], float] = {}

    def p_value(self, cuts: Cuts, at: int) -> float:
        """The likelihood's score alone, because `poll` takes much more work."""
        known = self._p_values.get((cuts, at))
        if known is None:
            known = self._p_values[cuts, at] = self._p_value(cuts, at)
        return known

    def _p_value(self, cuts: Cuts, at: int) -> float:
        start, end = self._neighbours(cuts, at)
        if not self._is_large(start, at, end):
            return 1.0
        if is_short(at - start, end - at) and like_earlier_spikes(self._stretch(cuts, at)):
            return 1.0
        return p_value_of(self._sides_of(start, at, end), self.noise(cuts).rho)

    def poll(self, cuts: Cuts, at: int) -> CutDecision:
        """The votes on one of the cuts, given the others, without the most expensive detector."""
        known = self._polls.get((cuts, at))
        if known is None:
            known = poll(self._stretch(cuts, at))
            self._polls[cuts, at] = known
        return known

    def election(self, cuts: Cuts, at: int) -> CutDecision:
        """All votes on one of the cuts."""
        polled = self.poll(cuts, at)
        if polled.elected is None:
            start, end = self._neighbours(cuts, at)
            # A separate generator, so that no result depends on earlier calls.
            rng = np.random.default_rng((self._seed, end - start))
            polled = decide(polled, self._stretch(cuts, at), least=LEAST_NIGHTS, rng=rng)
            self._polls[cuts, at] = polled
        return polled

    def may_be_cut(self, cuts: Cuts, at: int) -> bool:
        """Whether an additional cut could be accepted, given the others, whatever the noise."""
        start, end = self._neighbours(cuts, at)
        if at - start < LEAST_NIGHTS or end - at < LEAST_NIGHTS:
            return False
        return self._is_large(start, at, end) and self._sides_of(start, at, end).may_pass()

    def explains(self, cuts: Cuts, at: int) -> bool:
        """Whether an additional cut has a shift that matters and raises the likelihood at all."""
        sides = self._sides_of(*self._between(cuts, at))
        return sides.is_large(self._threshold, 0.0) and sides.likelihood > 0

    def splits(self, cuts: Cuts, since: int) -> set[int]:
        """The best place to cut each piece in two, if it lies at or after an index."""
        found = set()
        for begin, end in itertools.pairwise((0, *cuts, self._values.size)):
            start = max(begin, since - REACH)
            if end - start < 2 * LEAST_NIGHTS:
                continue
            if (start, end) not in self._splits:
                cut, _ = best_split(self._values[start:end], least=LEAST_NIGHTS)
                self._splits[start, end] = start + cut
            if self._splits[start, end] >= since:
                found.add(self._splits[start, end])
        return found

    def located(self, cuts: Cuts, at: int) -> LocationInterval:
        """The location of a cut between its neighbours."""
        return self._located(*self._between(cuts, at))

    def _located(self, start: int, at: int, end: int) -> LocationInterval:
        start, end = max(start, at - REACH), min(end, at + REACH)
        if (start, at, end) not in self._places:
            size = self._sides_of(start, at, end).size
            found = locate(self._values[start:end], at - start, size=size, least=LEAST_NIGHTS)
            self._places[start, at, end] = found.moved(start)
        return self._places[start, at, end]

    def noise(self, cuts: Cuts) -> SegmentNoise:
        """How the points vary about the levels."""
        if cuts not in self._noises:
            pieces = self._residuals(cuts)
            residuals = np.concatenate(pieces)
            spread = spread_of(residuals)
            # Slightly more than observed, to allow for what a short history has not shown yet.
            rho = min(correlation_of(pieces) + 2 / self._values.size, 0.9)
            self._noises[cuts] = SegmentNoise(spread=spread, rho=rho, residuals=residuals)
        return self._noises[cuts]

    def _stretch(self, cuts: Cuts, at: int) -> CutContext:
        start, end = self._neighbours(cuts, at)
        noise = self.noise(cuts)
        shorter = (at, end) if end - at <= at - start else (start, at)
        return CutContext(
            sides=self._sides_of(start, at, end),
            large=self._is_large(start, at, end),
            lengths=(at - start, end - at),
            levels=(self._piece(start, at)[0], self._piece(at, end)[0]),
            spread=noise.spread,
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

    def _sides_of(self, start: int, at: int, end: int) -> CutSides:
        key = (max(start, at - REACH), at, min(end, at + REACH))
        if key not in self._sides:
            self._sides[key] = CutSides(self._values[key[0] : at], self._values[at : key[2]])
        return self._sides[key]
