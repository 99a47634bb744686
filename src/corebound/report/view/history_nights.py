"""The table behind a history's chart: its latest nights, one a line."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.points import Point
from corebound.model.series import Series
from corebound.report.view.changes import commit_link
from corebound.report.view.command import CommandLine, point_command
from corebound.report.view.words import count, day, within
from corebound.units import significant

# All nights are in the CSV beside it.
MOST_NIGHTS = 30


class NightRow(Struct, frozen=True, kw_only=True):
    """One night: each series' figure with its interval, or why there is none.

    `commands` measure these again; empty where another tool measured them.
    """

    when: str
    commit: str
    link: str
    figures: tuple[tuple[str, str], ...]
    commands: tuple[CommandLine, ...]


def nights_of(
    series: Sequence[Series], length: float, *, most: int = MOST_NIGHTS
) -> tuple[NightRow, ...]:
    """The latest nights of these series, newest first.

    Args:
        series: At least one, all of one unit.
        length: What figures are divided by.
        most: So many nights.
    """
    by_night: dict[tuple[str, str], dict[str, Point]] = {}
    for one in series:
        # Of no series more than its latest can be among the latest of all.
        for point in one.points[-most:]:
            by_night.setdefault((point.at, point.run or ""), {})[one.id] = point
    latest = sorted(by_night.items(), reverse=True)[:most]
    rows = []
    for (at, _), points in latest:
        commit = next((point.commit for point in points.values() if point.commit), None)
        rows.append(
            NightRow(
                when=day(at),
                commit=commit.name if commit else "–",
                link=next(
                    (commit_link(series[0], one) for one in points.values() if one.commit), ""
                ),
                figures=tuple(_figure(points.get(one.id), length) for one in series),
                commands=tuple(
                    command
                    for one in series
                    if one.id in points and (command := point_command(one, points[one.id]))
                ),
            )
        )
    return tuple(rows)


def _figure(point: Point | None, length: float) -> tuple[str, str]:
    if point is None:
        return "–", ""
    if point.figure is None:
        return "–", point.missing or ""
    if point.bounds is None:
        return significant(point.figure / length), ""
    ends = within(*point.bounds, lambda end: significant(end / length))
    return significant(point.figure / length), ends


def nights_note(series: Sequence[Series], *, most: int = MOST_NIGHTS) -> str:
    """What the table of so many nights is."""
    longest = max(len(one.points) for one in series)
    if longest <= most:
        return f"The {count(longest, 'point')} behind the chart"
    return f"The latest {most} of the {longest:,} points behind the chart"
