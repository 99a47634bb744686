"""Coverage of the interval of a cell's 99th percentile.

The true value is the geometric mean, over all possible launches, of the 99th percentile of a
launch with infinitely many iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy import optimize, signal, special, stats

from benchmarks.simulation.histories import rate
from benchmarks.simulation.verdicts import CELL, STEADY, TYPICAL_NS
from corebound.stats.intervals import geometric_mean_interval
from corebound.stats.launch_summary import (
    LaunchSummary,
    combine_launches,
    effective_sample_size,
    p99_ns,
)

LAUNCHES = (6, 10, 20, 30)
SHARE = 0.99

Array = NDArray[np.float64]
# (generator, launches, iterations) -> logarithms of samples
Draw = Callable[[np.random.Generator, int, int], Array]
_NORMAL = float(special.ndtri(SHARE))


class Tail(Struct, frozen=True):
    """A distribution of iterations, and the logarithm of its 99th percentile."""

    name: str
    iterations: int
    draw: Draw
    truth: float


def _normal(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    return rng.normal(0, 0.01, (launches, iterations))


def _heavy(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    drawn: Array = 0.01 * rng.standard_t(3, (launches, iterations))
    return drawn


def _one_sided(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    return rng.gamma(2, 0.02, (launches, iterations))


def _spikes(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    struck = rng.random((launches, iterations)) < 0.03
    return _normal(rng, launches, iterations) + struck * rng.normal(0.3, 0.05, struck.shape)


def _correlated(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    series = rng.normal(0, 0.02 * math.sqrt(1 - 0.8**2), (launches, iterations))
    series[:, 0] = rng.normal(0, 0.02, launches)
    filtered: Array = signal.lfilter((1,), (1, -0.8), series)
    return filtered


def _between(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    return _normal(rng, launches, iterations) + rng.normal(0, 0.015, (launches, 1))


def _bimodal(rng: np.random.Generator, launches: int, iterations: int) -> Array:
    slow = math.log(1.06) * rng.integers(0, 2, (launches, 1)).astype(np.float64)
    return _normal(rng, launches, iterations) + slow


def _spikes_truth() -> float:
    def over(log: float) -> float:
        within = special.ndtr(log / 0.01)
        struck = special.ndtr((log - 0.3) / math.hypot(0.01, 0.05))
        return float(0.97 * within + 0.03 * struck - SHARE)

    return float(optimize.brentq(over, -1, 1))


TAILS = (
    Tail("independent, 1 %", 1000, _normal, 0.01 * _NORMAL),
    Tail("heavy tail, Student t3", 1000, _heavy, 0.01 * float(stats.t.ppf(SHARE, 3))),
    Tail("one-sided, gamma", 1000, _one_sided, float(stats.gamma.ppf(SHARE, 2, scale=0.02))),
    Tail("3 in 100 take a third longer", 1000, _spikes, _spikes_truth()),
    Tail("correlated iterations, AR(0.8)", 6000, _correlated, 0.02 * _NORMAL),
    Tail("processes differ by 1.5 %", 1000, _between, 0.01 * _NORMAL),
    Tail("processes of two kinds, 6 % apart", 1000, _bimodal, 0.01 * _NORMAL + math.log(1.06) / 2),
)


def tails(rng: np.random.Generator, trials: int) -> None:
    """Print the coverage of `p99_interval`, and of simpler estimates."""
    print(
        f"The 99th percentile of a cell, {trials} trials: coverage of its 95 % interval, with the"
    )
    print(
        "95 % interval of that rate; how often there is an interval; and the coverage by the order"
    )
    print("statistic instead, and with launches of 100 iterations.\n")
    print(
        f"{'iterations':<36}{'each':>8}{'launches':>9}{'covers':>22}{'given':>8}"
        f"{'order stat.':>16}{'of 100':>8}"
    )
    for tail in TAILS:
        for launches in LAUNCHES:
            covers, by_order, short = [], [], []
            for _ in range(trials):
                logs = tail.draw(rng, launches, tail.iterations)
                covers.append(_covers(logs, tail))
                by_order.append(
                    _holds(np.quantile(logs, SHARE, axis=1, method="inverted_cdf"), tail)
                )
                few = logs[:, -100:]
                short.append(_holds(np.quantile(few, SHARE, axis=1, method="hazen"), tail))
            given = [covered for covered in covers if covered is not None]
            print(
                f"{tail.name:<36}{tail.iterations:>8}{launches:>9}{rate(given):>22}"
                f"{len(given) / trials:>8.0%}{np.mean(by_order):>16.1%}{np.mean(short):>8.1%}",
                flush=True,
            )
    print()


def _covers(logs: Array, tail: Tail) -> bool | None:
    """Whether the interval of `combine_launches` contains the true value; None without one."""
    summaries = [
        LaunchSummary(
            launch=f"{block}-0",
            block=block,
            median_ns=TYPICAL_NS,
            p99_ns=p99_ns((TYPICAL_NS * np.exp(samples)).tolist()),
            cpu_median_ns=None,
            used=samples.size,
            steady=STEADY,
            independent=effective_sample_size(samples.tolist()),
        )
        for block, samples in enumerate(logs)
    ]
    interval = combine_launches(CELL, summaries, ()).p99_interval
    return None if interval is None else interval.contains(TYPICAL_NS * math.exp(tail.truth))


def _holds(percentiles: Array, tail: Tail) -> bool:
    interval = geometric_mean_interval(np.exp(percentiles).tolist())
    return interval is not None and interval.contains(math.exp(tail.truth))
