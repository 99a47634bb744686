"""Which series of a benchmark its page draws, and in which order all of them stand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.change_groups import grouped
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.series_names import Natural, natural_place
from corebound.report.view.turns import turns
from corebound.stats.regressions import Change

# A page of more is none that a phone can load.
_MOST_CHARTS = 60
# Of more series half of the charts make room for rows: what changed leads to one of them.
MANY = 310
# Less than this share of the longest history is hardly begun.
_BEGUN = 0.1
# How much a series asks to be looked at, by the change in it that asks most.
_NEW_AND_WORSE, _OPEN, _NEW_AND_BETTER, _CHANGED, _UNCHANGED = range(5)


class Choice(Struct, frozen=True, kw_only=True):
    """The series of a benchmark, those first that there is most to see of.

    Attributes:
        charted: Those that the page has a chart of, each with two figures.
        others: All others: of one figure, or beyond what a page holds.
    """

    charted: tuple[Series, ...]
    others: tuple[Series, ...]


def chosen(series: Sequence[Series], known: Chronicle) -> Choice:
    """Divide charts among machines: each gets as many, but for those that have fewer series.

    What changed in one commit is in turns with what changed in another: of hundreds of
    parameters that got slower alike one does not keep what else happened off the page.

    Args:
        series: Those of one benchmark, each with a figure.
        known: What changed in them, and which have ended.
    """
    longest = max((len(one.points) for one in series), default=0)
    asks = {one.id: _asks(one, known) for one in series}

    def place(one: Series) -> tuple[bool, bool, int, str, tuple[tuple[str, Natural], ...]]:
        # What goes on, then what has a past, then what is to be looked at.
        begun = len(one.points) >= _BEGUN * longest
        return (one.id in known.ended, not begun, asks[one.id], one.host, natural_place(one))

    ordered = sorted(series, key=place)
    drawn = _shared_out([one for one in ordered if _is_drawn(one)], asks, known)
    return Choice(
        charted=tuple(one for one in ordered if one.id in drawn),
        others=tuple(one for one in ordered if one.id not in drawn),
    )


def _asks(series: Series, known: Chronicle) -> int:
    return min((_asks_for(change, known) for change in known.of(series)), default=_UNCHANGED)


def _asks_for(change: Change, known: Chronicle) -> int:
    if known.is_news(change):
        return _NEW_AND_WORSE if change.is_regression else _NEW_AND_BETTER
    is_open = change.is_regression and known.status(change) == "open"
    return _OPEN if is_open else _CHANGED


def _is_drawn(series: Series) -> bool:
    """Whether there is more than one dot to draw."""
    figures = itertools.filterfalse(math.isnan, series.points.figures)
    return len(tuple(itertools.islice(figures, 2))) == 2


def _shared_out(
    series: Sequence[Series], asks: Mapping[str, int], known: Chronicle
) -> frozenset[str]:
    """The ids of as many as a page draws: of each machine one in turn, what has ended last."""
    events = _events(series, asks, known)
    # What nobody has to look at is one event more, the last.
    calls = [asks[one.id] < _CHANGED for one in series]
    of_event = turns(
        (one.host, events.get(one.id) if is_called else None)
        for one, is_called in zip(series, calls, strict=True)
    )
    in_turn = [
        ((one.id in known.ended, not is_called, turn), one)
        for one, is_called, turn in zip(series, calls, of_event, strict=True)
    ]
    ordered = [one for _, one in sorted(in_turn, key=itemgetter(0))]
    of_host = turns(one.host for one in ordered)
    placed = [
        ((one.id in known.ended, turn), one.id) for one, turn in zip(ordered, of_host, strict=True)
    ]
    most = _MOST_CHARTS if len(asks) <= MANY else _MOST_CHARTS // 2
    return frozenset(name for _, name in sorted(placed)[:most])


def _events(series: Sequence[Series], asks: Mapping[str, int], known: Chronicle) -> dict[str, int]:
    """For each series that changed which of all events it asks to be looked at for."""
    found = [change for one in series for change in known.of(one)]
    return {
        change.series.id: event
        for event, group in enumerate(grouped(found, known))
        for change in group
        if _asks_for(change, known) == asks[change.series.id]
    }
