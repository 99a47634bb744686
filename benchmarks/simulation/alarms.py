"""How often equal cells get a verdict, in noises of many kinds, with few launches and with many.

Cells and their baseline share their variances, as those of a scenario do. Each trial is such a
group of equal cells. Groups do not depend on how many processes simulate them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from unittest.mock import patch

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import stdtr

from benchmarks.simulation import few
from benchmarks.simulation.verdicts import (
    MARGIN,
    TYPICAL_NS,
    Noise,
    launch_of,
    simulated_cell,
    summary_of,
)
from corebound.scenario.models import Launches
from corebound.stats import comparison, shared_variance
from corebound.stats.comparison import compare_together
from corebound.stats.launch_summary import CellSummary, LaunchSummary
from corebound.stats.multiplicity import suite_findings
from corebound.stats.stopping import unfinished

LAUNCHES = range(2, 13)
CELLS = few.CELLS + 1
# How many groups a process simulates at a time.
_BATCH = 250

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
    # Beyond this, no time is a float.
    return samples.clip(-30, 30)


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


class _Batch(Struct, frozen=True, kw_only=True):
    """Groups of a noise, with so many launches of each cell or up to so many, until decided."""

    noise: int
    launches: int
    adaptive: bool
    first: int
    groups: int
    seed: int


def alarms(
    seed: int,
    trials: int,
    *,
    jobs: int | None = None,
    adaptive: Sequence[bool] = (False, True),
    noises: Sequence[int] = range(len(NOISES)),
) -> None:
    """Print false alarms with fixed numbers of launches, and while launches depend on results.

    Args:
        seed: Of the random numbers.
        trials: How many groups are simulated for each number of a table.
        jobs: How many processes simulate; as many as the CPUs if not given.
        adaptive: Which tables are printed.
        noises: The indices of the noises that they have.
    """
    jobs = jobs or len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(jobs, initializer=_leave_out_what_changes_no_verdict) as pool:
        for is_adaptive in adaptive:
            columns = LAUNCHES[-1:] if is_adaptive else LAUNCHES
            batches = [
                _Batch(
                    noise=noise,
                    launches=launches,
                    adaptive=is_adaptive,
                    first=first,
                    groups=min(_BATCH, trials - first),
                    seed=seed,
                )
                for noise in noises
                for launches in columns
                for first in range(0, trials, _BATCH)
            ]
            shares = pool.map(_shares, batches)
            print(_title(trials, columns, adaptive=is_adaptive), flush=True)
            for noise in noises:
                rates = [_rate(shares, trials) for _ in columns]
                print(f"{NOISES[noise].name:<38}" + "".join(rates), flush=True)
            print()


def _title(trials: int, columns: Sequence[int], *, adaptive: bool) -> str:
    launches = "3 to 12 launches until all are decided" if adaptive else "so many launches of each"
    return (
        f"{trials} groups of {CELLS - 1} equal cells and their baseline: verdicts faster or slower"
        f"\nwith {launches}. * above 5 % by more than twice its standard error.\n\n{'noise':<38}"
        + "".join(f"{f'3-{n}' if adaptive else n:>7} " for n in columns)
    )


def _rate(shares: Iterator[list[float]], trials: int) -> str:
    """The next number of a table: the mean over its batches."""
    groups = [share for _ in range(0, trials, _BATCH) for share in next(shares)]
    rate, error = np.mean(groups), np.std(groups) / math.sqrt(trials)
    return f"{rate:>7.1%}{'*' if rate > 0.05 + 2 * error else ' '}"


def _leave_out_what_changes_no_verdict() -> None:
    """Take SciPy's function, which gives the same in a tenth of the time; and forecast nothing."""
    patch.object(shared_variance, "student_probabilities", stdtr).start()
    patch.object(comparison, "launches_needed", lambda _effect, **_room: None).start()


