"""How much a cell's level differs from one run to the next, with nothing changed."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

# Without a history: the largest coefficient of variation between repetitions in three months of
# an application benchmark in a public cloud, 2,366 runs (Henning et al., "When should I run my
# application benchmark?", FSE Companion 2025).
DEFAULT_SPREAD = math.log1p(0.037)
# As many degrees of freedom as the fewest that a history is believed with.
LEAST_FREEDOM = 4
# Half of the differences between two normal numbers are less than √2 / this many deviations.
_NORMAL = 1.4826
# Successive differences share runs: in simulation their median is as sure as a standard
# deviation of half as many. That of all pairs is as sure as one of all.
_SUCCESSIVE = 0.5


class EarlierRun(Struct, frozen=True, kw_only=True):
    """What one run said of a cell.

    Attributes:
        logs: Logarithms of its launches' medians.
        commit: The hash of its commit; None where that is not known.
        delay: How much longer other programs can have made it take, the mean of its launches'.
    """

    logs: tuple[float, ...]
    commit: str | None
    delay: float = 0.0


class BetweenRuns(Struct, frozen=True, kw_only=True):
    """How much the level of a cell varies from run to run.

    Attributes:
        variance: Of the logarithm of a run's level, beside what its launches vary by.
        freedom: Degrees of freedom of `whole`.
        runs: How many earlier runs it was learned from; 0 where it is the default.
        whole: The variance with the part of the launches, which was taken off: what is left
            is as uncertain as that.
    """

    variance: float
    freedom: float
    runs: int
    whole: float

    @property
    def spread_ratio(self) -> float:
        """Its standard deviation as a share: 0.02 is 2 %."""
        return math.expm1(math.sqrt(self.variance))


def between_runs(earlier: Sequence[EarlierRun]) -> BetweenRuns:
    """Learn from a cell's earlier runs on a host how much two runs differ by themselves.

    Half of all pairs of runs of one commit differ by less than their median; of normal numbers
    that tells the standard deviation, and a few runs that are far out do not move it. Where too
    few runs share a commit, runs of different commits are compared, each with the next: a
    commit that changed something is then one large difference among many. What other programs
    delayed a run by is taken off its level, for a comparison knows and adds it for the two that
    it is of; and the part that comes from the launches of a run.

    Args:
        earlier: The runs, oldest first, measured alike; those without two launches are left out.

    Returns:
        What they show; with fewer than `LEAST_FREEDOM` degrees of freedom what they show
        or the default, whichever is more.

    Source: the median of pairwise differences, Rousseeuw & Croux, "Alternatives to the median
    absolute deviation", JASA 88 (1993); successive differences, von Neumann et al., "The mean
    square successive difference" (1941).
    """
    runs = [run for run in earlier if len(run.logs) >= 2]
    levels = [statistics.fmean(run.logs) - run.delay for run in runs]
    by_commit: dict[str | None, list[float]] = {}
    for run, level in zip(runs, levels, strict=True):
        by_commit.setdefault(run.commit, []).append(level)
    freedom: float = len(runs) - len(by_commit)
    differences = [
        abs(one - other)
        for own in by_commit.values()
        for one, other in itertools.combinations(own, 2)
    ]
    successive = _SUCCESSIVE * (len(runs) - 1)
    if freedom < LEAST_FREEDOM <= successive:
        freedom = successive
        differences = [abs(one - other) for one, other in itertools.pairwise(levels)]
    assumed = DEFAULT_SPREAD**2
    default = BetweenRuns(variance=assumed, freedom=LEAST_FREEDOM, runs=0, whole=assumed)
    if not differences:
        return default
    launches = statistics.median(statistics.variance(run.logs) / len(run.logs) for run in runs)
    whole = (_NORMAL * statistics.median(differences)) ** 2 / 2
    learned = BetweenRuns(
        variance=max(0.0, whole - launches),
        freedom=max(freedom, LEAST_FREEDOM),
        runs=len(runs),
        whole=whole,
    )
    return learned if freedom >= LEAST_FREEDOM or learned.variance > assumed else default
