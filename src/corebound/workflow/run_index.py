"""An index of all recorded runs, one file per host: the host's series, and a summary of each run.

One host is in memory at a time: the points of a series are read when they are used.
"""

import contextlib
import glob
import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.hardware import hardware_class
from corebound.analysis.peak_memory import judged_by
from corebound.analysis.run_comparison import PastResult, PastResults, past_results
from corebound.errors import Fault, InputError, ScenarioFaults, collect_fault, encodable
from corebound.records import cache, documents, history_files, jsonl
from corebound.records.cache import CacheFile, Pinned
from corebound.records.history import (
    ANCHORED,
    HistoryPoint,
    HistoryPoints,
    Moment,
    PointsSummary,
    Series,
    UnreadPoints,
)
from corebound.records.jsonl import Stored, UnreadLaunches
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.loader import load_document
from corebound.scenario.metrics import JudgedBy
from corebound.stats.history.anchored import chained
from corebound.stats.history.pooled import pooled_series
from corebound.stats.history.regressions import arrays_of
from corebound.stats.history.series import delays_of_run, joined, series_of_run

# A comparison page needs the launches of this many files at once; they are large.
_MAX_FILES_IN_MEMORY = 3
# The first lines of files; changes of one host have their last run in common.
_MAX_RUNS_IN_MEMORY = 64
# Series are mostly used host by host.
_MAX_HOSTS_IN_MEMORY = 2
# A folder beside the records, two levels deep: a reproduction is not a point of a history.
REPRODUCTIONS = "reproductions"
# More earlier runs hardly improve the estimate of run-to-run variation.
_MAX_EARLIER_RUNS = 60
_NO_POINTS = HistoryPoints.of(())


class RunSummary(Struct, frozen=True, kw_only=True):
    """What the index keeps of a run's file.

    Attributes:
        stamp: The version of the file that this was read from.
        id, host, started_at: Of the run.
        hardware: The name of the class of its host.
        scenarios: The names of the scenarios that it launched.
        is_whole: Whether it measured all cells of them, not a selection.
        unreadable: The paths of the scenarios that this version cannot read.
        faults: The parts of the file that cannot be read.
        delays: The largest possible delay of each cell by other programs, by cell id.
    """

    stamp: str
    id: str
    host: str
    started_at: str
    hardware: str
    scenarios: tuple[str, ...]
    is_whole: bool
    unreadable: tuple[str, ...]
    faults: tuple[Fault, ...]
    delays: dict[str, float]


class FolderIndex(Struct, frozen=True, kw_only=True):
    """The index of one folder of record files, as it is cached.

    Attributes:
        runs: By file name.
        series: The series without their points.
        summaries: What is known of the points of each series.
        packed: The series with their points.
    """

    runs: dict[str, RunSummary]
    series: tuple[Series, ...]
    summaries: tuple[PointsSummary, ...]
    packed: bytes


class IndexedRun(Struct, frozen=True, kw_only=True):
    """A run with its index entry; the run itself and its launches are read on demand."""

    file: Path
    summary: RunSummary
    launches: UnreadLaunches

    def read(self) -> Run:
        """Read the run, without scenarios that this version cannot read.

        Raises:
            InputError: The file has been removed or damaged since it was indexed.
        """
        run = jsonl.read_run(self.file)
        unreadable = self.summary.unreadable
        return replace(
            run, scenarios=tuple(each for each in run.scenarios if each.path not in unreadable)
        )


class IndexedFolder(Struct, frozen=True, kw_only=True):
    """The series of one folder of record files, usually of one host; the rest is read on demand.

    Attributes:
        series: The series, by id, with unread points.
        read_run: Reads the first line of a file, and may cache it.
    """

    folder: Path
    series: tuple[Series, ...]
    index: Pinned[FolderIndex]
    read_run: Callable[[Path], Run]

    def delays(self) -> dict[str, dict[str, float]]:
        """By the id of each run, how much other programs may have delayed its cells."""
        return {run.id: run.delays for run in self.index.value().runs.values()}

    def _files_of(self, name: str) -> Iterator[Path]:
        runs = self.index.value().runs
        yield from (self.folder / file for file, run in runs.items() if run.id == name)

    def run(self, name: str) -> Run | None:
        """Read a run by its id; None if it is not in the folder, or no longer."""
        # A run's file is named after its start and its id, unless somebody has renamed it.
        named = self.folder.glob(f"*{glob.escape(name)}*.jsonl")
        for file in itertools.chain(named, self._files_of(name)):
            with contextlib.suppress(InputError):
                if (run := self.read_run(file)).id == name:
                    return run
        return None


