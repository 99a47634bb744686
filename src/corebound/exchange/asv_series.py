"""From result files of asv to series: one for each machine, environment, benchmark, parameters.

A revision is a point, in the order of commit dates as asv has them. A benchmark whose
version changes, or a machine that is no longer described as it was, begins a segment.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corebound.exchange.asv_benchmarks import Known, more_is_better, unit_of
from corebound.exchange.asv_cells import cells_of, label
from corebound.exchange.asv_environments import host_of
from corebound.exchange.asv_results import Outcome, ResultFile
from corebound.exchange.reading import clean
from corebound.model.missing import incomparable
from corebound.model.points import Circumstances, Moment, Points
from corebound.model.run import Commit
from corebound.model.series import Series

_NS = 1e9
_VERSION = "benchmark"
_OF_VERSION = 12
# Of asv's intervals, `ci_99`.
_CONFIDENCE = 0.99
_NO_RESULT = "the file has no result for it"


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


class _Gathered:
    """What files say of one series, a point a file, in any order."""

    __slots__ = ("_circumstances", "_figures", "_highs", "_launches", "_lows",
                 "_missing", "_moments")  # fmt: skip

    def __init__(self) -> None:
        """Begin with none."""
        self._moments: list[Moment] = []
        self._figures = array("d")
        self._circumstances: list[Circumstances] = []
        self._lows = array("d")
        self._highs = array("d")
        self._launches: list[tuple[float, ...]] = []
        self._missing: list[str | None] = []

    def add(
        self, moment: Moment, circumstances: Circumstances, outcome: Outcome, index: int, unit: str
    ) -> None:
        """One combination of an outcome's parameters."""
        scale = _NS if unit == "seconds" else 1.0
        values = outcome.values
        if values is None or index < len(values):
            figure, missing = _figure(None if values is None else values[index], unit, scale)
        else:
            figure, missing = math.nan, _NO_RESULT
        own = _at(outcome.bounds, index) if missing is None else None
        bounds = own and _bounds(own, scale)
        samples = _at(outcome.samples, index) if missing is None else None
        self._moments.append(moment)
        self._figures.append(figure)
        self._circumstances.append(circumstances)
        low, high = bounds or (math.nan, math.nan)
        self._lows.append(low)
        self._highs.append(high)
        self._launches.append(_scaled(samples, scale) if samples else ())
        self._missing.append(missing)

    def points(self) -> Points:
        """All of them, in order."""
        return ordered(
            Points(
                moments=self._moments,
                figures=self._figures,
                circumstances=self._circumstances,
                lows=self._lows,
                highs=self._highs,
                launches=self._launches,
                missing=self._missing,
            )
        )


def series_of(project: Project, files: Iterable[ResultFile]) -> tuple[Series, ...]:
    """Every series of the files, by id.

    Args:
        project: Whose files they are.
        files: In any order; each has a date, or its commit is in the repository.
    """
    found: dict[tuple[str, str, str], _Gathered] = {}
    shared: dict[Circumstances, Circumstances] = {}
    # Files name the same combinations of the same benchmarks over and over.
    places: dict[object, tuple[Known, list[_Gathered]]] = {}
    for file in files:
        host = host_of(file)
        commit = project.commits.get(file.commit) or Commit(
            sha=file.commit, subject="", committed_at=moment(file.date_ms or 0), dirty=False
        )
        when = Moment(at=commit.committed_at, run=None, commit=commit)
        facets = tuple((label(name), label(value)) for name, value in file.facets)
        there: dict[str | None, Circumstances] = {}
        for outcome in file.outcomes:
            circumstances = there.get(outcome.version)
            if circumstances is None:
                told = (*facets, (_VERSION, (outcome.version or "")[:_OF_VERSION]))
                circumstances = there[outcome.version] = shared.setdefault(told, told)
            name = outcome.benchmark
            known = places.get((host, file.environment, name, outcome.params))
            if known is None:
                about = _about(project, name)
                cells = cells_of(outcome.params, about.params, file.environment)
                known = about, [found.setdefault((host, name, cell), _Gathered()) for cell in cells]
                places[host, file.environment, name, outcome.params] = known
            about, own = known
            for index, gathered in enumerate(own):
                gathered.add(when, circumstances, outcome, index, about.unit)
    places.clear()
    # What is a series need not be held as it was found too.
    made = [_series(project, *key, found.pop(key).points()) for key in [*found]]
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


