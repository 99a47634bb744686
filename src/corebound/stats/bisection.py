"""Bisect a range of commits to find a change in speed; each step is a test on noisy launches.

`search` decides what to measure next and interprets the answers. It measures nothing itself.
docs/explanation/bisection.md explains how it bounds its errors.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.stats.distributions import student_below
from corebound.stats.intervals import CONFIDENCE, Interval, adaptive_trimmed_mean, log_interval

# The probability that the whole search reports anything wrong. A bound where differences are
# normal; for other noise, what simulations keep to (docs/explanation/bisection.md).
ALPHA = 0.05
_SMALLEST_LOOK = 3

# For two places in the line of commits: the logarithm of time at the second over time at the
# first, by block.
LogRatios = Mapping[tuple[int, int], Mapping[int, float]]


class LaunchRequest(Struct, frozen=True, kw_only=True):
    """A request to measure this many launches of each of these places, block by block.

    Earlier measurements of the same places count.
    """

    places: tuple[int, ...]
    launches: int


class LaunchResults(Struct, frozen=True, kw_only=True):
    """The results for each place and the next one, and the places that cannot be measured."""

    log_ratios: LogRatios
    broken: frozenset[int] = frozenset()


Outcome = Literal["found", "range", "no difference", "inconclusive", "broken", "out of time"]


class OutOfTimeError(Exception):
    """Thrown into a search that has no time for its request; its outcome is what it knows.

    It may have the results of the part of the request that there was time for.
    """

    def __init__(self, results: LaunchResults | None = None) -> None:
        super().__init__()
        self.results = results


class BisectionOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a search.

    Attributes:
        outcome: `found`: `suspects` holds the one commit. `range`: it is one of `suspects`,
            which cannot be told apart. `no difference`: the ends are equally fast, within the
            margin. `inconclusive`: a difference can be neither shown nor excluded, between the ends
            or, if there are suspects, between the last pair. `broken`: an end cannot be measured.
            `out of time`: the search did not end; with suspects, the ends differ.
        suspects: Places, oldest first.
        good, bad: The places that enclose the suspects.
        slowdown_ratio: Time at `bad` over time at `good`, as last measured; None if it was not
            measured.
        interval: The 95 % interval of that ratio.
        tests: How many tests the search performed.
    """

    outcome: Outcome
    suspects: tuple[int, ...]
    good: int
    bad: int
    slowdown_ratio: float | None
    interval: Interval | None
    tests: int


def launch_counts(least: int, most: int) -> tuple[int, ...]:
    """The numbers of launches after which to test: doubling, from `least` to `most`.

    >>> launch_counts(6, 30), launch_counts(2, 2)
    ((6, 12, 24, 30), (3,))
    """
    first = max(least, _SMALLEST_LOOK)
    counts = [first]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    return (*counts, most) if most > counts[-1] else tuple(counts)


def least_launches(last: int, least: int) -> int:
    """How many launches a search needs at least: of the ends, of each middle, of the last pair.

    Args:
        last: As for `search`.
        least: As for `search`.

    >>> least_launches(1, 6), least_launches(8, 6)
    (12, 78)
    """
    halvings = int(math.log2(last))
    return max(least, _SMALLEST_LOOK) * (2 + (3 * halvings + 2 if halvings else 0))


def error_share(test: int, planned: int) -> float:
    """The error probability of one test, chosen so that all tests together keep within ALPHA.

    The planned tests share half of ALPHA equally. Commits that cannot be measured can require
    more tests. Each additional test gets half of what is left.

    Args:
        test: Index of the test, from 0.
        planned: How many tests there are if every commit can be measured.
    """
    if test < planned:
        return ALPHA / 2 / planned
    return ALPHA / 2 * math.pow(2, planned - test - 1)


def sign(differences: Sequence[float], level: float) -> Literal[-1, 0, 1]:
    """The sign of the mean difference, by Student's t test; 0 if it is not significant.

    Args:
        differences: One for each block, at least two.
        level: The probability of a nonzero sign where the mean is 0.
    """
    estimate = adaptive_trimmed_mean(differences)
    if estimate.error == 0:
        p_value = 1.0 if estimate.mean == 0 else 0.0
    else:
        p_value = 2 * student_below(estimate.freedom, -abs(estimate.mean) / estimate.error)
    if p_value >= level:
        return 0
    return 1 if estimate.mean > 0 else -1


def search(
    last: int, *, least: int, most: int, margin: float
) -> Generator[LaunchRequest, LaunchResults, BisectionOutcome]:
    """Search the line of commits from 0, which is good, to `last`, which is bad.

    The search first compares the two ends. Then it repeatedly measures the commit in the
    middle together with the two ends, and tests which end it is closer to. Finally it
    compares the remaining commit with the one before it.

    Args:
        last: The place of the bad end, at least 1.
        least: Launches of each commit before the first test.
        most: Maximum number of launches of each commit.
        margin: A ratio of the ends from 1 / (1 + margin) to 1 + margin is no difference.

    Yields:
        What to measure next. The caller sends the answer.

    Returns:
        The outcome.
    """
    state = _Search(last, launch_counts(least, most), margin)
    try:
        return (yield from state.run())
    except OutOfTimeError as error:
        return state.out_of_time(error.results)


