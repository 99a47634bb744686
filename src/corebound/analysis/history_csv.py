"""Every point of histories as CSV."""

from __future__ import annotations

import csv
import io
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat

import numpy as np

from corebound.records.history import EnvironmentKey, HistoryPoints, Series
from corebound.text import spreadsheet

# This resolves a nanosecond of ten seconds. More digits would exceed any measurement's precision
# and double the size.
DIGITS = 10
_NUMBER = f".{DIGITS}g"
_POINT_COLUMNS = (
    "project", "scenario", "host", "cell", "at", "run", "commit", "unit", "figure", "low", "high",
    "missing",
)  # fmt: skip
# Beside ratios to an anchor, in the unit of the series without "× anchor".
_SIDE_COLUMNS = ("figure of HEAD", "figure of anchor")


def history_csv(all_series: Sequence[Series]) -> str:
    """Every point of these series, at least one, with a line each; values in the series' unit.

    `points.js` writes the same of the points in a site. The fixed columns come first, then one
    column for each environment value.
    """
    distinct = dict.fromkeys(key for series in all_series for key in series.points.environment_keys)
    names = [*dict.fromkeys(name for key in distinct for name, _ in key)]
    endings = {
        key: f",{_csv_line([dict(key).get(name) for name in names])}" if names else ""
        for key in distinct
    }
    has_sides = any(series.is_anchored for series in all_series)
    header = [
        *_POINT_COLUMNS,
        *(_SIDE_COLUMNS if has_sides else ()),
        *(f"{name} there" if name in _POINT_COLUMNS else name for name in names),
    ]
    lines = [
        _csv_line(header),
        *(
            line
            for series in all_series
            for line in _point_lines(series, endings, has_sides=has_sides)
        ),
    ]
    return "\n".join(lines) + "\n"


def _point_lines(
    series: Series, endings: Mapping[EnvironmentKey, str], *, has_sides: bool
) -> Iterator[str]:
    location = _csv_line([series.project, series.scenario, series.host, series.cell])
    unit = _csv_line([series.unit])
    points = series.points
    columns = (
        repeat(location),
        [
            _moment_columns(at, run, commit.sha if commit else None)
            for at, run, commit in points.moments
        ],
        repeat(unit),
        _format_numbers(points.values),
        _format_numbers(points.lows) or repeat(""),
        _format_numbers(points.highs) or repeat(""),
        [_reason_column(missing) if missing else "" for missing in points.missing] or repeat(""),
        *(_side_columns(points) if has_sides else ()),
    )
    lines = map(",".join, zip(*columns, strict=False))  # `repeat` has no end
    # Points share few keys, and to hash one for each point would take most of the time.
    keys = points.environment_keys
    by_id = {number: endings[key] for number, key in {id(key): key for key in keys}.items()}
    return map(operator.add, lines, map(by_id.__getitem__, map(id, keys)))


def _side_columns(points: HistoryPoints) -> Iterator[Iterable[str]]:
    for side in (0, 1):
        numbers = [math.nan if sides is None else sides[side] for sides in points.sides]
        yield _format_numbers(numbers) or repeat("")


def _format_numbers(values: Sequence[float]) -> list[str]:
    """Format numbers; NaN and infinity become empty."""
    parts = [*map(format, values, repeat(_NUMBER))]
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        parts[at] = ""
    return parts


# All series of a project share their timestamps and commits.
@lru_cache(maxsize=65_536)
def _moment_columns(at: str, run: str | None, sha: str | None) -> str:
    return _csv_line([at, run, sha])


@lru_cache(maxsize=4096)
def _reason_column(missing: str) -> str:
    return _csv_line([missing, None])[:-1]


def _csv_line(values: Iterable[str | None]) -> str:
    """Values as a CSV line, quoted if necessary, without its line end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([spreadsheet(value) for value in values])
    return text.getvalue()
