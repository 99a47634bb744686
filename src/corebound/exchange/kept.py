"""Imported series, kept beside the records together with what was imported before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError
from corebound.exchange.merging import merged
from corebound.model.missing import kind_of
from corebound.model.series import Series
from corebound.store import histories
from corebound.store.codec import UnreadableError


class Kept(Struct, frozen=True, kw_only=True):
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
) -> Kept:
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
    file = histories.file_of(project, records)
    before = _before(file)
    # Nothing new leaves the file alone, and with it all that was made of it.
    if not fresh and before is not None:
        return _counted(file, before, before)
    history = merged([*as_named(before or ())], fresh, gone=gone)
    histories.keep(project, history, records)
    return _counted(file, history, before or ())


def _counted(file: Path, history: Sequence[Series], before: Sequence[Series]) -> Kept:
    figures = [len(one.points.measured) for one in history]
    points = _points(history)
    return Kept(
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
        return histories.read(file)
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
