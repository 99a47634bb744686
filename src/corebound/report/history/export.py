"""Exports the points of histories as CSV, efficiently for hundreds of thousands of lines."""

from __future__ import annotations

import csv
import io
import operator
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat

import numpy as np

from corebound.records.history import Circumstances, Series
from corebound.text import spreadsheet

# This resolves a nanosecond of ten seconds. More digits would exceed any measurement's precision
# and double the size.
_DIGITS = ".10g"
_COLUMNS = ("host", "cell", "at", "run", "commit", "unit", "figure", "low", "high", "missing")


def history_csv(series: Sequence[Series]) -> str:
    """Every point of these series, at least one, with a line each; values in the series' unit.

    The fixed columns come first, then one column for each environment value.
    """
    distinct = dict.fromkeys(told for one in series for told in one.points.circumstances)
    names = [*dict.fromkeys(name for told in distinct for name, _ in told)]
    behind = {told: _line([dict(told).get(name) for name in names]) for told in distinct}
    header = [*_COLUMNS, *(f"{name} there" if name in _COLUMNS else name for name in names)]
    lines = [_line(header), *(line for one in series for line in _points(one, behind))]
    return "\n".join(lines) + "\n"


def _points(one: Series, behind: dict[Circumstances, str]) -> Iterator[str]:
    where, unit = _line([one.host, one.cell]), _line([one.unit])
    points = one.points
    columns = (
        repeat(where),
        [_moment(at, run, commit.sha if commit else None) for at, run, commit in points.moments],
        repeat(unit),
        _numbers(points.figures),
        _numbers(points.lows) or repeat(""),
        _numbers(points.highs) or repeat(""),
        [_reason(missing) if missing else "" for missing in points.missing] or repeat(""),
    )
    lines = map(",".join, zip(*columns, strict=False))  # `repeat` has no end
    return map(operator.add, lines, _ends(points.circumstances, behind))


def _numbers(values: Sequence[float]) -> list[str]:
    """Format numbers; NaN and infinity become empty."""
    told = [*map(format, values, repeat(_DIGITS))]
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        told[at] = ""
    return told


def _ends(told: Iterable[Circumstances], behind: dict[Circumstances, str]) -> Iterator[str]:
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
def _moment(at: str, run: str | None, sha: str | None) -> str:
    return _line([at, run, sha])


@lru_cache(maxsize=4096)
def _reason(missing: str) -> str:
    return _line([missing, None])[:-1]


def _line(values: Iterable[str | None]) -> str:
    """Values as a CSV line, quoted if necessary, without its line end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([spreadsheet(value) for value in values])
    return text.getvalue()