def _series(project: Project, host: str, benchmark: str, cell: str, points: Points) -> Series:
    about = _about(project, benchmark)
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
        points=dated(points),
        confidence=_CONFIDENCE,
        commit_url=project.commit_url,
        code=about.code,
        more_is_better=more_is_better(about.unit),
    )


def in_order(moment: Moment) -> tuple[str, str]:
    """What points of imported histories are sorted by."""
    return moment.at, moment.commit.sha if moment.commit else ""


def ordered(points: Points) -> Points:
    """Points in order, one of each commit: the last that has a figure, else the last."""
    keys = [in_order(moment) for moment in points.moments]
    chosen = dict(zip(keys, range(len(keys)), strict=True))
    if len(chosen) < len(keys):
        figured = (at for at, figure in enumerate(points.figures) if not math.isnan(figure))
        chosen.update((keys[at], at) for at in figured)
    return points.taken(chosen[key] for key in sorted(chosen))


def dated(points: Points) -> Points:
    """Points of files that do not tell of a circumstance get what the next that does tells.

    Old files of asv tell less, such as no version of a benchmark and no number of CPUs,
    which is no sign of a change.
    """
    result: list[Circumstances] = []
    later: dict[str, str] = {}
    seen: Circumstances | None = None
    now: Circumstances = ()
    for circumstances in reversed(points.circumstances):
        # Most points share theirs with the one before.
        if circumstances is not seen:
            seen = circumstances
            own = dict(seen)
            later |= told_in(seen)
            # In one order, for another order is another circumstance.
            names = sorted(later.keys() | own, key=lambda name: (name == _VERSION, name))
            now = tuple((name, later.get(name, "")) for name in names)
            now = seen if now == seen else now
        result.append(now)
    return points.under(result[::-1])


def told_in(circumstances: Circumstances) -> dict[str, str]:
    """Those of which something is told."""
    return {name: value for name, value in circumstances if value}


def _margin(project: Project, benchmark: str) -> float:
    """The largest of the thresholds that apply, as asv has it."""
    own = [margin for pattern, margin in project.thresholds if pattern.match(benchmark)]
    return max(own, default=project.margin)


def _at(values: Sequence[Any], index: int) -> Any:
    return values[index] if index < len(values) else None


def _figure(value: object, unit: str, scale: float) -> tuple[float, str | None]:
    """A figure in the series' unit, or NaN and why: ratios need numbers above 0."""
    if value is None:
        return math.nan, "it failed"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan, f"{clean(str(value))[:40]!r} is no number"
    if isinstance(value, float) and math.isnan(value):
        # asv writes it for what was skipped, and for a `track_…` that returns it.
        return math.nan, "it was skipped or came to NaN"
    try:
        figure = float(value) * scale
    except OverflowError:
        figure = math.inf
    if 0 < figure < math.inf:
        return figure, None
    if math.isinf(figure):
        return math.nan, "an infinite figure is none"
    return math.nan, incomparable(f"{value:g} {unit}")


def _bounds(own: tuple[float, float], scale: float) -> tuple[float, float] | None:
    """The interval of asv, where it has one that ratios can be made of.

    A single sample gives an infinite one, and few that differ much one that ends below 0.
    """
    low, high = own[0] * scale, own[1] * scale
    return (low, high) if 0 < low <= high < math.inf else None


def _scaled(samples: Sequence[float], scale: float) -> tuple[float, ...]:
    scaled = tuple(sample * scale for sample in samples)
    return scaled if all(map(math.isfinite, scaled)) else ()
