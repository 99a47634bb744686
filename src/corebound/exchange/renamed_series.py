"""Match stored series with series read now that have different names.

Only the current benchmarks.json names parameters and units. Series read with an older one have
other names; equal results show that they are the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from corebound.exchange.asv.series import in_order
from corebound.records.history import Series

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
    rest = zip(whole.points.moments, whole.points.figures, strict=True)
    for moment, figure in zip(part.points.moments, part.points.figures, strict=True):
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
        and whole.points.figures[:n].tobytes() == part.points.figures.tobytes()
        and whole.points.moments[:n] == part.points.moments
    )


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _scale(one: Series, other: Series) -> float:
    """The factor that converts a series' results for comparison with another's."""
    return _NS if other.unit == _TIME != one.unit else 1.0