def indexed_folders(
    records: Path,
    faults: list[Fault],
    only: Container[Path] | None = None,
    metric: JudgedBy = "time",
) -> Iterator[tuple[IndexedFolder, tuple[IndexedRun, ...]]]:
    """List all series and runs below a folder, one host after the other.

    Args:
        faults: Receives each file that cannot be read or holds no run; other files still count.
        only: The files to read and to list; None reads all. The series also have the points of
            other files that were read before.
        metric: What the series are of; each has an index of its own.

    Returns:
        For each folder that has a listed run its series and its runs, the oldest run first.
    """
    read = lru_cache(_MAX_FILES_IN_MEMORY)(jsonl.read)
    read_run = lru_cache(_MAX_RUNS_IN_MEMORY)(jsonl.read_run)
    unpack = lru_cache(_MAX_HOSTS_IN_MEMORY)(_unpack)
    for folder, files in itertools.groupby(jsonl.files(records), key=lambda file: file.parent):
        own = [*files]
        listed = [file for file in own if only is None or file in only]
        if not listed:
            continue
        pinned = _cache_file(folder, metric).pin()
        known = pinned.value() if pinned is not None else None
        runs, new = _summaries(own, frozenset(listed), known, read, faults, metric=metric)
        index = known if known is not None and runs == known.runs else _index(runs, new, known)
        if index is not known or pinned is None:
            pinned = keep_index(index, folder, metric)
        runs_of_folder = tuple(
            IndexedRun(
                file=file,
                summary=index.runs[encodable(file.name)],
                launches=UnreadLaunches(partial(_launches, read, file)),
            )
            for file in listed
            if encodable(file.name) in index.runs
        )
        if runs_of_folder:
            all_series = tuple(
                replace(series, points=UnreadPoints(partial(_points, unpack, pinned, at), summary))
                for at, (series, summary) in enumerate(
                    zip(index.series, index.summaries, strict=True)
                )
            )
            indexed = IndexedFolder(
                folder=folder, series=all_series, index=pinned, read_run=read_run
            )
            yield indexed, runs_of_folder


def keep_index(index: FolderIndex, folder: Path, metric: JudgedBy = "time") -> Pinned[FolderIndex]:
    """Keep the index of a folder of record files, beside it."""
    return _cache_file(folder, metric).keep_pinned(index)


def _cache_file(folder: Path, metric: JudgedBy) -> CacheFile[FolderIndex]:
    name = f"{'series' if metric == 'time' else metric}-{encodable(folder.name)}"
    return CacheFile(FolderIndex, folder.parent, name, version=_version())


@lru_cache(1)
def _version() -> str:
    names = ("hardware.py", "peak_memory.py", "scenario_result.py")
    analysis = tuple(f"analysis/{name}" for name in names)
    parts = ("stats", "records", "scenario", "machine", "units.py", "errors.py")
    return cache.code(*parts, *analysis)


def _unpack(pinned: Pinned[FolderIndex]) -> tuple[HistoryPoints, ...]:
    return history_files.unpack(pinned.value().packed)


def _points(
    unpack: Callable[[Pinned[FolderIndex]], tuple[HistoryPoints, ...]],
    pinned: Pinned[FolderIndex],
    at: int,
) -> HistoryPoints:
    return unpack(pinned)[at]


