"""Find the extra work that makes a step slower by a given share; runs where the step runs.

A slower step is the plain step followed by extra work, so the share is the duration of the extra
work over that of the plain step. Both are timed in one step: noise of the plain step, which can
be larger than the share, then changes the share by only a small fraction of it. `measure_ratios`
checks the result on whole steps, in a process that did not choose the extra work.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

Work = Callable[[], object]
Clock = Callable[[], float]

_MIN_STEPS, _MIN_S = 15, 0.2
_WARM_UP_STEPS = 3
# How well the ratio of slower and plain steps has to be known, and the longest time for it.
_HALF_WIDTH, _LIMIT_S = 0.002, 30.0
# How often to check that, in rounds.
_CHECK_ROUNDS = 30


def share_of(step: Work, extra: Work, clock: Clock) -> float:
    """The duration of the extra work relative to that of the step it follows.

    Compares lower quartiles, because other processes delay short parallel work the most.
    """
    steps_s: list[float] = []
    extras_s: list[float] = []
    for _ in range(_WARM_UP_STEPS):
        step()
        extra()
    started_s = clock()
    while len(steps_s) < _MIN_STEPS or clock() - started_s < _MIN_S:
        step_s = clock()
        step()
        extra_s = clock()
        extra()
        extras_s.append(clock() - extra_s)
        steps_s.append(extra_s - step_s)
    return _lower_quartile(extras_s) / _lower_quartile(steps_s)


def _lower_quartile(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=4)[0]


def find_size(share_at: Callable[[int], float], wanted: float) -> int:
    """The size whose share is closest to the wanted one, if the share grows with the size."""
    high = 1
    while share_at(high) < wanted:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if share_at(middle) < wanted:
            low = middle
        else:
            high = middle
    return min((low, high), key=lambda size: abs(share_at(size) - wanted) if size else math.inf)


def measure_ratios(
    plain: Work, slower: Sequence[Work], clock: Clock, limit_s: float = _LIMIT_S
) -> list[float]:
    """The duration of each slower step relative to the plain one, in every order in turn.

    Ends when the median ratio of each is known to ±0.2 % (95 %), or after `limit_s`.
    """
    steps = [plain, *slower]
    orders = itertools.cycle(itertools.permutations(range(len(steps))))
    for step in steps * _WARM_UP_STEPS:
        step()
    ratios: list[list[float]] = [[] for _ in slower]
    started_s = clock()
    for rounds in itertools.count(1):
        durations_s = [0.0] * len(steps)
        for index in next(orders):
            step_s = clock()
            steps[index]()
            durations_s[index] = clock() - step_s
        for ratio, duration_s in zip(ratios, durations_s[1:], strict=True):
            ratio.append(duration_s / durations_s[0])
        is_known = rounds % _CHECK_ROUNDS == 0 and max(map(half_width, ratios)) <= _HALF_WIDTH
        if is_known or clock() - started_s > limit_s:
            break
    return [statistics.median(ratio) for ratio in ratios]


def half_width(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the median, by its normal approximation.

    The standard error of the median of normal values is sqrt(pi / 2n) standard deviations; a
    quarter of normal values is below -0.6745 standard deviations.
    """
    low, _, high = statistics.quantiles(values, n=4)
    deviation = (high - low) / (2 * 0.6745)
    return 1.96 * math.sqrt(math.pi / (2 * len(values))) * deviation


def main(arguments: Mapping[str, list[float]]) -> list[float]:
    """The sizes for `shares`, or the ratios of steps with extra work of `sizes`."""
    work = importlib.import_module("work")
    clock = time.perf_counter
    if "sizes" in arguments:
        slower = [work.prepare(int(size)) for size in arguments["sizes"]]
        return measure_ratios(work.prepare(0), slower, clock)
    step = work.prepare(0)
    return [
        find_size(lambda size: share_of(step, work.extra_work(size), clock), share)
        for share in arguments["shares"]
    ]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
