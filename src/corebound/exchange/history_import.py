"""Imported series, kept beside the records together with what was imported before."""

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
    """All series of both, by id; of what both have, that which is fresh.

    A fresh point takes the place of those of the same moment; where all that is known of
    that is the commit's date, of those of the same commit. So importing the same again
    changes nothing.

    Args:
        kept: What was imported before.
        fresh: What is read now.
        gone: The benchmarks of which nothing but the names is known now.
    """
    kept, fresh = under_one_name([*deduplicate(kept)], [*deduplicate(fresh)], gone)
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


def deduplicate(several: Iterable[Series]) -> Iterable[Series]:
    """Series of several files; what more than one of them tells of is one series."""
    by_id: dict[str, Series] = {}
    for one in several:
        before = by_id.get(one.id)
        by_id[one.id] = one if before is None else _joined(before, one)
    return by_id.values()


def _only_later(before: HistoryPoints, now: HistoryPoints, shas: Container[str]) -> bool:
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


class ImportSummary(Struct, frozen=True, kw_only=True):
    """A project's history after an import.

    Attributes:
        file: Where it is kept.
        series: How many series it has.
        points: How many points, and `figures` how many of them have one.
        added: How many points it did not have before.
        empty: How many series have no figure at all.
        single: How many have one, which is no history yet.
        reasons: Why points have no figure, and how many of them, most first.
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
    """Add series to a project's history; what it has already is not doubled.

    Args:
        project: Its name.
        fresh: What was read now.
        records: Where histories are kept.
        as_named: Gives what was kept before the names that `fresh` has; several may get one.
        gone: The benchmarks of which nothing but the names is known now, as `fresh` has them.

    Raises:
        InputError: what was kept before cannot be read, or nothing can be written.
    """
    file = history_files.file_of(project, records)
    before = _before(file)
    # Nothing new leaves the file alone, and with it all that was made of it.
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
        mend="Delete it and import everything again.",
    )