def _summaries(
    files: Iterable[Path],
    listed: Collection[Path],
    known: FolderIndex | None,
    read: Callable[[Path], Stored],
    faults: list[Fault],
    *,
    metric: JudgedBy,
) -> tuple[dict[str, RunSummary], list[Series]]:
    """The summary of each file, and the series of those that have changed since `known`."""
    before = known.runs if known is not None else {}
    runs: dict[str, RunSummary] = {}
    series: list[Series] = []
    for file in files:
        name = encodable(file.name)
        previous = before.get(name)
        if file not in listed:
            if previous:
                runs[name] = previous
            continue
        with collect_fault(file, faults):
            stamp = jsonl.stamp(file)
            if previous and previous.stamp == stamp:
                runs[name] = previous
                continue
            runs[name], new = _summarise_run(read(file), stamp, metric)
            series += new
    return runs, series


def _index(
    runs: dict[str, RunSummary], new: Iterable[Series], known: FolderIndex | None
) -> FolderIndex:
    """The index of these runs: the known points of those that have not changed, and new ones."""
    kept: Iterable[Series] = ()
    if known is not None:
        same = {each.id for name, each in runs.items() if known.runs.get(name) == each}
        points = history_files.unpack(known.packed)
        before = (
            replace(series, points=own) for series, own in zip(known.series, points, strict=True)
        )
        kept = filter(None, (_of_runs(each, same) for each in before))
    return folder_index(runs, joined((*kept, *new)))


def folder_index(runs: dict[str, RunSummary], series: Sequence[Series]) -> FolderIndex:
    """The index of these runs, by file name, and their series, by id."""
    return FolderIndex(
        runs=runs,
        series=tuple(replace(each, points=_NO_POINTS) for each in series),
        summaries=tuple(PointsSummary.of(each.points) for each in series),
        packed=history_files.pack(series),
    )


def _of_runs(series: Series, runs: Container[str]) -> Series | None:
    """The series with the points of these runs; None if it has none."""
    points = series.points
    indices = [at for at, moment in enumerate(points.moments) if (moment.run or "") in runs]
    if len(indices) == len(points):
        return series
    return replace(series, points=points.select(indices)) if indices else None


def _launches(read: Callable[[Path], Stored], file: Path) -> tuple[Launch, ...]:
    return read(file).launches


def _summarise_run(
    stored: Stored, stamp: str, metric: JudgedBy
) -> tuple[RunSummary, tuple[Series, ...]]:
    run, faults = drop_unreadable_scenarios(stored)
    judged, launches = judged_by(metric, run, stored.launches)
    readable = {source.path for source in run.scenarios}
    launched = {launch.cell.scenario for launch in stored.launches}
    summary = RunSummary(
        stamp=stamp,
        id=run.id,
        host=run.host.id,
        started_at=run.started_at,
        hardware=hardware_class(run).name,
        scenarios=tuple(sorted(launched)),
        is_whole=not run.only,
        unreadable=tuple(
            source.path for source in stored.run.scenarios if source.path not in readable
        ),
        faults=faults,
        delays=delays_of_run(launches),
    )
    return summary, series_of_run(judged, launches)


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


class EarlierResults(Mapping[str, Sequence[PastResult]]):
    """The results of each cell in all runs, as in `past_results`; one host is in memory."""

    def __init__(self, folders: Iterable[IndexedFolder]) -> None:
        """Take the indexed folders; those of calibrations and reproductions count as well."""
        self._folders: dict[str, list[IndexedFolder]] = {}
        for folder in folders:
            for host in {series.host for series in folder.series}:
                self._folders.setdefault(host, []).append(folder)
        self._of_host = lru_cache(1)(self._read)

    def _read(self, host: str) -> PastResults:
        folders = self._folders.get(host, ())
        return past_results(
            (series for folder in folders for series in folder.series if series.host == host),
            {run: delays for folder in folders for run, delays in folder.delays().items()},
        )

    def __getitem__(self, key: str) -> Sequence[PastResult]:
        return self._of_host(key.partition("/")[0])[key]

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(map(self._of_host, self._folders))

    def __bool__(self) -> bool:
        return bool(self._folders)

    def __len__(self) -> int:
        return sum(len(self._of_host(host)) for host in self._folders)