class _Search:
    """The state of one search."""

    def __init__(self, last: int, when: tuple[int, ...], margin: float) -> None:
        self._good, self._bad = 0, last
        self._looks = when
        self._margin = margin
        self._tests = 0
        # One test of the ends, one for every halving, and one of the last pair.
        self._planned = math.ceil(math.log2(last)) + 2
        # Commits that could not be judged, with the ends at that time; None: with any ends.
        self._aside: dict[int, tuple[int, int] | None] = {}
        self._way = 0
        # The log ratios of the ends; after the last test, those of the last pair.
        self._logs: list[float] | None = None

    def run(self) -> Generator[LaunchRequest, LaunchResults, BisectionOutcome]:
        """See `search`."""
        outcome = yield from self._ends()
        if outcome is not None:
            return self.ending(outcome)
        is_one = self._bad - self._good == 1
        while (place := self._middle()) is not None:
            yield from self._halve(place)
        if not is_one:
            outcome = yield from self._last()
        return self.ending(outcome or ("found" if self._bad - self._good == 1 else "range"))

    def _ends(self) -> Generator[LaunchRequest, LaunchResults, Outcome | None]:
        """Test whether the ends differ; None if they do."""
        level = self._level() / len(self._looks)
        for launches in self._looks:
            answer = yield LaunchRequest(places=(self._good, self._bad), launches=launches)
            self._logs = _log_ratios(answer, self._good, self._bad)
            if self._logs is None:
                return "broken"
            bounds = _interval(self._logs, confidence=1 - ALPHA / len(self._looks))
            if 1 / (1 + self._margin) <= bounds.low and bounds.high <= 1 + self._margin:
                return "no difference"
            self._way = sign(self._logs, level)
            if self._way:
                return None
        return "inconclusive"

    def _halve(self, place: int) -> Generator[LaunchRequest, LaunchResults, None]:
        """Move one end to the commit in the middle, or set that commit aside."""
        # One more than the number of looks, for the test after the last look.
        level = self._level() / (len(self._looks) + 1)
        before: list[float] | None = None
        after: list[float] | None = None
        for launches in self._looks:
            answer = yield LaunchRequest(places=(self._good, place, self._bad), launches=launches)
            before = _log_ratios(answer, self._good, place)
            after = _log_ratios(answer, place, self._bad)
            if before is None or after is None:
                self._aside[place] = None
                return
            # Above 0: it is farther from the good end than from the bad end.
            farther = [first - second for first, second in zip(before, after, strict=True)]
            if way := sign(farther, level):
                self._move(place, is_bad=way == self._way)
                return
        # It is equally far from both ends. If it differs from both, each half contains a change,
        # and the search can follow either one.
        if before and after and sign(before, level) == sign(after, level) == self._way:
            self._move(place, is_bad=True)
        else:
            self._aside[place] = (self._good, self._bad)

    def _last(self) -> Generator[LaunchRequest, LaunchResults, Outcome | None]:
        """Measure the last pair afresh, with most launches, so that earlier data add no bias."""
        level = self._level()
        answer = yield LaunchRequest(places=(self._good, self._bad), launches=self._looks[-1])
        self._logs = _log_ratios(answer, self._good, self._bad)
        if self._logs is not None and sign(self._logs, level) == self._way:
            return None
        return "inconclusive"

    def _move(self, place: int, *, is_bad: bool) -> None:
        if is_bad:
            self._bad = place
        else:
            self._good = place

    def _middle(self) -> int | None:
        """The commit nearest to the middle that can still be judged; None if none is left.

        An inconclusive commit is retried last, if different ends enclose it by then.
        """
        hopeless = (None, (self._good, self._bad))
        left = [
            place
            for place in range(self._good + 1, self._bad)
            if place not in self._aside or self._aside[place] not in hopeless
        ]
        centre = (self._good + self._bad) / 2
        return min(left, key=lambda at: (at in self._aside, abs(at - centre)), default=None)

    def _level(self) -> float:
        """The error probability of the next test."""
        self._tests += 1
        return error_share(self._tests - 1, self._planned)

    def out_of_time(self, results: LaunchResults | None) -> BisectionOutcome:
        """The outcome with what is known so far, of the ends also from launches of a first look."""
        if self._logs is None and results is not None:
            self._logs = _log_ratios(results, self._good, self._bad)
        return self.ending("out of time")

    def ending(self, outcome: Outcome) -> BisectionOutcome:
        """The outcome with what is known so far."""
        logs = self._logs
        return BisectionOutcome(
            outcome=outcome,
            suspects=tuple(range(self._good + 1, self._bad + 1)) if self._way else (),
            good=self._good,
            bad=self._bad,
            slowdown_ratio=math.exp(adaptive_trimmed_mean(logs).mean) if logs else None,
            interval=_interval(logs, confidence=CONFIDENCE) if logs else None,
            tests=self._tests,
        )


def _log_ratios(answer: LaunchResults, good: int, bad: int) -> list[float] | None:
    """Logarithms of time at `bad` over time at `good`, for each block that has every place.

    None if one of the two cannot be measured, or fewer than two blocks are complete.
    """
    known = {pair: of for pair, of in answer.log_ratios.items() if of}
    if {good, bad} & answer.broken or (good, bad) not in known:
        return None
    whole = set.intersection(*(set(of) for of in known.values()))
    if len(whole) < 2:
        return None
    return [known[good, bad][block] for block in sorted(whole)]


def _interval(logs: Sequence[float], *, confidence: float) -> Interval:
    """The interval of the ratio, from at least two blocks."""
    found = adaptive_trimmed_mean(logs)
    return log_interval(
        found.mean,
        standard_error=found.error,
        freedom=found.freedom,
        confidence=confidence,
    )
