"""How often the interval of a ratio of few launches holds the truth, and how far it reaches.

Cells are compared with one baseline and share their variances, as those of a scenario do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmarks.simulation.verdicts import CELL, TYPICAL_NS, Noise, summary_of
from corebound.stats.comparison import speedup_intervals
from corebound.stats.intervals import CONFIDENCE, Interval, is_usable_ratio

LAUNCHES = (2, 3, 4, 5, 6)
CELLS = 5
_FAST, _SLOW = math.log(1 / 1.22), math.log(1.3)

Array = NDArray[np.float64]


def _normal(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    return rng.normal(0, 0.02, (trials, blocks, CELLS + 1))


def _modes(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    noise = _normal(rng, trials, blocks) / 2
    return noise + _FAST * (rng.random(noise.shape) < 1 / 3)


def _outliers(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    noise = _normal(rng, trials, blocks) / 2
    return noise + _SLOW * (rng.random(noise.shape) < 0.1)


def _heavy_tail(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    samples: Array = 0.02 * rng.standard_t(3, (trials, blocks, CELLS + 1))
    return samples


def _exponential(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    return rng.exponential(0.05, (trials, blocks, CELLS + 1))


def _log_normal(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    return 0.02 * rng.lognormal(0, 1, (trials, blocks, CELLS + 1))


def _own_spreads(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    noise = _normal(rng, trials, blocks)
    spreads: Array = np.exp(rng.normal(0, 0.7, (trials, 1, CELLS + 1)))
    return noise * spreads


def _noisier(factor: float) -> Callable[[np.random.Generator, int, int], Array]:
    def draw(rng: np.random.Generator, trials: int, blocks: int) -> Array:
        noise = _normal(rng, trials, blocks)
        noise[..., 0] *= factor
        return noise

    return draw


def _drift(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    walk = np.cumsum(rng.normal(0, 0.03, (trials, blocks, 1)), axis=1)
    return _normal(rng, trials, blocks) / 2 + walk


def _host_speeds(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    levels = host_levels(rng, (trials, blocks, CELLS + 1), length=3)
    return _normal(rng, trials, blocks) / 2 + levels


def host_levels(rng: np.random.Generator, shape: tuple[int, int, int], *, length: float) -> Array:
    """Levels of a host that is 15 % faster or slower than usual for some blocks in the mean.

    Args:
        rng: Draws the levels.
        shape: (trials, blocks, launches of a block), which run in random order.
        length: How many blocks a level lasts, in the mean.

    Returns:
        The logarithm of the level at each launch, of this shape.
    """
    trials, blocks, launches = shape
    in_order = np.empty((trials, blocks * launches))
    level = rng.choice((-0.15, 0.0, 0.15), trials)
    for at in range(blocks * launches):
        changes = rng.random(trials) < 1 / (length * launches)
        level = np.where(changes, rng.choice((-0.15, 0.0, 0.15), trials), level)
        in_order[:, at] = level
    by_block = in_order.reshape(shape)
    order = np.argsort(rng.random(shape), axis=2)
    return np.take_along_axis(by_block, order, axis=2)


# Each draws logarithms of launches, (trials, blocks, cells and their baseline). Where one cell
# differs from the others, it is the first.
NOISES = (
    Noise("normal, 2 %", _normal),
    Noise("a third of launches 22 % faster", _modes),
    Noise("one launch in ten 30 % slower", _outliers),
    Noise("heavy tails, t with 3 degrees", _heavy_tail),
    Noise("skewed, exponential", _exponential),
    Noise("skewed, log-normal", _log_normal),
    Noise("every cell has its own spread", _own_spreads),
    Noise("the first cell 3 times noisier", _noisier(3)),
    Noise("the first cell 10 times noisier", _noisier(10)),
    Noise("the session drifts", _drift),
    Noise("the host changes by 15 %", _host_speeds),
)


def held(rng: np.random.Generator, trials: int) -> None:
    """Coverage and reach of intervals of two to six launches."""
    print(
        f"{CELLS} equal cells and their baseline, {trials} trials: how often a 95 % interval holds"
    )
    print("the true ratio, of all cells and of the first; how far it reaches either way, in the")
    print("middle, and how far Student's t alone does; how many are narrow enough to be shown.\n")
    print(f"{'noise':<36}{'launches':>9}{'all':>8}{'first':>8}{'reach':>8}{'alone':>8}{'shown':>7}")
    for noise in NOISES:
        for blocks in LAUNCHES:
            logs = noise.draw(rng, trials, blocks)
            intervals = [_intervals(trial) for trial in logs]
            holds = np.array([[one.contains(1.0) for one in row] for row in intervals])
            reach = np.median([[one.relative_half_width for one in row] for row in intervals])
            shown = np.mean(
                [[is_usable_ratio(one.low, one.high) for one in row] for row in intervals]
            )
            pairs = logs[..., :-1] - logs[..., -1:]
            factor = stdtrit(blocks - 1.0, (1 + CONFIDENCE) / 2) / math.sqrt(blocks)
            alone = np.median(np.expm1(factor * pairs.std(axis=1, ddof=1)))
            print(
                f"{noise.name:<36}{blocks:>9}{holds.mean():>8.1%}{holds[:, 0].mean():>8.1%}"
                f"{reach:>8.1%}{alone:>8.1%}{shown:>7.0%}",
                flush=True,
            )
    print()


def _intervals(logs: Array) -> list[Interval]:
    """The intervals of all cells, (blocks, cells and their baseline)."""
    times_ns = TYPICAL_NS * np.exp(logs)
    *cells, baseline = (summary_of(CELL, column.tolist()) for column in times_ns.T)
    intervals = speedup_intervals([(cell, baseline) for cell in cells])
    return [interval for interval in intervals if interval is not None]
