"""Store imported series beside the records, merged with earlier imports."""

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, structs
from msgspec.structs import replace

from corebound.errors import Fault, InputError
from corebound.exchange.measures import measure_of
from corebound.exchange.points import (
    complete_environments,
    deduplicate,
    identity_of,
    known_environment,
    merge_pair,
    moment_key,
)
from corebound.records import cache, history_files
from corebound.records.cache import CacheFile
from corebound.records.codec import UnreadableError
from corebound.records.history import HistoryPoints, Series, SharedColumns, reason_kind


def merge(
    stored: Iterable[Series], fresh: Iterable[Series], *, removed: Container[str] = ()
) -> tuple[Series, ...]:
    """Merge stored and new series by id; new data replaces old data.

    A new point replaces those of the same moment. If only the commit's date is known, it replaces
    those of the same commit. So importing the same data again changes nothing.

    Args:
        stored: Series from earlier imports.
        fresh: Series read now.
        removed: Benchmarks of which only the names are known now.
    """
    stored, fresh = unify_names([*deduplicate(stored)], [*deduplicate(fresh)], removed)
    by_id = {series.id: series for series in stored}
    # Stored series mostly share their moments.
    moments = {id(series.points.moments): series.points.moments for series in stored}
    shas = {moment.commit.sha for column in moments.values() for moment in column if moment.commit}
    shared = SharedColumns()
    for series in fresh:
        earlier = by_id.get(series.id)
        if earlier is None:
            by_id[series.id] = series
        elif _only_appends(earlier.points, series.points, shas):
            later = complete_environments(series.points)
            by_id[series.id] = replace(
                series, points=earlier.points.followed_by(later, shared=shared)
            )
        else:
            by_id[series.id] = merge_pair(earlier, series)
    return tuple(by_id[id_] for id_ in sorted(by_id))


def separate_units(
    stored: Iterable[Series], fresh: Iterable[Series], removed: Container[str], changes: list[Fault]
) -> tuple[Sequence[Series], Sequence[Series]]:
    """Give results of one benchmark that measure different things a series each.

    Units of one measure are converted to the latest one. Of several measures, the stored one, or
    else the first one, keeps the name. The unit of a removed benchmark is a guess, and stays.

    Returns:
        The stored series, and the new ones with distinct ids; `changes` gets a warning for each
        series that begins because a unit changed.
    """
    stored_by_id = {series.id: series for series in deduplicate(stored)}
    parts_by_id: dict[str, list[Series]] = {}
    for series in fresh:
        parts_by_id.setdefault(series.id, []).append(series)
    result: list[Series] = []
    for id_, parts in parts_by_id.items():
        known = [stored_by_id[id_]] if id_ in stored_by_id else []
        units = {(each.unit, each.more_is_better) for each in (*known, *parts)}
        if len(units) == 1 or parts[0].scenario in removed:
            result += parts
            continue
        parts.sort(key=lambda part: moment_key(part.points.moments[0]))
        first = parts[0]
        for earlier in known:
            del stored_by_id[id_]
            if points := _not_replaced(earlier, parts):
                first = stored_by_id[id_] = replace(earlier, points=points)
        for measure in dict.fromkeys(map(_measure, parts)):
            same = [part for part in parts if _measure(part) == measure]
            unit = max(same, key=lambda part: moment_key(part.points.moments[-1])).unit
            cell = first.cell if measure == _measure(first) else _cell_of(same[0], first)
            (merged,) = deduplicate(replace(_in_unit(part, unit), cell=cell) for part in same)
            if merged.id in stored_by_id:
                stored_by_id[merged.id] = _in_unit(stored_by_id[merged.id], unit)
            elif merged.id != id_:
                changes.append(_unit_change(first, merged))
            result.append(merged)
    return [*stored_by_id.values()], result


def _measure(series: Series) -> tuple[str, str]:
    direction = "more is better" if series.more_is_better else "less is better"
    return measure_of(series.unit).name, direction


