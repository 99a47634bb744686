"""What a benchmark's page has no chart of: a row each, or a name, and why there is no figure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.change_history import PLAIN_MODE, ChangeHistory, size_word
from corebound.analysis.series_names import natural_place, own_axes
from corebound.analysis.series_value import interval_name, latest_of
from corebound.analysis.wording import ValueWithBounds, VerdictWord, and_more, count
from corebound.records.history import Series, kind_of
from corebound.report.pages.series_table import no_change
from corebound.report.urls import anchor_of

# A row weighs a twentieth of a chart; what is beyond, and did not change, has only a name.
_MOST_ROWS = 800
# And a list of names nobody reads to its end is cut.
_MOST_NAMED = 100


class OtherRow(Struct, frozen=True, kw_only=True):
    """A series without a chart: `place` is where it stands on the page, `figures` its course."""

    place: str
    cell: str
    machine: str
    mode: str
    figures: Sequence[float]
    latest: ValueWithBounds
    when: str
    points: str
    change: VerdictWord | None
    unchanged: str
    since: str


class Silent(Struct, frozen=True, kw_only=True):
    """Cells of one machine that never gave a figure, for one reason; `says` how many."""

    says: str
    machine: str
    reason: str
    cells: tuple[str, ...]
    more: str


class Rest(Struct, frozen=True, kw_only=True):
    """All that has no chart.

    Attributes:
        rows: Those with a figure, as many as a page holds.
        interval: What stands in brackets under their figures.
        unshown: Names of those beyond.
        silent: Those without any.
        says: How many there are of rows and of those beyond, in words.
        silent_says: How many there are without a figure, in words.
    """

    rows: tuple[OtherRow, ...]
    interval: str
    unshown: tuple[str, ...]
    silent: tuple[Silent, ...]
    says: str
    silent_says: str


def rest_of(
    others: Sequence[Series], names: Sequence[str], silent: Sequence[Series], known: ChangeHistory
) -> Rest:
    """The rest of a benchmark's page.

    Args:
        others: Those with a figure and no chart, in order.
        names: What to call each of them beside its machine.
        silent: Those without a figure.
        known: What changed in them.
    """
    # To what changed, clearly or not, lists of changes lead, were it over long ago.
    first = sorted(others, key=lambda one: not known.every(one))[:_MOST_ROWS]
    shown = {one.id for one in first}
    rows, unshown = [], []
    for one, name in zip(others, names, strict=True):
        if one.id in shown:
            rows.append(_row(one, name, known))
        else:
            unshown.append(f"{name}, on {one.host_name}" if name else f"on {one.host_name}")
    return Rest(
        rows=tuple(rows),
        interval=interval_name(others),
        unshown=tuple(unshown),
        silent=_silent(silent),
        says=f"{count(len(others), 'cell')} without a chart",
        silent_says=f"{count(len(silent), 'cell')} without a figure",
    )


def _row(one: Series, name: str, known: ChangeHistory) -> OtherRow:
    changes = known.of(one)
    last = changes[-1] if changes else None
    return OtherRow(
        place=anchor_of(one),
        cell=name or "the only one",
        machine=one.host_name,
        mode=PLAIN_MODE,
        figures=one.points.figures,
        latest=latest_of(one),
        when=one.points.moments[-1].at[:10],
        points=count(len(one.points.measured), "point"),
        change=size_word(last) if last else None,
        unchanged=no_change([one], known),
        since=last.since[:10] if last else "",
    )


def _silent(series: Sequence[Series]) -> tuple[Silent, ...]:
    ordered = sorted(series, key=natural_place)
    found: dict[tuple[str, str], list[str]] = {}
    for one, name in zip(ordered, own_axes(ordered), strict=True):
        found.setdefault((one.host_name, why_silent(one)), []).append(name)
    return tuple(
        Silent(
            says=count(len(cells), "cell"),
            machine=machine,
            reason=reason,
            cells=tuple(filter(None, cells[:_MOST_NAMED])),
            more=and_more(len(cells) - _MOST_NAMED),
        )
        for (machine, reason), cells in sorted(found.items())
    )


def why_silent(series: Series) -> str:
    """Why a series has no history to look at, in words."""
    reason = next(filter(None, reversed(series.points.missing)), None)
    return kind_of(reason) if reason else "measured once so far"
