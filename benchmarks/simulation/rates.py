"""The highest rate that a search finds, over the true one, for simulated servers with one queue.

The true rate is the highest at which 99 % of 60,000 requests stay within the bound. A host that
stalls makes all requests late that wait meanwhile; a bad first trial has 8 requests, all late.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.scenario.traffic import RateTrial
from corebound.stats.rate_search import SHARE, RateSearch, most_by_chance

Array = NDArray[np.float64]
REQUESTS = (600, 2000, 4000, 20_000)
_CAPACITY_PER_S = 100.0
_LONG = 60_000
_BAD_FIRST = 8


class Queue(Struct, frozen=True):
    """A server with one queue; `stalls` are the mean time between two of them and their mean."""

    name: str
    bound_s: float
    service_s: Callable[[np.random.Generator, int], Array]
    stalls: tuple[float, float] | None = None

    def latencies(self, rate_per_s: float, gaps: Array, rng: np.random.Generator) -> Array:
        """The latencies of requests with these gaps, in units of the mean, in seconds."""
        arrivals = np.cumsum(gaps) / rate_per_s
        stalls = self._stalls(rng, arrivals[-1] + 5)
        free, stall, found = 0.0, next(stalls), []
        for arrival, service in zip(
            arrivals.tolist(), self.service_s(rng, gaps.size).tolist(), strict=True
        ):
            begin = max(arrival, free)
            while stall[1] < begin:
                stall = next(stalls)
            if stall[0] <= begin:
                begin = stall[1]
            free = begin + service
            found.append(free - arrival)
        return np.array(found)

    def _stalls(
        self, rng: np.random.Generator, until: float
    ) -> itertools.chain[tuple[float, float]]:
        begun: list[tuple[float, float]] = []
        if self.stalls is not None:
            apart_s, lasts_s = self.stalls
            times = np.cumsum(rng.exponential(apart_s, 1 + int(4 * until / apart_s)))
            begun = [(at, at + rng.exponential(lasts_s)) for at in times.tolist()]
        return itertools.chain(begun, itertools.repeat((np.inf, np.inf)))


def _exponential(rng: np.random.Generator, requests: int) -> Array:
    return rng.exponential(1 / _CAPACITY_PER_S, requests)


def _constant(rng: np.random.Generator, requests: int) -> Array:
    del rng
    return np.full(requests, 1 / _CAPACITY_PER_S)


def _lognormal(rng: np.random.Generator, requests: int) -> Array:
    return np.exp(rng.normal(-0.5, 1.0, requests)) / _CAPACITY_PER_S


QUEUES = (
    Queue("exponential", 0.06, _exponential),
    Queue("exponential", 0.1, _exponential),
    Queue("exponential", 0.2, _exponential),
    Queue("constant", 0.025, _constant),
    Queue("constant", 0.06, _constant),
    Queue("lognormal", 0.2, _lognormal),
    Queue("exponential, stalls", 0.2, _exponential, (60.0, 0.15)),
    Queue("constant, stalls", 0.1, _constant, (60.0, 0.2)),
)


def rates(seed: int, trials: int) -> None:
    """Print the rates found for each queue, and the ratios of two equal servers.

    Two configurations in one block get the same arrivals.
    """
    print(
        f"Found over true rate, {trials} searches a row: its tenths, and how often below 0.7. Then"
    )
    print("the median and the 90 % point of the ratio of two equal servers, the larger above.\n")
    print(
        f"{'service':<22}{'bound':>8}{'requests':>10}{'first':>7}{'10 %':>8}{'50 %':>6}{'90 %':>6}"
        f"{'< 0.7':>8}{'ratio':>10}{'90 %':>6}"
    )
    for queue in QUEUES:
        true_per_s = _true_rate_per_s(queue)
        for requests, is_bad in itertools.product(REQUESTS, (False, True)):
            both = [
                [
                    _searched(queue, requests, is_bad=is_bad, seed=seed, trial=trial, server=server)
                    for server in range(2)
                ]
                for trial in range((trials + 1) // 2)
            ]
            found = np.array(both, dtype=float)
            low, middle, high = np.nanquantile(found / true_per_s, (0.1, 0.5, 0.9))
            logs = np.abs(np.log(found[:, 0] / found[:, 1]))
            ratio, most = np.exp(np.nanquantile(logs, (0.5, 0.9)))
            print(
                f"{queue.name:<22}{queue.bound_s * 1e3:>5.0f} ms{requests:>10}"
                f"{'bad' if is_bad else 'good':>7}{low:>8.2f}{middle:>6.2f}{high:>6.2f}"
                f"{np.mean(found < 0.7 * true_per_s):>8.0%}{ratio:>10.2f}{most:>6.2f}",
                flush=True,
            )
    print()


def _searched(
    queue: Queue, requests: int, *, is_bad: bool, seed: int, trial: int, server: int
) -> float | None:
    rng = np.random.default_rng((seed, trial, 1, server))
    # What a saturated server answers is measured too.
    capacity_per_s = _CAPACITY_PER_S * rng.uniform(0.9, 1.05)
    search = RateSearch(capacity_per_s=capacity_per_s, requests=requests)
    while (planned := search.next()) is not None:
        rate_per_s, number = planned
        if is_bad and not search.trials:
            search.add(RateTrial(rate_per_s=rate_per_s, requests=_BAD_FIRST, over=_BAD_FIRST))
            continue
        repeated = np.random.default_rng((seed, trial, 2, search.times_tried(rate_per_s)))
        gaps = repeated.exponential(1, number)
        search.add(_trial(queue, rate_per_s, gaps, rng))
    return search.highest().within_per_s


def _trial(queue: Queue, rate_per_s: float, gaps: Array, rng: np.random.Generator) -> RateTrial:
    """As the load generator: it stops once more answers were late than chance allows."""
    latencies = queue.latencies(rate_per_s, gaps, rng)
    arrivals = np.cumsum(gaps) / rate_per_s
    is_late = latencies > queue.bound_s
    ends = np.sort((arrivals + latencies)[is_late])
    most, sent = most_by_chance(gaps.size), gaps.size
    if ends.size > most:
        sent = int(np.count_nonzero(arrivals <= ends[most]))
    over = int(np.count_nonzero(is_late[:sent]))
    return RateTrial(rate_per_s=rate_per_s, requests=sent, over=over)


def _true_rate_per_s(queue: Queue) -> float:
    low, high = 0.05 * _CAPACITY_PER_S, _CAPACITY_PER_S
    gaps = np.random.default_rng(5).exponential(1, _LONG)
    for _ in range(9):
        middle = (low + high) / 2
        late = queue.latencies(middle, gaps, np.random.default_rng(6)) > queue.bound_s
        low, high = (middle, high) if late.mean() <= SHARE else (low, middle)
    return low
