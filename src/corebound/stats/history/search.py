"""The steps of one segment: cuts are proposed, voted on, and put in their place."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.history.cut_evaluator import LEAST_NIGHTS, CutEvaluator, Cuts
from corebound.stats.history.detectors import REACH, SEGMENT_PENALTY, CutDecision, potts_cuts
from corebound.stats.history.shift_tests import spread_of

Array = NDArray[np.float64]

# Cuts that are plain whatever the noise turns out to be; where the search starts.
_PLAIN_PENALTY = 5 * SEGMENT_PENALTY


class Cut(Struct, frozen=True, kw_only=True):
    """A step of one segment.

    Attributes:
        likeliest: Where it stands while others are voted on: first index after it.
        at: The same for the eye; the step is as likely before as beyond.
        earliest: First place that is not ruled out.
        latest: Last place that is not.
        election: What the detectors said.
        rho: Correlation between neighbouring nights that they reckoned with.
    """

    likeliest: int
    at: int
    earliest: int
    latest: int
    election: CutDecision
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
    jury = CutEvaluator(values, own_errors, threshold=threshold, seed=seed)
    rough = rough_spread(values)
    cuts = _proposed(values, max(_PLAIN_PENALTY * rough, threshold))
    cuts = _placed(jury, _without_the_unelected(jury, cuts, 0), 0)
    likely = _proposed(values, max(SEGMENT_PENALTY * rough, threshold))
    return _told(jury, _with_more(jury, cuts, likely, first=0, since=0), 0)


def search_on(
    values: Array,
    own_errors: Array,
    *,
    threshold: float,
    seed: int,
    settled: Cuts,
    known: Cuts,
    since: int,
) -> tuple[Cut, ...]:
    """Find the later steps of a series whose steps are known that fewer nights showed.

    As `search`, with all nights to tell the noise by, but cuts are proposed, voted on and
    placed after the settled ones only. These stay where they are, and bound the others.

    Args:
        values: As there.
        own_errors: As there.
        threshold: As there.
        seed: As there.
        settled: The cuts that stay, as they are told (`Cut.at`), in order.
        known: Those after them that are asked about again (`Cut.likeliest`), in order, each at
            least `LEAST_NIGHTS` after the one before it.
        since: From which index on further cuts are looked for: no detector looks so far back
            from a new night.

    Returns:
        In time order, without the settled ones: each lies after all of them.
    """
    jury = CutEvaluator(values, own_errors, threshold=threshold, seed=seed)
    # What lies before is needed to see a step where the looking begins.
    begin = max(since - REACH, 0)
    near = _proposed(values[begin:], max(SEGMENT_PENALTY * rough_spread(values), threshold))
    likely = tuple(begin + cut for cut in near if begin + cut >= since)
    first = len(settled)
    cuts = _placed(jury, settled + known, first)
    return _told(jury, _with_more(jury, cuts, likely, first=first, since=since), first)


def rough_spread(values: Array) -> float:
    """Standard deviation: seen from night to night, a step is one difference among many."""
    return spread_of(np.diff(values)) / math.sqrt(2)


def _told(jury: CutEvaluator, cuts: Cuts, first: int) -> tuple[Cut, ...]:
    """Ask about each cut from the first on with the others in place, and say where it is."""
    cuts = _without_the_unelected(jury, _placed(jury, cuts, first), first)
    rho = jury.noise(cuts).rho
    # The votes are about the likeliest places; what is told is the middle of those possible.
    elections = [jury.election(cuts, at) for at in cuts[first:]]
    likeliest = cuts
    found = []
    for index, election in enumerate(elections, start=first):
        # After the middle before it and before the next likeliest place: so middles rise.
        place = jury.located(cuts, cuts[index])
        cuts = (*cuts[:index], place.middle, *cuts[index + 1 :])
        found.append(
            Cut(
                likeliest=likeliest[index],
                at=place.middle,
                earliest=place.first,
                latest=place.last,
                election=election,
                rho=rho,
            )
        )
    return tuple(found)


def _proposed(values: Array, penalty: float) -> Cuts:
    return _tidy(potts_cuts(values, penalty=penalty), values.size)


def _tidy(cuts: Cuts, n: int) -> Cuts:
    """Leave out cuts that leave too few nights; of a spike's two, both."""
    kept = list(cuts)
    while True:
        edges = [0, *kept, n]
        short = [i for i in range(len(edges) - 1) if edges[i + 1] - edges[i] < LEAST_NIGHTS]
        if not short or not kept:
            return tuple(kept)
        doomed = {edges[short[0]], edges[short[0] + 1]}
        kept = [cut for cut in kept if cut not in doomed]


def _without_the_unelected(jury: CutEvaluator, cuts: Cuts, first: int) -> Cuts:
    """Drop the least certain cut until every one from the first on that is left is elected."""
    while (worst := _least_certain(jury, cuts, first)) is not None:
        cuts = tuple(cut for cut in cuts if cut != worst)
    return cuts


def _least_certain(jury: CutEvaluator, cuts: Cuts, first: int) -> int | None:
    """Of the later cuts that are not elected the one that is likeliest by chance; None of none.

    Those before the first stay. Detectors are asked only about those that would be it.
    """
    # The sort is stable: of equals the first.
    for at in sorted(cuts[first:], key=lambda at: -jury.p_value(cuts, at)):
        if not jury.election(cuts, at).elected:
            return at
    return None


def _with_more(jury: CutEvaluator, cuts: Cuts, proposed: Cuts, *, first: int, since: int) -> Cuts:
    """Add the clearest cut that is elected beside the others, until none is."""
    while True:
        candidates = sorted({*proposed, *jury.splits(cuts, since)} - set(cuts))
        p_values = {
            at: jury.p_value(_and(cuts, at), at) for at in candidates if jury.may_be_cut(cuts, at)
        }
        # The clearest first, so that most detectors are hardly ever asked.
        for at in sorted(p_values, key=lambda at: p_values[at]):
            if jury.election(_and(cuts, at), at).elected:
                cuts = _placed(jury, _and(cuts, at), first)
                break
        else:
            elsewhere = _plain_elsewhere(jury, cuts, since)
            if elsewhere is None:
                return cuts
            cuts = _placed(jury, _and(cuts, elsewhere), first)


def _plain_elsewhere(jury: CutEvaluator, cuts: Cuts, since: int) -> int | None:
    """The first cut that is plain, and elected, where a piece's best split is likeliest.

    Where nights are of two kinds the split may lie some nights beside a step, and lose there.
    """
    for split in sorted(jury.splits(cuts, since)):
        if jury.explains(cuts, split):
            at = jury.located(cuts, split).likeliest
            more = _and(cuts, at)
            if jury.poll(more, at).plain and jury.election(more, at).elected:
                return at
    return None


def _and(cuts: Cuts, at: int) -> Cuts:
    return tuple(sorted((*cuts, at)))


def _placed(jury: CutEvaluator, cuts: Cuts, first: int) -> Cuts:
    """Every cut from the first on where it is likeliest between its neighbours."""
    for at in cuts[first:]:
        moved = jury.located(cuts, at).likeliest
        cuts = tuple(sorted({moved if cut == at else cut for cut in cuts}))
    return cuts
