"""The points of histories as columns: one form for charts, for CSV made in a browser, and to load.

A page that is opened from a file can load nothing but scripts, so a file is a script with one call:
`corebound.keep("…")`, where `…` is JSON, compressed with zlib and encoded as Base64. The moments
of a project are in a file of their own, because all of its benchmarks share them.

The JSON of moments has four columns, by time: `at`, `run`, `commit`, and `minutes` since 1970; null
means unknown. `benchmarks` are the names of a project's files with points, without extension.

The JSON of points has:

- `moments`: the name of the file with the moments; empty if they are in this one.
- `columns`: where the points of a series are in the moments. The first number is a place, each
  other one the distance from the place before.
- `pauses`: for each of `columns`, the points before which a result is overdue.
- `environments`: lists of (what, which).
- `series`: by anchor, each with `project`, `scenario`, `host`, `cell` and `unit`; `column`, an
  index; `environment`, as (index, number of points) for each stretch of points; `missing`, the
  points without a value by reason; `scale`; and `value`, `low` and `high`, null where there is
  none, the latter two empty if no point has an interval. `sides`, of ratios to an anchor: the
  values of HEAD and those of the anchor, with null where there are none.
- To compare two points of an imported series as `stats.history.pairwise` does: `changes`, the first
  points after its clear changes, null if it was not analysed; `margin`; `more_is_better`; and
  `reach`, the factor from half an interval, of logarithms, to 95 %.

`scale` is null where these are plain numbers. Else it has two powers of ten, of values and of ends:
a value is the difference from the last value before it, counted in 10^-scale; an end is its
distance from the value, counted in 10^-scale of ends, with the value rounded half up to that.
Values then have ten digits of the smallest value, and ends too, unless five give the same ends, as
asv stores them. Whole numbers are exact.
"""

from __future__ import annotations

import base64
import itertools
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from corebound.analysis.change_history import EMPTY_HISTORY, ChangeHistory
from corebound.records import cache
from corebound.records.history import EnvironmentKey, HistoryPoints, Moment, Series, days_since_1970
from corebound.report.charts.history import FloatArray
from corebound.report.history.timeline import pauses_before
from corebound.report.urls import series_anchor
from corebound.stats.distributions import normal_quantile
from corebound.stats.intervals import CONFIDENCE

# Enough to compute what pages print. Further digits are noise, which cannot be compressed.
DIGITS = 10
# asv stores ends with so many.
_FEW_DIGITS = 5
# Larger powers of ten, and larger whole numbers, are not exact as a double.
_LARGEST_EXACT_POWER, _LARGEST_EXACT = 22, 2.0**53
MINUTES_A_DAY = 24 * 60
# Files are mostly digits that do not repeat. For these, this level and strategy give less than the
# default ones, in half the time.
_LEVEL, _MEMORY_LEVEL = 4, 9


class SharedMoments:
    """The distinct moments of several series, by time, which their points refer to by place."""

    def __init__(self, all_series: Iterable[Series]) -> None:
        """Take the moments of these series."""
        # Most series share the same column. Keeping the columns keeps their ids valid.
        self._columns = {id(series.points.moments): series.points.moments for series in all_series}
        distinct = {_key(moment): moment for column in self._columns.values() for moment in column}
        self._places = {key: place for place, key in enumerate(sorted(distinct))}
        self._moments = [distinct[key] for key in self._places]
        self._steps: dict[int, list[int]] = {}
        self._digests: dict[int, str] = {}

    def document(self) -> dict[str, Any]:
        """The moments as columns."""
        days = [days_since_1970(moment.at) for moment in self._moments]
        return {
            "at": [moment.at for moment in self._moments],
            "run": [moment.run for moment in self._moments],
            "commit": [moment.commit.sha if moment.commit else None for moment in self._moments],
            "minutes": [None if day is None else round(day * MINUTES_A_DAY) for day in days],
        }

    def digest(self, column: tuple[Moment, ...]) -> str:
        """A hash of the places of a column, which another series' moments may change."""
        if id(column) not in self._digests:
            self._digests[id(column)] = cache.digest(msgspec.json.encode(self.steps(column)))
        return self._digests[id(column)]

    def steps(self, column: tuple[Moment, ...]) -> list[int]:
        """The places of a column, each but the first as the distance from the one before."""
        if id(column) not in self._steps:
            places = [self._places[_key(moment)] for moment in column]
            self._steps[id(column)] = np.diff(places, prepend=0).tolist()
        return self._steps[id(column)]


