"""What was imported before and what is imported now, as one history."""

from __future__ import annotations

from collections.abc import Container, Iterable

from msgspec.structs import replace

from corebound.exchange.asv_points import dated, in_order, ordered, told_in
from corebound.exchange.renamed import under_one_name
from corebound.model.points import Moment, Points
from corebound.model.series import Series


def merged(
    kept: Iterable[Series], fresh: Iterable[Series], *, gone: Container[str] = ()
) -> tuple[Series, ...]:
    """All series of both, by id; of what both have, that which is fresh.

    A fresh point takes the place of those of the same moment; where all that is known of
    that is the commit's date, of those of the same commit. So importing the same again
    changes nothing.

    Args:
        kept: What was imported before.
        fresh: What is read now.
        gone: The benchmarks of which nothing but the names is known now.
    """
    kept, fresh = under_one_name([*each_once(kept)], [*each_once(fresh)], gone)
    by_id = {one.id: one for one in kept}
    # Most series share their moments, as they were kept.
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


def each_once(several: Iterable[Series]) -> Iterable[Series]:
    """Series of several files; what more than one of them tells of is one series."""
    by_id: dict[str, Series] = {}
    for one in several:
        before = by_id.get(one.id)
        by_id[one.id] = one if before is None else _joined(before, one)
    return by_id.values()


def _only_later(before: Points, now: Points, shas: Container[str]) -> bool:
    """Whether all points are new and go behind those there are, which stay as they are.

    Args:
        before: Those there are.
        now: The others, in order.
        shas: All commits that there were points of.
    """
    if in_order(now.moments[0]) <= in_order(before.moments[-1]):
        return False
    if any(moment.commit and moment.commit.sha in shas for moment in now.moments):
        return False
    # One that tells of more says what was so for those before it too.
    known = told_in(before.circumstances[-1]).keys()
    return all(told_in(each).keys() <= known for each in set(now.circumstances))


def _joined(before: Series, now: Series) -> Series:
    replaced = {_key(moment) for moment in now.points.moments}
    kept = [at for at, one in enumerate(before.points.moments) if _key(one) not in replaced]
    both = before.points.taken(kept).followed_by(now.points)
    return replace(now, points=dated(ordered(both)))


def _key(moment: Moment) -> str:
    commit = moment.commit
    return commit.sha if commit and commit.committed_at == moment.at else moment.at
