"""What was imported before and what is imported now, as one history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from corebound.exchange.asv_series import dated, in_order, version_of
from corebound.model.series import Point, Series
from corebound.store.columns import Column, Columns, Opened, Tables


def merged(kept: Columns | None, fresh: Iterable[Series]) -> Columns:
    """All series of both, by id; of what both have, that which is fresh.

    A fresh point takes the place of those of the same moment; where all that is known of
    that is the commit's date, of those of the same commit. So importing the same again
    changes nothing.

    Raises:
        ValueError: what was kept does not fit together.
    """
    tables = Tables(kept)
    opened = Opened(kept) if kept else None
    by_id = {one.about.id: one for one in kept.series} if kept else {}
    for one in _each_once(fresh):
        before = by_id.get(one.id)
        if opened is None or before is None:
            by_id[one.id] = tables.column(one)
        elif _only_later(opened, before, one):
            by_id[one.id] = tables.longer(before, replace(one, points=dated(one.points)))
        else:
            by_id[one.id] = tables.column(_joined(opened.series(before), one))
    return tables.file([by_id[id_] for id_ in sorted(by_id)])


def _each_once(fresh: Iterable[Series]) -> Iterable[Series]:
    """Series of several files; what more than one of them tells of is one series."""
    by_id: dict[str, Series] = {}
    for one in fresh:
        before = by_id.get(one.id)
        by_id[one.id] = one if before is None else _joined(before, one)
    return by_id.values()


def _only_later(opened: Opened, before: Column, now: Series) -> bool:
    """Whether all points are new and go behind those there are, which stay as they are."""
    at, commit, circumstances = opened.last(before)
    first = now.points[0]
    if in_order(first) <= (at, commit.sha if commit else ""):
        return False
    if any(point.commit and point.commit.sha in opened.shas for point in now.points):
        return False
    # One that tells its version says of which those before it are that do not.
    return bool(version_of(circumstances)) or not any(
        version_of(point.circumstances) for point in now.points
    )


def _joined(before: Series, now: Series) -> Series:
    replaced = {_key(point) for point in now.points}
    points = [point for point in before.points if _key(point) not in replaced]
    return replace(now, points=dated(sorted([*points, *now.points], key=in_order)))


def _key(point: Point) -> str:
    commit = point.commit
    return commit.sha if commit and commit.committed_at == point.at else point.at
