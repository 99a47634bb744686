"""What has no history to show: which, of which machines, and why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.addresses import series_page
from corebound.report.view.benchmark_rest import why_silent
from corebound.report.view.chronicle import Chronicle, has_grown
from corebound.report.view.series_names import natural_place, parameters
from corebound.report.view.words import and_more, count

# The list is folded; beyond so many it is no longer one that is read.
_MOST_NAMED = 500
# So many cells are named, where the benchmark has no page that does.
_MOST_CELLS = 3


class Nothing(Struct, frozen=True, kw_only=True):
    """A scenario or benchmark without history.

    Attributes:
        title: What it is called.
        cells: Which of its cells, and on which machines; perhaps empty.
        address: Its page, where other cells of it have one; else empty.
    """

    title: str
    cells: str
    address: str


class Without(Struct, frozen=True, kw_only=True):
    """What has no history for one reason, and how many more there are."""

    where: str
    reason: str
    named: tuple[Nothing, ...]
    more: str


def without(known: Chronicle) -> tuple[Without, ...]:
    """The series that have no history to show, those of one reason together."""
    found: dict[tuple[str, str], dict[str, list[Series]]] = {}
    shown = {series_page(one) for one in known.histories}
    for one in known.series:
        if not has_grown(one):
            reasons = found.setdefault((one.project or one.host_name, why_silent(one)), {})
            reasons.setdefault(one.title, []).append(one)
    return tuple(
        Without(
            where=where,
            reason=reason,
            named=tuple(
                Nothing(
                    title=title,
                    cells=_cells(several),
                    address=page if (page := series_page(several[0])) in shown else "",
                )
                for title, several in [*titles.items()][:_MOST_NAMED]
            ),
            more=and_more(len(titles) - _MOST_NAMED),
        )
        for (where, reason), titles in sorted(found.items())
    )


def _cells(series: Sequence[Series]) -> str:
    """Which cells, and of another tool's on which machines; our own are on one host."""
    cells = {one.cell for one in series}
    # asv has an environment in every cell.
    names = dict.fromkeys(parameters(one) for one in sorted(series, key=natural_place))
    told = "; ".join(filter(None, names))
    if len(names) > _MOST_CELLS or len(names) < len(cells):
        told = count(len(cells), "cell")
    hosts = sorted({one.host_name for one in series if one.project is not None})
    machines = f"on {', '.join(hosts)}" if hosts else ""
    return ", ".join(part for part in (told, machines) if part)
