"""What CPUs that lose time do to a pool of threads, and which of these launches are disturbed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corebound.records.telemetry import HostWindow
from corebound.stats.interference import causes

CPUS = (1, 2, 16, 64, 256)
# A launch of 2 s, in steps of 0.25 ms. An iteration takes 20 ms, with 20 barriers.
_STEP_MS, _LAUNCH_MS, _WINDOW_MS, _ITERATION_MS, _BARRIERS = 0.25, 2_000, 500, 20, 20
_TICK_MS = 10

Off = NDArray[np.bool_]


class Loss(NamedTuple):
    """The share of its time that each CPU loses, or only one CPU, in bursts of this length."""

    name: str
    share: float
    burst_ms: float
    on_one: bool = False


LOSSES = (
    Loss("a competitor takes 5 % of one CPU", 0.05, 4, on_one=True),
    Loss("a competitor takes 10 % of one CPU", 0.1, 4, on_one=True),
    Loss("a competitor takes 15 % of one CPU", 0.15, 4, on_one=True),
    Loss("a competitor takes 50 % of one CPU", 0.5, 4, on_one=True),
    Loss("noise: each CPU 0.2 %, in 1 ms", 0.002, 1),
    Loss("noise: each CPU 1 %, in 1 ms", 0.01, 1),
    Loss("noise: each CPU 1 %, in 4 ms", 0.01, 4),
    Loss("each CPU 2.3 %, in 4 ms", 0.023, 4),
    Loss("each CPU 5 %, in 4 ms", 0.05, 4),
    Loss("each CPU 12 %, in 4 ms", 0.12, 4),
)


def judged(rng: np.random.Generator, trials: int) -> None:
    """Print slowdowns of static and dynamic pools, and the share of disturbed windows."""
    print("Median iteration, of 20 barriers, over that of a quiet host; the same of a pool that")
    print(f"balances its load; the share of windows that count as disturbed. {trials} launches.\n")
    print(f"{'':<38}" + "".join(f"{f'{cpus} CPUs':>20}" for cpus in CPUS))
    for loss in LOSSES:
        cells = []
        for cpus in CPUS:
            launches = [_off(rng, loss, cpus) for _ in range(trials)]
            static = np.median([_static(off) for off in launches])
            dynamic = np.median([_dynamic(off) for off in launches])
            found = np.mean([_disturbed(rng, off) for off in launches])
            cells.append(f"{static:8.2f}{dynamic:6.2f}{found:6.0%}")
        print(f"{loss.name:<38}" + "".join(cells), flush=True)


def _off(rng: np.random.Generator, loss: Loss, cpus: int) -> Off:
    """Whether each CPU is taken away, by step: bursts with exponential gaps."""
    off = np.zeros((cpus, int(_LAUNCH_MS / _STEP_MS)), dtype=bool)
    gap_ms = loss.burst_ms * (1 - loss.share) / loss.share
    for cpu in range(1 if loss.on_one else cpus):
        at_ms = rng.exponential(gap_ms)
        while at_ms < _LAUNCH_MS:
            off[cpu, int(at_ms / _STEP_MS) : int((at_ms + loss.burst_ms) / _STEP_MS)] = True
            at_ms += loss.burst_ms + rng.exponential(gap_ms)
    return off


def _static(off: Off) -> float:
    """Each thread has an equal part between two barriers; all wait for the last."""
    done = np.cumsum(~off, axis=1)
    part = round(_ITERATION_MS / _BARRIERS / _STEP_MS)
    at, barriers = -1, []
    while True:
        before = done[:, at] if at >= 0 else np.zeros(len(off), dtype=int)
        ahead = done[:, at + 1 :]
        ends = [
            int(np.searchsorted(row, aim)) for row, aim in zip(ahead, before + part, strict=True)
        ]
        at += 1 + max(ends)
        if at >= off.shape[1]:
            break
        barriers.append(at)
    return _slowdown(np.array(barriers[_BARRIERS - 1 :: _BARRIERS]))


def _dynamic(off: Off) -> float:
    """The work of an iteration goes to whichever CPU is there."""
    done = np.cumsum((~off).mean(axis=0))
    iterations = int(done[-1] * _STEP_MS / _ITERATION_MS)
    aims = np.arange(1, iterations + 1) * _ITERATION_MS / _STEP_MS
    return _slowdown(np.searchsorted(done, aims - 1e-9))


def _slowdown(ends: NDArray[np.int_]) -> float:
    """The median iteration over that of a quiet host; the whole launch if none ended."""
    walls = np.diff(ends, prepend=-1) if len(ends) else np.array([_LAUNCH_MS / _STEP_MS])
    return float(np.median(walls)) * _STEP_MS / _ITERATION_MS


def _disturbed(rng: np.random.Generator, off: Off) -> float:
    """The share of windows that are disturbed, as the sampler sees steal: in whole ticks."""
    total_ms = np.cumsum(off, axis=1) * _STEP_MS + rng.uniform(0, _TICK_MS, (len(off), 1))
    edges = np.arange(0, off.shape[1], round(_WINDOW_MS / _STEP_MS))
    ticks = np.floor(np.column_stack([total_ms[:, edges], total_ms[:, -1]]) / _TICK_MS)
    lost_ms = np.diff(ticks, axis=1) * _TICK_MS
    windows = [
        HostWindow(
            from_ms=0,
            to_ms=_WINDOW_MS,
            steal_ns=int(each.sum() * 1e6),
            most_stolen_ns=int(each.max() * 1e6),
        )
        for each in lost_ms.T
    ]
    return float(np.mean([bool(causes(window, len(off))) for window in windows]))