def _shares(batch: _Batch) -> list[float]:
    """For each group, the share of its cells that get a verdict."""
    rng = np.random.default_rng(
        [batch.seed, batch.noise, batch.launches, batch.adaptive, batch.first]
    )
    groups = NOISES[batch.noise].draw(rng, batch.groups, batch.launches)
    judged = stopped_share if batch.adaptive else fixed_share
    return [judged(logs) for logs in groups]


def fixed_share(logs: Array) -> float:
    """The share of equal cells, (blocks, cells and baseline), that get a verdict."""
    return _verdict_share(_summaries(_launches(logs)), adaptive=False)


def stopped_share(logs: Array) -> float:
    """The same, where cells get launches until a run would have decided them."""
    rule = Launches(min=3, max=len(logs))
    launches = _launches(logs)
    counts = dict.fromkeys(_BASELINES, 0)
    while True:
        summaries = _summaries(
            [of_cell[:count] for of_cell, count in zip(launches, counts.values(), strict=True)]
        )
        more = unfinished(summaries, _BASELINES, rule, margin=MARGIN)
        if not more:
            return _verdict_share(summaries, adaptive=True)
        for key in more:
            counts[key] += 1


def focused(seed: int, trials: int) -> None:
    """Print how often the plainest of equal cells, chosen by its first launch, is a finding."""
    _leave_out_what_changes_no_verdict()
    print(f"{trials} groups of {CELLS - 1} equal cells: one launch of each, then so many in all of")
    print("the baseline and of the cell that looks most different: share with a finding\n")
    print(f"{'noise':<38}" + "".join(f"{launches:>8}" for launches in _FOCUSED))
    for noise in NOISES:
        shares = []
        for launches in _FOCUSED:
            groups = noise.draw(np.random.default_rng(seed), trials, launches)
            shares.append(np.mean([_is_finding(logs) for logs in groups]))
        print(f"{noise.name:<38}" + "".join(f"{share:>8.1%}" for share in shares), flush=True)
    print()


_FOCUSED = (5, 6, 8)


def _is_finding(logs: Array) -> bool:
    *cells, baseline = range(CELLS)
    chosen = max(cells, key=lambda cell: abs(logs[0, cell] - logs[0, baseline]))
    *summaries, other = _summaries(
        [
            of_cell if cell in {chosen, baseline} else of_cell[:1]
            for cell, of_cell in enumerate(_launches(logs))
        ]
    )
    pairs = [(summary, other) for summary in summaries]
    return any(suite_findings(compare_together(pairs, margin=MARGIN, adaptive=True)))


def _verdict_share(summaries: list[CellSummary], *, adaptive: bool) -> float:
    """The share of the cells that are faster or slower than the last one, their baseline."""
    *cells, baseline = summaries
    comparisons = compare_together(
        [(cell, baseline) for cell in cells], margin=MARGIN, adaptive=adaptive
    )
    verdicts = [each.verdict for each in comparisons if each is not None]
    return sum(verdict in {"faster", "slower"} for verdict in verdicts) / len(cells)


_CELLS = [summary_of(simulated_cell(str(index)), []) for index in range(CELLS)]
_BASELINES = {summary.cell.key: _CELLS[-1].cell.key for summary in _CELLS}


def _launches(logs: Array) -> list[tuple[LaunchSummary, ...]]:
    """For each cell, its launches; logarithms of their times (blocks, cells and baseline)."""
    return [
        tuple(launch_of(block, time_ns) for block, time_ns in enumerate(column))
        for column in (TYPICAL_NS * np.exp(logs.T)).tolist()
    ]


def _summaries(launches: Sequence[tuple[LaunchSummary, ...]]) -> list[CellSummary]:
    """Summaries with what a comparison uses."""
    return [
        replace(summary, launches=of_cell, counts=(("ok", len(of_cell)),) if of_cell else ())
        for summary, of_cell in zip(_CELLS, launches, strict=True)
    ]
