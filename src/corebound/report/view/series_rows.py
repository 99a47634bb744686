"""Series as rows: of every scenario or benchmark one, by host or machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.chronicle import Chronicle, size_word
from corebound.report.view.command import CommandLine, latest_command
from corebound.report.view.last_measured import last_day, last_measured, last_moment
from corebound.report.view.page import Bounded, VerdictWord
from corebound.report.view.series_figure import figures_span, interval_name, lack_of, latest_of
from corebound.report.view.series_names import Natural, natural_place, own_axes
from corebound.report.view.words import count
from corebound.stats.regressions import Change

# More rows than this nobody reads from first to last: what is beyond is folded.
MOST_OPEN = 50


class SeriesRow(Struct, frozen=True, kw_only=True):
    """The cells of one scenario on one host: that which changed last stands for all.

    Attributes:
        shown: Which of several cells that is; empty where there is no other.
        figures: Its points, for the spark.
        latest: Its last figure, with its interval; `cells` says how many there are.
        span: From its least figure to its most; `points` says how many there are.
        change: Its last change, or None; `since` is when.
        unchanged: What stands there where there is none.
        command: What measures it again; None where that is not known.
        ended: When its last point is of, where others of its host have later ones; else empty.
        lacking: Since when there has been no figure, where points came after the latest.
    """

    title: str
    address: str
    ended: str
    cells: str
    shown: str
    mode: str
    figures: Sequence[float]
    latest: Bounded
    lacking: str
    span: str
    points: str
    change: VerdictWord | None
    unchanged: str
    since: str
    command: CommandLine | None


class SeriesGroup(Struct, frozen=True, kw_only=True):
    """The scenarios of one host, or an imported project's on one machine; of many, a module's.

    `says` is how many there are, and in how many of them something changed; `interval` what
    stands in brackets.
    """

    title: str
    says: str
    interval: str
    rows: tuple[SeriesRow, ...]


def series_groups(series: Iterable[Series], known: Chronicle) -> tuple[SeriesGroup, ...]:
    """Series by project and machine, or by host; of those with many benchmarks by module.

    Args:
        series: Those that there is something to look at of.
        known: What changed in them.
    """
    groups: dict[tuple[str, str], dict[str, list[Series]]] = {}
    for one in series:
        key = (one.project or "", one.host)
        groups.setdefault(key, {}).setdefault(one.scenario, []).append(one)
    return tuple(
        group
        for (project, _), scenarios in sorted(
            groups.items(), key=lambda item: (item[0][0], _is_over(item[1], known), item[0])
        )
        for group in _modules(project, scenarios, known)
    )


def _is_over(scenarios: Mapping[str, Sequence[Series]], known: Chronicle) -> bool:
    """Whether all of a host's series have ended."""
    return all(one.id in known.ended for several in scenarios.values() for one in several)


def _modules(
    project: str, scenarios: Mapping[str, Sequence[Series]], known: Chronicle
) -> Iterator[SeriesGroup]:
    """One group; of many scenarios one a module, which is what asv's names begin with."""
    ordered = sorted(scenarios.items())
    where = _group_title(project, ordered[0][1][0])
    if _is_over(scenarios, known):
        last = last_moment(one for _, several in ordered for one in several)
        where = f"{where}, {last_day(last)}"
    if len(ordered) <= MOST_OPEN:
        yield _group(where, [several for _, several in ordered], known)
        return
    for module, members in itertools.groupby(ordered, key=lambda item: item[0].partition(".")[0]):
        yield _group(f"{where}: {module}", [several for _, several in members], known)


def _group(title: str, scenarios: Sequence[Sequence[Series]], known: Chronicle) -> SeriesGroup:
    rows = tuple(_row(several, known) for several in scenarios)
    changed = sum(row.change is not None for row in rows)
    changes = f", {changed} changed" if changed else ""
    return SeriesGroup(
        title=title,
        says=f"{len(rows)}{changes}",
        interval=interval_name(one for several in scenarios for one in several),
        rows=rows,
    )


def _group_title(project: str, series: Series) -> str:
    return f"{project}, on {series.host_name}" if project else f"On {series.host_name}"


def _row(series: Sequence[Series], known: Chronicle) -> SeriesRow:
    last = last_change(series, known)
    going = [one for one in series if one.id not in known.ended]
    # What is retired stands for nothing that goes on, nor what has hardly begun for all.
    chosen = last.series if last else min(going or series, key=_longest_first)
    over = f", {len(series) - len(going):,} ended" if 0 < len(going) < len(series) else ""
    figures = chosen.points.figures
    return SeriesRow(
        title=chosen.title,
        address=series_place(chosen),
        ended=last_measured(chosen.points.moments[-1]) if chosen.id in known.ended else "",
        cells=f"{count(len(series), 'cell')}{over}",
        shown=_apart(chosen, series, known),
        mode=known.label(chosen).mode,
        figures=figures,
        latest=latest_of(chosen),
        lacking=lack_of(chosen),
        span=figures_span(chosen),
        points=count(len(chosen.points.measured), "point"),
        change=size_word(last) if last else None,
        unchanged=no_change(series, known),
        since=last.since[:10] if last else "",
        command=latest_command(chosen),
    )


def _apart(chosen: Series, series: Sequence[Series], known: Chronicle) -> str:
    """What tells a series from the others; empty where there are none."""
    if len(series) == 1:
        return ""
    if chosen.project is None:
        return known.label(chosen).whole
    return own_axes(series)[series.index(chosen)]


def _longest_first(series: Series) -> tuple[int, tuple[tuple[str, Natural], ...]]:
    return -len(series.points), natural_place(series)


def no_change(series: Iterable[Series], known: Chronicle) -> str:
    """What stands where none of these series has a change: that none was seen, or could be."""
    return "too short to tell" if all(one.id in known.too_short for one in series) else "none"


def last_change(series: Iterable[Series], known: Chronicle) -> Change | None:
    """The latest clear change in any of these series, of equals the largest."""
    found = (change for one in series for change in known.of(one))
    return max(
        found,
        key=lambda one: (one.since, abs(one.step.ratio - 1), one.id),
        default=None,
    )
