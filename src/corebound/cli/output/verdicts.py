"""Verdicts, ratios and intervals as the commands print them."""

from __future__ import annotations

from corebound import units
from corebound.analysis.wording import TOO_WIDE, relative_speed, speed_bounds
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import is_usable_ratio

# The sign in front of each verdict.
SIGNS: dict[Verdict, str] = {"faster": "▲", "slower": "▼", "equivalent": "=", "inconclusive": "?"}
# Verdicts of this width stay on one line; longer ones wrap.
VERDICT_WIDTH = len("? inconclusive")
# Commits often differ by less than a hundredth.
_DIGITS = 3


def verdict_text(comparison: Comparison, verdict: Verdict | None = None) -> str:
    """A verdict for a table, with the launches needed to decide: short, for 80 columns.

    Args:
        comparison: The comparison.
        verdict: Its verdict after correction for several comparisons; None takes its own.
    """
    verdict = verdict or comparison.verdict
    needed = comparison.launches_needed
    return f"{SIGNS[verdict]} {verdict}" + (f", ~{needed} launches" if needed else "")


def duration_text(value_ns: float | None) -> str:
    """A duration; a dash if there is none."""
    return "–" if value_ns is None else units.duration(value_ns)


def slowdown_text(
    ratio: float,
    bounds: tuple[float, float] | None,
    *,
    confidence: str = "95 % CI ",
    missing: str = TOO_WIDE,
) -> str:
    """A ratio of times in words, with its interval: `1.084× slower (95 % CI 1.046–1.123)`.

    Args:
        ratio: The time of the second side divided by that of the first.
        bounds: The 95 % interval of that ratio; None if there is none.
        confidence: Names the interval; empty in a table whose heading does.
        missing: Why there is no usable interval.
    """
    size = relative_speed(1 / ratio, digits=_DIGITS)
    if bounds is None or not is_usable_ratio(*bounds):
        return f"{size} ({missing})"
    low, high = bounds
    return f"{size} ({confidence}{speed_bounds(1 / high, 1 / low, digits=_DIGITS)})"


def slowdown_bounds(comparison: Comparison) -> tuple[float, float] | None:
    """The interval of the ratio of times; None if there is none."""
    interval = comparison.interval
    return None if interval is None else (1 / interval.high, 1 / interval.low)
