"""Recognise launches of two modes, and compare launches of the same mode.

A process can be fast or slow for its whole life, for example by where its memory lies. The ratio
of a cell and its baseline then has up to three levels: lower where only the cell's launch is slow,
higher where only the baseline's is, and between them where both have the same mode. The mean over
blocks is uncertain by the modes that happened to meet, although the ratio within a mode is known
well.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.distributions import binomial_above
from corebound.stats.intervals import Array, Interval, log_interval, share_interval

# With fewer blocks, three levels fit almost any sample; with six they fit 0.5 % of those with
# skewed noise, and a few launches that a busy host disturbed.
LEAST_BLOCKS = 8
# The blocks of two different modes, at least. With two, single outliers on either side do.
_LEAST_MIXED = 3
# How many standard deviations within a mode lie between the modes. Less than 1 % of samples of one
# mode reach it; docs/explanation/statistics/modes.md has the numbers.
_LEAST_SEPARATION = 14.0
# Modes that are closer do not matter to anybody.
_LEAST_STEP = math.log(1.02)
# The most that the host's level may vary between blocks, as a share of the step, if the absolute
# times are to show which mode two equal launches have. At this share 1 in 160 is assigned wrongly.
_MOST_DRIFT = 0.2

Mode = Literal["fast", "slow"]
Side = Literal["cell", "baseline"]


class ModeShare(Struct, frozen=True, kw_only=True):
    """How many of a side's launches are fast, and the 95 % interval of that share."""

    fast: int
    launches: int
    interval: Interval


class BlockModes(Struct, frozen=True, kw_only=True):
    """The modes of a block's two launches.

    None if both have the same one but the host's level varies too much to tell which.
    """

    block: int
    cell: Mode | None
    baseline: Mode | None


class Modes(Struct, frozen=True, kw_only=True):
    """Launches of two modes, and the ratio of two launches of the same mode.

    Attributes:
        middle: The logarithm of that ratio, baseline time over cell time.
        error: Its standard error.
        freedom: The error's degrees of freedom: the blocks less the ratio and the step.
        step: The logarithm of the slow mode's time over the fast mode's.
        blocks: The modes of each block's launches.
    """

    middle: float
    error: float
    freedom: int
    step: float
    blocks: tuple[BlockModes, ...]

    @property
    def speedup_ratio(self) -> float:
        """Baseline time over cell time, of launches of the same mode."""
        return math.exp(self.middle)

    @property
    def interval(self) -> Interval:
        """The 95 % interval of `speedup_ratio`, by Student's t."""
        return log_interval(self.middle, standard_error=self.error, freedom=self.freedom)

    @property
    def slow_ratio(self) -> float:
        """The slow mode's time over the fast mode's; above 1."""
        return math.exp(self.step)

    def share(self, side: Side) -> ModeShare | None:
        """The share of fast launches of one side; None if the mode of a launch is unknown."""
        modes = [block.cell if side == "cell" else block.baseline for block in self.blocks]
        if None in modes:
            return None
        fast = modes.count("fast")
        return ModeShare(fast=fast, launches=len(modes), interval=share_interval(fast, len(modes)))

    @property
    def share_p_value(self) -> float:
        """The probability of so unequal shares of fast launches, if the true ones are equal.

        Only blocks of two modes count, and in which of them the cell is the fast one. So the test
        is exact however much the host's level varies between blocks.

        Source: McNemar, "Note on the sampling error of the difference between correlated
        proportions" (1947), in its exact form: the sign test.
        """
        mixed = [block.cell for block in self.blocks if block.cell != block.baseline]
        fewer = min(mixed.count("fast"), mixed.count("slow"))
        # At most `fewer` of one mode means more than all the others of the other mode.
        return min(1.0, 2 * binomial_above(len(mixed) - fewer - 1, len(mixed), 0.5))


class LevelFits(Struct, frozen=True, kw_only=True):
    """The best fit of three levels to each of k samples; arrays of length k.

    Attributes:
        steps: The distance of the other two from it.
        noises: Standard deviation about the levels, with n - 2 degrees of freedom.
        below, above: How many values belong to the lower and to the upper level.
    """

    middles: Array
    steps: Array
    noises: Array
    below: NDArray[np.int64]
    above: NDArray[np.int64]

    def are_clear(self, resolution: float = 0.0) -> NDArray[np.bool_]:
        """Whether each is strong evidence of two modes.

        Args:
            resolution: The clock's, as a share of the times; the noise is at least that.
        """
        clear: NDArray[np.bool_] = (
            (self.below + self.above >= _LEAST_MIXED)
            & (self.steps >= _LEAST_STEP)
            & (self.steps >= _LEAST_SEPARATION * np.maximum(self.noises, resolution))
        )
        return clear


