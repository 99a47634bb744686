"""A series that is asked about its cuts, over and over, with ever other cuts in place."""

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

# A single night is no step, whatever it did.
LEAST_NIGHTS = 2


class SegmentNoise(Struct, frozen=True, kw_only=True):
    """How nights lie about the levels that some cuts make.

    Attributes:
        spread: Standard deviation, robust.
        rho: Correlation from one night to the next, in [0, 1).
        residuals: How far each night lies from its piece's level.
    """

    spread: float
    rho: float
    residuals: Array


class CutEvaluator:
    """Answers about the cuts of one series, and remembers what does not depend on the others.

    Cuts are first indices of the pieces that they begin, in order.
    """

    def __init__(self, values: Array, own_errors: Array, *, threshold: float, seed: int) -> None:
        """Take n logarithms in time order, their standard errors, and what matters."""
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
        """The likelihood's score alone, for `poll` is much more work."""
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
        """The votes on one of the cuts, the others taken for granted, but the costliest one."""
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
            # A generator of its own, so that no answer depends on what was asked before.
            rng = np.random.default_rng((self._seed, end - start))
            polled = decide(polled, self._stretch(cuts, at), least=LEAST_NIGHTS, rng=rng)
            self._polls[cuts, at] = polled
        return polled

    def may_be_cut(self, cuts: Cuts, at: int) -> bool:
        """Whether a further cut stands a chance beside the others, however the nights vary."""
        start, end = self._neighbours(cuts, at)
        if at - start < LEAST_NIGHTS or end - at < LEAST_NIGHTS:
            return False
        return self._is_large(start, at, end) and self._sides_of(start, at, end).may_pass()

    def explains(self, cuts: Cuts, at: int) -> bool:
        """Whether the shift of a further cut matters and makes the nights likelier at all."""
        sides = self._sides_of(*self._between(cuts, at))
        return sides.is_large(self._threshold, 0.0) and sides.likelihood > 0

    def splits(self, cuts: Cuts, since: int) -> set[int]:
        """Where each piece would best be cut in two, of what lies from an index on."""
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
        """The place of a cut between its neighbours."""
        return self._located(*self._between(cuts, at))

    def _located(self, start: int, at: int, end: int) -> LocationInterval:
        start, end = max(start, at - REACH), min(end, at + REACH)
        if (start, at, end) not in self._places:
            size = self._sides_of(start, at, end).size
            found = locate(self._values[start:end], at - start, size=size, least=LEAST_NIGHTS)
            self._places[start, at, end] = found.moved(start)
        return self._places[start, at, end]

    def noise(self, cuts: Cuts) -> SegmentNoise:
        """How the nights vary about the levels."""
        if cuts not in self._noises:
            pieces = self._residuals(cuts)
            residuals = np.concatenate(pieces)
            spread = spread_of(residuals)
            # A little more than was seen, the more the shorter the history: it has yet to show it.
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
        """Where the pieces on both sides of a cut begin and end."""
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
        """A piece's level, and how far its nights lie from it."""
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
