"""From result files of asv to series: one for each machine, environment, benchmark, parameters.

A revision is a point, in the order of commit dates as asv has them. A benchmark whose
version changes, or a machine that is no longer described as it was, begins a segment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from corebound.exchange.asv_cells import cells_of, label
from corebound.exchange.asv_results import Outcome, ResultFile
from corebound.exchange.reading import clean
from corebound.model.run import Commit
from corebound.model.series import Point, Series

# What asv's own kinds of benchmark are measured in, by the start of their names: for trees
# without benchmarks.json. Source: asv's documentation, "Benchmark types and attributes".
_UNITS = (("time", "seconds"), ("mem", "bytes"), ("peakmem", "bytes"))
_NS = 1e9
_VERSION = "benchmark"
_OF_VERSION = 12
# Of asv's intervals, `ci_99`.
_CONFIDENCE = 0.99
_NO_RESULT = "the file has no result for it"

Circumstances = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What benchmarks.json says of a benchmark.

    Attributes:
        title: For the eye.
        unit: In asv's words, such as `seconds`.
        params: Names of its parameters.
    """

    title: str
    unit: str
    params: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Whose history it is.

    Attributes:
        name: As the user or asv.conf.json calls it.
        benchmarks: What is known of them, by name.
        commits: What the repository says of them, by hash; those that it lacks are missing.
        thresholds: asv's `regressions_thresholds`: patterns of benchmarks, and the
            least change that matters in them.
        margin: That of all other benchmarks.
        commit_url: What asv puts a hash behind to show a commit; None where untold.
    """

    name: str
    benchmarks: Mapping[str, Known]
    commits: Mapping[str, Commit]
    thresholds: Sequence[tuple[re.Pattern[str], float]]
    margin: float
    commit_url: str | None = None


def known(told: Any) -> dict[str, Known]:
    """What benchmarks.json says; entries that say nothing are passed over."""
    entries = told.items() if isinstance(told, dict) else ()
    return {
        name: Known(
            title=str(entry.get("pretty_name") or name),
            unit=str(entry.get("unit") or unit_of(name)),
            params=tuple(map(str, entry.get("param_names") or ())),
        )
        for name, entry in entries
        if isinstance(entry, dict)
    }


def unit_of(benchmark: str) -> str:
    """The unit asv gives a benchmark of such a name that names none itself.

    >>> unit_of("suite.Trees.time_insert"), unit_of("suite.track_size")
    ('seconds', 'unit')
    """
    own = benchmark.rsplit(".", 1)[-1].lower()
    return next((unit for start, unit in _UNITS if own.startswith(start)), "unit")


def series_of(project: Project, files: Iterable[ResultFile]) -> tuple[Series, ...]:
    """Every series of the files, by id.

    Args:
        project: Whose files they are.
        files: In any order; each has a date, or its commit is in the repository.
    """
    points: dict[tuple[str, str, str], list[Point]] = {}
    shared: dict[Circumstances, Circumstances] = {}
    # Files name the same combinations of the same benchmarks over and over.
    places: dict[object, tuple[Known, list[list[Point]]]] = {}
    for file in files:
        host = label(file.machine or "unnamed")
        commit = project.commits.get(file.commit) or Commit(
            sha=file.commit, subject="", committed_at=moment(file.date_ms or 0), dirty=False
        )
        facets = tuple((label(name), label(value)) for name, value in file.facets)
        there: dict[str | None, Circumstances] = {}
        for outcome in file.outcomes:
            circumstances = there.get(outcome.version)
            if circumstances is None:
                told = (*facets, (_VERSION, (outcome.version or "")[:_OF_VERSION]))
                circumstances = there[outcome.version] = shared.setdefault(told, told)
            name = outcome.benchmark
            found = places.get((host, file.environment, name, outcome.params))
            if found is None:
                about = _about(project, name)
                cells = cells_of(outcome.params, about.params, file.environment)
                found = about, [points.setdefault((host, name, cell), []) for cell in cells]
                places[host, file.environment, name, outcome.params] = found
            about, own = found
            for index, several in enumerate(own):
                several.append(_point(outcome, index, about.unit, commit, circumstances))
    places.clear()
    # What is a series need not be held as it was found too.
    made = [_series(project, *key, points.pop(key)) for key in [*points]]
    return tuple(sorted(made, key=lambda one: one.id))


def moment(date_ms: int) -> str:
    """ISO 8601 in UTC, to the second.

    >>> moment(1637362095000)
    '2021-11-19T22:48:15Z'
    """
    return f"{np.datetime64(date_ms // 1000, 's')}Z"


def _about(project: Project, benchmark: str) -> Known:
    found = project.benchmarks.get(benchmark)
    return found or Known(title=benchmark, unit=unit_of(benchmark), params=())


def _series(project: Project, host: str, benchmark: str, cell: str, found: list[Point]) -> Series:
    about = _about(project, benchmark)
    found.sort(key=in_order)
    return Series(
        project=project.name,
        host=host,
        host_name=host,
        scenario=label(benchmark),
        title=label(about.title),
        cell=cell,
        unit="ns" if about.unit == "seconds" else label(about.unit),
        margin=_margin(project, benchmark),
        reproduce=("asv", "run", "--bench", rf"^{re.escape(benchmark)}\b"),
        points=dated(found),
        confidence=_CONFIDENCE,
        commit_url=project.commit_url,
    )


def in_order(point: Point) -> tuple[str, str]:
    """What points of imported histories are sorted by."""
    return point.at, point.commit.sha if point.commit else ""


def dated(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points of files that do not tell a benchmark's version get that of the next that does.

    Old files of asv do not tell it, which is no sign of a change.
    """
    result: list[Point] = []
    version = ""
    told: str | None = None
    seen: Circumstances | None = None
    for point in reversed(points):
        # Most points share theirs with the one before.
        if point.circumstances is not seen:
            seen = point.circumstances
            told = version_of(seen)
        version = told or version
        if told == version or not version:
            result.append(point)
        else:
            known = dict(point.circumstances) | {_VERSION: version}
            result.append(replace(point, circumstances=tuple(known.items())))
    return tuple(reversed(result))


