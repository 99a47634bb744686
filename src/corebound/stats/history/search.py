"""Search the change points of one segment: propose cuts, vote on them and locate them."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.history.cut_evaluator import LEAST_NIGHTS, CutEvaluator, Cuts
from corebound.stats.history.detectors import REACH, SEGMENT_PENALTY, CutDecision, potts_cuts
from corebound.stats.history.shift_tests import spread_of

Array = NDArray[np.float64]

# A penalty for cuts that are clear whatever the noise; the search starts from these.
_PLAIN_PENALTY = 5 * SEGMENT_PENALTY


class Cut(Struct, frozen=True, kw_only=True):
    """A change point of one segment.

    Attributes:
        likeliest: Its location while others are voted on: the first index after it.
        at: The reported location; the change is equally likely to lie before or after.
        earliest: First location that is not ruled out.
        latest: Last location that is not ruled out.
        election: The detectors' votes.
        rho: Correlation between neighbouring points that the detectors used.
    """

    likeliest: int
    at: int
    earliest: int
    latest: int
    election: CutDecision
    rho: float


def search(values: Array, own_errors: Array, *, threshold: float, seed: int) -> tuple[Cut, ...]:
    """Find the change points of a series from one host and one environment.

    The search starts from the clear cuts and adds accepted ones, clearest first.
    Then it votes on each cut once more with the others in place.

    Args:
        values: n logarithms in time order.
        own_errors: Their standard errors if known, else 0.
        threshold: Least shift that matters, as a logarithm.
        seed: Seed of the permutations; the same series and seed give the same cuts.

    Returns:
        The cuts in time order.
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
    """Find the later change points of a series whose earlier ones are known from fewer points.

    Works like `search`, with all points to determine the noise. But cuts are proposed, voted
    on and located only after the settled ones, which stay fixed and bound the others.

    Args:
        values: As in `search`.
        own_errors: As in `search`.
        threshold: As in `search`.
        seed: As in `search`.
        settled: The fixed cuts, as reported (`Cut.at`), in order.
        known: The later cuts that are voted on again (`Cut.likeliest`), in order, each at
            least `LEAST_NIGHTS` after the one before it.
        since: The first index for additional cuts; from a new point, no detector looks
            further back.

    Returns:
        The cuts in time order, without the settled ones: each lies after all of them.
    """
    jury = CutEvaluator(values, own_errors, threshold=threshold, seed=seed)
    # Earlier points are needed to detect a change where the search begins.
    begin = max(since - REACH, 0)
    near = _proposed(values[begin:], max(SEGMENT_PENALTY * rough_spread(values), threshold))
    likely = tuple(begin + cut for cut in near if begin + cut >= since)
    first = len(settled)
    cuts = _placed(jury, settled + known, first)
    return _told(jury, _with_more(jury, cuts, likely, first=first, since=since), first)


def rough_spread(values: Array) -> float:
    """Standard deviation from successive differences, among which a change is only one."""
    return spread_of(np.diff(values)) / math.sqrt(2)


def _told(jury: CutEvaluator, cuts: Cuts, first: int) -> tuple[Cut, ...]:
    """Vote on each cut from the first on with the others in place, and locate it."""
    cuts = _without_the_unelected(jury, _placed(jury, cuts, first), first)
    rho = jury.noise(cuts).rho
    # The votes apply to the likeliest locations; the median of those possible is reported.
    elections = [jury.election(cuts, at) for at in cuts[first:]]
    likeliest = cuts
    found = []
    for index, election in enumerate(elections, start=first):
        # Between the median before it and the likeliest location after it, so that medians ascend.
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
    """Drop cuts that leave too few points; for a spike, drop both of its cuts."""
    kept = list(cuts)
    while True:
        edges = [0, *kept, n]
        short = [i for i in range(len(edges) - 1) if edges[i + 1] - edges[i] < LEAST_NIGHTS]
        if not short or not kept:
            return tuple(kept)
        doomed = {edges[short[0]], edges[short[0] + 1]}
        kept = [cut for cut in kept if cut not in doomed]


def _without_the_unelected(jury: CutEvaluator, cuts: Cuts, first: int) -> Cuts:
    """Drop the least certain cut until every remaining one from the first on is accepted."""
    while (worst := _least_certain(jury, cuts, first)) is not None:
        cuts = tuple(cut for cut in cuts if cut != worst)
    return cuts


def _least_certain(jury: CutEvaluator, cuts: Cuts, first: int) -> int | None:
    """The rejected later cut that is most likely due to chance; None without any.

    Cuts before the first stay. The detectors run only on those that could be the result.
    """
    # The sort is stable: the first of equal cuts is used.
    for at in sorted(cuts[first:], key=lambda at: -jury.p_value(cuts, at)):
        if not jury.election(cuts, at).elected:
            return at
    return None


def _with_more(jury: CutEvaluator, cuts: Cuts, proposed: Cuts, *, first: int, since: int) -> Cuts:
    """Add the clearest cut that is accepted beside the others, until none is."""
    while True:
        candidates = sorted({*proposed, *jury.splits(cuts, since)} - set(cuts))
        p_values = {
            at: jury.p_value(_and(cuts, at), at) for at in candidates if jury.may_be_cut(cuts, at)
        }
        # The clearest first, so that most detectors rarely run.
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
    """The first clear and accepted cut at the likeliest location near a piece's best split.

    If points fall into two groups, the split may lie a few points beside a change, and be
    rejected there.
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
    """Move every cut from the first on to its likeliest location between its neighbours."""
    for at in cuts[first:]:
        moved = jury.located(cuts, at).likeliest
        cuts = tuple(sorted({moved if cut == at else cut for cut in cuts}))
    return cuts
