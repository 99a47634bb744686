"""Whether more launches of the baseline than of each cell make ratios more certain."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from benchmarks.simulation.few import host_levels
from corebound.stats.intervals import CONFIDENCE

SPREAD = 0.02
# Launches of each cell if the baseline has as many.
LAUNCHES = (6, 12, 30)
# How many blocks the host stays the same, in the mean; None: always.
LENGTHS = (None, 3, 10)

Array = NDArray[np.float64]


def allocated(rng: np.random.Generator, trials: int) -> None:
    """The reach of intervals if the baseline has sqrt(k) launches for each of a cell."""
    print(f"k cells and their baseline, {trials} trials; launches vary by {SPREAD:.0%}, and a host")
    print("changes by 15 % for some blocks. Reach of the interval, relative to pairs of one launch")
    print(
        "each, with as many launches in all: the baseline has sqrt(k) launches in each block, and"
    )
    print("its launches are not paired (Welch); or a cell is paired with their mean.\n")
    print(
        f"{'k':>3}{'host stays for':>16}{'launches':>10}{'pairs':>8}{'unpaired':>10}{'paired':>9}"
    )
    for cells in (4, 9):
        repeats = math.isqrt(cells)
        for length in LENGTHS:
            for launches in LAUNCHES:
                fewer = round(launches * (cells + 1) / (cells + repeats))
                pairs = _logs(rng, (trials, launches, cells + 1), length)
                reach = _paired_reach(pairs[..., 0] - pairs[..., 1])
                logs = _logs(rng, (trials, fewer, cells + repeats), length)
                base = logs[..., :repeats]
                unpaired = _welch_reach(logs[..., -1], base.reshape(trials, -1)) / reach
                paired = _paired_reach(logs[..., -1] - base.mean(axis=2)) / reach
                stays = "always" if length is None else f"{length} blocks"
                print(
                    f"{cells:>3}{stays:>16}{launches:>10}{reach:>8.1%}{unpaired:>10.2f}{paired:>9.2f}",
                    flush=True,
                )
    print()


def _logs(rng: np.random.Generator, shape: tuple[int, int, int], length: float | None) -> Array:
    own: Array = rng.normal(0, SPREAD, shape)
    return own if length is None else own + host_levels(rng, shape, length=length)


def _paired_reach(logs: Array) -> float:
    """Half the width of Student's interval, in the middle of all trials, (trials, blocks)."""
    blocks = logs.shape[1]
    factor = stdtrit(blocks - 1.0, (1 + CONFIDENCE) / 2)
    return float(np.median(factor * logs.std(axis=1, ddof=1) / math.sqrt(blocks)))


def _welch_reach(logs: Array, baseline_logs: Array) -> float:
    """Half the width of Welch's interval, in the middle of all trials, (trials, launches)."""
    shares = [side.var(axis=1, ddof=1) / side.shape[1] for side in (logs, baseline_logs)]
    freedom = (shares[0] + shares[1]) ** 2 / (
        shares[0] ** 2 / (logs.shape[1] - 1) + shares[1] ** 2 / (baseline_logs.shape[1] - 1)
    )
    factor = stdtrit(freedom, (1 + CONFIDENCE) / 2)
    return float(np.median(factor * np.sqrt(shares[0] + shares[1])))
