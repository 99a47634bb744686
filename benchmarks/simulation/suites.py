"""A nightly that judges many cells: how many of what it tells as findings are none."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.simulation.verdicts import BASELINE, CELL, MARGIN, TYPICAL_NS, summary_of
from corebound.stats.comparison import Comparison, compare
from corebound.stats.multiplicity import holm, suite_findings

# A nightly of thirty scenarios with some ten cells each.
CELLS = 300
STEP = 0.05
SPREAD = 0.015
# What is left of six launches where some failed, or of thirty where cells were noisy.
LEAST, MOST = 4, 20


def judged(rng: np.random.Generator, trials: int) -> None:
    """False findings and real ones, each row by itself, by Holm, and as a run tells them."""
    print(f"{CELLS} cells, {trials} nights; processes differ by {SPREAD:.1%}; {LEAST} to {MOST}")
    print(f"launches of each, unequally many. Some are {STEP:.0%} slower than their baseline.")
    print("`false`: of the findings told, those that are none; `nights`: with any false one;")
    print("`found`: of the slower cells.\n")
    print(f"{'slower cells':>13}  {'by':<28}{'told':>7}{'false':>8}{'nights':>9}{'found':>8}")
    for slower in (0, 3, 30):
        told: dict[str, list[tuple[int, int]]] = {}
        for _ in range(trials):
            compared = [_compared(rng, STEP if index < slower else 0.0) for index in range(CELLS)]
            for name, findings in _ways(compared).items():
                right = sum(findings[:slower])
                told.setdefault(name, []).append((sum(findings), right))
        for name, nights in told.items():
            every, right = (sum(column) for column in zip(*nights, strict=True))
            false = f"{(every - right) / every:.1%}" if every else "-"
            wrong = np.mean([count > good for count, good in nights])
            found = f"{right / (slower * trials):.0%}" if slower else "-"
            print(
                f"{slower:>13}  {name:<28}{every / trials:>7.1f}{false:>8}{wrong:>9.0%}{found:>8}",
                flush=True,
            )
    print()


def _ways(compared: list[Comparison]) -> dict[str, tuple[bool, ...]]:
    telling = tuple(one.verdict in {"faster", "slower"} for one in compared)
    family = holm([one.p_value for one in compared])
    return {
        "each by itself": telling,
        "Benjamini & Hochberg (ours)": suite_findings(compared),
        "Holm": tuple(a and b for a, b in zip(telling, family, strict=True)),
    }


def _compared(rng: np.random.Generator, slowdown: float) -> Comparison:
    """Both were launched in every block; of either some launches failed."""
    blocks = int(rng.integers(LEAST, MOST + 1))
    logs = rng.normal(0, SPREAD, (2, blocks))
    logs[0] += math.log1p(slowdown)
    kept = [max(2, int(rng.integers(blocks // 2, blocks + 1))) for _ in range(2)]
    cell, baseline = (
        summary_of(each, (TYPICAL_NS * np.exp(side[:count])).tolist())
        for each, side, count in zip((CELL, BASELINE), logs, kept, strict=True)
    )
    found = compare(cell, baseline, margin=MARGIN)
    assert found is not None
    return found
