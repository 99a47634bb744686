"""An index of all recorded runs: their results for each cell, and the series across runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.run_comparison import PastResults, past_results
from corebound.analysis.scenario_result import Profiles, profiles_of
from corebound.errors import Fault, InputError, ScenarioFaults, encodable
from corebound.records import cache, documents, history_files, jsonl
from corebound.records.history import Series
from corebound.records.jsonl import Stored, UnreadLaunches
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.loader import load_document
from corebound.stats.history.series import delays_of_run, joined, series_of_run

_CACHE_NAME = "runs"
# A comparison page needs the launches of this many files at once; they are large.
_MAX_FILES_IN_MEMORY = 3
# A folder beside the records, two levels deep: a reproduction is not a point of a history.
REPRODUCTIONS = "reproductions"
# More earlier runs hardly improve the estimate of run-to-run variation.
_MAX_EARLIER_RUNS = 60


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


class IndexedRun(Struct, frozen=True, kw_only=True):
    """A run with its index entry; the launches are read on demand."""

    file: Path
    summary: RunSummary
    launches: UnreadLaunches


def indexed_runs(
    records: Path, faults: list[Fault], only: Container[Path] | None = None
) -> Iterator[IndexedRun]:
    """List every run below a folder, oldest first within each host.

    Args:
        records: The folder.
        faults: Receives each file that cannot be read or holds no run; other files still count.
        only: The files to read; None reads all.
    """
    version = cache.code("stats", "records", "scenario", "machine", "units.py", "errors.py")
    cached = cache.load(dict[str, RunSummary], records, _CACHE_NAME, version=version) or {}
    read = lru_cache(_MAX_FILES_IN_MEMORY)(jsonl.read)
    current: dict[str, RunSummary] = {}
    for file in jsonl.files(records):
        name = encodable(file.relative_to(records).as_posix())
        previous = cached.get(name)
        if only is not None and file not in only:
            if previous:
                current[name] = previous
            continue
        try:
            stamp = jsonl.stamp(file)
            current[name] = (
                previous
                if previous and previous.stamp == stamp
                else _summarise_run(read(file), stamp)
            )
        except InputError as error:
            faults.append(jsonl.skipped_fault(file, error))
            continue
        yield IndexedRun(
            file=file,
            summary=current[name],
            launches=UnreadLaunches(partial(_launches, read, file)),
        )
    if current != cached:
        cache.keep(current, records, _CACHE_NAME, version=version)


def auxiliary_runs(records: Path, faults: list[Fault]) -> Iterator[IndexedRun]:
    """List calibrations and reproductions, which also show how much runs differ."""
    for folder in _auxiliary_folders(records):
        yield from indexed_runs(folder, faults)


def earlier_results_of_pair(records: Path, pair: tuple[Run, Run]) -> PastResults:
    """Earlier results of each cell: from the host's latest other runs before the later of two.

    Args:
        records: The folder of records.
        pair: The two runs, which share scenarios. Unreadable runs are skipped.
    """
    runs: list[IndexedRun] = []
    for folder in (records, *_auxiliary_folders(records)):
        # Latest first. The first line of a file is enough to skip runs of other scenarios.
        similar = (file for file in reversed([*jsonl.files(folder)]) if _is_earlier(file, pair))
        files = frozenset(itertools.islice(similar, _MAX_EARLIER_RUNS))
        runs += indexed_runs(folder, [], files)
    return earlier_results(runs)


def earlier_results(runs: Iterable[IndexedRun]) -> PastResults:
    """The earlier results of each cell in these runs."""
    return past_results((run.summary.series, run.summary.delays) for run in runs)


def _auxiliary_folders(records: Path) -> tuple[Path, ...]:
    return documents.calibrations_folder(records), records / REPRODUCTIONS


def _is_earlier(file: Path, pair: tuple[Run, Run]) -> bool:
    """Whether a run can show how much runs like these two differ."""
    try:
        run = jsonl.read_run(file)
    except InputError:
        return False
    later = max(pair, key=lambda run_of_pair: run_of_pair.started_at)
    names = {source.document["name"] for source in later.scenarios}
    return (
        run.id not in {run_of_pair.id for run_of_pair in pair}
        and run.host.id == later.host.id
        and run.started_at < later.started_at
        and any(source.document["name"] in names for source in run.scenarios)
    )


def _launches(read: Callable[[Path], Stored], file: Path) -> tuple[Launch, ...]:
    return read(file).launches


def _summarise_run(stored: Stored, stamp: str) -> RunSummary:
    run, faults = drop_unreadable_scenarios(stored)
    return RunSummary(
        stamp=stamp,
        run=run,
        series=series_of_run(run, stored.launches),
        faults=faults,
        profiles=profiles_of(stored.launches),
        delays=delays_of_run(stored.launches),
    )


def drop_unreadable_scenarios(stored: Stored) -> tuple[Run, tuple[Fault, ...]]:
    """Remove the scenarios that this version cannot read, and return their errors."""
    faults = list(stored.faults)
    sources = []
    for source in stored.run.scenarios:
        try:
            load_document(source.document, f"{stored.file}:{source.path}")
            sources.append(source)
        except ScenarioFaults as error:
            faults += error.faults
    return replace(stored.run, scenarios=tuple(sources)), tuple(faults)


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


def read_suite(records: Path) -> Suite:
    """Read all series of a folder of records."""
    own_series: list[Series] = []
    runs: dict[str, Run] = {}
    faults: list[Fault] = []
    for indexed in indexed_runs(records, faults):
        runs[indexed.summary.run.id] = indexed.summary.run
        faults += indexed.summary.faults
        own_series += indexed.summary.series
    imported, damaged = history_files.read_all(records)
    all_series = sorted((*joined(own_series), *imported), key=lambda indexed: indexed.id)
    return Suite(series=tuple(all_series), runs=runs, faults=(*faults, *damaged))