def fit_levels(rows: Array) -> LevelFits:
    """Fit three equally spaced levels to each row, by least squares over all assignments.

    With noise of one variance about the levels, the best assignment splits the sorted values, so
    there are only about n² / 2 of them.

    Args:
        rows: (k, n) log ratios, n at least three.

    Source: the classification likelihood of a mixture of normal distributions with one variance,
    McLachlan & Peel, "Finite Mixture Models" (2000), section 2.21; splitting sorted values,
    Fisher, "On grouping for maximum homogeneity" (1958).
    """
    n = rows.shape[1]
    ordered = np.sort(rows, axis=1)
    centres = (ordered[:, (n - 1) // 2, None] + ordered[:, n // 2, None]) / 2
    ordered -= centres
    sums = np.cumsum(ordered, axis=1)
    below, above = _splits(n)
    # A regression on -1, 0 and 1: the sums of these, of their squares, and of products.
    total, offset = sums[:, -1:], above - below
    products = total - sums[:, n - above - 1] - sums[:, below - 1]
    squares = below + above - offset**2 / n
    steps = (products - offset * total / n) / squares
    middles = (total - steps * offset) / n
    spread = ((ordered - total / n) ** 2).sum(axis=1, keepdims=True)
    residuals = np.maximum(spread - steps**2 * squares, 0.0)
    row, best = np.arange(len(rows)), np.argmin(residuals, axis=1)
    return LevelFits(
        middles=centres[:, 0] + middles[row, best],
        steps=steps[row, best],
        noises=np.sqrt(residuals[row, best] / (n - 2)),
        below=below[best],
        above=above[best],
    )


@cache
def _splits(n: int) -> NDArray[np.int64]:
    """How many of n sorted values can belong to the lower and to the upper level, (2, m)."""
    return np.array([(low, high) for low in range(1, n - 1) for high in range(1, n - low)]).T


def recognise_modes(
    log_ratios: Mapping[int, float],
    logs: Mapping[int, float],
    baseline_logs: Mapping[int, float],
) -> Modes | None:
    """The modes of paired launches; None without strong evidence of two.

    All three levels must be seen: with two, the times do not show which of them compares launches
    of the same mode. So each side has launches of both modes. The noise within a mode includes
    what the host does between the two launches of a block. Launches that did not alternate
    therefore need modes that are further apart.

    Args:
        log_ratios: By block, the logarithm of baseline time over cell time.
        logs: By block, the logarithm of the median of the cell's launch in nanoseconds.
        baseline_logs: The same of the baseline's launch. The two show which mode two launches of
            the same mode have.

    Source: the test is by simulation, not by the information criterion of Schwarz, "Estimating the
    dimension of a model" (1978): against one normal distribution that prefers two modes for
    every long tail. Launches as a level of their own, Kalibera & Jones, "Rigorous benchmarking in
    reasonable time" (2013).
    """
    blocks = sorted(log_ratios)
    if len(blocks) < LEAST_BLOCKS:
        return None
    ratios = np.array([log_ratios[block] for block in blocks])
    fit = fit_levels(ratios[None, :])
    # A sample is a whole number of nanoseconds: ratios of very short times have levels by that.
    resolution = math.exp(-min(*logs.values(), *baseline_logs.values()))
    if not fit.are_clear(resolution)[0]:
        return None
    middle, step = float(fit.middles[0]), float(fit.steps[0])
    below, above = int(fit.below[0]), int(fit.above[0])
    ranks = np.argsort(np.argsort(ratios, kind="stable"), kind="stable")
    levels = np.where(ranks < below, -1, np.where(ranks >= len(blocks) - above, 1, 0))
    # The standard error of the intercept of a regression on the levels.
    mean = (above - below) / len(blocks)
    error = float(fit.noises[0]) * math.sqrt(
        1 / len(blocks) + mean**2 / (below + above - len(blocks) * mean**2)
    )
    both = [(logs[block] + middle + baseline_logs[block]) / 2 for block in blocks]
    return Modes(
        middle=middle,
        error=error,
        freedom=len(blocks) - 2,
        step=step,
        blocks=tuple(
            BlockModes(block=block, cell=cell, baseline=baseline)
            for block, (cell, baseline) in zip(
                blocks, _modes_of(levels.tolist(), both, step), strict=True
            )
        ),
    )


def _modes_of(
    levels: Sequence[int], both: Sequence[float], step: float
) -> list[tuple[Mode | None, Mode | None]]:
    """The modes of each block's launches, cell first."""
    # Launches of two modes lie half a step above the fast level.
    fast = statistics.median(
        log - step / 2 for level, log in zip(levels, both, strict=True) if level
    )
    equal: list[Mode] = ["slow" if log - fast > step / 2 else "fast" for log in both]
    slow_shares = {"fast": 0.0, "slow": 1.0}
    fast_levels = [
        log - step * (0.5 if level else slow_shares[mode])
        for level, log, mode in zip(levels, both, equal, strict=True)
    ]
    is_known = statistics.stdev(fast_levels) <= _MOST_DRIFT * step
    found: list[tuple[Mode | None, Mode | None]] = []
    for level, mode in zip(levels, equal, strict=True):
        if level:
            found.append(("slow", "fast") if level < 0 else ("fast", "slow"))
        else:
            found.append((mode, mode) if is_known else (None, None))
    return found