def _key(moment: Moment) -> tuple[str, str, str]:
    return moment.at, moment.run or "", moment.commit.sha if moment.commit else ""


def minutes_of(moments: Sequence[Moment]) -> npt.NDArray[np.int64]:
    """Minutes since 1970 of each point; their order if a moment cannot be parsed."""
    days = np.array([days_since_1970(moment.at) for moment in moments], dtype=np.float64)
    if np.isnan(days).any():
        return np.arange(days.size)
    return np.rint(days * MINUTES_A_DAY).astype(np.int64)


def points_document(
    all_series: Sequence[Series],
    shared: SharedMoments,
    *,
    history: ChangeHistory = EMPTY_HISTORY,
    moments_file: str = "",
) -> dict[str, Any]:
    """The points of these series as columns, each series already encoded.

    Args:
        history: All histories with their changes, for imported series.
        moments_file: The file of `shared`; empty if it is this one.
    """
    # Most series share the same column, which is therefore known by its id.
    columns: dict[int, tuple[int, tuple[Moment, ...]]] = {}
    environments: dict[EnvironmentKey, int] = {}
    stretches: dict[int, list[tuple[int, int]]] = {}
    documents = {}
    for series in all_series:
        points = series.points
        keys = points.environment_keys
        if id(keys) not in stretches:
            stretches[id(keys)] = _stretches(points, environments)
        document = {
            "project": series.project,
            "scenario": series.scenario,
            "host": series.host,
            "cell": series.cell,
            "unit": series.unit,
            "column": columns.setdefault(id(points.moments), (len(columns), points.moments))[0],
            "environment": stretches[id(keys)],
            "missing": _by_reason(points),
            **_packed(points),
            **_sides(points),
            **(_comparable(series, history) if series.project is not None else {}),
        }
        # As text, the numbers of thousands of series take a tenth of the memory.
        documents[series_anchor(series)] = msgspec.Raw(msgspec.json.encode(document))
    return {
        "moments": moments_file,
        "columns": [shared.steps(moments) for _, moments in columns.values()],
        "pauses": [pauses_before(minutes_of(moments)) for _, moments in columns.values()],
        "environments": [*environments],
        "series": documents,
    }


def _comparable(series: Series, history: ChangeHistory) -> dict[str, Any]:
    """What a comparison of two points needs besides the points."""
    is_analysed = series.id not in history.not_analysed
    own_reach, usual_reach = (
        normal_quantile((1 + confidence) / 2) for confidence in (series.confidence, CONFIDENCE)
    )
    return {
        "changes": [change.change_point.at for change in history.changes_of(series)]
        if is_analysed
        else None,
        "margin": series.margin,
        "more_is_better": series.more_is_better,
        "reach": usual_reach / own_reach,
    }


def _stretches(
    points: HistoryPoints, environments: dict[EnvironmentKey, int]
) -> list[tuple[int, int]]:
    """Each stretch of points with one environment, as (index, number of points)."""
    edges = (0, *points.breaks, len(points))
    return [
        (environments.setdefault(points.environment_keys[begin], len(environments)), end - begin)
        for begin, end in itertools.pairwise(edges)
    ]


def _by_reason(points: HistoryPoints) -> dict[str, list[int]]:
    """The points without a value, by reason."""
    groups: dict[str, list[int]] = {}
    for at, why in enumerate(points.missing):
        if why:
            groups.setdefault(why, []).append(at)
    return groups


def _sides(points: HistoryPoints) -> dict[str, Any]:
    if not points.sides:
        return {}
    rows = np.array([sides or (math.nan, math.nan) for sides in points.sides])
    return {"sides": [*map(_numbers, rows.T)]}


