"""Which series of a benchmark its page draws, and in which order all of them stand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from corebound.model.series import Series
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.series_names import Natural, natural_place

# A page of more is none that a phone can load.
_MOST_CHARTS = 60
# Less than this share of the longest history is hardly begun.
_BEGUN = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The series of a benchmark, those first that there is most to see of.

    Attributes:
        charted: Those that the page has a chart of, each with two figures.
        others: All others: of one figure, or beyond what a page holds.
    """

    charted: tuple[Series, ...]
    others: tuple[Series, ...]


def chosen(series: Sequence[Series], known: Chronicle) -> Choice:
    """Divide charts among machines: each gets as many, but for those that have fewer series.

    Args:
        series: Those of one benchmark, each with a figure.
        known: What changed in them, and which have ended.
    """
    longest = max((len(one.points) for one in series), default=0)

    def place(one: Series) -> tuple[bool, bool, bool, str, tuple[tuple[str, Natural], ...]]:
        # What goes on, then what has a past, then what changed.
        begun = len(one.points) >= _BEGUN * longest
        return (
            one.id in known.ended, not begun, not known.of(one), one.host, natural_place(one)
        )  # fmt: skip

    ordered = sorted(series, key=place)
    drawn = _shared_out([one for one in ordered if _is_drawn(one)], known)
    return Choice(
        charted=tuple(one for one in ordered if one.id in drawn),
        others=tuple(one for one in ordered if one.id not in drawn),
    )


def _is_drawn(series: Series) -> bool:
    """Whether there is more than one dot to draw."""
    figures = itertools.filterfalse(math.isnan, series.points.figures)
    return len(tuple(itertools.islice(figures, 2))) == 2


def _shared_out(series: Sequence[Series], known: Chronicle) -> frozenset[str]:
    """The ids of as many as a page draws: of each machine one in turn, what has ended last."""
    turns: dict[str, int] = {}
    placed = []
    for one in series:
        turn = turns[one.host] = turns.get(one.host, 0) + 1
        placed.append(((one.id in known.ended, turn), one.id))
    return frozenset(name for _, name in sorted(placed)[:_MOST_CHARTS])
