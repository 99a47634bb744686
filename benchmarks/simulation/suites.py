"""False discoveries of a nightly run that judges many cells."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.simulation.verdicts import BASELINE, CELL, MARGIN, TYPICAL_NS, summary_of
from corebound.stats.comparison import Comparison, compare
from corebound.stats.multiplicity import holm, suite_findings

# A nightly run of thirty scenarios with ten cells each.
CELLS = 300
STEP = 0.05
SPREAD = 0.015
# Launches per cell: from six, of which some failed, to a noisy cell's.
LEAST, MOST = 4, 20


def judged(rng: np.random.Generator, trials: int) -> None:
    """Print false and true findings, uncorrected, by Holm, and by Benjamini and Hochberg."""
    print(f"{CELLS} cells, {trials} nights; processes differ by {SPREAD:.1%}; {LEAST} to {MOST}")
    print(f"launches of each, in unequal numbers. Some are {STEP:.0%} slower than their baseline.")
    print("`findings`: mean number; `false`: share of false ones; `nights`: share of nights with a")
    print("false one; `found`: share of the slower cells.\n")
    print(f"{'slower cells':>13}  {'by':<28}{'findings':>10}{'false':>8}{'nights':>9}{'found':>8}")
    for slower in (0, 3, 30):
        counts: dict[str, list[tuple[int, int]]] = {}
        for _ in range(trials):
            compared = [_compared(rng, STEP if index < slower else 0.0) for index in range(CELLS)]
            for name, findings in _by_method(compared).items():
                right = sum(findings[:slower])
                counts.setdefault(name, []).append((sum(findings), right))
        for name, nights in counts.items():
            total, right = (sum(column) for column in zip(*nights, strict=True))
            false = f"{(total - right) / total:.1%}" if total else "-"
            wrong = np.mean([findings > true for findings, true in nights])
            found = f"{right / (slower * trials):.0%}" if slower else "-"
            print(
                f"{slower:>13}  {name:<28}{total / trials:>10.1f}{false:>8}{wrong:>9.0%}{found:>8}",
                flush=True,
            )
    print()


def _by_method(compared: list[Comparison]) -> dict[str, tuple[bool, ...]]:
    differs = tuple(comparison.verdict in {"faster", "slower"} for comparison in compared)
    family = holm([comparison.p_value for comparison in compared])
    return {
        "uncorrected": differs,
        "Benjamini & Hochberg (used)": suite_findings(compared),
        "Holm": tuple(a and b for a, b in zip(differs, family, strict=True)),
    }


def _compared(rng: np.random.Generator, slowdown: float) -> Comparison:
    """Compare two cells that were launched in every block; some launches of each failed."""
    blocks = int(rng.integers(LEAST, MOST + 1))
    logs = rng.normal(0, SPREAD, (2, blocks))
    logs[0] += math.log1p(slowdown)
    kept = [max(2, int(rng.integers(blocks // 2, blocks + 1))) for _ in range(2)]
    cell, baseline = (
        summary_of(each, (TYPICAL_NS * np.exp(side[:count])).tolist())
        for each, side, count in zip((CELL, BASELINE), logs, kept, strict=True)
    )
    comparison = compare(cell, baseline, margin=MARGIN)
    assert comparison is not None
    return comparison
