"""What was imported before and what is imported now, as one history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from corebound.exchange.asv_series import dated, in_order
from corebound.model.series import Point, Series


def merged(kept: Iterable[Series], fresh: Iterable[Series]) -> tuple[Series, ...]:
    """All series of both, by id; of what both have, that which is fresh.

    A fresh point takes the place of those of the same moment; where all that is known of
    that is the commit's date, of those of the same commit. So importing the same again
    changes nothing.
    """
    by_id = {one.id: one for one in kept}
    for one in fresh:
        before = by_id.get(one.id)
        by_id[one.id] = one if before is None else _joined(before, one)
    return tuple(by_id[id_] for id_ in sorted(by_id))


def _joined(before: Series, now: Series) -> Series:
    replaced = {_key(point) for point in now.points}
    points = [point for point in before.points if _key(point) not in replaced]
    return replace(now, points=dated(sorted([*points, *now.points], key=in_order)))


def _key(point: Point) -> str:
    commit = point.commit
    return commit.sha if commit and commit.committed_at == point.at else point.at
