"""Histories of cells: a chart, what its zoom needs, its changes, and a table of its points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import (
    ChangeHistory,
    change_size,
    environment_difference,
    is_digest,
)
from corebound.analysis.series_wording import display_unit, interval_name
from corebound.analysis.suggested_commands import CommandLine, point_command
from corebound.analysis.wording import Label, count, day
from corebound.present.changes import ChangeGroup, commit_link, numbered_table
from corebound.records.history import MACHINE_KEY, HistoryPoint, HistoryPoints, Series
from corebound.records.run_record import Commit
from corebound.report.charts.axis import (
    Axis,
    Tick,
    date_ticks,
    has_year,
    plain_tick,
)
from corebound.report.charts.history import HistoryChart, exceeds_axis, value_axis
from corebound.report.elements import Content
from corebound.report.history.columns import MINUTES_A_DAY
from corebound.report.history.timeline import (
    SegmentLevel,
    Timeline,
    levels_between,
    position,
    series_track,
)
from corebound.stats.history.regressions import Change, level_spread
from corebound.units import percent, significant

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# More marks hide the points: a cloud machine may have another processor on every other run.
_MOST_MARKED = 12
# The number of values named for an environment setting that changes repeatedly.
_MOST_NAMED = 5


def environment_changes(
    all_series: Sequence[Series], labels: Sequence[Label]
) -> tuple[Content, ...]:
    """Each environment change once, by time; empty if there are too many to mark.

    `at` is the moment of the first point after it, which is not compared with points before it;
    `cells` are the names of the cells that it affects, empty if it affects all.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for each_series, label in zip(all_series, labels, strict=True):
        for index in each_series.points.breaks:
            point = each_series.points[index]
            what = environment_difference(
                each_series.points.environment_keys[index - 1], point.environment_key
            )
            groups.setdefault((point.at, what), []).append(label.name)
    if len(groups) > _MOST_MARKED:
        return ()
    return tuple(
        Content(
            letter=letter,
            at=at,
            what=what,
            cells=() if len(cells) == len(all_series) else tuple(cells),
        )
        for letter, ((at, what), cells) in zip(_LETTERS, sorted(groups.items()), strict=False)
    )


def changing_values(all_series: Sequence[Series]) -> tuple[str, ...]:
    """For each changing environment value, how often it changed, and its values."""
    times: dict[str, set[str]] = {}
    kinds: dict[str, dict[str, None]] = {}
    for each_series in all_series:
        points = each_series.points
        for index in points.environment_changes:
            old, new = (
                dict(points.environment_keys[index - 1]),
                dict(points.environment_keys[index]),
            )
            for name in dict.fromkeys((*old, *new)):
                if old.get(name, "") != new.get(name, ""):
                    times.setdefault(name, set()).add(points.moments[index].at)
                    by_name = kinds.setdefault(name, {})
                    by_name |= dict.fromkeys((old.get(name, ""), new.get(name, "")))
    return tuple(
        f"{name} changed {count(len(times[name]), 'time')}: {_name_values(by_name)};"
        f" points {'of all' if name == MACHINE_KEY else 'with the same value'} are compared"
        for name, by_name in kinds.items()
    )


def _name_values(kinds: dict[str, None]) -> str:
    names = [kind or "none" for kind in kinds]
    if any(map(is_digest, names)):
        return f"{len(names)} kinds"
    more = len(names) - _MOST_NAMED
    return ", ".join([*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])


# The CSV for download has all points.
MOST_ROWS = 30


class PointRow(Struct, frozen=True, kw_only=True):
    """One nightly run: when it was, and the point of each series; None if it has none."""

    at: str
    all_series: Sequence[Series]
    points: tuple[HistoryPoint | None, ...]

    @property
    def commit(self) -> Commit | None:
        """Its commit, if known."""
        return self._known.commit if self._known else None

    @property
    def link(self) -> str:
        """The address of the commit; empty if unknown."""
        return commit_link(self.all_series[0], self._known) if self._known else ""

    @property
    def _known(self) -> HistoryPoint | None:
        return next((point for point in self.points if point and point.commit), None)

    @property
    def commands(self) -> list[CommandLine]:
        """They reproduce these values; empty if another tool measured them."""
        commands = (
            point_command(series, point)
            for series, point in zip(self.all_series, self.points, strict=True)
            if point
        )
        # The same command may measure several cells.
        return [*dict.fromkeys(command for command in commands if command)]