def auxiliary_folders(records: Path, faults: list[Fault]) -> Iterator[IndexedFolder]:
    """Index calibrations and reproductions, which also show how much runs differ."""
    for folder in _auxiliary_folders(records):
        yield from (indexed for indexed, _ in indexed_folders(folder, faults))


def earlier_results_of_pair(
    records: Path, pair: tuple[Run, Run], metric: JudgedBy = "time"
) -> PastResults:
    """Earlier results of each cell: from the host's latest other runs before the later of two.

    Args:
        pair: The two runs, which share scenarios. Unreadable runs are skipped.
    """
    folders: list[IndexedFolder] = []
    for folder in (records, *_auxiliary_folders(records)):
        # Latest first. The first line of a file is enough to skip runs of other scenarios.
        similar = (file for file in reversed([*jsonl.files(folder)]) if _is_earlier(file, pair))
        files = frozenset(itertools.islice(similar, _MAX_EARLIER_RUNS))
        folders += (indexed for indexed, _ in indexed_folders(folder, [], files, metric))
    return EarlierResults(folders)


def _auxiliary_folders(records: Path) -> tuple[Path, ...]:
    return documents.CALIBRATIONS.folder(records), records / REPRODUCTIONS


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


class Suite(Struct, frozen=True, kw_only=True):
    """All records over time.

    Attributes:
        series: By id; points of our own series are read on demand.
        pooled: Our own series of several hosts together, by id.
        faults: What could not be read.
        folders: The folders of each host, by its id.
    """

    series: tuple[Series, ...]
    pooled: tuple[Series, ...]
    latest: Run | None
    faults: tuple[Fault, ...]
    folders: Mapping[str, Sequence[IndexedFolder]]

    def run_of(self, series: Series, point: HistoryPoint | Moment) -> Run | None:
        """The run that measured a point; None if another tool did, or its file is gone."""
        if point.run is None:
            return None
        runs = (folder.run(point.run) for folder in self.folders.get(series.host, ()))
        return next(filter(None, runs), None)


def read_suite(records: Path, *, pooled: bool = False, metric: JudgedBy = "time") -> Suite:
    """Read all series of a folder of records.

    Args:
        pooled: Whether to make the series of several hosts together, too.
        metric: What our own series are of. Imported ones, of any unit, are beside those of time.
    """
    faults: list[Fault] = []
    classes: dict[str, str] = {}
    folders: dict[str, list[IndexedFolder]] = {}
    all_folders: list[IndexedFolder] = []
    latest: IndexedRun | None = None
    for folder, runs in indexed_folders(records, faults, metric=metric):
        all_folders.append(folder)
        for host in {run.summary.host for run in runs}:
            folders.setdefault(host, []).append(folder)
        classes |= {run.summary.host: run.summary.hardware for run in runs}
        faults += (fault for run in runs for fault in run.summary.faults)
        latest = max(
            filter(None, (latest, *runs)), key=lambda run: (run.summary.started_at, run.summary.id)
        )
    imported, damaged = history_files.read_all(records) if metric == "time" else ((), ())
    # Its points are of any machine.
    folders[ANCHORED] = all_folders
    own = joined_folders(all_folders)
    all_series = sorted((*own, *imported), key=lambda series: series.id)
    return Suite(
        series=tuple(all_series),
        pooled=pooled_series(own, classes) if pooled else (),
        latest=latest.read() if latest is not None else None,
        faults=(*faults, *damaged),
        folders=folders,
    )


def joined_folders(folders: Iterable[IndexedFolder]) -> tuple[Series, ...]:
    """The series of all folders, by id; the runs of one host may lie in several folders."""
    by_id: dict[str, list[Series]] = {}
    for folder in folders:
        for series in folder.series:
            by_id.setdefault(series.id, []).append(series)
    together = (
        parts[0] if len(parts) == 1 else joined(parts)[0] for _, parts in sorted(by_id.items())
    )
    return tuple(
        chained(series, arrays_of(series)) if series.is_anchored else series for series in together
    )
