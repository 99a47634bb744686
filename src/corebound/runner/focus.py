"""Which comparisons the rest of a short budget decides.

After one launch of each cell, a budget that holds no further five of all would leave every
comparison open. So it decides those that look plainest, and the others keep what was seen.
"""

from collections.abc import Sequence

from msgspec import Struct

# From six launches of each on, a comparison has its own variance and a second look by ranks.
DECIDING_LAUNCHES = 6


class Candidate(Struct, frozen=True, kw_only=True):
    """A cell and its baseline, which lack launches.

    Attributes:
        launches: The `ok` launches of the one that has fewer.
        effect: How far apart the two look: the absolute logarithm of the ratio of their times.
        own_s, baseline_s: What the launches take that each of the two lacks, in seconds.
    """

    scenario: int
    key: str
    baseline: str
    launches: int
    effect: float
    own_s: float
    baseline_s: float

    @property
    def seconds(self) -> float:
        """What both take."""
        return self.own_s + self.baseline_s


def decided_by(candidates: Sequence[Candidate], left_s: float) -> tuple[Candidate, ...]:
    """The comparisons that the rest of a budget decides: at least one.

    The one that has most launches comes first, then those that look plainest, as launches may take
    longer than expected. If none fits, it is one of which half the launches do, or the shortest.
    Choosing by the first launch hardly adds false alarms (`benchmarks.simulation focus`).

    Args:
        candidates: Those that lack launches.
        left_s: The rest of the budget, in seconds.
    """

    def order(candidate: Candidate) -> tuple[int, bool, bool, float]:
        fits = candidate.seconds <= left_s
        # Fewer launches decide what is plain enough, so half of them may do.
        may_do = candidate.seconds <= 2 * left_s
        plainest_or_shortest = -candidate.effect if may_do else candidate.seconds
        return -candidate.launches, not fits, not may_do, plainest_or_shortest

    chosen: list[Candidate] = []
    baselines: set[tuple[int, str]] = set()
    for candidate in sorted(candidates, key=order):
        baseline = (candidate.scenario, candidate.baseline)
        needed_s = candidate.own_s + (0.0 if baseline in baselines else candidate.baseline_s)
        if chosen and needed_s > left_s:
            continue
        chosen.append(candidate)
        baselines.add(baseline)
        left_s -= needed_s
    return tuple(chosen)