def _packed(points: HistoryPoints) -> dict[str, Any]:
    """The values and ends of points, counted as the module describes."""
    values, lows, highs = map(np.array, (points.values, points.lows, points.highs))
    scales = _scales(values, lows, highs)
    if scales is None:
        plain = {"value": values, "low": lows, "high": highs}
        return {"scale": None, **{name: _numbers(column) for name, column in plain.items()}}
    scale, end_scale = scales
    counts = _counted(values, scale)
    middles = np.floor(counts / 10.0 ** (scale - end_scale) + 0.5)
    steps = counts.copy()
    is_known = np.isfinite(counts)
    steps[is_known] = np.diff(counts[is_known], prepend=0)
    return {
        "scale": scales,
        "value": _whole(steps),
        "low": _whole(middles - _counted(lows, end_scale)) if lows.size else [],
        "high": _whole(_counted(highs, end_scale) - middles) if highs.size else [],
    }


def _scales(values: FloatArray, lows: FloatArray, highs: FloatArray) -> tuple[int, int] | None:
    """The powers of ten that turn values and ends into whole numbers; None if none does exactly."""
    is_known = np.isfinite(values)
    size = np.abs(values[is_known & (values != 0)])
    ends = np.concatenate((lows, highs))
    is_end = np.isfinite(ends)
    if not size.size or (is_end & ~np.tile(is_known, ends.size // values.size)).any():
        return None
    finite = np.abs(np.concatenate((values[is_known], ends[is_end])))
    if (finite == np.rint(finite)).all():
        scale, few = 0, 0
    else:
        place = math.floor(math.log10(size.min()))
        scale, few = (digits - 1 - place for digits in (DIGITS, _FEW_DIGITS))
    if max(abs(scale), abs(few)) > _LARGEST_EXACT_POWER:
        return None
    if finite.max() >= _LARGEST_EXACT / 10.0**scale:
        return None
    return scale, few if _are_whole(ends[is_end], few) else scale


def _are_whole(values: FloatArray, scale: int) -> bool:
    """Whether numbers are multiples of 10^-scale, to `DIGITS` digits of the smallest value."""
    scaled = values * 10.0**scale if scale >= 0 else values / 10.0**-scale
    return bool((np.abs(scaled - np.rint(scaled)) <= 10.0 ** (_FEW_DIGITS - DIGITS)).all())


def _counted(values: FloatArray, scale: int) -> FloatArray:
    # A negative power of ten is not exact.
    return np.rint(values * 10.0**scale if scale >= 0 else values / 10.0**-scale)


def _whole(numbers: FloatArray) -> list[int | None]:
    """Whole numbers; NaN and infinity become None."""
    is_known = np.isfinite(numbers)
    whole: list[int | None] = np.where(is_known, numbers, 0).astype(np.int64).tolist()
    for at in np.flatnonzero(~is_known).tolist():
        whole[at] = None
    return whole


def _numbers(values: FloatArray) -> list[float | None]:
    """Numbers with `DIGITS` significant digits; NaN and infinity become None."""
    return [it if math.isfinite(it) else None for it in round_digits(values).tolist()]


def round_digits(values: FloatArray) -> FloatArray:
    """Round numbers to `DIGITS` significant digits, so that their shortest text has no more."""
    size = np.abs(values)
    is_usual = np.isfinite(size) & (size > 0)
    powers = DIGITS - 1 - np.floor(np.log10(size, where=is_usual, out=np.zeros_like(size)))
    # A quotient or product of whole numbers and exact powers is the double nearest to the decimal.
    is_exact = is_usual & (np.abs(powers) <= _LARGEST_EXACT_POWER)
    scale = np.power(10.0, np.abs(np.where(is_exact, powers, 0)))
    result = np.where(powers >= 0, np.rint(values * scale) / scale, np.rint(values / scale) * scale)
    for at in np.flatnonzero(is_usual & ~is_exact).tolist():
        result[at] = float(f"{values[at]:.{DIGITS}g}")
    return np.where(is_usual, result, values)


def script(document: Mapping[str, Any]) -> str:
    """A document as a script that hands it to the page."""
    compressor = zlib.compressobj(
        _LEVEL, zlib.DEFLATED, zlib.MAX_WBITS, _MEMORY_LEVEL, zlib.Z_FILTERED
    )
    data = compressor.compress(msgspec.json.encode(document)) + compressor.flush()
    return f'corebound.keep("{base64.b64encode(data).decode()}");\n'
