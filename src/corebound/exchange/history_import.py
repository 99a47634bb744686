"""Store imported series beside the records, merged with earlier imports."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.exchange.asv.series import dated, in_order, ordered, told_in
from corebound.records import history_files
from corebound.records.codec import UnreadableError
from corebound.records.history import HistoryPoints, Moment, Series, kind_of


def merged(
    kept: Iterable[Series], fresh: Iterable[Series], *, gone: Container[str] = ()
) -> tuple[Series, ...]:
    """Merge stored and new series by id; new data replaces old data.

    A new point replaces those of the same moment. If only the commit's date is known, it replaces
    those of the same commit. So importing the same data again changes nothing.

    Args:
        kept: Series from earlier imports.
        fresh: Series read now.
        gone: Benchmarks of which only the names are known now.
    """
    kept, fresh = under_one_name([*deduplicate(kept)], [*deduplicate(fresh)], gone)
    by_id = {one.id: one for one in kept}
    # Stored series mostly share their moments.
    moments = {id(one.points.moments): one.points.moments for one in kept}
    shas = {one.commit.sha for column in moments.values() for one in column if one.commit}
    for one in fresh:
        before = by_id.get(one.id)
        if before is None:
            by_id[one.id] = one
        elif _only_later(before.points, one.points, shas):
            by_id[one.id] = replace(one, points=before.points.followed_by(dated(one.points)))
        else:
            by_id[one.id] = _joined(before, one)
    return tuple(by_id[id_] for id_ in sorted(by_id))


def deduplicate(several: Iterable[Series]) -> Iterable[Series]:
    """Merge series of several files that describe the same series."""
    by_id: dict[str, Series] = {}
    for one in several:
        before = by_id.get(one.id)
        by_id[one.id] = one if before is None else _joined(before, one)
    return by_id.values()


def _only_later(before: HistoryPoints, now: HistoryPoints, shas: Container[str]) -> bool:
    """Whether all points are new and follow the existing ones, which stay unchanged.

    Args:
        before: The existing points.
        now: The new points, in order.
        shas: All commits that already have points.
    """
    if in_order(now.moments[0]) <= in_order(before.moments[-1]):
        return False
    if any(moment.commit and moment.commit.sha in shas for moment in now.moments):
        return False
    # A point with more circumstances also completes those before it.
    known = told_in(before.environment_keys[-1]).keys()
    return all(told_in(each).keys() <= known for each in set(now.environment_keys))


def _joined(before: Series, now: Series) -> Series:
    replaced = {_key(moment) for moment in now.points.moments}
    kept = [at for at, one in enumerate(before.points.moments) if _key(one) not in replaced]
    both = before.points.select(kept).followed_by(now.points)
    return replace(now, points=dated(ordered(both)))


def _key(moment: Moment) -> str:
    commit = moment.commit
    return commit.sha if commit and commit.committed_at == moment.at else moment.at


class ImportSummary(Struct, frozen=True, kw_only=True):
    """The state of a project's history after an import.

    Attributes:
        file: The history's file.
        series: How many series it has.
        points: How many points it has; `figures` counts those with a result.
        added: How many points are new.
        empty: How many series have no result.
        single: How many have only one result, which is not a history yet.
        reasons: Why points have no result, with counts, most frequent first.
    """

    file: Path
    series: int
    points: int
    figures: int
    added: int
    empty: int
    single: int
    reasons: tuple[tuple[str, int], ...]


def keep(
    project: str,
    fresh: Sequence[Series],
    records: Path,
    *,
    as_named: Callable[[Iterable[Series]], Iterable[Series]] = iter,
    gone: Container[str] = (),
) -> ImportSummary:
    """Add series to a project's history without duplicating existing points.

    Args:
        project: The project's name.
        fresh: Series read now.
        records: The folder that holds the histories.
        as_named: Renames stored series to match `fresh`; several may get the same name.
        gone: Benchmarks of which only the names are known now, named as in `fresh`.

    Raises:
        InputError: The stored history cannot be read, or the new one cannot be written.
    """
    file = history_files.file_of(project, records)
    before = _before(file)
    # Without new data the file stays untouched, and so does everything derived from it.
    if not fresh and before is not None:
        return _counted(file, before, before)
    history = merged([*as_named(before or ())], fresh, gone=gone)
    history_files.keep(project, history, records)
    return _counted(file, history, before or ())


def _counted(file: Path, history: Sequence[Series], before: Sequence[Series]) -> ImportSummary:
    figures = [len(one.points.measured) for one in history]
    points = _points(history)
    return ImportSummary(
        file=file,
        series=len(history),
        points=points,
        figures=sum(figures),
        added=points - _points(before),
        empty=figures.count(0),
        single=figures.count(1),
        reasons=_reasons(history),
    )


def _reasons(history: Sequence[Series]) -> tuple[tuple[str, int], ...]:
    told = Counter(reason for one in history for reason in one.points.missing if reason)
    kinds: Counter[str] = Counter()
    for reason, count in told.items():
        kinds[kind_of(reason)] += count
    return tuple(kinds.most_common())


def _points(history: Sequence[Series]) -> int:
    return sum(len(one.points) for one in history)


def _before(file: Path) -> tuple[Series, ...] | None:
    try:
        return history_files.read(file)
    except FileNotFoundError:
        return None
    except (OSError, UnreadableError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> InputError:
    return InputError(
        what=f"what was imported before cannot be read: {error}.",
        where=str(file),
        fix="Delete it and import everything again.",
    )


# A machine, a benchmark and an environment.
_Place: TypeAlias = tuple[str, str, str]
_ENVIRONMENT = "environment="
_NAME = re.compile(r"(^|,)[^,=]*=")
# Seconds are stored as nanoseconds; values of an unknown unit stay unchanged.
_TIME, _NS = "ns", 1e9


class OneName(NamedTuple):
    """Stored and new series, without the same results under two names.

    Attributes:
        kept: The stored series that no new one replaces.
        fresh: All new series; those of removed benchmarks have the stored names.
    """

    kept: Sequence[Series]
    fresh: Sequence[Series]


def under_one_name(
    kept: Sequence[Series], fresh: Sequence[Series], gone: Container[str]
) -> OneName:
    """Give each series one name: the new one, as if everything were imported at once.

    A stored and a new series are the same if the new one contains all stored points with equal
    results. A removed benchmark keeps its stored names and unit, unless the new series has
    further points, because no other source has them.

    Args:
        kept: Series from earlier imports, with unique ids.
        fresh: Series read now, with unique ids.
        gone: The benchmarks that benchmarks.json lacks.
    """
    before = {one.id: one for one in kept}
    now = {one.id: one for one in fresh}
    named = {id_: before[id_] for id_, one in now.items() if id_ in before and one.scenario in gone}
    new = [one for id_, one in now.items() if id_ not in before]
    if new:
        missing = (one for id_, one in before.items() if id_ not in now)
        named.update(_pairs(missing, new, gone))
    # A benchmark missing from benchmarks.json may still have new measurements.
    stay = {
        id_: one
        for id_, one in named.items()
        if now[id_].scenario in gone and _holds(one, now[id_])
    }
    replaced = {one.id for id_, one in named.items() if id_ not in stay} - now.keys()
    return OneName(
        kept=[one for id_, one in before.items() if id_ not in replaced],
        fresh=[_as(stay[id_], one) if id_ in stay else one for id_, one in now.items()],
    )


def _as(before: Series, now: Series) -> Series:
    """A new series, with the names it had while its benchmark was known."""
    return replace(
        now,
        cell=before.cell,
        title=before.title,
        unit=before.unit,
        code=before.code,
        more_is_better=before.more_is_better,
        points=now.points if _scale(now, before) == _scale(before, now) else before.points,
    )


def _pairs(
    missing: Iterable[Series], new: Iterable[Series], gone: Container[str]
) -> Iterator[tuple[str, Series]]:
    """Yield the id of each new series that matches a missing one, with that series."""
    fresh: dict[_Place, list[Series]] = {}
    for one in new:
        fresh.setdefault(_place(one), []).append(one)
    kept: dict[_Place, list[Series]] = {}
    for one in missing:
        place = _place(one)
        if place in fresh:
            kept.setdefault(place, []).append(one)
    for place, several in kept.items():
        yield from _pairs_of_one_place(several, fresh[place], is_gone=place[1] in gone)


def _pairs_of_one_place(
    kept: Iterable[Series], fresh: Sequence[Series], *, is_gone: bool
) -> Iterator[tuple[str, Series]]:
    """Match within one environment: first by equal parameter values, as results can coincide."""
    by_values: dict[str, list[Series]] = {}
    for now in fresh:
        by_values.setdefault(_values(now), []).append(now)
    waiting = {now.id: now for now in fresh}
    others = []
    for before in kept:
        alike = [now for now in by_values.get(_values(before), ()) if now.id in waiting]
        found = _first(before, alike, is_gone=is_gone)
        if found is None:
            others.append(before)
        else:
            del waiting[found.id]
            yield found.id, before
    # Longest first: a series with many points fits into the fewest others.
    for before in sorted(others, key=lambda one: -len(one.points)):
        found = _first(before, waiting.values(), is_gone=is_gone)
        if found is not None:
            del waiting[found.id]
            yield found.id, before


def _first(before: Series, fresh: Iterable[Series], *, is_gone: bool) -> Series | None:
    """The first new series that matches the stored one."""
    return next(
        (now for now in fresh if _holds(now, before) or (is_gone and _holds(before, now))), None
    )


def _place(one: Series) -> _Place:
    # A key without its environment is compared only with other keys of that kind.
    return one.host, one.scenario, one.cell.rpartition(_ENVIRONMENT)[2]


def _values(one: Series) -> str:
    """The parameter values without names; text within a value that looks like a name goes too."""
    return _NAME.sub(r"\1", one.cell.rpartition(_ENVIRONMENT)[0])


def _holds(whole: Series, part: Series) -> bool:
    """Whether the whole contains all points of the part: the same commits with equal results."""
    if len(part.points) > len(whole.points):
        return False
    own, its = _scale(whole, part), _scale(part, whole)
    if own == its and _begins_with(whole, part):
        return True
    # Both are sorted, so one pass over the whole is enough.
    rest = zip(whole.points.moments, whole.points.values, strict=True)
    for moment, figure in zip(part.points.moments, part.points.values, strict=True):
        if moment.commit is None:
            return False
        sought = in_order(moment)
        found = next(((when, each) for when, each in rest if in_order(when) >= sought), None)
        if found is None or in_order(found[0]) != sought:
            return False
        if not _equal(found[1] * own, figure * its):
            return False
    return True


def _begins_with(whole: Series, part: Series) -> bool:
    """Whether the whole begins with exactly the part: a fast check for the most common case."""
    n = len(part.points)
    return (
        part.points.moments[0].commit is not None
        and whole.points.values[:n].tobytes() == part.points.values.tobytes()
        and whole.points.moments[:n] == part.points.moments
    )


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _scale(one: Series, other: Series) -> float:
    """The factor that converts a series' results for comparison with another's."""
    return _NS if other.unit == _TIME != one.unit else 1.0
