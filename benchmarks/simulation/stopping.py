"""What it costs to stop when sure enough, and whether the forecast of launches is right."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation.histories import rate
from benchmarks.simulation.verdicts import (
    BASELINE,
    CELL,
    MARGIN,
    NOISES,
    STEP,
    Noise,
    judge,
    medians_of,
    summary_of,
)
from corebound.scenario.models import Launches
from corebound.stats.stopping import unfinished

# Of a forecast: pairs differ by so much, and no forecast beyond so many is followed.
PAIR_SPREADS = (0.02, 0.04)
MOST = 2000
FIRST = 6
TRUTHS = (0.0, 0.01, 0.03)
CLEARLY_SLOWER = 0.2

Array = NDArray[np.float64]


def _two_modes(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    launches = rng.normal(0, 0.01, (trials, blocks, 2, 1))
    return launches - math.log(1.22) * (rng.random(launches.shape) < 1 / 3)


_TWO_MODES = Noise("a third of launches 22 % faster", _two_modes)


def stopped(rng: np.random.Generator, trials: int) -> None:
    """What stopping at the width asked for does to coverage and alarms, and what it costs."""
    rule = Launches()
    print(f"Launching until the interval is within {rule.until_relative_ci:.0%}, {trials} trials:")
    print(f"{rule.min} to {rule.max} launches of each cell. False alarms of two equal cells: by")
    print("this rule; with as many launches fixed before; and by looking after every block and")
    print("stopping as soon as a verdict says faster or slower.\n")
    print(
        f"{'noise':<36}{'launches, mean':>15}{'covers':>22}{'alarms':>20}{'fixed':>8}"
        f"{'peeking':>9}{'found':>8}"
    )
    for noise in NOISES:
        samples = noise.draw(rng, trials, rule.max)
        taken, covers, alarms, peeking, found = [], [], [], [], []
        nulls, slowers = medians_of(samples, 0.0), medians_of(samples, STEP)
        for trial, slower in zip(nulls, slowers, strict=True):
            blocks = _blocks_taken(trial, rule)
            null = judge(trial[:blocks], adaptive=True)
            taken.append(blocks)
            covers.append(null.interval is not None and null.interval.contains(1.0))
            alarms.append(_tells(trial[:blocks], adaptive=True))
            peeking.append(_peeks(trial, rule))
            found.append(_tells(slower[: _blocks_taken(slower, rule)]))
        usual = round(float(np.mean(taken)))
        fixed = [_tells(trial[:usual], adaptive=False) for trial in nulls]
        print(
            f"{noise.name:<36}{np.mean(taken):>15.1f}{rate(covers):>22}{rate(alarms):>20}"
            f"{np.mean(fixed):>8.1%}{np.mean(peeking):>9.1%}{np.mean(found):>8.1%}",
            flush=True,
        )
    print()


def decided(rng: np.random.Generator, trials: int) -> None:
    """What it does to alarms and coverage to stop at a clear difference, and what it saves."""
    rule = Launches(min=3)
    print(f"The same with {rule.min} to {rule.max} launches of each cell, {trials} trials: by the")
    print("width of the interval alone, and by stopping at a clear difference too. Coverage and")
    print(f"launches are those of a cell that takes {CLEARLY_SLOWER:.0%} longer.\n")
    print(
        f"{'':<36}{'by the width alone':>26}{'at a difference too':>26}\n"
        f"{'noise':<36}{'alarms':>8}{'covers':>8}{'launches':>10}{'alarms':>8}{'covers':>8}{'launches':>10}"
    )
    for noise in (*NOISES, _TWO_MODES):
        samples = noise.draw(rng, trials, rule.max)
        nulls, slowers = medians_of(samples, 0.0), medians_of(samples, CLEARLY_SLOWER)
        columns = []
        # No difference here exceeds the larger margin.
        for margin in (0.99, MARGIN):
            alarms = [_tells(trial[: _blocks_taken(trial, rule, margin)]) for trial in nulls]
            taken = [_blocks_taken(trial, rule, margin) for trial in slowers]
            results = [
                judge(trial[:blocks], adaptive=True).interval
                for trial, blocks in zip(slowers, taken, strict=True)
            ]
            truth = 1 / (1 + CLEARLY_SLOWER)
            covers = [interval is None or interval.contains(truth) for interval in results]
            columns.append(f"{np.mean(alarms):>8.1%}{np.mean(covers):>8.1%}{np.mean(taken):>10.1f}")
        print(f"{noise.name:<36}{''.join(columns)}", flush=True)
    print()


def _tells(medians_ns: Array, *, adaptive: bool = True) -> bool:
    return judge(medians_ns, adaptive=adaptive).verdict in {"faster", "slower"}


def _peeks(medians_ns: Array, rule: Launches) -> bool:
    """Whether any look says faster or slower, until one says equivalent."""
    for blocks in range(rule.min, rule.max + 1):
        verdict = judge(medians_ns[:blocks]).verdict
        if verdict != "inconclusive":
            return verdict != "equivalent"
    return False


def _blocks_taken(medians_ns: Array, rule: Launches, margin: float = MARGIN) -> int:
    for blocks in range(rule.min, rule.max + 1):
        summaries = [
            summary_of(CELL, medians_ns[:blocks, 0].tolist()),
            summary_of(BASELINE, medians_ns[:blocks, 1].tolist()),
        ]
        if not unfinished(summaries, {CELL.key: BASELINE.key}, rule, margin=margin):
            return blocks
    return rule.max


def forecast(rng: np.random.Generator, trials: int) -> None:
    """Of the inconclusive: how many launches they forecast, and whether these decide."""
    print(f"After {FIRST} launches of each, {trials} trials: how many are inconclusive; what these")
    print("forecast (a tenth, half, nine in ten of them); how many launches it takes where the")
    print("ratio and the spread are known; and how many are decided once as many as")
    print("forecast were launched, and twice as many.\n")
    print(
        f"{'slower by':>9}{'pairs differ by':>17}{'inconclusive':>13}{'forecast':>18}{'known':>7}"
        f"{'decided':>22}{'with twice':>12}"
    )
    for slowdown in TRUTHS:
        for spread in PAIR_SPREADS:
            asked, once, twice = [], [], []
            inconclusive = 0
            for _ in range(trials):
                pairs = rng.normal(math.log1p(slowdown), spread, 2 * MOST)
                first = judge(_pairs(pairs[:FIRST]))
                inconclusive += first.verdict == "inconclusive"
                needed = first.launches_needed
                if first.verdict != "inconclusive" or needed is None or needed > MOST:
                    continue
                asked.append(needed)
                once.append(judge(_pairs(pairs[:needed])).verdict != "inconclusive")
                twice.append(judge(_pairs(pairs[: 2 * needed])).verdict != "inconclusive")
            low, middle, high = np.quantile(asked, (0.1, 0.5, 0.9), method="inverted_cdf")
            print(
                f"{slowdown:>9.0%}{spread:>17.0%}{inconclusive / trials:>13.0%}"
                f"{f'{low} / {middle} / {high}':>18}{_known(rng, slowdown, spread):>7}"
                f"{rate(once):>22}{np.mean(twice):>12.0%}",
                flush=True,
            )
    print()


def _pairs(logs: Array) -> Array:
    """Medians of pairs that differ by these logarithms, (pairs, 2)."""
    return 1e7 * np.exp(np.column_stack((logs, np.zeros(logs.size))))


def _known(rng: np.random.Generator, slowdown: float, spread: float) -> int:
    """The fewest launches of which half the comparisons are decided."""
    low, high = 2, MOST
    while high - low > 1:
        middle = (low + high) // 2
        drawn = [
            judge(_pairs(rng.normal(math.log1p(slowdown), spread, middle))) for _ in range(200)
        ]
        decided = np.mean([one.verdict != "inconclusive" for one in drawn]) >= 0.5
        low, high = (low, middle) if decided else (middle, high)
    return high