def _not_replaced(stored: Series, parts: Sequence[Series]) -> HistoryPoints:
    """The stored points that the new series do not have only under another measure."""
    of_measure: dict[bool, set[str]] = {True: set(), False: set()}
    for part in parts:
        of_measure[_measure(part) == _measure(stored)].update(map(identity_of, part.points.moments))
    replaced = of_measure[False] - of_measure[True]
    moments = enumerate(stored.points.moments)
    return stored.points.select(at for at, moment in moments if identity_of(moment) not in replaced)


def _in_unit(series: Series, unit: str) -> Series:
    """A series in another unit of the same measure."""
    factor = measure_of(series.unit).scale / measure_of(unit).scale
    points = series.points if factor == 1 else series.points.scaled(factor)
    return replace(series, unit=unit, points=points)


def _cell_of(series: Series, first: Series) -> str:
    """The cell of a series that measures something else than the first one of its benchmark."""
    name, direction = _measure(series)
    words = f"{name} ({direction})" if name == _measure(first)[0] else name
    axis = f"unit={words.replace(',', ';')}"
    return axis if series.cell == "default" else f"{axis},{series.cell}"


def _unit_change(first: Series, other: Series) -> Fault:
    units = "; ".join(f"{series.unit}, {_measure(series)[1]}" for series in (first, other))
    fix = "Each is a series of its own."
    return Fault(file=first.id, line=None, what=f"its units do not convert: {units}.", fix=fix)


def _only_appends(existing: HistoryPoints, new: HistoryPoints, shas: Container[str]) -> bool:
    """Whether all points are new and follow the existing ones, which stay unchanged."""
    if moment_key(new.moments[0]) <= moment_key(existing.moments[-1]):
        return False
    if any(moment.commit and moment.commit.sha in shas for moment in new.moments):
        return False
    # A point with more known of its environment also completes those before it.
    known_names = known_environment(existing.environment_keys[-1]).keys()
    return all(known_environment(key).keys() <= known_names for key in set(new.environment_keys))


class HistoryCounts(Struct, frozen=True, kw_only=True):
    """How much a project's history has.

    Attributes:
        series: How many series it has.
        points: How many points it has; `values` counts those with a result.
        empty: How many series have no result.
        single: How many have only one result, which is not a history yet.
        reasons: Why points have no result, with counts, most frequent first.
    """

    series: int
    points: int
    values: int
    empty: int
    single: int
    reasons: tuple[tuple[str, int], ...]


