"""Imported histories: the series of another tool, a file a project, beside the runs."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from corebound.errors import Fault, InputError
from corebound.model.series import Series
from corebound.store import cache, codec


def file_of(project: str, records: Path) -> Path:
    """Where a project's series are kept, whatever characters its name has."""
    return records / "histories" / f"{hashlib.sha256(project.encode()).hexdigest()[:16]}.json"


def keep(project: str, series: Sequence[Series], records: Path) -> Path:
    """Keep a project's series in place of those that were kept before.

    Returns:
        The file they are kept in, which appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    file = file_of(project, records)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(codec.encode_series(series))
        fresh.replace(file)
    except OSError as error:
        raise InputError(
            what=f"the history cannot be kept: {error.strerror}.",
            where=str(error.filename or file),
            mend="Choose another folder with --records, or make this one writable.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
    return file


def sources(projects: Iterable[str], records: Path) -> dict[str, str]:
    """For each project whose history was kept a hash of the file that it is read from."""
    found = {}
    for project in projects:
        with contextlib.suppress(OSError):
            found[project] = cache.digest(file_of(project, records).read_bytes())
    return found


def read_all(records: Path) -> tuple[tuple[Series, ...], tuple[Fault, ...]]:
    """Every series that was kept, by id, and the files that hold none."""
    series: list[Series] = []
    faults: list[Fault] = []
    for file in sorted((records / "histories").glob("*.json")):
        try:
            series += codec.decode_series(file.read_bytes())
        except (OSError, codec.UnreadableError) as error:
            faults.append(
                Fault(
                    file=str(file),
                    line=None,
                    what=f"this history cannot be read and was passed over: {error}.",
                    mend="Delete it and import the history again.",
                )
            )
    return tuple(sorted(series, key=lambda one: one.id)), tuple(faults)
