"""Every run there is, what it says of each cell, and all series over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.comparison import Past, past_of
from corebound.errors import Fault, InputError, ScenarioFaults, encodable
from corebound.records import cache, documents, history_files, jsonl
from corebound.records.history import Series
from corebound.records.jsonl import Stored, UnreadLaunches
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.loader import load_document
from corebound.stats.history.series import delays_of_run, joined, series_of_run
from corebound.stats.profiles import Profiles, profiles_of

_NAME = "runs"
# What a page compares comes from so many files at once; they are big.
_FILES_AT_ONCE = 3
# Beside the records, two folders deep: what is measured again is no night.
REPRODUCTIONS = "reproductions"
# More say hardly more of how runs differ.
_MOST_EARLIER = 60


class RunSummary(Struct, frozen=True, kw_only=True):
    """What is kept of a run's file.

    Attributes:
        stamp: Of the file that it is of.
        run: Its first line, without the scenarios that this version cannot read.
        series: One point each.
        faults: What of the file cannot be read.
        profiles: Its operator profiles.
        delays: How much other programs can have delayed its cells, by their ids.
    """

    stamp: str
    run: Run
    series: tuple[Series, ...]
    faults: tuple[Fault, ...]
    profiles: Profiles
    delays: dict[str, float]


class KnownRun(Struct, frozen=True, kw_only=True):
    """A run, and where its launches are when somebody wants them."""

    file: Path
    abstract: RunSummary
    launches: UnreadLaunches


def known_runs(
    records: Path, faults: list[Fault], among: Container[Path] | None = None
) -> Iterator[KnownRun]:
    """Every run below a folder, oldest first within each host.

    Args:
        records: The folder.
        faults: Takes each file that cannot be read or holds no run: all others still count.
        among: The files to look at; None for all.
    """
    version = cache.code("stats", "records", "scenario", "machine", "units.py", "errors.py")
    before = cache.load(dict[str, RunSummary], records, _NAME, version=version) or {}
    read = lru_cache(_FILES_AT_ONCE)(jsonl.read)
    now: dict[str, RunSummary] = {}
    for file in jsonl.files(records):
        name = encodable(file.relative_to(records).as_posix())
        known = before.get(name)
        if among is not None and file not in among:
            if known:
                now[name] = known
            continue
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


def runs_beside(records: Path, faults: list[Fault]) -> Iterator[KnownRun]:
    """The runs that are no nights but tell as well how runs differ, as `known_runs` has them."""
    for folder in _beside(records):
        yield from known_runs(folder, faults)


def past_of_pair(records: Path, pair: tuple[Run, Run]) -> Past:
    """What a host's latest other runs, before the later of two, said of each cell.

    Args:
        records: The folder of records.
        pair: The two, which share scenarios. Runs that cannot be read are passed over.
    """
    found: list[KnownRun] = []
    for folder in (records, *_beside(records)):
        # The latest first: what a run's first line says is enough to pass over those of others.
        alike = (file for file in reversed([*jsonl.files(folder)]) if _is_earlier(file, pair))
        files = frozenset(itertools.islice(alike, _MOST_EARLIER))
        found += known_runs(folder, [], files)
    return past_of_known(found)


def past_of_known(runs: Iterable[KnownRun]) -> Past:
    """What these runs said of each cell."""
    return past_of((one.abstract.series, one.abstract.delays) for one in runs)


def _beside(records: Path) -> tuple[Path, ...]:
    return documents.calibrations_folder(records), records / REPRODUCTIONS


def _is_earlier(file: Path, pair: tuple[Run, Run]) -> bool:
    """Whether it may say how runs like the two differ."""
    try:
        run = jsonl.read_run(file)
    except InputError:
        return False
    later = max(pair, key=lambda one: one.started_at)
    names = {source.document["name"] for source in later.scenarios}
    return (
        run.id not in {one.id for one in pair}
        and run.host.id == later.host.id
        and run.started_at < later.started_at
        and any(source.document["name"] in names for source in run.scenarios)
    )


def _launches(read: Callable[[Path], Stored], file: Path) -> tuple[Launch, ...]:
    return read(file).launches


def _abstract(stored: Stored, stamp: str) -> RunSummary:
    run, faults = without_the_unreadable(stored)
    return RunSummary(
        stamp=stamp,
        run=run,
        series=series_of_run(run, stored.launches),
        faults=faults,
        profiles=profiles_of(stored.launches),
        delays=delays_of_run(stored.launches),
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


class Suite(Struct, frozen=True, kw_only=True):
    """What the records hold over time.

    Attributes:
        series: By id.
        runs: The runs that our own are of, by id.
        faults: What could not be read.
    """

    series: tuple[Series, ...]
    runs: Mapping[str, Run]
    faults: tuple[Fault, ...]


def suite_of(records: Path) -> Suite:
    """Read all series of a folder of records."""
    own: list[Series] = []
    runs: dict[str, Run] = {}
    faults: list[Fault] = []
    for one in known_runs(records, faults):
        runs[one.abstract.run.id] = one.abstract.run
        faults += one.abstract.faults
        own += one.abstract.series
    imported, damaged = history_files.read_all(records)
    every = sorted((*joined(own), *imported), key=lambda one: one.id)
    return Suite(series=tuple(every), runs=runs, faults=(*faults, *damaged))
