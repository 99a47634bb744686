"""Which series that was kept and which that is read now are one, under two names.

Only today's benchmarks.json names parameters and units. What was read by an older one has
other names, and its figures tell that it is the same.
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
# Seconds are kept as nanoseconds; those of an unknown unit stay as they are.
_TIME, _NS = "ns", 1e9


class OneName(NamedTuple):
    """What was kept and what is fresh, without the same figures under two names.

    Attributes:
        kept: Without those that fresh ones take the place of.
        fresh: All; those of benchmarks that are gone have the names that were kept.
    """

    kept: Sequence[Series]
    fresh: Sequence[Series]


def under_one_name(
    kept: Sequence[Series], fresh: Sequence[Series], gone: Container[str]
) -> OneName:
    """Have each series under one name: the fresh one, as importing all at once has it.

    A kept one and a fresh one are the same where all points of the kept one are in the fresh
    one, figure by figure. Of a benchmark that is gone the names and the unit that were kept
    stay where the fresh one has no point besides, for nothing else tells them.

    Args:
        kept: What was imported before, one of each id.
        fresh: What is read now, one of each id.
        gone: The benchmarks that benchmarks.json does not have.
    """
    before = {one.id: one for one in kept}
    now = {one.id: one for one in fresh}
    named = {id_: before[id_] for id_, one in now.items() if id_ in before and one.scenario in gone}
    new = [one for id_, one in now.items() if id_ not in before]
    if new:
        missing = (one for id_, one in before.items() if id_ not in now)
        named.update(_pairs(missing, new, gone))
    # A benchmark that is gone may have been measured again all the same.
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
    """What is read now, as it was called when its benchmark was known."""
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
    """Ids of new series, each with the one of those missing that it is, where it is one."""
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
    """The same in one environment: first those of the same values, for figures may be alike."""
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
    # Those of the most points are in the fewest.
    for before in sorted(others, key=lambda one: -len(one.points)):
        found = _first(before, waiting.values(), is_gone=is_gone)
        if found is not None:
            del waiting[found.id]
            yield found.id, before


def _first(before: Series, fresh: Iterable[Series], *, is_gone: bool) -> Series | None:
    """The first that is the one that was kept."""
    return next(
        (now for now in fresh if _holds(now, before) or (is_gone and _holds(before, now))), None
    )


def _place(one: Series) -> _Place:
    # A key that does not tell its environment is alone with those of the same.
    return one.host, one.scenario, one.cell.rpartition(_ENVIRONMENT)[2]


def _values(one: Series) -> str:
    """The values of its parameters, without names; a name within a value goes as well."""
    return _NAME.sub(r"\1", one.cell.rpartition(_ENVIRONMENT)[0])


def _holds(whole: Series, part: Series) -> bool:
    """Whether all points of a part are in the whole: the same commits with the same figures."""
    if len(part.points) > len(whole.points):
        return False
    own, its = _scale(whole, part), _scale(part, whole)
    if own == its and _begins_with(whole, part):
        return True
    # Both are in order, so one walk along the whole finds all.
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
    """Whether a part is the whole's beginning to the bit, as most are: it is soon seen."""
    n = len(part.points)
    return (
        part.points.moments[0].commit is not None
        and whole.points.figures[:n].tobytes() == part.points.figures.tobytes()
        and whole.points.moments[:n] == part.points.moments
    )


def _equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _scale(one: Series, other: Series) -> float:
    """What its figures are multiplied by to be compared with another's."""
    return _NS if other.unit == _TIME != one.unit else 1.0
