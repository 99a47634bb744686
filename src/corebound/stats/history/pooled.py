"""Series of several hosts together: a change too small for any single host shows in all of them.

Each host has a level of its own, and each commit an effect that all hosts share. The effects of
the commits are a series, in which the noise of single hosts averages out.
"""

import hashlib
import math
import statistics
import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.records.history import HistoryPoints, Moment, Series
from corebound.records.run_record import Commit
from corebound.stats.history.regressions import min_values_to_detect
from corebound.stats.history.shift_tests import spread_of
from corebound.stats.intervals import NORMAL_REACH, Array

# With two hosts nobody can say which of them is right.
LEAST_HOSTS = 3
# Older changes are not new; so the memory does not grow with the history.
_LATEST_POINTS = 120
# The sweeps change less than a thousandth of the noise after this many.
_SWEEPS = 6
# The standard error of a median of normal values, times the root of their number.
_MEDIAN_ERROR = math.sqrt(math.pi / 2)
# The id of all hosts together, in place of a host's. The ids of hosts are digits.
ALL_HOSTS = "all-hosts"


class _HostValues(Struct, frozen=True, kw_only=True):
    """The latest values of one series: the index of each commit, and its logarithm.

    `rows` numbers the environments of the host: each has a level of its own.
    """

    host: str
    commits: NDArray[np.int32]
    rows: NDArray[np.int32]
    logs: Array


class _Cell:
    """The values of one cell on all hosts, and the commits that they are of."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.hosts: list[_HostValues] = []
        self.commits: dict[str, int] = {}
        self.known: list[Commit] = []
        self.times: list[list[str]] = []

    def add(self, series: Series) -> None:
        """Add the series of one host."""
        points = series.points[-_LATEST_POINTS:]
        environments: dict[object, int] = {}
        columns, rows, logs = [], [], []
        for moment, value, key in zip(
            points.moments, points.values, points.environment_keys, strict=True
        ):
            if moment.commit is None or math.isnan(value):
                continue
            index = self.commits.setdefault(moment.commit.sha, len(self.commits))
            if index == len(self.known):
                self.known.append(moment.commit)
                self.times.append([])
            self.times[index].append(moment.at)
            columns.append(index)
            rows.append(environments.setdefault(key, len(environments)))
            logs.append(math.log(value))
        if logs:
            self.series = max(self.series, series, key=lambda each: each.points.latest_moment.at)
            self.hosts.append(
                _HostValues(
                    host=series.host,
                    commits=np.array(columns, np.int32),
                    rows=np.array(rows, np.int32),
                    logs=np.array(logs),
                )
            )


def is_pooled(series: Series) -> bool:
    """Whether a series is of several hosts together."""
    return pooling(series) > 0


def pooling(series: Series) -> int:
    """How many hosts a series is of: 0 for one host, 1 for a class, 2 for all."""
    if series.project is not None:
        return 0
    return 2 if series.host == ALL_HOSTS else int(series.host.startswith(_CLASS))


_CLASS = "class-"


def pooled_series(suite: Iterable[Series], classes: Mapping[str, str]) -> tuple[Series, ...]:
    """Our own series of each class of hosts together, and of all hosts.

    Points without a commit do not count, because nothing relates those of several hosts.

    Args:
        suite: Series of single hosts, best in the order of their ids.
        classes: The name of the class of each host, by the host's id.
    """
    own = [
        series
        for series in suite
        if series.project is None and not is_pooled(series) and not series.is_anchored
    ]
    if len({series.host for series in own}) < LEAST_HOSTS:
        return ()
    cells: dict[tuple[str, str], _Cell] = {}
    for series in own:
        cells.setdefault((series.scenario, series.cell), _Cell(series)).add(series)
    pooled: list[Series] = []
    for _, cell in sorted(cells.items()):
        groups: dict[str, list[_HostValues]] = defaultdict(list)
        for host in cell.hosts:
            groups[classes.get(host.host, "")].append(host)
        if len(groups) > 1:
            everything = _pool(cell, cell.hosts, ALL_HOSTS, f"all {len(cell.hosts)} hosts")
            pooled += [everything] if everything is not None else []
        for name, hosts in sorted(groups.items()):
            of_class = f"{len(hosts)} hosts of {name}" if name else f"{len(hosts)} hosts"
            identity = f"{_CLASS}{hashlib.sha256(name.encode()).hexdigest()[:10]}"
            together = _pool(cell, hosts, identity, of_class)
            pooled += [together] if together is not None else []
    return tuple(pooled)


def _pool(cell: _Cell, hosts: Sequence[_HostValues], identity: str, name: str) -> Series | None:
    """The series of these hosts together; None if they or their common commits are too few."""
    if len(hosts) < LEAST_HOSTS:
        return None
    values = _table(hosts, len(cell.known))
    # A host's clock may be wrong, so the middle one of all hosts orders the commits.
    times = [statistics.median_low(sorted(times)) for times in cell.times]
    order = sorted(range(len(times)), key=lambda at: (times[at], cell.known[at].sha))
    present = np.count_nonzero(~np.isnan(values), axis=0)
    order = [at for at in order if present[at] >= LEAST_HOSTS]
    if len(order) < min_values_to_detect():
        return None
    values = values[:, order]
    logs, errors, segments = _commit_effects(values)
    return replace(
        cell.series,
        host=identity,
        host_name=name,
        points=HistoryPoints(
            moments=[Moment(times[at], None, cell.known[at]) for at in order],
            values=array("d", np.exp(logs)),
            environment_keys=[(("hosts' environments", str(segment)),) for segment in segments],
            lows=array("d", np.exp(logs - NORMAL_REACH * errors)),
            highs=array("d", np.exp(logs + NORMAL_REACH * errors)),
        ),
    )


def _table(hosts: Sequence[_HostValues], commits: int) -> Array:
    """(rows, commits) logarithms, NaN where a row has no value; a row is a host's environment."""
    rows = []
    for host in hosts:
        for row in range(int(host.rows.max()) + 1):
            own = host.rows == row
            total = np.bincount(host.commits[own], host.logs[own], commits)
            number = np.bincount(host.commits[own], minlength=commits)
            rows.append(np.divide(total, number, where=number > 0, out=np.full(commits, math.nan)))
    return np.array(rows)


