"""Recognise two speeds of the host, and weight the blocks of a comparison by how much each varies.

A virtual machine is slower while something else keeps the other threads of its cores busy, for
many seconds at a time and without any steal. Launches that alternate are slower together, so their
ratio is right, but it varies several times as much as while the host is fast. The mean over all
blocks is then as uncertain as its worst blocks.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from corebound.stats.distributions import student_quantile
from corebound.stats.intervals import CONFIDENCE, TrimmedMean, adaptive_trimmed_mean

# Two values hardly show a spread.
_LEAST_OF_EACH = 3
# Between the slowest fast block and the fastest slow one. Speeds that are closer run into one
# another.
_LEAST_GAP = math.log(1.05)
# Where single launches are slow, the ratio varies by more than the level. Where the host is slow,
# both launches are, and the ratio varies by less.
_MOST_SPREAD = 1 / 3
# That the means agree, and that slow blocks vary more, is seen in the same values, which makes the
# error too small: without this factor, intervals hold the truth in 92 to 95 %. Found by simulation;
# docs/explanation/statistics/modes.md has the numbers.
PRICE_OF_TWO_SPEEDS = 1.1


class HostSpeeds(Struct, frozen=True, kw_only=True):
    """Blocks of a fast and of a slow host, and the ratio of launches that alternated in them.

    Attributes:
        middle: The logarithm of the ratio, baseline time over cell time.
        error: Its standard error.
        freedom: The error's degrees of freedom.
        slow_blocks: The numbers of the blocks in which the host was slow.
    """

    middle: float
    error: float
    freedom: float
    slow_blocks: tuple[int, ...]


def recognise_host_speeds(
    log_ratios: Mapping[int, float], levels: Mapping[int, float]
) -> HostSpeeds | None:
    """The speeds of the host in the blocks; None unless it had two and slow blocks vary more.

    None, too, if the ratio itself differs between the speeds: it has no one value then, and
    the mean over the blocks is what a user of this host gets.

    Args:
        log_ratios: By block, the logarithm of baseline time over cell time, of launches that
            alternated.
        levels: By block, the mean logarithm of both launches' times.

    Source: two samples of a common mean, each with the weight of its own variance, Graybill &
    Deal, "Combining unbiased estimators", Biometrics 15 (1959); the error of that mean and its
    degrees of freedom, Meier, "Variance of a weighted mean", Biometrics 9 (1953); the split by
    least squares, Fisher, "On grouping for maximum homogeneity" (1958).
    """
    blocks = sorted(log_ratios, key=levels.__getitem__)
    count_fast = _split([levels[block] for block in blocks])
    if count_fast is None:
        return None
    fast, slow = blocks[:count_fast], blocks[count_fast:]
    step = _mean(levels, slow) - _mean(levels, fast)
    of_fast, of_slow = (
        adaptive_trimmed_mean([log_ratios[block] for block in group]) for group in (fast, slow)
    )
    if not _differ_in_spread(of_fast, len(fast), of_slow, len(slow), step):
        return None
    if not _have_common_mean(of_fast, of_slow):
        return None
    weights = np.array([of_fast.error**-2, of_slow.error**-2])
    freedoms = np.array([of_fast.freedom, of_slow.freedom])
    total = weights.sum()
    # The weights are estimates, which makes the mean less certain than known weights would.
    inflation = 1 + 4 * float((weights * (total - weights) / freedoms).sum()) / total**2
    return HostSpeeds(
        middle=float(weights @ [of_fast.mean, of_slow.mean] / total),
        error=PRICE_OF_TWO_SPEEDS * math.sqrt(inflation / total),
        freedom=float(total**2 / (weights**2 / freedoms).sum()),
        slow_blocks=tuple(sorted(slow)),
    )


def _split(levels: Sequence[float]) -> int | None:
    """How many of the sorted levels are those of a fast host; None if there is no clear gap."""
    n = len(levels)
    sizes = range(_LEAST_OF_EACH, n - _LEAST_OF_EACH + 1)
    if not sizes:
        return None
    sums = np.cumsum(levels)

    def between(fast: int) -> float:
        """The sum of squares between the two groups."""
        step = (sums[-1] - sums[fast - 1]) / (n - fast) - sums[fast - 1] / fast
        return float(fast * (n - fast) * step**2)

    fast = max(sizes, key=between)
    return fast if levels[fast] - levels[fast - 1] >= _LEAST_GAP else None


def _mean(levels: Mapping[int, float], blocks: Sequence[int]) -> float:
    return sum(levels[block] for block in blocks) / len(blocks)


def _differ_in_spread(
    fast: TrimmedMean, count_fast: int, slow: TrimmedMean, count_slow: int, step: float
) -> bool:
    """Whether ratios vary more in slow blocks, and as they do if the host is what is slow.

    A significant difference is not asked for: it would select samples whose fast blocks agree by
    chance. docs/explanation/statistics/modes.md has the numbers.
    """
    spread_fast, spread_slow = (
        one.error * math.sqrt(count) for one, count in ((fast, count_fast), (slow, count_slow))
    )
    return 0 < spread_fast < spread_slow <= _MOST_SPREAD * step


def _have_common_mean(fast: TrimmedMean, slow: TrimmedMean) -> bool:
    """Whether the two means agree, after Welch."""
    variance = fast.error**2 + slow.error**2
    freedom = variance**2 / (fast.error**4 / fast.freedom + slow.error**4 / slow.freedom)
    reach = student_quantile(freedom, (1 + CONFIDENCE) / 2) * math.sqrt(variance)
    return abs(fast.mean - slow.mean) <= reach
