"""Verdicts, ratios and intervals as the commands print them."""

from __future__ import annotations

import math

from corebound import units
from corebound.analysis.wording import NO_ESTIMATE
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import is_usable

# The sign in front of each verdict.
SIGNS: dict[Verdict, str] = {"faster": "▲", "slower": "▼", "equivalent": "=", "undecided": "?"}
# Verdicts of this width stay on one line; longer ones wrap.
VERDICT_WIDTH = len("? inconclusive")


def verdict_word(verdict: Verdict) -> str:
    """A verdict as users read it."""
    return "inconclusive" if verdict == "undecided" else verdict


def verdict_text(comparison: Comparison) -> str:
    """A verdict for a table; an inconclusive one includes the launches needed."""
    text = f"{SIGNS[comparison.verdict]} {verdict_word(comparison.verdict)}"
    needed = comparison.launches_needed if comparison.verdict == "undecided" else None
    return text if needed is None else f"{text}, ~{needed} launches"


def duration_text(value_ns: float | None) -> str:
    """A duration; a dash if there is none."""
    return "–" if value_ns is None else units.duration(value_ns)


def slowdown_text(ratio: float, bounds: tuple[float, float] | None, *, suffix: str = "") -> str:
    """A ratio of times with its 95 % interval: `1.084× (1.046–1.123)`.

    Args:
        ratio: The time of the second side divided by that of the first.
        bounds: The interval of that ratio.
        suffix: Text after the interval's upper bound.
    """
    if bounds is None:
        return f"{ratio:.3f}×"
    low, high = bounds
    if not is_usable(low, high):
        return f"{ratio:.3f}× ({NO_ESTIMATE})"
    return f"{ratio:.3f}× ({low:.3f}–{high:.3f}{suffix})"


def slowdown_bounds(comparison: Comparison) -> tuple[float, float] | None:
    """The interval of the ratio of times; None if there is none."""
    interval = comparison.interval
    if interval is None:
        return None
    return 1 / interval.high, 1 / interval.low if interval.low else math.inf
