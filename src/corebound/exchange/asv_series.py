"""From result files of asv to series: one for each machine, environment, benchmark, parameters.

A revision is a point, in the order of commit dates as asv has them. A benchmark whose
version changes, or a machine that is no longer described as it was, begins a segment.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.exchange import asv_points
from corebound.exchange.asv_benchmarks import Known, more_is_better, unit_of
from corebound.exchange.asv_cells import cells_of, label
from corebound.exchange.asv_environments import host_of
from corebound.exchange.asv_points import VERSION
from corebound.exchange.asv_results import DAMAGES, ResultFile
from corebound.exchange.asv_rows import Params, Rows
from corebound.model.points import Circumstances, Moment, Points
from corebound.model.run import Commit
from corebound.model.series import Series

# A machine, a benchmark and the key of a cell.
_Key: TypeAlias = tuple[str, str, str]
_OF_VERSION = 12
# Of asv's intervals, `ci_99`.
_CONFIDENCE = 0.99


class Project(Struct, frozen=True, kw_only=True):
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


class Gathered:
    """What files say of a project's series; they are taken one after another, in any order."""

    def __init__(self, project: Project) -> None:
        """Begin with none."""
        self._project = project
        self._moments: list[Moment] = []
        self._rows: dict[tuple[str, str, str, Params], Rows] = {}
        # By machine and environment, and by benchmark: those of the last file.
        self._last: dict[tuple[str, str], dict[str, Rows]] = {}
        # By what is told of the machine, and by version: files tell the same over and over.
        self._circumstances: dict[Circumstances, dict[str, Circumstances]] = {}

    @property
    def benchmarks(self) -> set[str]:
        """Those that files were taken of."""
        return {benchmark for (_, _, benchmark, _), rows in self._rows.items() if rows.files}

    def add(self, file: ResultFile) -> tuple[str, ...]:
        """Take what a file says; it has a date, or its commit is in the repository.

        Returns:
            The benchmarks that are damaged and were passed over, each with why.
        """
        host, environment = host_of(file), file.environment
        last = self._last.setdefault((host, environment), {})
        circumstances = self._circumstances.setdefault(file.facets, {})
        number = len(self._moments)
        self._moments.append(self._moment(file))
        damaged = []
        for name, told in file.results.items():
            try:
                row = file.row_of(name, told)
                params = tuple([tuple(map(str, one)) for one in row[1]]) if row[1] else ()
                rows = last.get(name)
                if rows is None or rows.params != params:
                    rows = last[name] = self._rows_of(host, environment, name, params)
                version = "" if row[2] is None else str(row[2])
                under = circumstances.get(version)
                if under is None:
                    under = circumstances[version] = _circumstances(file.facets, version)
                rows.add(number, under, row)
            except DAMAGES as error:
                damaged.append((name, repr(error)))
        return tuple(f"{name}: {why}" for name, why in sorted(damaged))

    def _moment(self, file: ResultFile) -> Moment:
        commit = self._project.commits.get(file.commit) or Commit(
            sha=file.commit, subject="", committed_at=moment(file.date_ms or 0), dirty=False
        )
        if file.measured:
            # It is what a reader knows the commit by, where that is of another repository.
            named = f"{commit.subject} ({file.measured})" if commit.subject else file.measured
            commit = replace(commit, subject=label(named))
        return Moment(at=commit.committed_at, run=None, commit=commit)

    def _rows_of(self, host: str, environment: str, benchmark: str, params: Params) -> Rows:
        key = host, environment, benchmark, params
        if key not in self._rows:
            self._rows[key] = Rows(params, _about(self._project, benchmark).unit)
        return self._rows[key]

    def series(self) -> tuple[Series, ...]:
        """Every series, by id; what was gathered of them is gone then."""
        parts: dict[_Key, list[tuple[Rows, int]]] = {}
        for (host, environment, benchmark, params), rows in self._rows.items():
            if rows.files:
                names = _about(self._project, benchmark).params
                for index, cell in enumerate(cells_of(params, names, environment)):
                    parts.setdefault((host, benchmark, cell), []).append((rows, index))
        self._rows.clear()
        self._last.clear()
        # Cells of the same rows share all but their figures.
        alike: dict[tuple[Rows, ...], list[tuple[_Key, list[int]]]] = {}
        for key, several in parts.items():
            places = [index for _, index in several]
            alike.setdefault(tuple(rows for rows, _ in several), []).append((key, places))
        parts.clear()
        waiting = deque(alike.items())
        alike.clear()
        orders = asv_points.Orders(self._moments)
        made: list[Series] = []
        # What is series need not be held as it was found too.
        while waiting:
            shared, cells = waiting.popleft()
            every = orders.points(shared, [places for _, places in cells])
            for (key, _), points in zip(cells, every, strict=True):
                made.append(_series(self._project, *key, points))
        return tuple(sorted(made, key=lambda one: one.id))


def _circumstances(facets: Circumstances, version: str) -> Circumstances:
    told = tuple((label(name), label(value)) for name, value in facets)
    return (*told, (VERSION, version[:_OF_VERSION]))


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
        points=points,
        confidence=_CONFIDENCE,
        commit_url=project.commit_url,
        code=about.code,
        more_is_better=more_is_better(about.unit),
    )


def _margin(project: Project, benchmark: str) -> float:
    """The largest of the thresholds that apply, as asv has it."""
    own = [margin for pattern, margin in project.thresholds if pattern.match(benchmark)]
    return max(own, default=project.margin)
