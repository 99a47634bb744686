"""How often equal cells get a verdict, in noises of many kinds, with few launches and with many.

Cells and their baseline share their variances, as those of a scenario do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from benchmarks.simulation import few
from benchmarks.simulation.verdicts import MARGIN, TYPICAL_NS, Noise, simulated_cell, summary_of
from corebound.scenario.models import Launches
from corebound.stats import comparison, shared_variance
from corebound.stats.comparison import compare_together
from corebound.stats.launch_summary import CellSummary
from corebound.stats.stopping import unfinished

LAUNCHES = (2, 3, 4, 5, 6, 8, 12)
CELLS = few.CELLS + 1

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Array]


def _rare(factor: float, share: float) -> Draw:
    def draw(rng: np.random.Generator, trials: int, blocks: int) -> Array:
        noise = rng.normal(0, 0.01, (trials, blocks, CELLS))
        return noise + math.log(factor) * (rng.random(noise.shape) < share)

    return draw


def _baseline(spread: float) -> Draw:
    def draw(rng: np.random.Generator, trials: int, blocks: int) -> Array:
        noise = rng.normal(0, 0.02, (trials, blocks, CELLS))
        noise[..., -1] *= spread
        return noise

    return draw


def _cauchy(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    samples: Array = 0.01 * rng.standard_t(1, (trials, blocks, CELLS))
    return samples


# Logarithms of launches, (trials, blocks, cells and their baseline); all cells are equal but for
# their spreads.
NOISES = (
    *few.NOISES,
    Noise("two kinds of process, 6 % apart", _rare(1.06, 0.5)),
    Noise("two kinds of process, 20 times apart", _rare(20, 0.5)),
    Noise("one launch in ten 40 times slower", _rare(40, 0.1)),
    Noise("one launch in four 3 times slower", _rare(3, 0.25)),
    Noise("the baseline 20 times noisier", _baseline(20)),
    Noise("heavier tails, t with 1 degree", _cauchy),
)


def alarms(rng: np.random.Generator, trials: int) -> None:
    """Print false alarms with fixed numbers of launches, and while launches depend on results."""
    cells = CELLS - 1
    # SciPy's function, which gives the same and takes a tenth of the time; and no forecast.
    with (
        patch.object(shared_variance, "student_probabilities", stdtr),
        patch.object(comparison, "launches_needed", lambda _effect, **_room: None),
    ):
        _print_alarms(rng, trials, cells)


def _print_alarms(rng: np.random.Generator, trials: int, cells: int) -> None:
    print(f"{cells} equal cells and their baseline, {trials} comparisons: verdicts faster or")
    print("slower, with so many launches of each, and with 3 to 12 until all are decided.\n")
    print(f"{'noise':<38}" + "".join(f"{n:>8}" for n in LAUNCHES) + f"{'3 to 12':>10}")
    for noise in NOISES:
        rates = [
            np.mean(
                [verdict_share(_summaries(logs)) for logs in noise.draw(rng, trials // cells, n)]
            )
            for n in LAUNCHES
        ]
        stopping = noise.draw(rng, trials // cells, 12)
        rates.append(np.mean([stopped_share(logs) for logs in stopping]))
        print(
            f"{noise.name:<38}"
            + "".join(f"{rate:>8.1%}" for rate in rates[:-1])
            + f"{rates[-1]:>10.1%}",
            flush=True,
        )
    print()


def verdict_share(summaries: list[CellSummary], *, adaptive: bool = False) -> float:
    """The share of the cells that are faster or slower than the last one, their baseline."""
    *cells, baseline = summaries
    comparisons = compare_together(
        [(cell, baseline) for cell in cells], margin=MARGIN, adaptive=adaptive
    )
    verdicts = [each.verdict for each in comparisons if each is not None]
    return sum(verdict in {"faster", "slower"} for verdict in verdicts) / len(cells)


def stopped_share(logs: Array) -> float:
    """The same, where cells get launches until a run would have decided them."""
    rule = Launches(min=3, max=len(logs))
    counts = dict.fromkeys(_KEYS, 0)
    baselines = dict.fromkeys(_KEYS, _KEYS[-1])
    while True:
        summaries = _summaries(logs, counts)
        more = unfinished(summaries, baselines, rule, margin=MARGIN)
        if not more:
            return verdict_share(summaries, adaptive=True)
        for key in more:
            counts[key] += 1


_CELLS = [simulated_cell(str(index)) for index in range(CELLS)]
_KEYS = [cell.key for cell in _CELLS]


def _summaries(logs: Array, counts: Mapping[str, int] | None = None) -> list[CellSummary]:
    """Summaries of launches (blocks, cells and baseline), of the first launches of each."""
    times_ns = TYPICAL_NS * np.exp(logs)
    return [
        summary_of(cell, column[: counts[cell.key] if counts else None].tolist())
        for cell, column in zip(_CELLS, times_ns.T, strict=True)
    ]
