"""Store imported series beside the records, merged with earlier imports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.exchange.asv.series import dated, in_order, ordered, told_in
from corebound.exchange.renamed_series import under_one_name
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
