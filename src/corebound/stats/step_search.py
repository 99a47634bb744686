"""The steps of one segment: cuts are proposed, voted on, and put in their place."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corebound.stats.energy import best_split
from corebound.stats.potts import potts_cuts
from corebound.stats.step_place import place
from corebound.stats.step_tests import correlation, mean_error
from corebound.stats.step_votes import SEGMENT_PENALTY, Election, Stretch, elect

Array = NDArray[np.float64]

# A single night is no step, whatever it did.
LEAST_NIGHTS = 2
# Of normal noise, per median distance from the median.
_NORMAL = 1 / 0.6745
# What lies further off has no say in where a step lies.
_NEARBY = 100
# Cuts that are plain whatever the noise turns out to be; where the search starts.
_PLAIN_PENALTY = 5 * SEGMENT_PENALTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A step of one segment.

    Attributes:
        at: First index after it, as is likeliest.
        earliest: First place that is not ruled out.
        latest: Last place that is not.
        election: What the detectors said.
        rho: Correlation between neighbouring nights that they reckoned with.
    """

    at: int
    earliest: int
    latest: int
    election: Election
    rho: float


def search(values: Array, own_errors: Array, *, threshold: float, seed: int) -> tuple[Cut, ...]:
    """Find the steps of a series that one host made in one environment.

    Starts from the plain cuts, adds what is elected beside them, the clearest first,
    then asks about each once more with the others in place.

    Args:
        values: n logarithms in time order.
        own_errors: Their standard errors as far as is known, else 0.
        threshold: Least shift that matters, as a logarithm.
        seed: Of the permutations; the same series and seed give the same steps.

    Returns:
        In time order.
    """
    if values.size < 2 * LEAST_NIGHTS + 1:
        return ()
    jury = _Jury(values=values, own_errors=own_errors, threshold=threshold, seed=seed)
    # Seen from one night to the next, a step is one difference among many.
    rough = float(np.median(np.abs(np.diff(values)))) * _NORMAL / math.sqrt(2)
    cuts = _tidy(potts_cuts(values, penalty=max(_PLAIN_PENALTY * rough, threshold)), values.size)
    cuts = jury.placed(jury.without_the_unelected(cuts))
    cuts = jury.with_more(cuts, rough)
    cuts = jury.without_the_unelected(jury.placed(cuts))
    rho = _careful_correlation(jury.pieces(cuts))
    found = []
    for at in cuts:
        _, earliest, latest = jury.located(cuts, at)
        election = jury.election(cuts, at)
        found.append(Cut(at=at, earliest=earliest, latest=latest, election=election, rho=rho))
    return tuple(found)


def _tidy(cuts: tuple[int, ...], n: int) -> tuple[int, ...]:
    """Leave out cuts that leave too few nights; of a spike's two, both."""
    kept = list(cuts)
    while True:
        edges = [0, *kept, n]
        short = [i for i in range(len(edges) - 1) if edges[i + 1] - edges[i] < LEAST_NIGHTS]
        if not short or not kept:
            return tuple(kept)
        doomed = {edges[short[0]], edges[short[0] + 1]}
        kept = [cut for cut in kept if cut not in doomed]


def _careful_correlation(pieces: list[Array]) -> float:
    """A little more than was seen, the more the shorter the history: it has yet to show it."""
    nights = sum(piece.size for piece in pieces)
    return min(correlation(pieces) + 2 / nights, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Jury:
    """A series that is asked about its cuts."""

    values: Array
    own_errors: Array
    threshold: float
    seed: int

    def pieces(self, cuts: tuple[int, ...]) -> list[Array]:
        return np.split(self.values, cuts)

    def neighbours(self, cuts: tuple[int, ...], at: int) -> tuple[int, int]:
        """Where the pieces on both sides of a cut begin and end."""
        start = max((cut for cut in cuts if cut < at), default=0)
        end = min((cut for cut in cuts if cut > at), default=self.values.size)
        return start, end

    def election(self, cuts: tuple[int, ...], at: int) -> Election:
        """The votes on one of the cuts, the others taken for granted."""
        start, end = self.neighbours(cuts, at)
        pieces = self.pieces(cuts)
        residuals = np.concatenate([piece - np.median(piece) for piece in pieces])
        shorter = slice(at, end) if end - at <= at - start else slice(start, at)
        errors = self.own_errors
        stretch = Stretch(
            left=self.values[start:at],
            right=self.values[at:end],
            spread=float(np.median(np.abs(residuals))) * _NORMAL,
            rho=_careful_correlation(pieces),
            others=np.delete(residuals, shorter),
            own_error=math.hypot(mean_error(errors[start:at]), mean_error(errors[at:end])),
        )
        # A generator of its own, so that no answer depends on what was asked before.
        rng = np.random.default_rng((self.seed, end - start))
        return elect(stretch, least=LEAST_NIGHTS, threshold=self.threshold, rng=rng)

    def without_the_unelected(self, cuts: tuple[int, ...]) -> tuple[int, ...]:
        """Drop the least certain cut until every one that is left is elected."""
        while cuts:
            elections = {at: self.election(cuts, at) for at in cuts}
            refused = [at for at in cuts if not elections[at].elected]
            if not refused:
                break
            worst = max(refused, key=lambda at: elections[at].p_value)
            cuts = tuple(cut for cut in cuts if cut != worst)
        return cuts

    def with_more(self, cuts: tuple[int, ...], rough: float) -> tuple[int, ...]:
        """Add the clearest cut that is elected beside the others, until none is."""
        penalty = max(SEGMENT_PENALTY * rough, self.threshold)
        proposed = set(_tidy(potts_cuts(self.values, penalty=penalty), self.values.size))
        while True:
            best: tuple[float, int] | None = None
            for at in sorted((proposed | self._splits(cuts)) - set(cuts)):
                with_it = tuple(sorted((*cuts, at)))
                start, end = self.neighbours(cuts, at)
                if at - start < LEAST_NIGHTS or end - at < LEAST_NIGHTS:
                    continue
                election = self.election(with_it, at)
                if election.elected and (best is None or election.p_value < best[0]):
                    best = election.p_value, at
            if best is None:
                return cuts
            cuts = self.placed(tuple(sorted((*cuts, best[1]))))

    def _splits(self, cuts: tuple[int, ...]) -> set[int]:
        """Where each piece would best be cut in two."""
        edges = (0, *cuts, self.values.size)
        return {
            start + best_split(self.values[start:end], least=LEAST_NIGHTS)[0]
            for start, end in itertools.pairwise(edges)
            if end - start >= 2 * LEAST_NIGHTS
        }

    def placed(self, cuts: tuple[int, ...]) -> tuple[int, ...]:
        """Every cut where it is likeliest between its neighbours."""
        for at in cuts:
            moved, _, _ = self.located(cuts, at)
            cuts = tuple(sorted({moved if cut == at else cut for cut in cuts}))
        return cuts

    def located(self, cuts: tuple[int, ...], at: int) -> tuple[int, int, int]:
        """The likeliest place of a cut between its neighbours, the first and the last possible."""
        start, end = self.neighbours(cuts, at)
        start, end = max(start, at - _NEARBY), min(end, at + _NEARBY)
        found, first, last = place(self.values[start:end], at - start, least=LEAST_NIGHTS)
        return start + found, start + first, start + last
