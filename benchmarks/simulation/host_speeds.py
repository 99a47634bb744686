"""Comparisons on a host of two speeds: coverage and reach with and without weighting by speed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.simulation.verdicts import TYPICAL_NS, Array, judge
from corebound.scenario.models import Launches
from corebound.stats.comparison import Comparison

LAUNCHES = (6, 8, 12, 20)
# As measured with ResNet-50: standard deviations of a ratio, and the level of a slow host.
_FAST, _SLOW, _LEVEL = 0.01, 0.05, 0.3
# A launch is a third slower or not; both kinds occur on either side.
_MODE = 0.2

# (generator, trials, blocks) -> logarithms of launches, (trials, blocks, cell and baseline)
Logs = Callable[[np.random.Generator, int, int], Array]


def _both(levels: Array, ratios: Array) -> Array:
    """Launches with these levels and log ratios."""
    return np.stack([levels - ratios / 2, levels + ratios / 2], axis=-1)


def _slow(share: float, *, noise: float = _SLOW, ratio: float = 0.0) -> Logs:
    """A host that is slow in this share of the blocks.

    Args:
        share: Of the blocks.
        noise: The standard deviation of a log ratio in slow blocks.
        ratio: The log ratio in slow blocks; in fast ones it is 0.
    """

    def draw(rng: np.random.Generator, trials: int, blocks: int) -> Array:
        shape = trials, blocks
        slow = rng.random(shape) < share
        spread = np.where(slow, noise, _FAST)
        levels = np.where(slow, rng.normal(_LEVEL, 0.08, shape), rng.normal(0, 0.01, shape))
        return _both(levels, rng.normal(np.where(slow, ratio, 0.0), spread))

    return draw


def _modes(cell: float, baseline: float) -> Logs:
    """Launches that are slow for themselves, with these probabilities."""

    def draw(rng: np.random.Generator, trials: int, blocks: int) -> Array:
        slow = rng.random((trials, blocks, 2)) < np.array([cell, baseline])
        return rng.normal(0, 0.007, slow.shape) + _MODE * slow

    return draw


NOISES: dict[str, tuple[Logs, float]] = {
    "slow in half of the blocks": (_slow(0.5), 0.0),
    "slow in 3 of 10": (_slow(0.3), 0.0),
    "slow in 7 of 10": (_slow(0.7), 0.0),
    "slow, but equally noisy": (_slow(0.5, noise=_FAST), 0.0),
    "slow, and another ratio (3 %)": (_slow(0.5, ratio=-0.03), -0.015),
    "launch modes, equal shares": (_modes(0.3, 0.3), 0.0),
    "launch modes, 50 and 20 %": (_modes(0.5, 0.2), -0.3 * _MODE),
    "normal, one speed": (
        lambda rng, trials, blocks: rng.normal(0, 0.02, (trials, blocks, 2)), 0.0,
    ),
    "heavy tails, t with 3 degrees": (
        lambda rng, trials, blocks: 0.02 * rng.standard_t(3, (trials, blocks, 2)), 0.0,
    ),
    "skewed, exponential": (
        lambda rng, trials, blocks: rng.exponential(0.05, (trials, blocks, 2)), 0.0,
    ),
    "the session drifts": (
        lambda rng, trials, blocks: _both(
            np.cumsum(rng.normal(0, 0.05, (trials, blocks)), axis=1),
            rng.normal(0, 0.02, (trials, blocks)),
        ),
        0.0,
    ),
}  # fmt: skip


def weighted(rng: np.random.Generator, trials: int) -> None:
    """Coverage and reach of the interval of a ratio, and alarms where launching stops early."""
    rule = Launches()
    print(f"Launches that alternate, {trials} trials. How often the 95 % interval holds the mean")
    print("over all blocks, and how far it reaches: of all blocks alike, and weighted by speed;")
    print("in how many trials two speeds are recognised. Last, false alarms of two equal cells")
    print(
        f"that are launched {rule.min} to {rule.max} times, until the interval is within"
        f" {rule.until_relative_ci:.0%}.\n"
    )
    print(
        f"{'noise':<32}{'launches':>9}{'holds: alike':>14}{'weighted':>10}{'reach: alike':>14}"
        f"{'weighted':>10}{'seen':>7}{'alarms':>8}"
    )
    for name, (draw, truth) in NOISES.items():
        for blocks in LAUNCHES:
            rows = draw(rng, trials, blocks)
            alike = [_judged(row, alternated=False) for row in rows]
            ours = [_judged(row, alternated=True) for row in rows]
            seen = np.mean([one.host_speeds is not None for one in ours])
            print(
                f"{name:<32}{blocks:>9}{_holds(alike, truth):>14.1%}{_holds(ours, truth):>10.1%}"
                f"{_reach(alike):>14.1%}{_reach(ours):>10.1%}{seen:>7.0%}"
                + (f"{_alarms(draw, rng, trials, rule):>8.1%}" if blocks == LAUNCHES[0] else ""),
                flush=True,
            )
    print()


def _judged(logs: Array, *, alternated: bool, adaptive: bool = False) -> Comparison:
    return judge(TYPICAL_NS * np.exp(logs), adaptive=adaptive, alternated=alternated)


def _holds(comparisons: list[Comparison], truth: float) -> float:
    return float(
        np.mean(
            [one.interval is None or one.interval.contains(np.exp(truth)) for one in comparisons]
        )
    )


def _reach(comparisons: list[Comparison]) -> float:
    """Half the width of the interval, in the middle."""
    return float(
        np.median(
            [
                np.inf if one.interval is None else one.interval.relative_half_width
                for one in comparisons
            ]
        )
    )


def _alarms(draw: Logs, rng: np.random.Generator, trials: int, rule: Launches) -> float:
    """How often launching that stops at a narrow interval ends with a false verdict."""
    false = 0
    for row in draw(rng, trials, rule.max):
        for blocks in range(rule.min, rule.max + 1):
            found = _judged(row[:blocks], alternated=True, adaptive=True)
            interval = found.interval
            if interval is not None and interval.relative_half_width <= rule.until_relative_ci:
                break
        false += found.verdict in {"faster", "slower"}
    return false / trials
