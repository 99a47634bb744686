"""The series of a benchmark's page that have no chart: table rows, names, and missing values."""

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

# A row has a twentieth of a chart's size. Unchanged series beyond this limit are only named.
_MOST_ROWS = 800
# A longer list of names is cut.
_MOST_NAMED = 100


class OtherRow(Struct, frozen=True, kw_only=True):
    """A series without a chart: `place` is its fragment on the page, `figures` its history."""

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
    """Cells of one machine that never gave a value, for one reason; `says` has their number."""

    says: str
    machine: str
    reason: str
    cells: tuple[str, ...]
    more: str


class Rest(Struct, frozen=True, kw_only=True):
    """All series without a chart.

    Attributes:
        rows: Those with a value, as many as a page holds.
        interval: What the brackets below their values contain.
        unshown: Names of the series beyond that limit.
        silent: Series without any value.
        says: The numbers of rows and of series beyond the limit, in words.
        silent_says: The number of series without a value, in words.
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
    """The tables and lists at the end of a benchmark's page.

    Args:
        others: Series with a value and no chart, in order.
        names: The name of each of them, without its machine.
        silent: Series without a value.
        known: All histories with their changes.
    """
    # Changed series come first, clear or not and however old, because lists of changes link to
    # them.
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
    """Why a series has no history to show."""
    reason = next(filter(None, reversed(series.points.missing)), None)
    return kind_of(reason) if reason else "measured once so far"
