"""Every point of histories as CSV."""

from __future__ import annotations

import csv
import io
import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat

import numpy as np

from corebound.records.history import EnvironmentKey, Series
from corebound.text import spreadsheet

# This resolves a nanosecond of ten seconds. More digits would exceed any measurement's precision
# and double the size.
DIGITS = 10
_NUMBER = f".{DIGITS}g"
_POINT_COLUMNS = (
    "project", "scenario", "host", "cell", "at", "run", "commit", "unit", "figure", "low", "high",
    "missing",
)  # fmt: skip


def history_csv(all_series: Sequence[Series]) -> str:
    """Every point of these series, at least one, with a line each; values in the series' unit.

    `points.js` writes the same of the points in a site. The fixed columns come first, then one
    column for each environment value.
    """
    distinct = dict.fromkeys(
        told for series in all_series for told in series.points.environment_keys
    )
    names = [*dict.fromkeys(name for told in distinct for name, _ in told)]
    behind = {told: _csv_line([dict(told).get(name) for name in names]) for told in distinct}
    header = [
        *_POINT_COLUMNS,
        *(f"{name} there" if name in _POINT_COLUMNS else name for name in names),
    ]
    lines = [
        _csv_line(header),
        *(line for series in all_series for line in _point_lines(series, behind)),
    ]
    return "\n".join(lines) + "\n"


def _point_lines(series: Series, behind: dict[EnvironmentKey, str]) -> Iterator[str]:
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
    )
    lines = map(",".join, zip(*columns, strict=False))  # `repeat` has no end
    return map(operator.add, lines, _environment_columns(points.environment_keys, behind))


def _format_numbers(values: Sequence[float]) -> list[str]:
    """Format numbers; NaN and infinity become empty."""
    parts = [*map(format, values, repeat(_NUMBER))]
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        parts[at] = ""
    return parts


def _environment_columns(
    told: Iterable[EnvironmentKey], behind: dict[EnvironmentKey, str]
) -> Iterator[str]:
    """The end of each line, with its environment values.

    Without any there is no comma before them.
    """
    ends = {each: f",{line}" if line else "" for each, line in behind.items()}
    # Most points have the same environment as the one before, which saves the lookup.
    there, end = None, ""
    for each in told:
        if each is not there:
            there, end = each, ends[each]
        yield end


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
