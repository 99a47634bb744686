"""Imported series, kept beside the records together with what was imported before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corebound.errors import InputError
from corebound.exchange.merging import merged
from corebound.model.series import Series
from corebound.store import codec, histories


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A project's history after an import.

    Attributes:
        file: Where it is kept.
        series: All of it, by id.
        added: How many points it did not have before.
    """

    file: Path
    series: tuple[Series, ...]
    added: int


def keep(project: str, fresh: Sequence[Series], records: Path) -> Kept:
    """Add series to a project's history; what it has already is not doubled.

    Raises:
        InputError: what was kept before cannot be read, or nothing can be written.
    """
    before = _before(histories.file_of(project, records))
    series = merged(before, fresh)
    return Kept(
        file=histories.keep(project, series, records),
        series=series,
        added=_points(series) - _points(before),
    )


def _points(series: Sequence[Series]) -> int:
    return sum(len(one.points) for one in series)


def _before(file: Path) -> tuple[Series, ...]:
    try:
        return codec.decode_series(file.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, codec.UnreadableError) as error:
        raise InputError(
            what=f"what was imported before cannot be read: {error}.",
            where=str(file),
            mend="Delete it and import everything again.",
        ) from error
