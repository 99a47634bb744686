"""A cache of the files an import has read; unchanged files are not read again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from corebound.exchange.asv.environments import Source
from corebound.exchange.asv.project import Read
from corebound.records import cache, history_files


def known(records: Path, project: str, settings: str) -> Mapping[str, Source]:
    """The files whose points are already in the project's history, by path.

    Empty if the history has changed since those files were read.
    """
    history = _history(records, project)
    version = _version(settings, history)
    found = cache.load(dict[str, Source], records, _name(project), version=version)
    return found or {} if history else {}


def remember(records: Path, read: Read) -> None:
    """Store which files were read, once their points are in the project's history."""
    version = _version(read.settings, _history(records, read.project))
    cache.keep(dict(read.sources), records, _name(read.project), version=version)


def _name(project: str) -> str:
    return f"import-{cache.digest(project.encode())}"


def _version(settings: str, history: str) -> str:
    return cache.digest(cache.code("exchange", "records").encode(), (settings + history).encode())


def _history(records: Path, project: str) -> str:
    return history_files.sources([project], records).get(project, "")