def latest_points(all_series: Sequence[Series], *, most: int = MOST_ROWS) -> tuple[PointRow, ...]:
    """The latest nightly runs of these series, newest first.

    Args:
        all_series: At least one.
        most: The largest number of nightly runs.
    """
    by_night: dict[tuple[str, str], dict[str, HistoryPoint]] = {}
    for each_series in all_series:
        # Only the latest points of each series can be among the latest of all.
        for point in each_series.points[-most:] if most else ():
            by_night.setdefault((point.at, point.run or ""), {})[each_series.id] = point
    return tuple(
        PointRow(
            at=at,
            all_series=all_series,
            points=tuple(points.get(series.id) for series in all_series),
        )
        for (at, _), points in sorted(by_night.items(), reverse=True)[:most]
    )


# A chart is 700 to 1,000 pixels wide: more points hide each other.
MOST_POINTS = 500
# The share of a phone's width that a number at the top of a chart needs.
_MARK_WIDTH = 8.0
# The share that a word at the top of a chart needs.
_WORD_WIDTH = 22.0
# The number of changes that a chart's alternative text names, the latest first.
_MOST_DESCRIBED = 3


def history_panel(
    all_series: Sequence[Series],
    history: ChangeHistory,
    *,
    title: str,
    most_points: int = MOST_POINTS,
    most_nights: int = MOST_ROWS,
    bars: bool = True,
    line: Timeline | None = None,
    compared: Sequence[tuple[str, str]] = (),
) -> Content:
    """One chart of series that share a unit and a host.

    Args:
        all_series: At least one, each with a value; the most important first.
        most_points: The largest number of points drawn per series; above it, only the extremes.
        most_nights: The number of latest nightly runs in the table below the chart; 0: no table.
        bars: Whether points have the bars of their intervals.
        line: The time axis, which includes all moments of the series; None: an axis of its own.
        compared: (moment of a point, word) of the runs that the page compares.
    """
    values = [value for series in all_series for value in series.points.measured]
    length, unit = display_unit(all_series[0], values)
    line = line or Timeline.over([at.at for series in all_series for at in series.points.moments])
    axis = value_axis(
        (min(values) / length, max(values) / length),
        margin=all_series[0].margin,
        ends=[end / length for series in all_series for end in _ends(series.points)]
        if bars
        else (),
    )
    labels = [history.label(series) for series in all_series]
    levels = [
        tuple(levels_between(series, history.all_changes_of(series))) for series in all_series
    ]
    tracks = tuple(
        series_track(
            series, levels[index], line, length=length, most=most_points, bars=bars,
            mode=labels[index].mode, dash=index,
        )
        for index, series in reversed(tuple(enumerate(all_series)))
    )  # fmt: skip
    pairs = sorted(
        ((change, series) for series in all_series for change in history.changes_of(series)),
        key=lambda pair: (pair[0].since, pair[1].id),
    )
    borders = environment_changes(all_series, labels)
    marks = [_mark(change, line) for change, _ in pairs]
    places = [
        *((mark[0] * 100, str(number), "bad" if change.is_regression else "good")
          for number, (mark, (change, _)) in enumerate(zip(marks, pairs, strict=True), start=1)),
        *((line.share(border.at) * 100, border.letter, "plain") for border in borders),
        *((line.share(moment) * 100, word, "plain") for moment, word in compared),
    ]  # fmt: skip
    mark_labels, lanes = _assign_lanes(places)
    return Content(
        all_series=all_series,
        title=title,
        caption=_caption(
            all_series, unit, most_points, bars=bars, is_cut=exceeds_axis(tracks, axis)
        )
        + _level_note(all_series, history, levels[0], length),
        unit=unit,
        length=length,
        chart=HistoryChart(
            tracks=tracks,
            axis=axis,
            marks=tuple(marks),
            borders=tuple(line.share(border.at) for border in borders),
            margin=all_series[0].margin,
            flips=() if borders else tuple(
                line.share(series.points.moments[at].at)
                for series in all_series for at in series.points.breaks
            ),
            alt_text=_alt_text(title, all_series, pairs, axis, unit),
            compared=tuple(line.share(moment) for moment, _ in compared),
        ),
        along=() if line.is_ordinal else _time_ticks(line.low, line.high),
        marks=mark_labels,
        lanes=lanes,
        labels=tuple(labels),
        changes=numbered_table(
            [
                *(
                    ChangeGroup(changes=(change,), history=history, number=number)
                    for number, (change, _) in reversed(tuple(enumerate(pairs, start=1)))
                ),
                *(
                    ChangeGroup(changes=(change,), history=history)
                    for series in all_series
                    for change in history.all_changes_of(series)
                    if not change.clear
                ),
            ],
            f"Changes, {title}",
            several=len(all_series) > 1,
        ),
        environment_changes=borders,
        changing_values=() if borders else changing_values(all_series),
        points=latest_points(all_series, most=most_nights),
        sides=_sides(all_series),
        zoom=zoom_data(
            all_series, levels, [change for change, _ in pairs], line,
            length=length, borders=[border.at for border in borders],
        ),
        is_ordinal=line.is_ordinal,
    )  # fmt: skip


