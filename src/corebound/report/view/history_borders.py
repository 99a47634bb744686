"""Where something other than the commit changed in a history."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.circumstances import differing, is_digest
from corebound.report.view.words import count, day

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# More hide the points: a machine in a cloud has another processor every other night.
_MOST_MARKED = 12
# Of what comes and goes so many kinds are named.
_MOST_NAMED = 5


class BorderRow(Struct, frozen=True, kw_only=True):
    """Where something other than the commit changed; what was measured before is not compared."""

    letter: str
    when: str
    what: str
    cell: str


class Borders(Struct, frozen=True, kw_only=True):
    """The borders of a chart.

    Attributes:
        marked: (moment, row) of those with a letter in it, by time.
        told: Where they are too many for that, a row for each thing that comes and goes.
    """

    marked: tuple[tuple[str, BorderRow], ...]
    told: tuple[BorderRow, ...] = ()


def borders_of(series: Sequence[Series], known: Chronicle) -> Borders:
    """Each border once, with the cells that it is one of."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in series:
        for index in one.points.borders:
            point = one.points[index]
            what = differing(one.points.circumstances[index - 1], point.circumstances)
            found.setdefault((point.at, what), []).append(known.label(one).name)
    if len(found) > _MOST_MARKED:
        return Borders(marked=(), told=_told(series))
    return Borders(
        marked=tuple(
            (
                at,
                BorderRow(
                    letter=_LETTERS[index],
                    when=day(at),
                    what=what,
                    cell="" if len(cells) == len(series) else ", ".join(cells),
                ),
            )
            for index, ((at, what), cells) in enumerate(sorted(found.items()))
        )
    )


def _told(series: Sequence[Series]) -> tuple[BorderRow, ...]:
    """How often each thing changed, and which there are, in the order of its last."""
    times: dict[str, set[str]] = {}
    kinds: dict[str, dict[str, None]] = {}
    for one in series:
        points = one.points
        for index in points.borders:
            old, new = dict(points.circumstances[index - 1]), dict(points.circumstances[index])
            for name in dict.fromkeys((*old, *new)):
                if old.get(name, "") != new.get(name, ""):
                    times.setdefault(name, set()).add(points.moments[index].at)
                    seen = kinds.setdefault(name, {})
                    seen |= dict.fromkeys((old.get(name, ""), new.get(name, "")))
    return tuple(
        BorderRow(
            letter="",
            when=f"{name} changed {count(len(times[name]), 'time')}",
            what=f"{_named(seen)}; nights of one are judged together",
            cell="",
        )
        for name, seen in kinds.items()
    )


def _named(kinds: dict[str, None]) -> str:
    names = [kind or "none" for kind in kinds]
    if any(map(is_digest, names)):
        return f"{len(names)} kinds"
    more = len(names) - _MOST_NAMED
    return ", ".join([*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
