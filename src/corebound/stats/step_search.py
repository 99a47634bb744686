"""The steps of one segment: cuts are proposed, voted on, and put in their place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corebound.stats.potts import potts_cuts
from corebound.stats.step_jury import LEAST_NIGHTS, NORMAL, Cuts, Jury
from corebound.stats.step_votes import SEGMENT_PENALTY, Election

Array = NDArray[np.float64]

# Cuts that are plain whatever the noise turns out to be; where the search starts.
_PLAIN_PENALTY = 5 * SEGMENT_PENALTY


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A step of one segment.

    Attributes:
        at: First index after it; the step is as likely before as beyond.
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
    jury = Jury(values, own_errors, threshold=threshold, seed=seed)
    # Seen from one night to the next, a step is one difference among many.
    rough = float(np.median(np.abs(np.diff(values)))) * NORMAL / math.sqrt(2)
    cuts = _proposed(values, max(_PLAIN_PENALTY * rough, threshold))
    cuts = _placed(jury, _without_the_unelected(jury, cuts))
    cuts = _with_more(jury, cuts, _proposed(values, max(SEGMENT_PENALTY * rough, threshold)))
    cuts = _without_the_unelected(jury, _placed(jury, cuts))
    rho = jury.noise(cuts).rho
    # The votes are about the likeliest places; what is told is the middle of those possible.
    elections = [jury.election(cuts, at) for at in cuts]
    found = []
    for index, election in enumerate(elections):
        place = jury.located(cuts, cuts[index])
        cuts = (*cuts[:index], place.middle, *cuts[index + 1 :])
        found.append(
            Cut(
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


def _without_the_unelected(jury: Jury, cuts: Cuts) -> Cuts:
    """Drop the least certain cut until every one that is left is elected."""
    while (worst := _least_certain(jury, cuts)) is not None:
        cuts = tuple(cut for cut in cuts if cut != worst)
    return cuts


def _least_certain(jury: Jury, cuts: Cuts) -> int | None:
    """Of the cuts that are not elected the one that is likeliest by chance; None of none.

    The costliest detector is asked only about those that would be it.
    """
    polls = {at: jury.poll(cuts, at) for at in cuts}
    # The sort is stable: of equals the first.
    for at in sorted(cuts, key=lambda at: -polls[at].p_value):
        if polls[at].elected is False:
            return at
        if polls[at].elected is None and not jury.election(cuts, at).elected:
            return at
    return None


def _with_more(jury: Jury, cuts: Cuts, proposed: Cuts) -> Cuts:
    """Add the clearest cut that is elected beside the others, until none is."""
    while True:
        candidates = sorted({*proposed, *jury.splits(cuts)} - set(cuts))
        polls = {
            at: jury.poll(_and(cuts, at), at) for at in candidates if jury.may_be_cut(cuts, at)
        }
        # The clearest first, so that the costliest detector is hardly ever asked.
        for at in sorted(polls, key=lambda at: polls[at].p_value):
            if polls[at].elected is False:
                continue
            if polls[at].elected or jury.election(_and(cuts, at), at).elected:
                cuts = _placed(jury, _and(cuts, at))
                break
        else:
            elsewhere = _plain_elsewhere(jury, cuts)
            if elsewhere is None:
                return cuts
            cuts = _placed(jury, _and(cuts, elsewhere))


def _plain_elsewhere(jury: Jury, cuts: Cuts) -> int | None:
    """The first cut that is plain, and elected, where a piece's best split is likeliest.

    Where nights are of two kinds the split may lie some nights beside a step, and lose there.
    """
    for split in sorted(jury.splits(cuts)):
        if jury.explains(cuts, split):
            at = jury.located(cuts, split).likeliest
            more = _and(cuts, at)
            if jury.poll(more, at).plain and jury.election(more, at).elected:
                return at
    return None


def _and(cuts: Cuts, at: int) -> Cuts:
    return tuple(sorted((*cuts, at)))


def _placed(jury: Jury, cuts: Cuts) -> Cuts:
    """Every cut where it is likeliest between its neighbours."""
    for at in cuts:
        moved = jury.located(cuts, at).likeliest
        cuts = tuple(sorted({moved if cut == at else cut for cut in cuts}))
    return cuts
