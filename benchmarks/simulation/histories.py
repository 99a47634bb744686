"""How often a step in a history is found, and how often one that is not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.stats.history.change_point import ChangePoint, HistoryArrays, segments_of
from corebound.stats.history.detection import THRESHOLD, change_points_of
from corebound.stats.history.detectors import CutSides, score
from corebound.stats.history.search import CutEvaluator

NIGHTS = 100
STEP = math.log(1.05)
TYPICAL_NS = 10e6
# "Found" is within so many nights either way.
NEAR = 3
# A step may come on any night but the first and the last of these.
EDGE = 10

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]


def _independent(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(0, 0.01, n)


def _heavy_tail(rng: np.random.Generator, n: int) -> Array:
    noise: Array = 0.01 * rng.standard_t(3, n)
    return noise


def _correlated(rng: np.random.Generator, n: int) -> Array:
    """AR(0.6); what is new every night varies by 1 %, so the whole by 1.25 %."""
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
    """One series without and with a step, looked at once in the end."""

    alarm: bool
    found: bool
    other: bool
    within: bool
    covered: bool


def course_of(logs: Array, which: NDArray[np.int64] | None = None) -> HistoryArrays:
    """A history of these logarithms, each under the circumstances of this number, or all alike."""
    told = np.zeros(logs.size, dtype=np.int64) if which is None else which
    borders = (np.flatnonzero(np.diff(told)) + 1).tolist()
    return HistoryArrays(
        logs=logs + math.log(TYPICAL_NS),
        errors=np.zeros(logs.size),
        segments=segments_of(told.tolist(), borders),
    )


def find_steps(logs: Array, which: NDArray[np.int64] | None = None) -> tuple[ChangePoint, ...]:
    return change_points_of(course_of(logs, which), threshold=THRESHOLD)


def near(steps: Iterable[ChangePoint], at: int, direction: str) -> list[ChangePoint]:
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
    """Of a series without a step: the score of one place, and the least of a step told."""
    rng = np.random.default_rng((seed, index))
    logs = draw(rng, NIGHTS)
    at = int(rng.integers(2 * EDGE, NIGHTS - 2 * EDGE + 1))
    rho = CutEvaluator(logs, np.zeros(NIGHTS), threshold=THRESHOLD, seed=0).noise((at,)).rho
    told = min((step.p_value for step in find_steps(logs)), default=math.inf)
    return score(CutSides(logs[:at], logs[at:]), rho=rho, own_error=0.0), told


def scores(seed: int, trials: int) -> None:
    """How often a score is low where nothing changed: a p-value is as often as it says."""
    print(f"{NIGHTS} nights without a step, {trials} trials each: how often the score of one place")
    print("is at most 5, 1 and 0.1 %; series in which a step was told with at most 5 and 0.01 %.\n")
    print(f"{'noise':<36}{'5 %':>8}{'1 %':>8}{'0.1 %':>8}{'told':>7}{'clear':>7}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            work = partial(_scored, draw=draw, seed=seed)
            places, told = zip(*pool.map(work, range(trials), chunksize=10), strict=True)
            low = "".join(f"{np.mean(np.array(places) <= of):>8.2%}" for of in (0.05, 0.01, 1e-3))
            seen = "".join(f"{sum(one <= of for one in told):>7}" for of in (0.05, 1e-4))
            print(f"{name:<36}{low}{seen}", flush=True)
    print()


def rate(hits: Iterable[bool]) -> str:
    """A share with its 95 % interval after Wilson (1927)."""
    outcomes = list(hits)
    n = len(outcomes)
    if not n:
        return "-"
    share, z = sum(outcomes) / n, 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return f"{share:.1%} ({max(middle - reach, 0):.1%}-{min(middle + reach, 1):.1%})"


def found(seed: int, trials: int) -> None:
    """Alarms on series without a step, and steps of 5 % that are found."""
    print(f"{NIGHTS} nights, {trials} trials each; 95 % intervals in brackets. A series without a")
    print(f"step in which one is reported; with one of 5 % on night {EDGE} to {NIGHTS - EDGE},")
    print(f"up or down: found within {NEAR} nights; something else reported; of those found,")
    print("the range of nights holds the step, and the interval its size.\n")
    print(
        f"{'noise':<36}{'alarms':>19}{'found':>21}{'something else':>19}"
        f"{'range':>8}{'interval':>10}"
    )
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
    """A history looked at every night: a false alarm in 100, nights until a step is seen."""
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
    """The same, but looked at every night."""
    print(f"Looked at every night, {trials} trials: histories that report a step on any of their")
    print(f"first {NIGHTS} nights, without one; then a step of 5 %: nights with it until it is")
    print("reported, in the middle and in 95 of 100.\n")
    print(f"{'noise':<36}{'alarms':>19}{'median':>8}{'95 %':>6}{'never':>7}")
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            work = partial(_season, draw=draw, seed=seed)
            results = list(pool.map(work, range(trials)))
            # One that is never seen is later than all others.
            delays = sorted(math.inf if delay is None else delay for _, delay in results)
            print(
                f"{name:<36}{rate(alarm for alarm, _ in results):>19}"
                f"{delays[len(delays) // 2]:>8.0f}{delays[math.ceil(0.95 * len(delays)) - 1]:>6.0f}"
                f"{delays.count(math.inf):>7}",
                flush=True,
            )
    print()
