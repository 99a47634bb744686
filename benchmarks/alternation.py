"""What it is worth to alternate, by the length of a stint: `python -m benchmarks.alternation`.

Two processes do the same pure-Python work on one CPU, in stints of some iterations of about a
millisecond each, or one after the other. For each length so many fresh pairs are started, by
turns with the other lengths. Of every pair there is one ratio, the median over neighbouring
stints; the table says how much it varies where nothing differs.

This is where `wire.STINT_NS` comes from.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

ITERATIONS = 60
STINTS = (1, 4, 10, 20, ITERATIONS)
WORK = """
import os, sys, time

os.sched_setaffinity(0, {int(sys.argv[1])})


def step():
    value = 0
    for number in range(40_000):
        value += number & 7
    return value


step()
for line in sys.stdin:
    took = []
    for _ in range(int(line)):
        began = time.perf_counter_ns()
        step()
        took.append(time.perf_counter_ns() - began)
    print(*took, flush=True)
"""


@contextmanager
def worker(cpu: int) -> Iterator[subprocess.Popen[str]]:
    """A process that iterates as often as it is told to."""
    words = (sys.executable, "-c", WORK, str(cpu))
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def time_slice(process: subprocess.Popen[str], iterations: int) -> float:
    """Median of so many iterations, in nanoseconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(iterations, file=process.stdin, flush=True)
    return statistics.median(map(int, process.stdout.readline().split()))


def log_ratio(cpu: int, length: int) -> float:
    """Of one fresh pair: the logarithm of the ratio, by stints of this length."""
    with worker(cpu) as one, worker(cpu) as other:
        time_slice(one, 1)
        time_slice(other, 1)
        pairs = [
            (time_slice(one, length), time_slice(other, length))
            for _ in range(ITERATIONS // length)
        ]
    return statistics.median(math.log(a / b) for a, b in pairs)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="what alternating is worth")
    parser.add_argument("--pairs", type=int, default=30, help="of each length")
    asked = parser.parse_args()
    cpu = max(os.sched_getaffinity(0))
    logs: dict[int, list[float]] = {length: [] for length in STINTS}
    for _ in range(asked.pairs):
        for length, found in logs.items():
            found.append(log_ratio(cpu, length))
    print(
        f"{asked.pairs} equal pairs of {ITERATIONS} iterations: by how much their ratio varies.\n"
    )
    print(f"{'iterations a stint':>20}{'standard deviation':>20}{'of the middle half':>20}")
    for length, found in logs.items():
        low, _, high = statistics.quantiles(found, n=4)
        middle = (high - low) / 1.35
        print(f"{length:>20}{statistics.stdev(found):>20.2%}{middle:>20.2%}")


if __name__ == "__main__":
    main()
