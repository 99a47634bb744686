"""Accuracy of the detected steady state, on simulated launches and on launches with labels."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from corebound.stats.warmup import steady_state

TYPICAL_NS = 10e6


def settled(rng: np.random.Generator, trials: int) -> None:
    """Print how steady launches, and those that warm up, are classified."""
    print(f"Steady state, {trials} launches each: share of each class, and median start.\n")
    print(f"{'launch':<44}{'iterations':>11}{'steady':>8}{'warm-up':>9}{'other':>7}{'start':>7}")
    for name, iterations, make in _shapes(rng):
        found = [steady_state(make()) for _ in range(trials)]
        kinds = [state.kind for state in found]
        steady = kinds.count("steady") / trials
        warm = kinds.count("warm-up then steady") / trials
        start = float(np.median([state.start for state in found]))
        print(
            f"{name:<44}{iterations:>11}{steady:>8.1%}{warm:>9.1%}"
            f"{1 - steady - warm:>7.1%}{start:>7.0f}"
        )


def _shapes(rng: np.random.Generator) -> Iterable[tuple[str, int, Callable[[], list[int]]]]:
    """Kinds of launches: name, length, and a function that simulates one."""

    def maker(
        iterations: int, *, noise: float = 0.01, warm: float = 0.0, first: float = 1.0
    ) -> Callable[[], list[int]]:
        def make() -> list[int]:
            samples = TYPICAL_NS * np.exp(noise * rng.standard_t(3, iterations))
            samples[: int(warm * iterations)] *= 1.2
            samples[0] *= first
            return [int(sample) for sample in samples]

        return make

    for n in (12, 20, 100, 1000):
        yield "steady, t3 noise of 1 %", n, maker(n)
        yield "steady, t3 noise of 5 %", n, maker(n, noise=0.05)
        yield "first iteration 20 times as long", n, maker(n, first=20.0)
        yield "first 30 % of iterations 20 % longer", n, maker(n, warm=0.3)


def labelled(path: Path) -> None:
    """Print the agreement with published labels of real launches.

    `path` is a gzipped JSON list of benchmarks with `forks` (labels), `starts` (-1 if there is
    none) and `series` (seconds).
    """
    agree, never, errors = [], [], []
    for benchmark in json.loads(gzip.decompress(path.read_bytes())):
        for label, start, series_s in zip(
            benchmark["forks"], benchmark["starts"], benchmark["series"], strict=True
        ):
            # In picoseconds, because some iterations take less than a microsecond.
            found = steady_state([round(sample_s * 1e12) for sample_s in series_s])
            steady = found.kind != "never steady"
            agree.append(steady == (label == "steady state"))
            if label != "steady state":
                never.append(not steady)
            elif steady:
                errors.append(abs(found.start - start) / len(series_s))
    print(f"\n{len(agree)} launches with labels: {np.mean(agree):.1%} have the labelled class;")
    print(f"of {len(never)} that are never steady, {sum(never)} are detected;")
    print(f"the start differs by a median of {np.median(errors):.2%} of the series,")
    print(f"and by less than 5 % of it in {np.mean(np.array(errors) < 0.05):.0%}.")
