"""Two quantities as bars from zero, each with its interval."""

from collections.abc import Iterator

from msgspec import Struct

from corebound.analysis.wording import Tone
from corebound.stats.intervals import interval_pair
from corebound.stats.launch_summary import CellSummary

# An interval that reaches further than this many times the value would leave no room for the bars.
_MOST_REACH = 3.0
# A bar shorter than so many per cent of the room leaves room for words beside it.
_SHORT = 10.0


class ValueBars(Struct, frozen=True, kw_only=True):
    """Quantities on one scale that starts at zero.

    Attributes:
        quantities: (name, summary with a value, tone of its bar) of each.
        apart: How the last differs from the first: `497× faster`.
    """

    quantities: tuple[tuple[str, CellSummary, Tone], ...]
    what: str
    apart: str = ""

    @property
    def legend(self) -> str:
        """What the values are, and what the thin line is if there is one."""
        has_line = any(ends for _, ends in self.bars)
        return f"{self.what}. Thin line: 95 % CI." if has_line else f"{self.what}."

    @property
    def beside(self) -> str:
        """How the last differs, if its bar is too short to be compared with the first; or empty."""
        *_, (width, _) = self.bars
        return self.apart if width < _SHORT else ""

    @property
    def bars(self) -> Iterator[tuple[float, tuple[float, float] | None]]:
        """The end of each bar and the ends of its interval, in per cent of the room."""
        summaries = [summary for _, summary, _ in self.quantities]
        ends_ns = list(map(_ends, summaries))
        values_ns = [summary.median_ns or 0.0 for summary in summaries]
        most_ns = max([*values_ns, *(ends[1] for ends in ends_ns if ends)]) or 1.0
        for value_ns, ends in zip(values_ns, ends_ns, strict=True):
            low, high = (round(100 * end / most_ns, 2) for end in ends or (0.0, 0.0))
            yield round(100 * value_ns / most_ns, 2), (low, high) if ends else None


def _ends(summary: CellSummary) -> tuple[float, float] | None:
    """The ends of a summary's interval; None if there is none that fits beside its value."""
    ends = interval_pair(summary.interval)
    return ends if ends and ends[1] <= _MOST_REACH * (summary.median_ns or 0.0) else None
