"""Imported histories: the series of another tool, a file a project, beside the runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from corebound.errors import Fault
from corebound.model.series import Series
from corebound.store import cache, documents, series_lines, whole


def file_of(project: str, records: Path) -> Path:
    """Where a project's series are kept, whatever characters its name has."""
    return documents.file_in(_folder_of(records), project.encode())


def _folder_of(records: Path) -> Path:
    return records / "histories"


def keep(project: str, series: Sequence[Series], records: Path) -> Path:
    """Keep a project's series in place of those that were kept before.

    Returns:
        The file they are kept in, which appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    return documents.keep(
        series_lines.encode(series), file_of(project, records), what="the history"
    )


def sources(projects: Iterable[str], records: Path) -> dict[str, str]:
    """For each project whose history was kept a hash of the file that it is read from."""
    found = {}
    for project in projects:
        with contextlib.suppress(OSError):
            found[project] = cache.file_digest(file_of(project, records))
    return found


def read(file: Path) -> tuple[Series, ...]:
    """The series of one project.

    Raises:
        OSError: the file cannot be read.
        codec.UnreadableError: it holds none, is damaged, or is of a newer corebound.
    """
    with whole.opened(file) as lines:
        return series_lines.decode(lines)


def read_all(records: Path) -> tuple[tuple[Series, ...], tuple[Fault, ...]]:
    """Every series that was kept, by id, and the files that hold none."""
    found, faults = documents.read_all(
        _folder_of(records),
        series_lines.decode,
        what="this history",
        mend="Delete it and import the history again.",
    )
    series = (one for project in found for one in project)
    return tuple(sorted(series, key=lambda one: one.id)), faults
