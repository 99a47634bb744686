"""Histories on alternating processors: change points of each alone, and of all together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.simulation.histories import NIGHTS, NOISES, Draw, find_steps, rate
from corebound.stats.history.change_point import ChangePoint

PROCESSORS = (2, 3, 5)
STEP = math.log(1.1)
# The search runs this many nights after the step.
AFTER = (4, 8, 15)
# Processors differ in log time by up to this much either way.
APART = 0.3

Array = NDArray[np.float64]


class Trial(Struct, frozen=True):
    """The result for one history, searched before its step and some nights after it.

    Attributes:
        alarms: Whether there is a false alarm: by any processor alone, by all together.
        found: Whether the step is found in these two ways, for each number of nights after it.
        covered: For each time that all together find it, whether the interval contains its size.
    """

    alarms: tuple[bool, bool]
    found: tuple[tuple[bool, bool], ...]
    covered: tuple[bool, ...]


def _trial(index: int, *, draw: Draw, processors: int, seed: int) -> Trial:
    rng = np.random.default_rng((seed, index, processors))
    n = NIGHTS + max(AFTER)
    which = rng.integers(0, processors, n)
    logs = draw(rng, n) + rng.uniform(-APART, APART, processors)[which]
    up = bool(rng.integers(2))
    logs[NIGHTS:] += STEP if up else -STEP
    truth = math.exp(STEP if up else -STEP)
    found, covered = [], []
    for after in AFTER:
        seen = NIGHTS + after
        right = [s for s in find_steps(logs[:seen], which[:seen]) if _is_it(s, range(seen), up=up)]
        alone = any(
            _is_it(s, own, up=up)
            for own in _by_processor(which[:seen])
            for s in find_steps(logs[own])
        )
        found.append((alone, bool(right)))
        covered += [s.interval is not None and s.interval.contains(truth) for s in right[:1]]
    alone = any(find_steps(logs[own]) for own in _by_processor(which[:NIGHTS]))
    together = bool(find_steps(logs[:NIGHTS], which[:NIGHTS]))
    return Trial((alone, together), tuple(found), tuple(covered))


def _is_it(step: ChangePoint, nights: Sequence[int], *, up: bool) -> bool:
    """Whether a change point of these nights is the simulated step."""
    within = nights[step.last_good] < NIGHTS <= nights[step.first_bad]
    return within and (step.direction == "up") == up


def _by_processor(which: NDArray[np.int64]) -> list[list[int]]:
    return [np.flatnonzero(which == processor).tolist() for processor in np.unique(which)]


def by_turns(seed: int, trials: int) -> None:
    """Print false alarms, and how soon a step of 10 % is found."""
    print(
        f"{NIGHTS} nights, each on a random processor; they differ by up to {APART:.0%} either way."
    )
    print(
        f"{trials} trials each. False alarms before a step of 10 %, up or down, with 95 % interval;"
    )
    print("how often the step is found this many nights later, by a processor alone and by all")
    print("together; and the coverage of the latter's intervals.\n")
    heads = "".join(f"{f'{after} nights':>16}" for after in AFTER)
    print(f"{'noise':<36}{'of':>3}{'alone':>19}{'together':>19}{heads}{'interval':>10}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            for processors in PROCESSORS:
                work = partial(_trial, draw=draw, processors=processors, seed=seed)
                results = list(pool.map(work, range(trials), chunksize=10))
                alarms = "".join(
                    f"{rate(trial.alarms[way] for trial in results):>19}" for way in (0, 1)
                )
                found = "".join(
                    f"{_share(results, at, 0):>8.0%}{_share(results, at, 1):>8.0%}"
                    for at in range(len(AFTER))
                )
                held = [covered for trial in results for covered in trial.covered]
                covered = f"{sum(held) / len(held):>10.1%}" if held else f"{'-':>10}"
                print(f"{name:<36}{processors:>3}{alarms}{found}{covered}", flush=True)
    print()


def _share(results: list[Trial], at: int, way: int) -> float:
    return sum(trial.found[at][way] for trial in results) / len(results)
