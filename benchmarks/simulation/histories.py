"""Detection rate and false alarms of the search for change points in histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.history.change_point import ChangePoint, HistoryArrays, segments_of
from corebound.stats.history.change_point_search import CutEvaluator
from corebound.stats.history.detection import THRESHOLD, change_points_of
from corebound.stats.history.detectors import CutSides, score
from corebound.stats.intervals import share_interval

NIGHTS = 100
STEP = math.log(1.05)
TYPICAL_NS = 10e6
# A change point counts as found within this many nights either way.
NEAR = 3
# No step is within this many nights of either end.
EDGE = 10

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]


def _independent(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(0, 0.01, n)


def _heavy_tail(rng: np.random.Generator, n: int) -> Array:
    noise: Array = 0.01 * rng.standard_t(3, n)
    return noise


def _correlated(rng: np.random.Generator, n: int) -> Array:
    """AR(0.6); innovations have a standard deviation of 1 %, so the series has 1.25 %."""
    noise = rng.normal(0, 0.01, n)
    noise[0] /= math.sqrt(1 - 0.6**2)
    for index in range(1, n):
        noise[index] += 0.6 * noise[index - 1]
    return noise


def _spikes(rng: np.random.Generator, n: int) -> Array:
    """One night in twenty takes 5 % to 50 % longer."""
    return _independent(rng, n) + (rng.random(n) < 0.05) * rng.uniform(0.05, 0.5, n)


def _small_spikes(rng: np.random.Generator, n: int) -> Array:
    return _independent(rng, n) + 0.05 * (rng.random(n) < 0.05)


def _bimodal(rng: np.random.Generator, n: int) -> Array:
    return _independent(rng, n) + math.log(1.06) * (rng.random(n) < 0.5)


def _seldom_slow(rng: np.random.Generator, n: int) -> Array:
    return _independent(rng, n) + math.log(1.06) * (rng.random(n) < 0.2)


NOISES: tuple[tuple[str, Draw], ...] = (
    ("independent nights, 1 %", _independent),
    ("heavy tail, Student t3 of 1 %", _heavy_tail),
    ("correlated nights, AR(0.6)", _correlated),
    ("one night in 20 is 5 % slower", _small_spikes),
    ("one night in 20 is 5-50 % slower", _spikes),
    ("two kinds of night, 6 % apart, 1:1", _bimodal),
    ("two kinds of night, 6 % apart, 4:1", _seldom_slow),
)


class Trial(Struct, frozen=True):
    """The result for one series, searched once without a step and once with one.

    Attributes:
        alarm: Whether the search reports a change point without a step.
        found: Whether it finds the step.
        other: Whether it reports another change point as well.
        within: Whether the step is in the reported range of nights.
        covered: Whether the interval contains the step's size.
    """

    alarm: bool
    found: bool
    other: bool
    within: bool
    covered: bool


def history_of(logs: Array, environments: NDArray[np.int64] | None = None) -> HistoryArrays:
    """A history of these logarithms; `environments` has a number for each, default: all equal."""
    numbers = np.zeros(logs.size, dtype=np.int64) if environments is None else environments
    borders = (np.flatnonzero(np.diff(numbers)) + 1).tolist()
    return HistoryArrays(
        logs=logs + math.log(TYPICAL_NS),
        errors=np.zeros(logs.size),
        segments=segments_of(numbers.tolist(), borders),
    )


def find_steps(
    logs: Array, environments: NDArray[np.int64] | None = None
) -> tuple[ChangePoint, ...]:
    """The change points that the search reports."""
    return change_points_of(history_of(logs, environments), threshold=THRESHOLD)


def near(steps: Iterable[ChangePoint], at: int, direction: str) -> list[ChangePoint]:
    """The change points that may be a step at this index."""
    return [s for s in steps if abs(s.at - at) <= NEAR and s.direction == direction]


def _trial(index: int, *, draw: Draw, seed: int) -> Trial:
    rng = np.random.default_rng((seed, index))
    logs = draw(rng, NIGHTS)
    at = int(rng.integers(EDGE, NIGHTS - EDGE + 1))
    up = bool(rng.integers(2))
    alarm = bool(find_steps(logs))
    logs[at:] += STEP if up else -STEP
    steps = find_steps(logs)
    right = near(steps, at, "up" if up else "down")
    truth = math.exp(STEP if up else -STEP)
    return Trial(
        alarm=alarm,
        found=bool(right),
        other=len(steps) > len(right[:1]),
        within=any(s.last_good < at <= s.first_bad for s in right),
        covered=any(s.interval is not None and s.interval.contains(truth) for s in right),
    )


def _scored(index: int, *, draw: Draw, seed: int) -> tuple[float, float]:
    """The score of a random index, and the least p-value of any report, without a step."""
    rng = np.random.default_rng((seed, index))
    logs = draw(rng, NIGHTS)
    at = int(rng.integers(2 * EDGE, NIGHTS - 2 * EDGE + 1))
    rho = CutEvaluator(logs, np.zeros(NIGHTS), threshold=THRESHOLD).noise((at,)).rho
    least = min((step.p_value for step in find_steps(logs)), default=math.inf)
    return score(CutSides(logs[:at], logs[at:]), rho=rho, own_error=0.0), least


def scores(seed: int, trials: int) -> None:
    """Check the scores as p-values: how often is one low where nothing changed?"""
    print(f"{NIGHTS} nights without a step, {trials} trials each. How often the score of a random")
    print("index is at most 5, 1 and 0.1 %; number of series with a reported change point whose")
    print("p-value is at most 5 % (reported) and 0.01 % (clear).\n")
    print(f"{'noise':<36}{'5 %':>8}{'1 %':>8}{'0.1 %':>8}{'reported':>10}{'clear':>7}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            work = partial(_scored, draw=draw, seed=seed)
            index_scores, least = zip(*pool.map(work, range(trials), chunksize=10), strict=True)
            low = "".join(
                f"{np.mean(np.array(index_scores) <= level):>8.2%}" for level in (0.05, 0.01, 1e-3)
            )
            reported = sum(value <= 0.05 for value in least)
            clear = sum(value <= 1e-4 for value in least)
            print(f"{name:<36}{low}{reported:>10}{clear:>7}", flush=True)
    print()


def rate(hits: Iterable[bool]) -> str:
    """A share with its 95 % interval (Wilson 1927)."""
    outcomes = list(hits)
    if not outcomes:
        return "-"
    hit, total = sum(outcomes), len(outcomes)
    interval = share_interval(hit, total)
    return f"{hit / total:.1%} ({interval.low:.1%}-{interval.high:.1%})"


def found(seed: int, trials: int) -> None:
    """Print false alarms, and how often a step of 5 % is found."""
    print(f"{NIGHTS} nights, {trials} trials each; 95 % intervals in brackets. Alarms: series")
    print("without a step that report one. With a step of 5 %, up or down, on any night from")
    print(f"{EDGE} to {NIGHTS - EDGE}: found within {NEAR} nights; another change point reported.")
    print(
        "Of those found: the range of nights contains the step; the interval contains its size.\n"
    )
    print(f"{'noise':<36}{'alarms':>19}{'found':>21}{'another':>19}{'range':>8}{'interval':>10}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            work = partial(_trial, draw=draw, seed=seed)
            results = list(pool.map(work, range(trials), chunksize=10))
            hits = [r for r in results if r.found]
            print(
                f"{name:<36}{rate(r.alarm for r in results):>19}"
                f"{rate(r.found for r in results):>21}{rate(r.other for r in results):>19}"
                f"{_share(r.within for r in hits):>8}{_share(r.covered for r in hits):>10}",
                flush=True,
            )
    print()


def _share(hits: Iterable[bool]) -> str:
    outcomes = list(hits)
    return f"{sum(outcomes) / len(outcomes):.1%}" if outcomes else "-"


def _season(index: int, *, draw: Draw, seed: int) -> tuple[bool, int | None]:
    """Search a history every night: any false alarm in 100 nights, and the delay of a step."""
    rng = np.random.default_rng((seed, index, 1))
    alarm = False
    logs = draw(rng, 2 * NIGHTS)
    logs[NIGHTS:] += STEP
    for count in range(1, logs.size + 1):
        new = [step for step in find_steps(logs[:count]) if step.status == "new"]
        if count <= NIGHTS:
            alarm = alarm or bool(new)
        elif near(new, NIGHTS, "up"):
            return alarm, count - NIGHTS
    return alarm, None


def nightly(seed: int, trials: int) -> None:
    """Print false alarms and delays of a search every night."""
    print(f"A search every night, {trials} trials. Alarms: histories that report a step on any of")
    print(f"their first {NIGHTS} nights, which have none. Then a step of 5 %: nights until it is")
    print("reported, median and 95th percentile.\n")
    print(f"{'noise':<36}{'alarms':>19}{'median':>8}{'95 %':>6}{'never':>7}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            work = partial(_season, draw=draw, seed=seed)
            results = list(pool.map(work, range(trials)))
            # A step that is never reported counts as an infinite delay.
            delays = sorted(math.inf if delay is None else delay for _, delay in results)
            print(
                f"{name:<36}{rate(alarm for alarm, _ in results):>19}"
                f"{delays[len(delays) // 2]:>8.0f}{delays[math.ceil(0.95 * len(delays)) - 1]:>6.0f}"
                f"{delays.count(math.inf):>7}",
                flush=True,
            )
    print()