def version_of(circumstances: Circumstances) -> str | None:
    """Of what is measured: empty where the file does not tell, None where nobody would."""
    return next((value for name, value in reversed(circumstances) if name == _VERSION), None)


def _margin(project: Project, benchmark: str) -> float:
    """The largest of the thresholds that apply, as asv has it."""
    own = [margin for pattern, margin in project.thresholds if pattern.match(benchmark)]
    return max(own, default=project.margin)


def _point(
    outcome: Outcome,
    index: int,
    unit: str,
    commit: Commit,
    circumstances: Circumstances,
) -> Point:
    """What one combination of parameters came to."""
    scale = _NS if unit == "seconds" else 1.0
    values = outcome.values
    if values is None or index < len(values):
        figure, missing = _figure(None if values is None else values[index], unit, scale)
    else:
        figure, missing = None, _NO_RESULT
    bounds = samples = None
    if figure is not None:
        bounds = _at(outcome.bounds, index)
        samples = _at(outcome.samples, index)
    return Point(
        at=commit.committed_at,
        run=None,
        commit=commit,
        figure=figure,
        bounds=bounds and _bounds(bounds, scale),
        launches=_scaled(samples, scale) if samples else (),
        missing=missing,
        circumstances=circumstances,
    )


def _at(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _figure(value: object, unit: str, scale: float) -> tuple[float | None, str | None]:
    """A figure in the series' unit, or why there is none: ratios need numbers above 0."""
    if value is None:
        return None, "it failed"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, f"{clean(str(value))[:40]!r} is no number"
    if isinstance(value, float) and math.isnan(value):
        return None, "it was skipped"
    try:
        figure = float(value) * scale
    except OverflowError:
        figure = math.inf
    if 0 < figure < math.inf:
        return figure, None
    if math.isinf(figure):
        return None, "an infinite figure is none"
    return None, f"{value:g} {unit}: only a figure above 0 can be compared"


def _bounds(own: tuple[float, float], scale: float) -> tuple[float, float] | None:
    """The interval of asv, where it has one: a single sample gives an infinite one."""
    low, high = own[0] * scale, own[1] * scale
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low <= high else None


def _scaled(samples: Sequence[float], scale: float) -> tuple[float, ...]:
    scaled = tuple(sample * scale for sample in samples)
    return scaled if all(map(math.isfinite, scaled)) else ()