def _commit_effects(values: Array) -> tuple[Array, Array, list[int]]:
    """The level of each commit over all rows, its standard error, and its segment.

    A new segment begins where most rows are new, as after an update of every host: only a row that
    has values on both sides can compare two commits.

    Source: median polish, Tukey, Exploratory Data Analysis (1977), chapter 11: medians of rows
    and columns are subtracted in turns, so up to half of the hosts may do as they like.
    """
    is_present = ~np.isnan(values)
    segments: list[int] = []
    known = np.zeros(len(values), dtype=bool)
    for column in is_present.T:
        if segments and 2 * np.count_nonzero(known & column) >= np.count_nonzero(column):
            segments.append(segments[-1])
            known |= column
        else:
            segments.append(segments[-1] + 1 if segments else 0)
            known = column.copy()
    levels, errors = np.empty(values.shape[1]), np.empty(values.shape[1])
    for segment in range(segments[-1] + 1):
        columns = np.array(segments) == segment
        own = values[:, columns]
        own = own[np.any(~np.isnan(own), axis=1)]
        rows, effects = _median_polish(own)
        residuals = own - rows[:, None] - effects[None, :]
        spread = spread_of(residuals[~np.isnan(residuals)])
        number = np.count_nonzero(~np.isnan(own), axis=0)
        levels[columns] = effects + np.median(rows)
        errors[columns] = _MEDIAN_ERROR * spread / np.sqrt(number)
    return levels, errors, segments


def _median_polish(values: Array) -> tuple[Array, Array]:
    """The effects of rows and columns; each row and column has a value."""
    rows, columns = np.zeros(values.shape[0]), np.zeros(values.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for _ in range(_SWEEPS):
            rows = np.nanmedian(values - columns[None, :], axis=1)
            columns = np.nanmedian(values - rows[:, None], axis=0)
            columns -= np.median(columns)
    return rows, columns
