"""Two quantities as bars from zero, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.wording import Tone, time_text
from corebound.stats.intervals import is_usable
from corebound.stats.launch_summary import CellSummary


class DuelBar(Struct, frozen=True, kw_only=True):
    """One quantity.

    Attributes:
        name: What it is of.
        value: The value with its unit.
        tone: Of the value and its bar.
        width: Of the bar, in per cent of the room.
        low, high: The ends of its interval likewise; None without an interval.
    """

    name: str
    value: str
    tone: Tone
    width: float
    low: float | None
    high: float | None


class Duel(Struct, frozen=True, kw_only=True):
    """Quantities on one scale that starts at zero; `what` says what they are."""

    bars: tuple[DuelBar, ...]
    what: str


def duel(quantities: Sequence[tuple[str, CellSummary, Tone]], *, what: str) -> Duel:
    """The bars of some cells, drawn on one scale.

    Args:
        quantities: For each its name, its summary with a value, and its tone.
        what: What the values are, in a sentence.
    """
    ends = [_ends(summary) for _, summary, _ in quantities]
    values = [summary.median_ns or 0.0 for _, summary, _ in quantities]
    most = max([*values, *(end[1] for end in ends if end)]) or 1.0

    def share(value_ns: float) -> float:
        return round(100 * value_ns / most, 2)

    return Duel(
        bars=tuple(
            DuelBar(
                name=name,
                value=time_text(summary.median_ns),
                tone=tone,
                width=share(value_ns),
                low=share(end[0]) if end else None,
                high=share(end[1]) if end else None,
            )
            for (name, summary, tone), value_ns, end in zip(quantities, values, ends, strict=True)
        ),
        what=what,
    )


# An interval that reaches further than this many times the value would leave no room for the bars.
_MOST_REACH = 3.0


def _ends(summary: CellSummary) -> tuple[float, float] | None:
    """The ends of a summary's interval; None if there is none that fits beside its value."""
    interval, value_ns = summary.interval, summary.median_ns
    if interval is None or value_ns is None or not is_usable(interval.low, interval.high):
        return None
    return (interval.low, interval.high) if interval.high <= _MOST_REACH * value_ns else None
