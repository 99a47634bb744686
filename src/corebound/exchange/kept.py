"""Imported series, kept beside the records together with what was imported before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corebound.errors import InputError
from corebound.exchange.merging import merged
from corebound.model.series import Series
from corebound.store import codec, histories
from corebound.store.columns import Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A project's history after an import.

    Attributes:
        file: Where it is kept.
        series: How many series it has.
        points: How many points, and `figures` how many of them have one.
        added: How many points it did not have before.
        empty: How many series have no figure at all, and `reasons` why.
    """

    file: Path
    series: int
    points: int
    figures: int
    added: int
    empty: int
    reasons: tuple[str, ...]


def keep(project: str, fresh: Sequence[Series], records: Path) -> Kept:
    """Add series to a project's history; what it has already is not doubled.

    Raises:
        InputError: what was kept before cannot be read, or nothing can be written.
    """
    file = histories.file_of(project, records)
    before = _before(file)
    try:
        history = merged(before, fresh) if fresh or before is None else before
    except ValueError as error:
        raise _unreadable(file, error) from error
    # Nothing new leaves the file alone, and with it all that was made of it.
    if history is not before:
        histories.keep(project, history, records)
    return _counted(file, history, _points(before) if before else 0)


def _counted(file: Path, history: Columns, before: int) -> Kept:
    empty = [one for one in history.series if all(figure is None for figure in one.figures)]
    # What is at place -1 is no reason.
    missing = (*history.missing, None)
    reasons = {missing[one.missing[-1]] for one in empty if one.missing}
    points = _points(history)
    return Kept(
        file=file,
        series=len(history.series),
        points=points,
        figures=points - sum(one.figures.count(None) for one in history.series),
        added=points - before,
        empty=len(empty),
        reasons=tuple(sorted(reason for reason in reasons if reason)),
    )


def _points(history: Columns) -> int:
    return sum(len(one.moments) for one in history.series)


def _before(file: Path) -> Columns | None:
    try:
        return codec.decode_columns(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, codec.UnreadableError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> InputError:
    return InputError(
        what=f"what was imported before cannot be read: {error}.",
        where=str(file),
        mend="Delete it and import everything again.",
    )