def _sides(all_series: Sequence[Series]) -> tuple[Content, ...]:
    """Both values that ratios to an anchor are of: what each is called, and their unit."""
    values = [
        value for series in all_series for both in series.points.sides for value in both or ()
    ]
    if not values:
        return ()
    first = replace(all_series[0], unit=all_series[0].side_unit)
    length, unit = display_unit(first, values)
    return tuple(Content(name=name, unit=unit, length=length) for name in ("HEAD", "anchor"))


def _ends(points: HistoryPoints) -> Iterator[float]:
    """The ends of the points' intervals."""
    return (end for end in (*points.lows, *points.highs) if not math.isnan(end))


def _caption(
    all_series: Sequence[Series], unit: str, most: int, *, bars: bool, is_cut: bool
) -> str:
    measured = (
        unit
        if all_series[0].unit != "ns" or all_series[0].project
        else f"{unit} per iteration or request"
    )
    thinned = any(len(series.points) > most for series in all_series)
    extremes = "; minimum and maximum of each stretch" if thinned else ""
    intervals = "; single values, no interval"
    if any(series.points.lows for series in all_series):
        beyond = "; arrowheads: beyond the chart" if is_cut else ""
        intervals = f"; bars: {interval_name(all_series)}s{beyond}" if bars else ""
    return f"{measured}, {_direction_note(all_series[0])}{intervals}{extremes}"


def _level_note(
    all_series: Sequence[Series],
    history: ChangeHistory,
    levels: Sequence[SegmentLevel],
    length: float,
) -> str:
    """The latest level of a chart's single series, and the noise around it."""
    if len(all_series) > 1:
        return ""
    if all_series[0].id in history.not_analysed:
        return "; changes not analysed"
    level = f"; level {significant(levels[-1].median / length)}"
    spread = level_spread(
        all_series[0], [change.change_point for change in history.all_changes_of(all_series[0])]
    )
    if spread is None:
        return level
    share = percent(math.expm1(spread)) if spread < 1 else "more than the value itself"
    return f"{level}, varies by {share}"


def _direction_note(series: Series) -> str:
    """Which direction is better; asv itself treats less as better, whatever the unit."""
    if series.more_is_better:
        return "higher is better"
    return (
        "lower is better"
        if series.is_of_time or series.unit == "bytes"
        else "lower counts as better"
    )


def _alt_text(
    title: str,
    all_series: Sequence[Series],
    pairs: Sequence[tuple[Change, Series]],
    axis: Axis,
    unit: str,
) -> str:
    points = sum(series.points.value_count for series in all_series)
    latest = [f"{change_size(change).word} since {day(change.since)}" for change, _ in pairs[::-1]]
    more = len(latest) - _MOST_DESCRIBED
    parts = [*latest[:_MOST_DESCRIBED], *([f"{count(more, 'earlier change')}"] if more > 0 else [])]
    return (
        f"{title}: {', '.join(parts) or 'no change'}. {count(points, 'point')} of "
        f"{count(len(all_series), 'series', 'series')}, between "
        f"{plain_tick(axis.low)} and {plain_tick(axis.high)} {unit}."
    )


