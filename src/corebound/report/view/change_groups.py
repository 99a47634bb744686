"""Changes that one event can have made, as one row: the cells of a scenario on one host."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.model.points import Point
from corebound.report.view.changes import (
    ChangeRow,
    change_row,
    commit_range,
    range_link,
    recovery_note,
)
from corebound.report.view.chronicle import Chronicle, sizes_word
from corebound.report.view.command import between_command
from corebound.report.view.words import and_more
from corebound.stats.regressions import Change

# Whoever wants more of them wants the CSV.
_MOST_LISTED = 20


class ChangeGroup(Struct, frozen=True, kw_only=True):
    """Changes of one scenario on one host, one way, that can have begun in one commit.

    Attributes:
        head: What all of them say: the range of commits is what all their ranges
            share, the size is from the least to the largest, the command measures all.
        cells: How many there are, in words; empty where it is one.
        rows: Each of them, the largest first; `more` says how many there are beyond.
        beside: (words, fragment) of the other benchmarks that changed with it; None: of none.
    """

    head: ChangeRow
    cells: str
    rows: tuple[ChangeRow, ...]
    more: str = ""
    beside: tuple[str, str] | None = None


def grouped(found: Sequence[Change], known: Chronicle) -> tuple[tuple[Change, ...], ...]:
    """Put together what can have begun in one commit.

    Of changes of one scenario, host, direction and status those go together whose
    ranges share a moment: the one that ends first decides, and takes all that
    began before its end.

    Args:
        found: Changes; groups and their members keep this order.
        known: What was decided of them.
    """
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in found:
        series = change.series
        key = (
            series.project, series.host, series.scenario, series.unit,
            change.is_regression, change.step.status, known.status(change),
            known.because(change), known.answer(change).partition(":")[0],
        )  # fmt: skip
        alike.setdefault(key, []).append(change)
    order = {change.id: index for index, change in enumerate(found)}
    groups = [
        tuple(sorted(group, key=lambda one: order[one.id]))
        for several in alike.values()
        for group in overlapping(several)
    ]
    return tuple(sorted(groups, key=lambda group: order[group[0].id]))


def overlapping(found: Sequence[Change]) -> list[list[Change]]:
    """Put together those whose ranges share a moment, as `grouped` does."""
    groups: list[list[Change]] = []
    end = ""
    for change in sorted(found, key=lambda one: (one.first_bad.at, one.last_good.at)):
        if not groups or change.last_good.at >= end:
            groups.append([])
            end = change.first_bad.at
        groups[-1].append(change)
    return groups


def change_group(found: Sequence[Change], known: Chronicle, *, root: str) -> ChangeGroup:
    """One of the groups of `grouped` as a row.

    Args:
        found: Its changes, at least one.
        known: What else is known.
        root: Relative path from the page to the site's top.
    """
    largest_first = sorted(found, key=lambda one: (-abs(one.step.ratio - 1), one.id))
    rows = tuple(change_row(change, known, root=root) for change in largest_first[:_MOST_LISTED])
    if len(rows) == 1:
        return ChangeGroup(head=rows[0], cells="", rows=rows)
    good = max((one.last_good for one in found), key=_moment)
    bad = min((one.first_bad for one in found), key=_moment)
    head = replace(
        rows[0],
        size=sizes_word(largest_first),
        interval="",
        levels="",
        commits=commit_range(good, bad),
        subject=bad.commit.subject if bad.commit else "",
        link=range_link(largest_first[0].series, good, bad),
        recovery=recovery_note(largest_first),
        command=between_command([one.series for one in largest_first], good, bad),
    )
    return ChangeGroup(
        head=head,
        cells=f"{len(found):,} cells",
        rows=rows,
        more=and_more(len(found) - len(rows)),
    )


def _moment(point: Point) -> str:
    return point.at
