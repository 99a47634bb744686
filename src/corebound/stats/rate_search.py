"""Search for the highest arrival rate at which 99 % of requests stay within a latency bound.

The share of requests over the bound grows with the rate, but each trial only estimates it. The
search therefore never relies on one trial: it pools the trials of each rate, makes the shares
monotone (isotonic regression), and repeats the trials next to the crossing while requests are left.
The first trials of all rates have the same arrivals, only faster or slower, so that a higher rate
is not better by chance; each repetition has others.

Requests of one trial are not independent: a short stall of the host makes all of them late that
wait meanwhile. So a trial that ended early counts with the requests that it was to send, and one
that its repetitions contradict does not count.
"""

import math
from itertools import groupby

from msgspec.structs import replace

from corebound.scenario.traffic import HighestRate, RateTrial

# The share of requests that may take longer than the bound, or fail.
SHARE = 0.01
# The search has narrowed enough when the rates around the crossing differ by this share.
RESOLUTION = 0.05
# Each trial has at least so many requests, since fewer would seldom have one in a hundred, and
# this share of all before it: a trial starts with an empty queue, so that a short one looks
# better than the rate is, and later trials have to outweigh the first ones. Simulations of
# M/M/1 queues chose both.
LEAST_TRIAL = 100
TRIAL_GROWTH = 0.35
# The load of the first trial: most servers still answer fast at half of their capacity.
FIRST_LOAD = 0.5
# Without a rate within the bound, the search ends at this share of the capacity.
LEAST_LOAD = 1 / 128
# Before the trials, so many requests go out one after the other, none of which waits for another.
# If more than this share is over the bound, no rate can be within it.
ALONE = 50
# Where time is short, a trial has this share of what is left, and at least so many requests. A late
# one among these says more than none: the launches together make up for it.
_TIME_SHARE = 1 / 3
_LEAST_SHORT = 20
MOST_OVER_ALONE = 0.1
_GROW, _SHRINK = 1.5, 0.5
_STEEPNESS = 0.25
# A number of requests over the bound is no chance if it is this many standard deviations above the
# share, as of a Poisson distribution: 4 of 100. At the share itself, 1.8 % of trials have so many.
_DEVIATIONS = 3.0
# One trial says little if so many of its requests were late, or if it is the first of all, on which
# the whole search depends. It is repeated at once, and does not count if two repetitions contradict
# it: with a share of late requests up to the limit, or for the first trial to a quarter of that.
# Simulations of queues with and without stalls chose these.
_MOSTLY_LATE = 0.25
_CALM = 0.25


def most_by_chance(requests: int) -> int:
    """How many of these requests may be over the bound by chance, at a rate just within it.

    >>> most_by_chance(100), most_by_chance(1000)
    (3, 19)
    """
    expected = SHARE * requests
    return math.ceil(expected + _DEVIATIONS * math.sqrt(expected)) - 1


class _TrialsOfRate:
    """The trials of one rate: those that ended early, and the others."""

    def __init__(self) -> None:
        # With each as it counts, and whether it is the first trial of all.
        self.ended: list[tuple[RateTrial, RateTrial, bool]] = []
        self.whole: list[RateTrial] = []

    @property
    def requests(self) -> int:
        """How many requests were sent."""
        ended = sum(trial.requests for trial, _, _ in self.ended)
        return ended + sum(trial.requests for trial in self.whole)

    @property
    def needs_repetition(self) -> bool:
        """Whether one trial is odd, not yet decided by two more."""
        return len(self.ended) == 1 and len(self.whole) < 2 and self._may_be_odd(0)

    def kept(self) -> list[RateTrial]:
        """The trials that count: without one that more of them contradict than agree with."""
        is_outvoted = len(self.whole) > len(self.ended)
        ended = [
            counted
            for index, (_, counted, _) in enumerate(self.ended)
            if not (is_outvoted and self._may_be_odd(index))
        ]
        return ended + self.whole

    def _may_be_odd(self, index: int) -> bool:
        trial, _, is_first = self.ended[index]
        is_mostly_late = trial.over > _MOSTLY_LATE * trial.requests
        if not is_mostly_late and not is_first:
            return False
        most = SHARE * (1.0 if is_mostly_late else _CALM)
        return sum(each.over for each in self.whole) <= most * sum(
            each.requests for each in self.whole
        )