def _mark(change: Change, line: Timeline) -> tuple[float, float, float]:
    """The mark of a change, midway between the two points around its median estimate."""
    moments, step = change.series.points.moments, change.change_point
    before = line.share(moments[max(step.at - 1, 0)].at)
    return (
        (before + line.share(moments[step.at].at)) / 2,
        line.share(change.last_good.at),
        line.share(change.first_bad.at),
    )


def _assign_lanes(places: Sequence[tuple[float, str, str]]) -> tuple[tuple[Content, ...], int]:
    """Place labels that would overlap in separate lanes."""
    room = _WORD_WIDTH if any(len(text) > 2 for _, text, _ in places) else _MARK_WIDTH
    ends: list[float] = []
    labels = []
    for at, text, tone in sorted(places):
        lane = next((index for index, end in enumerate(ends) if at - end >= room), None)
        if lane is None:
            lane = len(ends)
            ends.append(at)
        ends[lane] = at
        labels.append(Content(at=round(at, 1), lane=lane, text=text, tone=tone))
    return tuple(labels), len(ends)


@lru_cache(maxsize=32)  # most pages of a project have the same axis
def _time_ticks(low: float, high: float) -> tuple[Tick, ...]:
    ticks = date_ticks(low, high)
    # Where space is short, every other label is hidden, but never one with the year.
    years = [index % 2 for index, (_, text) in enumerate(ticks) if has_year(text)]
    kept = max(years, key=years.count)
    # The first label of an axis of hours also contains the date, and is long.
    roomy = len(ticks) <= (2 if ":" in ticks[0][1] else 4)
    return tuple(
        Tick(
            at=round(position(at, low, high) * 100, 1),
            text=text,
            minor=index % 2 != kept and not roomy and not has_year(text),
        )
        for index, (at, text) in enumerate(ticks)
    )


_LEVEL_DIGITS = 6


def zoom_data(
    all_series: Sequence[Series],
    levels: Sequence[Sequence[SegmentLevel]],
    changes: Sequence[Change],
    line: Timeline,
    *,
    length: float,
    borders: Sequence[str],
) -> str:
    """The static chart's content besides points, as JSON of numbers.

    For each series its levels as (begin, end, value). Then the changes as (median estimate, surely
    after, no later than, 1 if worse). Then the environment changes. Everything but values is in
    minutes since 1970, or ordinal numbers.

    Args:
        levels: The levels of each of them.
        length: The divisor that converts values for display.
        borders: Moments at which the environment changed.
    """
    drawn = [
        [
            (
                _minute(series, level.first, line),
                _minute(series, level.last, line),
                float(f"{level.median / length:.{_LEVEL_DIGITS}g}"),
            )
            for level in own
        ]
        for series, own in zip(all_series, levels, strict=True)
    ]
    marks = [_zoom_mark(change, line) for change in changes]
    # An axis of ordinal places has no days.
    scale = 1 if line.is_ordinal else MINUTES_A_DAY
    edges = [round(line.places[moment] * scale) for moment in borders]
    return msgspec.json.encode((drawn, marks, edges)).decode()


def _minute(series: Series, at: int, line: Timeline) -> int:
    """When a point was measured, in minutes.

    If moments cannot be parsed, it is the point's index in its series.
    """
    if line.is_ordinal:
        return at
    return round(line.places[series.points.moments[at].at] * MINUTES_A_DAY)


def _zoom_mark(change: Change, line: Timeline) -> tuple[float, int, int, int]:
    """A change as (median estimate, surely after, no later than, 1 if worse)."""
    step = change.change_point
    before, after, surely, latest = (
        _minute(change.series, at, line)
        for at in (max(step.at - 1, 0), step.at, step.last_good, step.first_bad)
    )
    return (before + after) / 2, surely, latest, int(change.is_regression)
