"""An index of all recorded runs: their results for each cell, and the series across runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.comparison import PastResults, past_results
from corebound.analysis.scenario_result import Profiles, profiles_of
from corebound.errors import Fault, InputError, ScenarioFaults, encodable
from corebound.records import cache, documents, history_files, jsonl
from corebound.records.history import Series
from corebound.records.jsonl import Stored, UnreadLaunches
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.loader import load_document
from corebound.stats.history.series import delays_of_run, joined, series_of_run

_NAME = "runs"
# A comparison page needs the launches of this many files at once; they are large.
_FILES_AT_ONCE = 3
# A folder beside the records, two levels deep: a reproduction is not a point of a history.
REPRODUCTIONS = "reproductions"
# More earlier runs hardly improve the estimate of run-to-run variation.
_MOST_EARLIER = 60


class RunSummary(Struct, frozen=True, kw_only=True):
    """What the index keeps of a run's file.

    Attributes:
        stamp: The version of the file that this was read from.
        run: The first line, without scenarios that this version cannot read.
        series: One point for each series.
        faults: The parts of the file that cannot be read.
        profiles: The run's operator profiles.
        delays: The largest possible delay of each cell by other programs, by cell id.
    """

    stamp: str
    run: Run
    series: tuple[Series, ...]
    faults: tuple[Fault, ...]
    profiles: Profiles
    delays: dict[str, float]


class KnownRun(Struct, frozen=True, kw_only=True):
    """A run with its index entry; the launches are read on demand."""

    file: Path
    abstract: RunSummary
    launches: UnreadLaunches


def known_runs(
    records: Path, faults: list[Fault], among: Container[Path] | None = None
) -> Iterator[KnownRun]:
    """List every run below a folder, oldest first within each host.

    Args:
        records: The folder.
        faults: Receives each file that cannot be read or holds no run; other files still count.
        among: The files to read; None reads all.
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
    """List calibrations and reproductions, which also show how much runs differ."""
    for folder in _beside(records):
        yield from known_runs(folder, faults)


def past_of_pair(records: Path, pair: tuple[Run, Run]) -> PastResults:
    """Earlier results of each cell: from the host's latest other runs before the later of two.

    Args:
        records: The folder of records.
        pair: The two runs, which share scenarios. Unreadable runs are skipped.
    """
    found: list[KnownRun] = []
    for folder in (records, *_beside(records)):
        # Latest first. The first line of a file is enough to skip runs of other scenarios.
        alike = (file for file in reversed([*jsonl.files(folder)]) if _is_earlier(file, pair))
        files = frozenset(itertools.islice(alike, _MOST_EARLIER))
        found += known_runs(folder, [], files)
    return past_of_known(found)


def past_of_known(runs: Iterable[KnownRun]) -> PastResults:
    """The earlier results of each cell in these runs."""
    return past_results((one.abstract.series, one.abstract.delays) for one in runs)


def _beside(records: Path) -> tuple[Path, ...]:
    return documents.calibrations_folder(records), records / REPRODUCTIONS


def _is_earlier(file: Path, pair: tuple[Run, Run]) -> bool:
    """Whether a run can show how much runs like these two differ."""
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
    """Remove the scenarios that this version cannot read, and return their errors."""
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
    """All records over time.

    Attributes:
        series: By id.
        runs: The runs behind corebound's own series, by id.
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
