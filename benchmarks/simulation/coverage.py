"""How often a 95 % interval of a ratio holds the truth.

It is made by the very function that judges real launches. Beside it stand two bootstraps,
which ask for no formula, so that the formula can be held against them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.histories import rate
from benchmarks.simulation.verdicts import (
    BASELINE,
    CELL,
    ITERATIONS,
    MARGIN,
    NOISES,
    Noise,
    medians_of,
    summary_of,
)
from corebound.stats.between_runs import BetweenRuns
from corebound.stats.comparison import compare
from corebound.stats.intervals import CONFIDENCE, Interval

LAUNCHES = (6, 10, 15, 20, 30)
SLOWER = 0.03
TRUTH = 1 / (1 + SLOWER)
# Of every bootstrap; for so many of the trials, which take long.
_DRAWS, _TRIALS = 1000, 1000
_CHUNK = 200

# Of sessions whose levels do not differ.
_ALIKE = BetweenRuns(variance=0.0, freedom=1.0, runs=0, whole=0.0)
Array = NDArray[np.float64]


def ratios(rng: np.random.Generator, trials: int) -> None:
    """Coverage of `compare`'s interval, paired and not, and of two bootstraps over blocks."""
    print(f"A cell that takes {SLOWER:.0%} longer than its baseline, {ITERATIONS} iterations a")
    print(f"launch, {trials} trials: how often a 95 % interval holds the true ratio; in brackets")
    print("where that rate lies. `unpaired`: the same of two sessions, one for each. The")
    print(f"bootstraps draw whole blocks, {_DRAWS} times: between percentiles, and studentized.")
    print("Last, how far the interval by blocks reaches either way, in the middle.\n")
    print(
        f"{'noise':<36}{'launches':>9}{'by blocks':>22}{'unpaired':>10}"
        f"{'bootstrap':>11}{'bootstrap-t':>13}{'reach':>7}"
    )
    for noise in NOISES:
        for blocks in LAUNCHES:
            medians_ns = _trials(noise, rng, trials, blocks)
            paired = [_interval(one[:, 0], one[:, 1], unpaired=False) for one in medians_ns]
            # The baseline is the neighbouring trial's: of another session.
            others = np.roll(medians_ns[..., 1], 1, axis=0)
            apart = [
                _interval(one[:, 0], other, unpaired=True)
                for one, other in zip(medians_ns, others, strict=True)
            ]
            logs = np.log(medians_ns[:_TRIALS, :, 1] / medians_ns[:_TRIALS, :, 0])
            simple, studentized = bootstrapped(rng, logs)
            print(
                f"{noise.name:<36}{blocks:>9}{rate(one.contains(TRUTH) for one in paired):>22}"
                f"{np.mean([one.contains(TRUTH) for one in apart]):>10.1%}"
                f"{simple:>11.1%}{studentized:>13.1%}"
                f"{np.median([one.relative_half_width for one in paired]):>7.1%}",
                flush=True,
            )
    print()


def _trials(noise: Noise, rng: np.random.Generator, trials: int, blocks: int) -> Array:
    """Medians in nanoseconds, (trials, blocks, 2), drawn a few at a time to spare memory."""
    parts = [
        medians_of(noise.draw(rng, min(_CHUNK, trials - done), blocks), SLOWER)
        for done in range(0, trials, _CHUNK)
    ]
    return np.concatenate(parts)


def _interval(cell_ns: Array, baseline_ns: Array, *, unpaired: bool) -> Interval:
    compared = compare(
        summary_of(CELL, cell_ns.tolist()),
        summary_of(BASELINE, baseline_ns.tolist()),
        margin=MARGIN,
        between=_ALIKE if unpaired else None,
    )
    assert compared is not None
    assert compared.interval is not None
    assert compared.interval.low > 0
    return compared.interval


def bootstrapped(rng: np.random.Generator, logs: Array) -> tuple[float, float]:
    """Share of trials whose true ratio lies within each bootstrap's interval.

    Args:
        rng: Draws the blocks.
        logs: Log ratios by block, (trials, blocks).

    Returns:
        Of percentiles of the drawn means; of the studentized bootstrap.

    Source: Efron & Tibshirani, "An Introduction to the Bootstrap" (1993), chapters 12, 13.
    """
    trials, blocks = logs.shape
    tails = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
    simple = studentized = 0
    for one in logs:
        drawn = one[rng.integers(blocks, size=(_DRAWS, blocks))]
        means = drawn.mean(axis=1)
        low, high = np.quantile(means, tails)
        simple += bool(low <= math.log(TRUTH) <= high)
        errors = drawn.std(axis=1, ddof=1) / math.sqrt(blocks)
        told = errors > 0
        scores = (means[told] - one.mean()) / errors[told]
        below, above = np.quantile(scores, tails)
        error = one.std(ddof=1) / math.sqrt(blocks)
        away = one.mean() - math.log(TRUTH)
        studentized += bool(below * error <= away <= above * error)
    return simple / trials, studentized / trials
