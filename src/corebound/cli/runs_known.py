"""Every run there is, and what it says of each cell; its launches are read only when asked for.

A year of nights is millions of launches, of which tonight's pages show those of a night or
two. What a run's file says does not change once it has ended, so its points, its profiles, its
first line and its faults are kept; a file of another size or moment is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, InputError, ScenarioFaults, encodable
from corebound.model.record import Launch
from corebound.model.run import Run
from corebound.model.series import Series
from corebound.planning.load import load_document
from corebound.stats.profiles import Profiles, profiles_of
from corebound.stats.series import series_of_run
from corebound.store import cache, jsonl
from corebound.store.jsonl import Stored
from corebound.store.unread import UnreadLaunches

_NAME = "runs"
# What a page compares comes from so many files at once; they are big.
_FILES_AT_ONCE = 3


class Abstract(Struct, frozen=True, kw_only=True):
    """What is kept of a run's file.

    Attributes:
        stamp: Of the file that it is of.
        run: Its first line, without the scenarios that this version cannot read.
        series: One point each.
        faults: What of the file cannot be read.
        profiles: Its operator profiles.
    """

    stamp: str
    run: Run
    series: tuple[Series, ...]
    faults: tuple[Fault, ...]
    profiles: Profiles


class KnownRun(Struct, frozen=True, kw_only=True):
    """A run, and where its launches are when somebody wants them."""

    file: Path
    abstract: Abstract
    launches: UnreadLaunches


def known_runs(records: Path, faults: list[Fault]) -> Iterator[KnownRun]:
    """Every run below a folder, oldest first within each host.

    Args:
        records: The folder.
        faults: Takes each file that cannot be read or holds no run: all others still count.
    """
    version = cache.code("stats", "model", "planning", "store", "units.py", "errors.py")
    before = cache.load(dict[str, Abstract], records, _NAME, version=version) or {}
    read = lru_cache(_FILES_AT_ONCE)(jsonl.read)
    now: dict[str, Abstract] = {}
    for file in jsonl.files(records):
        name = encodable(file.relative_to(records).as_posix())
        known = before.get(name)
        try:
            stamp = jsonl.stamp(file)
            now[name] = known if known and known.stamp == stamp else _abstract(read(file), stamp)
        except InputError as error:
            faults.append(jsonl.passed_over(file, error))
            continue
        yield KnownRun(
            file=file,
            abstract=now[name],
            launches=UnreadLaunches(partial(_launches, read, file)),
        )
    if now != before:
        cache.keep(now, records, _NAME, version=version)


def _launches(read: Callable[[Path], Stored], file: Path) -> tuple[Launch, ...]:
    return read(file).launches


def _abstract(stored: Stored, stamp: str) -> Abstract:
    run, faults = without_the_unreadable(stored)
    return Abstract(
        stamp=stamp,
        run=run,
        series=series_of_run(run, stored.launches),
        faults=faults,
        profiles=profiles_of(stored.launches),
    )


def without_the_unreadable(one: Stored) -> tuple[Run, tuple[Fault, ...]]:
    """The run without the scenarios that this version cannot read, and what is wrong with it."""
    faults = list(one.faults)
    sources = []
    for source in one.run.scenarios:
        try:
            load_document(source.document, f"{one.file}:{source.path}")
            sources.append(source)
        except ScenarioFaults as error:
            faults += error.faults
    return replace(one.run, scenarios=tuple(sources)), tuple(faults)