class ImportSummary(HistoryCounts, frozen=True, kw_only=True):
    """The state of a project's history after an import.

    Attributes:
        added: How many points are new.
        unit_changes: Series that begin now, because a benchmark's unit changed.
    """

    file: Path
    added: int
    unit_changes: tuple[Fault, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `--json` of the imports prints it."""
        return {
            "file": str(self.file),
            "series": self.series,
            "points": self.points,
            "figures": self.values,
            "added": self.added,
            "missing": dict(self.reasons),
            "empty": self.empty,
            "single": self.single,
        }


def keep(
    project: str,
    fresh: Sequence[Series],
    records: Path,
    *,
    rename: Callable[[Iterable[Series]], Iterable[Series]] = iter,
    removed: Container[str] = (),
) -> ImportSummary:
    """Add series to a project's history without duplicating existing points.

    Args:
        fresh: Series read now.
        records: The folder that holds the histories.
        rename: Renames stored series to match `fresh`; several may get the same name.
        removed: Benchmarks of which only the names are known now, named as in `fresh`.

    Raises:
        InputError: The stored history cannot be read, or the new one cannot be written.
    """
    file = history_files.file_of(project, records)
    # Without new data the file stays untouched, and so does everything derived from it.
    if not fresh:
        with suppress(OSError):
            if (known := _counts_file(file, records).load()) is not None:
                return ImportSummary(file=file, added=0, **structs.asdict(known))
    stored = _read_stored(file)
    unit_changes: list[Fault] = []
    if not fresh and stored is not None:
        history, before = stored, _points(stored)
    else:
        before = _points(stored or ())
        separated = separate_units(rename(stored or ()), fresh, removed, unit_changes)
        history = merge(*separated, removed=removed)
        history_files.keep(project, history, records)
    counts = _count(history)
    _counts_file(file, records).keep(counts)
    return ImportSummary(
        file=file,
        added=counts.points - before,
        unit_changes=tuple(unit_changes),
        **structs.asdict(counts),
    )


def _counts_file(file: Path, records: Path) -> CacheFile[HistoryCounts]:
    version = f"{cache.code('exchange', 'records')} {cache.file_digest(file)}"
    return CacheFile(HistoryCounts, records, f"counts-{file.stem}", version=version)


def _count(history: Sequence[Series]) -> HistoryCounts:
    value_counts = [series.points.value_count for series in history]
    # Points of a stored history are read from its file.
    lacking = (series for series in history if series.points.value_count < len(series.points))
    reasons = Counter(reason for series in lacking for reason in series.points.missing if reason)
    kinds: Counter[str] = Counter()
    for reason, count in reasons.items():
        kinds[reason_kind(reason)] += count
    return HistoryCounts(
        series=len(history),
        points=_points(history),
        values=sum(value_counts),
        empty=value_counts.count(0),
        single=value_counts.count(1),
        reasons=tuple(kinds.most_common()),
    )


def _points(history: Sequence[Series]) -> int:
    return sum(len(series.points) for series in history)


def _read_stored(file: Path) -> tuple[Series, ...] | None:
    try:
        return history_files.read(file)
    except FileNotFoundError:
        return None
    except (OSError, UnreadableError) as error:
        raise InputError(
            what=f"the earlier import cannot be read: {error}.",
            where=str(file),
            fix="Delete the file and import everything again.",
        ) from error


# A machine, a benchmark and an environment.
_Environment: TypeAlias = tuple[str, str, str]
_ENVIRONMENT = "environment="
_NAME = re.compile(r"(^|,)[^,=]*=")
# Seconds are stored as nanoseconds; values of an unknown unit stay unchanged.
_TIME, _NS = "ns", 1e9


def unify_names(
    stored: Sequence[Series], fresh: Sequence[Series], removed: Container[str]
) -> tuple[Sequence[Series], Sequence[Series]]:
    """Give each series one name: the new one, as if everything were imported at once.

    A stored and a new series are the same if the new one contains all stored points with equal
    results. A removed benchmark keeps its stored names and unit, unless the new series has
    further points, because no other source has them.

    Args:
        stored: Series from earlier imports, with unique ids.
        fresh: Series read now, with unique ids.
        removed: The benchmarks that benchmarks.json lacks.

    Returns:
        The stored series that no new one replaces, and all new ones; those of removed benchmarks
        have the stored names.
    """
    stored_by_id = {series.id: series for series in stored}
    fresh_by_id = {series.id: series for series in fresh}
    matched = {
        id_: stored_by_id[id_]
        for id_, series in fresh_by_id.items()
        if id_ in stored_by_id and series.scenario in removed
    }
    new = [series for id_, series in fresh_by_id.items() if id_ not in stored_by_id]
    if new:
        missing = (series for id_, series in stored_by_id.items() if id_ not in fresh_by_id)
        matched.update(_match(missing, new, removed))
    # A benchmark missing from benchmarks.json may still have new measurements.
    unchanged = {
        id_: series
        for id_, series in matched.items()
        if fresh_by_id[id_].scenario in removed and _contains(series, fresh_by_id[id_])
    }
    replaced = {
        series.id for id_, series in matched.items() if id_ not in unchanged
    } - fresh_by_id.keys()
    return (
        [series for id_, series in stored_by_id.items() if id_ not in replaced],
        [
            _with_stored_names(unchanged[id_], series) if id_ in unchanged else series
            for id_, series in fresh_by_id.items()
        ],
    )


def _with_stored_names(stored: Series, new: Series) -> Series:
    """A new series, with the names it had while its benchmark was known."""
    return replace(
        new,
        cell=stored.cell,
        title=stored.title,
        unit=stored.unit,
        code=stored.code,
        more_is_better=stored.more_is_better,
        points=new.points if _scale(new, stored) == _scale(stored, new) else stored.points,
    )


def _match(
    missing: Iterable[Series], new: Iterable[Series], removed: Container[str]
) -> Iterator[tuple[str, Series]]:
    """Yield the id of each new series that matches a missing one, with that series."""
    new_by_environment: dict[_Environment, list[Series]] = {}
    for series in new:
        new_by_environment.setdefault(_environment_of(series), []).append(series)
    stored: dict[_Environment, list[Series]] = {}
    for series in missing:
        environment = _environment_of(series)
        if environment in new_by_environment:
            stored.setdefault(environment, []).append(series)
    for environment, candidates in stored.items():
        yield from _match_environment(
            candidates, new_by_environment[environment], is_removed=environment[1] in removed
        )


def _match_environment(
    stored: Iterable[Series], fresh: Sequence[Series], *, is_removed: bool
) -> Iterator[tuple[str, Series]]:
    """Match within one environment: first by equal parameter values, as results can coincide."""
    by_values: dict[str, list[Series]] = {}
    for new_series in fresh:
        by_values.setdefault(_values(new_series), []).append(new_series)
    unmatched = {new_series.id: new_series for new_series in fresh}
    remaining = []
    for candidate in stored:
        same_values = [
            new_series
            for new_series in by_values.get(_values(candidate), ())
            if new_series.id in unmatched
        ]
        match = _first_match(candidate, same_values, is_removed=is_removed)
        if match is None:
            remaining.append(candidate)
        else:
            del unmatched[match.id]
            yield match.id, candidate
    # Longest first: a series with many points fits into the fewest others.
    for candidate in sorted(remaining, key=lambda series: -len(series.points)):
        match = _first_match(candidate, unmatched.values(), is_removed=is_removed)
        if match is not None:
            del unmatched[match.id]
            yield match.id, candidate


def _first_match(stored: Series, fresh: Iterable[Series], *, is_removed: bool) -> Series | None:
    """The first new series that matches the stored one."""
    return next(
        (new for new in fresh if _contains(new, stored) or (is_removed and _contains(stored, new))),
        None,
    )


def _environment_of(series: Series) -> _Environment:
    # A key without its environment is compared only with other keys of that kind.
    return series.host, series.scenario, series.cell.rpartition(_ENVIRONMENT)[2]


def _values(series: Series) -> str:
    """The parameter values without names; text within a value that looks like a name goes too."""
    return _NAME.sub(r"\1", series.cell.rpartition(_ENVIRONMENT)[0])


def _contains(complete: Series, part: Series) -> bool:
    """Whether the whole contains all points of the part: the same commits with equal results."""
    if len(part.points) > len(complete.points):
        return False
    whole_scale, part_scale = _scale(complete, part), _scale(part, complete)
    if whole_scale == part_scale and _starts_with(complete, part):
        return True
    # Both are sorted, so one pass over the whole is enough.
    rest = zip(complete.points.moments, complete.points.values, strict=True)
    for moment, value in zip(part.points.moments, part.points.values, strict=True):
        if moment.commit is None:
            return False
        key = moment_key(moment)
        match = next(
            (
                (candidate, candidate_value)
                for candidate, candidate_value in rest
                if moment_key(candidate) >= key
            ),
            None,
        )
        if match is None or moment_key(match[0]) != key:
            return False
        own, others = match[1] * whole_scale, value * part_scale
        if own != others and not (math.isnan(own) and math.isnan(others)):
            return False
    return True


def _starts_with(complete: Series, part: Series) -> bool:
    """Whether the whole begins with exactly the part: a fast check for the most common case."""
    n = len(part.points)
    return (
        part.points.moments[0].commit is not None
        and complete.points.values[:n].tobytes() == part.points.values.tobytes()
        and complete.points.moments[:n] == part.points.moments
    )


def _scale(series: Series, other: Series) -> float:
    """The factor that converts a series' results for comparison with another's."""
    return _NS if other.unit == _TIME != series.unit else 1.0
