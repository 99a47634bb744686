"""Processors that come by turns: steps that each by itself shows, and all together."""

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
# Nights with the step when it is looked for.
AFTER = (4, 8, 15)
# How much slower or faster than the first a processor may be.
APART = 0.3

Array = NDArray[np.float64]


class Trial(Struct, frozen=True):
    """One history, looked at before its step and some nights after it.

    Attributes:
        alarms: Whether a step is told that is none: of each processor alone, of all.
        found: The same of the step, for each number of nights after it.
        covered: Of those that all of them show, whether its interval holds its size.
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
    """Whether a step of these nights is the one that was put in."""
    within = nights[step.last_good] < NIGHTS <= nights[step.first_bad]
    return within and (step.direction == "up") == up


def _by_processor(which: NDArray[np.int64]) -> list[list[int]]:
    return [np.flatnonzero(which == one).tolist() for one in np.unique(which)]


def by_turns(seed: int, trials: int) -> None:
    """Alarms on histories without a step, and steps of 10 % that are found soon."""
    print(f"{NIGHTS} nights, each of one of some processors by chance, up to {APART:.0%} faster or")
    print(f"slower; {trials} trials each. Alarms before a step of 10 %, up or down, and how often")
    print("its range is told so many nights after: by a processor alone, and by all together; of")
    print("those how many intervals hold its size. 95 % intervals of the alarms in brackets.\n")
    heads = "".join(f"{f'{after} nights':>16}" for after in AFTER)
    print(f"{'noise':<36}{'of':>3}{'alone':>19}{'together':>19}{heads}{'interval':>10}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            for processors in PROCESSORS:
                work = partial(_trial, draw=draw, processors=processors, seed=seed)
                told = list(pool.map(work, range(trials), chunksize=10))
                alarms = "".join(f"{rate(one.alarms[way] for one in told):>19}" for way in (0, 1))
                found = "".join(
                    f"{_share(told, at, 0):>8.0%}{_share(told, at, 1):>8.0%}"
                    for at in range(len(AFTER))
                )
                held = [each for one in told for each in one.covered]
                covered = f"{sum(held) / len(held):>10.1%}" if held else f"{'-':>10}"
                print(f"{name:<36}{processors:>3}{alarms}{found}{covered}", flush=True)
    print()


def _share(told: list[Trial], at: int, way: int) -> float:
    return sum(one.found[at][way] for one in told) / len(told)
