"""The points of imported series: their order, one for each moment, and complete environments."""

import math
import operator
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from corebound.records.history import EnvironmentKey, HistoryPoints, Moment, Series

# The part of an environment that holds the version of a benchmark.
VERSION = "benchmark"


def moment_key(moment: Moment) -> tuple[str, str]:
    """The sort key for points of imported histories."""
    return moment.at, moment.commit.sha if moment.commit else ""


def sort_points(points: HistoryPoints) -> HistoryPoints:
    """Sort points and keep one for each commit: the last with a result, else the last."""
    keys = [moment_key(moment) for moment in points.moments]
    latest = dict(zip(keys, range(len(keys)), strict=True))
    if len(latest) < len(keys):
        with_value = (at for at, value in enumerate(points.values) if not math.isnan(value))
        latest.update((keys[at], at) for at in with_value)
    return points.select(latest[key] for key in sorted(latest))


def complete_environments(points: HistoryPoints) -> HistoryPoints:
    """Complete missing parts of environments from the next point that has them.

    Old files of asv lack some parts, such as the version of a benchmark or the number
    of CPUs. Their absence does not mean a change.
    """
    return points.with_environment_keys(complete_keys(points.environment_keys))


def complete_keys(column: Sequence[EnvironmentKey]) -> tuple[EnvironmentKey, ...]:
    """The same for the column of environments alone."""
    result: list[EnvironmentKey] = []
    later: dict[str, str] = {}
    previous: EnvironmentKey | None = None
    completed: EnvironmentKey = ()
    for key in reversed(column):
        # Most points share their environment with the previous one.
        if key is not previous:
            previous = key
            current = dict(previous)
            later |= known_environment(previous)
            # In a fixed order, because another order would count as another environment.
            names = sorted(later.keys() | current, key=lambda name: (name == VERSION, name))
            completed = tuple((name, later.get(name, "")) for name in names)
            completed = previous if completed == previous else completed
        result.append(completed)
    result.reverse()
    # A complete column stays the same object, because series share it.
    return tuple(column if all(map(operator.is_, column, result)) else result)


def known_environment(environment_key: EnvironmentKey) -> dict[str, str]:
    """The parts of an environment that are known."""
    return {name: value for name, value in environment_key if value}


def deduplicate(all_series: Iterable[Series]) -> Iterable[Series]:
    """Merge series of several files that describe the same series."""
    by_id: dict[str, Series] = {}
    for series in all_series:
        earlier = by_id.get(series.id)
        by_id[series.id] = series if earlier is None else merge_pair(earlier, series)
    return by_id.values()


def merge_pair(stored: Series, new: Series) -> Series:
    """Add the points of a newer series, which replace those of the same moments."""
    replaced = {identity_of(moment) for moment in new.points.moments}
    indices = [
        index
        for index, moment in enumerate(stored.points.moments)
        if identity_of(moment) not in replaced
    ]
    points = stored.points.select(indices).followed_by(new.points)
    return replace(new, points=complete_environments(sort_points(points)))


def identity_of(moment: Moment) -> str:
    """What a newer point must have in common with one that it replaces: the commit or the date."""
    commit = moment.commit
    return commit.sha if commit and commit.committed_at == moment.at else moment.at
