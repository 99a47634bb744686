"""Run-to-run variation of a cell's level when nothing has changed."""

import itertools
import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

# Used without a history. The largest coefficient of variation between repetitions in three months
# of an application benchmark in a public cloud, 2,366 runs (Henning et al., "When should I run my
# application benchmark?", FSE Companion 2025).
DEFAULT_SPREAD = math.log1p(0.037)
# The minimum degrees of freedom of a usable history; the default variance has as many.
LEAST_FREEDOM = 4
# The median absolute difference between two normal values is √2 / this many standard deviations.
_NORMAL = 1.4826
# Successive differences share runs. In simulation, their median is as precise as a standard
# deviation of half as many values. The median over all pairs is as precise as one of all values.
_SUCCESSIVE = 0.5


class EarlierRun(Struct, frozen=True, kw_only=True):
    """The results of one cell in one earlier run.

    Attributes:
        logs: Logarithms of its launches' medians.
        commit: The hash of the commit that the run measured; None if unknown.
        delay: The most that other programs can have slowed it down: the mean over its launches.
    """

    logs: tuple[float, ...]
    commit: str | None
    delay: float = 0.0


class BetweenRuns(Struct, frozen=True, kw_only=True):
    """How much the level of a cell varies from run to run.

    Attributes:
        variance: Variance of the logarithm of a run's level, beyond the variation of its launches.
        freedom: Degrees of freedom of `whole`.
        runs: How many earlier runs it is estimated from; 0 for the default.
        whole: The variance before the launches' part is subtracted. `variance` is as uncertain
            as this one.
    """

    variance: float
    freedom: float
    runs: int
    whole: float

    @property
    def spread_ratio(self) -> float:
        """The standard deviation as a share: 0.02 is 2 %."""
        return math.expm1(math.sqrt(self.variance))


def between_runs(earlier: Sequence[EarlierRun]) -> BetweenRuns:
    """Estimate from a cell's earlier runs on a host how much two runs differ without a cause.

    The estimate uses the median absolute difference between pairs of runs of one commit. For
    normal values this median determines the standard deviation, and a few outlying runs do not
    move it. If too few runs share a commit, each run is compared with the next one, whatever
    their commits. A commit that changes the speed is then one large difference among many.

    Two parts are subtracted: the delay by other programs, from each run's level, because a
    comparison knows this delay for its own two runs and adds it; and the part of the variance
    that comes from the launches within a run.

    Args:
        earlier: The runs, oldest first, measured in the same way. Runs with fewer than two
            launches are ignored.

    Returns:
        The estimate. With fewer than `LEAST_FREEDOM` degrees of freedom, the larger of the
        estimate and the default.

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
        abs(first - second)
        for own in by_commit.values()
        for first, second in itertools.combinations(own, 2)
    ]
    successive = _SUCCESSIVE * (len(runs) - 1)
    if freedom < LEAST_FREEDOM <= successive:
        freedom = successive
        differences = [abs(first - second) for first, second in itertools.pairwise(levels)]
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
