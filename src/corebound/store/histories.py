"""Imported histories: the series of another tool, a file a project, beside the runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from corebound.errors import Fault
from corebound.model.series import Series
from corebound.store import cache, codec, documents
from corebound.store.columns import Columns


def file_of(project: str, records: Path) -> Path:
    """Where a project's series are kept, whatever characters its name has."""
    return documents.file_in(_folder_of(records), project.encode())


def _folder_of(records: Path) -> Path:
    return records / "histories"


def keep(project: str, series: Columns, records: Path) -> Path:
    """Keep a project's series in place of those that were kept before.

    Returns:
        The file they are kept in, which appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    file = file_of(project, records)
    return documents.keep(codec.encode_document(series), file, what="the history")


def sources(projects: Iterable[str], records: Path) -> dict[str, str]:
    """For each project whose history was kept a hash of the file that it is read from."""
    found = {}
    for project in projects:
        with contextlib.suppress(OSError):
            found[project] = cache.digest(file_of(project, records).read_bytes())
    return found


def read_all(records: Path) -> tuple[tuple[Series, ...], tuple[Fault, ...]]:
    """Every series that was kept, by id, and the files that hold none."""
    found, faults = documents.read_all(
        _folder_of(records),
        codec.decode_series,
        what="this history",
        mend="Delete it and import the history again.",
    )
    series = (one for project in found for one in project)
    return tuple(sorted(series, key=lambda one: one.id)), faults