class RateSearch:
    """Chooses the rate of each trial; sends nothing itself."""

    def __init__(
        self, *, capacity_per_s: float, requests: int, least_per_s: float | None = None
    ) -> None:
        """Start a search.

        Args:
            capacity_per_s: The throughput of the saturated server. No higher rate is tried: its
                queue would grow forever, which a short trial may not show.
            requests: The number of requests of all trials together.
            least_per_s: The search ends once no rate from this one on can be within the bound.
        """
        self.trials: list[RateTrial] = []
        self._by_rate: dict[float, _TrialsOfRate] = {}
        # How many requests the next trial is to send.
        self._planned = 0
        self._capacity_per_s = capacity_per_s
        self._least_per_s = least_per_s or 0.0
        self._left = requests
        self._sent = 0

    def next(self, *, left_s: float = math.inf) -> tuple[float, int] | None:
        """The rate and the number of requests of the next trial; None if the search has ended.

        Args:
            left_s: The time that is left, in seconds.
        """
        is_short = bool(self.trials) and self._left < LEAST_TRIAL
        if self._left <= 0 or is_short or self.is_hopeless:
            return None
        rate_per_s = self._next_rate_per_s()
        if rate_per_s < self._capacity_per_s * LEAST_LOAD:
            return None
        requests = min(self._left, max(LEAST_TRIAL, round(self._sent * TRIAL_GROWTH)))
        # The last trial has the rest, so that none is too short.
        self._planned = self._left if self._left - requests < LEAST_TRIAL else requests
        if (most := rate_per_s * left_s) < self._planned / _TIME_SHARE:
            self._planned = min(self._planned, max(round(most * _TIME_SHARE), _LEAST_SHORT))
        return None if self._planned > most else (rate_per_s, self._planned)

    def add(self, trial: RateTrial) -> None:
        """Note the result of a trial."""
        of_rate = self._by_rate.setdefault(trial.rate_per_s, _TrialsOfRate())
        if trial.requests < self._planned:
            over = min(trial.over, most_by_chance(self._planned) + 1)
            counted = replace(trial, requests=self._planned, over=over)
            of_rate.ended.append((trial, counted, not self.trials))
        else:
            of_rate.whole.append(trial)
        self.trials.append(trial)
        self._left -= trial.requests
        self._sent += trial.requests

    def times_tried(self, rate_per_s: float) -> int:
        """How many trials had this rate."""
        of_rate = self._by_rate.get(rate_per_s, _TrialsOfRate())
        return len(of_rate.ended) + len(of_rate.whole)

    def highest(self) -> HighestRate:
        """The result so far."""
        within, over = self._bracket()
        return HighestRate(
            within_per_s=within,
            over_per_s=over,
            trials=tuple(self.trials),
            capacity_per_s=self._capacity_per_s,
        )

    @property
    def is_hopeless(self) -> bool:
        """Whether no rate from the least one on can be within the bound.

        A lower one is clearly over it, or is all that the saturated server answers.
        """
        if self._needs_repetition():
            return False
        over = [
            rate_per_s
            for rate_per_s, of_rate in self._by_rate.items()
            if _is_clearly_over(of_rate.kept())
        ]
        return min([self._capacity_per_s, *over]) < self._least_per_s

    def _next_rate_per_s(self) -> float:
        if self._needs_repetition():
            return self.trials[-1].rate_per_s
        within, over = self._bracket()
        if within is None and over is None:
            return FIRST_LOAD * self._capacity_per_s
        if over is None:
            return min((within or 0.0) * _GROW, self._capacity_per_s)
        if within is None:
            return over * self._shrinkage(over)
        if over / within > 1 + RESOLUTION:
            return math.sqrt(within * over)
        return min((within, over), key=lambda rate_per_s: self._by_rate[rate_per_s].requests)

    def _shrinkage(self, over_per_s: float) -> float:
        """How far to go down from the lowest rate, which is over the bound: less if it is close."""
        tried = [trial for trial in self.trials if trial.rate_per_s == over_per_s]
        share = sum(trial.over for trial in tried) / sum(trial.requests for trial in tried)
        factor = math.pow(SHARE / max(share, SHARE), _STEEPNESS)
        return min(max(factor, _SHRINK), 1 / (1 + RESOLUTION) ** 2)

    def _needs_repetition(self) -> bool:
        """Whether the rate of the last trial has one odd trial, not yet decided by two more."""
        return bool(self.trials) and self._by_rate[self.trials[-1].rate_per_s].needs_repetition

    def _bracket(self) -> tuple[float | None, float | None]:
        """The highest rate within the bound by the monotone shares, and the lowest one over it."""
        kept = [trial for of_rate in self._by_rate.values() for trial in of_rate.kept()]
        shares = monotone_shares(kept)
        within = [rate for rate, share in shares if share <= SHARE]
        over = [rate for rate, share in shares if share > SHARE]
        return (within[-1] if within else None, over[0] if over else None)


def _is_clearly_over(trials: list[RateTrial]) -> bool:
    return sum(trial.over for trial in trials) > most_by_chance(
        sum(trial.requests for trial in trials)
    )


def monotone_shares(trials: list[RateTrial]) -> list[tuple[float, float]]:
    """The share of requests over the bound at each rate, from the lowest rate, never falling.

    Rates whose shares fall are pooled until they do not: isotonic regression, weighted by
    requests.

    Source: Barlow et al., Statistical Inference under Order Restrictions (1972), the
    pool-adjacent-violators algorithm.

    >>> trial = lambda rate, over: RateTrial(rate_per_s=rate, requests=100, over=over)
    >>> monotone_shares([trial(30.0, 9), trial(10.0, 2), trial(20.0, 0)])
    [(10.0, 0.01), (20.0, 0.01), (30.0, 0.09)]
    """
    pools: list[tuple[int, int, list[float]]] = []
    ordered = sorted(trials, key=lambda trial: trial.rate_per_s)
    for rate_per_s, same in groupby(ordered, key=lambda trial: trial.rate_per_s):
        group = list(same)
        pool = (
            sum(trial.over for trial in group),
            sum(trial.requests for trial in group),
            [rate_per_s],
        )
        while pools and pools[-1][0] * pool[1] > pool[0] * pools[-1][1]:
            over, requests, rates = pools.pop()
            pool = (over + pool[0], requests + pool[1], rates + pool[2])
        pools.append(pool)
    return [(rate, over / requests) for over, requests, rates in pools for rate in rates]
