"""What a chart passes to the script that zooms, besides the points themselves."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from corebound.records.history import Series
from corebound.report.history.columns import MINUTES_A_DAY
from corebound.report.history.timeline import SegmentLevel, Timeline
from corebound.stats.history.regressions import Change

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
    marks = [_mark(change, line) for change in changes]
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


def _mark(change: Change, line: Timeline) -> tuple[float, int, int, int]:
    """A change as (median estimate, surely after, no later than, 1 if worse)."""
    step = change.change_point
    before, after, surely, latest = (
        _minute(change.series, at, line)
        for at in (max(step.at - 1, 0), step.at, step.last_good, step.first_bad)
    )
    return (before + after) / 2, surely, latest, int(change.is_regression)
