"""`corebound report` without a terminal: the site of all records, unless it is up to date."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.host_comparison import HostComparison, compare_hosts
from corebound.analysis.host_records import Record
from corebound.analysis.tuning_checks import latest_verification
from corebound.errors import Fault, InputError, collect_fault, encodable
from corebound.launch.environments import cache_dir
from corebound.records import cache, documents, history_files, jsonl
from corebound.records.cache import CacheFile
from corebound.records.decisions import DECISIONS_FILE, read_decisions_file
from corebound.records.history import Series
from corebound.records.jsonl import RECORDS, StoredRun
from corebound.records.run_record import Run
from corebound.report import site
from corebound.report.inputs import Progress, RequestedComparison, SiteInputs
from corebound.stats.history.pooled import pooled_series
from corebound.workflow import run_index
from corebound.workflow.change_point_cache import cached_change_points
from corebound.workflow.faulty_parts import write_without_faulty
from corebound.workflow.hosts import read_hosts
from corebound.workflow.process_pool import forked_map
from corebound.workflow.projects import notifier
from corebound.workflow.publish import DEFAULT_SITE
from corebound.workflow.resolve_refs import resolve_commits, resolve_runs
from corebound.workflow.tunings import loads_of, stored_checks, tuning_results


class WrittenSite(Struct, frozen=True, kw_only=True):
    """The site of a folder of records; `index` is its first page."""

    index: Path

    @property
    def document(self) -> dict[str, str]:
        """The same as plain data, as `corebound report --json` prints it."""
        return {"index": encodable(str(self.index.resolve()))}


def write_site(
    out: str | PathLike[str] = DEFAULT_SITE,
    *,
    records: str | PathLike[str] = RECORDS,
    status: str | PathLike[str] = DECISIONS_FILE,
    only: Sequence[str] = (),
    compare: Sequence[str] = (),
    address: str = "",
    notify: Callable[[str], object] | None = None,
    progress: Progress = lambda _task, _done, _total: None,
) -> WrittenSite:
    """Write the static site of a folder of records, as `corebound report` does.

    A site that has nothing new to show stays as it is.

    Args:
        out: The folder of the site; created if necessary.
        records: The folder of records.
        status: The file of decisions about regressions.
        only: Names of scenarios and imported data, or shell patterns of them; empty for everything.
        compare: Pairs of runs or commits, each `A..B`, that get a page of their own.
        address: The URL that the site will have, for link previews.
        notify: Called with a warning for each thing that cannot be read; `print` shows them.
        progress: Called with a task's name, the number of items done, and their total number.

    Returns:
        The site; `index` is its first page, and `document` what `corebound report --json` prints.

    Raises:
        InputError: A folder does not exist, no name matches, or the site cannot be written.
    """
    out, records, status = Path(out), Path(records), Path(status)
    if records != RECORDS and not records.is_dir():
        # Check this before a typing mistake overwrites an existing site.
        raise InputError(
            what="not a folder." if records.exists() else "no such folder.",
            where=str(records),
            fix="Name the folder of records, or measure into it first: `corebound run --records`.",
        )
    if out.exists() and not out.is_dir():
        raise InputError(
            what="not a folder.",
            where=str(out),
            fix="Name a folder with --out; it is created if necessary.",
        )
    now = clock.utc_now().isoformat(timespec="seconds")
    stamp = ReportStamp(records, out, status=status, options=(address, *only), day=now[:10])
    # Which commits `compare` names depends on a repository.
    if not compare and stamp.is_current():
        return WrittenSite(index=out / site.INDEX)
    warnings: list[str] = []
    show = notifier(notify)

    def warn(text: str) -> None:
        warnings.append(text)
        show(f"warning: {text}")

    inputs = _read_inputs(records, status, now=now, warn=warn)
    all_series = inputs.series
    with cached_change_points(records, all_series=not only) as cache:
        inputs = select_content(
            replace(inputs, cache=cache, address=address, only=only, progress=progress)
        )
        shown = [run for run, _ in inputs.records]
        inputs = replace(
            inputs,
            hosts=_hosts(records, inputs),
            compared=[_pair(argument, shown, all_series, records) for argument in compare],
        )
        write = partial(site.write, out=out, records=records, cache_folder=cache_dir())
        index = write_without_faulty(inputs, write, records)
    # A warning is for every report, so the next one has to read everything again.
    if not compare and not warnings:
        stamp.keep()
    return WrittenSite(index=index)


def _read_inputs(
    records: Path, status: Path, *, now: str, warn: Callable[[str], None]
) -> SiteInputs:
    """Read all that the site may show, and warn of what cannot be read."""
    faults: list[Fault] = []
    runs, folders, recorded, classes = _site_runs(records, faults)
    profiles, of_profiles = documents.PROFILES.read(records)
    imported, of_histories = history_files.read_all(records)
    decisions, of_decisions = read_decisions_file(status)
    calibrations, of_calibrations = documents.CALIBRATIONS.read(records)
    confirmations, of_confirmations = documents.CONFIRMATIONS.read(records)
    tunings = tuple(tuning_results(records, faults))
    races = [result for result, _ in tunings]
    checks = stored_checks(records, races, faults)
    verifications = {}
    for race in races:
        with collect_fault(records, faults, what=f"the check of race {race.run.id}"):
            verified = latest_verification(race, checks.get(race.run.id, ()))
            if verified is not None:
                verifications[race.run.id] = verified
    past = run_index.EarlierResults((*folders, *run_index.auxiliary_folders(records, faults)))
    for fault in chain(
        faults, of_profiles, of_histories, of_decisions, of_calibrations, of_confirmations
    ):
        warn(str(fault))
    if not (runs or profiles or imported or tunings):
        warn(f"no records in {records}: measure first with `corebound run`")
    own_series = run_index.joined_folders(folders)
    # Faults of the same files are known by now.
    of_memory = run_index.indexed_folders(records, [], metric="memory")
    return SiteInputs(
        records=[(run.read(), run.launches) for run in runs],
        now=now,
        recorded=recorded,
        profiles=profiles,
        series=(*own_series, *pooled_series(own_series, classes), *imported),
        memory=run_index.joined_folders(folder for folder, _ in of_memory),
        past=past,
        decisions=decisions,
        confirmations=confirmations,
        calibrations=calibrations,
        stamps={run.summary.id: run.summary.stamp for run in runs},
        records_folder="" if records == RECORDS else encodable(str(records)),
        tunings=tunings,
        verifications=verifications,
        loads=loads_of(races, checks),
        faults=faults,
        mapper=forked_map,
        warn=warn,
    )


# More pages of runs are no help to a reader; each host has its latest one.
_MOST_RUN_PAGES = 1_000


def _site_runs(
    records: Path, faults: list[Fault]
) -> tuple[
    list[run_index.IndexedRun], list[run_index.IndexedFolder], dict[str, int], dict[str, str]
]:
    """The runs that the site shows, the series of all runs, and of each host the runs and class."""
    shown: list[run_index.IndexedRun] = []
    folders: list[run_index.IndexedFolder] = []
    recorded: Counter[str] = Counter()
    classes: dict[str, str] = {}
    hosts = len({file.parent for file in jsonl.files(records)})
    for folder, runs in run_index.indexed_folders(records, faults):
        folders.append(folder)
        shown += _latest_runs(runs, max(_MOST_RUN_PAGES // hosts, 1))
        classes |= {run.summary.host: run.summary.hardware for run in runs}
        recorded.update(run.summary.host for run in runs)
        faults += (fault for run in runs for fault in run.summary.faults)
    return shown, folders, dict(recorded), classes


def _latest_runs(runs: Sequence[run_index.IndexedRun], most: int) -> Iterator[run_index.IndexedRun]:
    """The latest runs of a host, and the latest results of scenarios that it measured earlier."""
    seen: set[tuple[str, bool]] = set()
    for number, run in enumerate(reversed(runs)):
        measured = {(name, run.summary.is_whole) for name in run.summary.scenarios}
        # A run of all cells is shown in place of a later selection.
        if number < most or any(
            each not in seen and (each[0], True) not in seen for each in measured
        ):
            yield run
        seen |= measured


def _hosts(records: Path, inputs: SiteInputs) -> HostComparison | None:
    """The results of all hosts; None if there is only one."""
    if len({run.host.id for run, _ in inputs.records}) < 2:
        return None
    names = {
        str(source.document.get("name")) for run, _ in inputs.records for source in run.scenarios
    }
    # What cannot be read is reported from the index of runs.
    hosts = [host for host in read_hosts(records, [], names) if host.scenarios]
    return compare_hosts(hosts, [result for result, _ in inputs.tunings])


def _pair(
    argument: str, runs: Sequence[Run], all_series: Sequence[Series], records: Path
) -> RequestedComparison:
    """Resolve two runs to compare, or two imported commits."""
    before, dots, after = argument.partition("..")
    if not (before and dots and after):
        raise InputError(
            what=f"`{argument}` does not name two runs or commits.",
            where="--compare",
            fix="Write A..B: each the id of a run or its start, or a measured commit.",
        )
    recorded = [StoredRun(jsonl.file_of(run, records), run) for run in runs]
    try:
        pair = resolve_runs(before, after, recorded, records)
    except InputError:
        commits = resolve_commits(before, after, all_series)
        if commits is None:
            raise
        return RequestedComparison(project=commits[0], before=commits[1], after=commits[2])
    for stored in pair:
        if stored not in recorded:
            raise InputError(
                what="this run is not in the records of the site.",
                where=str(stored.file),
                fix=f"Copy it into {records}, or use `corebound compare`.",
            )
    return RequestedComparison(before=pair[0].run.id, after=pair[1].run.id)


def select_content(inputs: SiteInputs) -> SiteInputs:
    """Select scenarios and imported data by name, as `only` of the inputs says.

    Raises:
        InputError: No name matches.
    """
    if not inputs.only:
        return inputs

    def matches(name: object) -> bool:
        return any(fnmatchcase(str(name), pattern) for pattern in inputs.only)

    records: list[Record] = []
    for run, launches in inputs.records:
        sources = tuple(each for each in run.scenarios if matches(each.document.get("name")))
        if sources:
            selected = tuple(launch for launch in launches if matches(launch.cell.scenario))
            records.append((replace(run, scenarios=sources), selected))
    series = [
        each
        for each in inputs.series
        if matches(each.scenario) or (each.project is not None and matches(each.project))
    ]
    profiles = [profile for profile in inputs.profiles if matches(profile.name)]
    if not records and not series and not profiles:
        raise InputError(
            what="no scenario and no imported project, benchmark or profile has this name.",
            where=f"--only {' --only '.join(inputs.only)}",
            fix="Give a name that the report shows, or a pattern such as 'resnet50*'.",
        )
    return replace(
        inputs,
        records=records,
        series=series,
        profiles=profiles,
        tunings=[each for each in inputs.tunings if matches(each[0].source.document["name"])],
        stamps={},  # some launches of a run may be missing
    )


class ReportStamp:
    """A hash of everything that a site is made from: records, decisions, options, day and code.

    Files count as unchanged if size and modification time are, as in the index of runs.
    """

    def __init__(
        self, records: Path, out: Path, *, status: Path, options: Sequence[str], day: str
    ) -> None:
        """Take the inputs of a report as they are now, before anything is read from them."""
        self._out = out
        self._file = CacheFile(
            str,
            records,
            f"report-{cache.digest(os.fsencode(out.resolve()))}",
            version=cache.digest(cache.code("").encode(), *site.sources()),
        )
        inputs = (str(records), day, *options, state_of((records, status)))
        self._inputs = cache.digest(*(encodable(text).encode() for text in inputs))

    def is_current(self) -> bool:
        """Whether the site was made from these inputs, and nobody has touched it since."""
        return self._file.load() == self._inputs and site.SiteDirectory(self._out).is_intact()

    def keep(self) -> None:
        """Remember that the site is made from these inputs."""
        self._file.keep(self._inputs)


def state_of(paths: Iterable[Path]) -> str:
    """A hash of name, size and modification time of every file.

    Files that vanish meanwhile are skipped.
    """
    hasher = hashlib.sha256()
    for path in paths:
        for file in _files(path):
            try:
                status = file.stat()
            except OSError:
                continue
            hasher.update(
                f"{encodable(str(file))} {status.st_size} {status.st_mtime_ns}\n".encode()
            )
    return hasher.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """The path itself, or every file below it, in order; one folder's names are in memory."""
    if path.is_file():
        yield path
    if path.is_dir() and not path.is_symlink():
        for each in sorted(path.iterdir()):
            # Hidden files are incomplete; `cache` holds data derived from files read before.
            if not each.name.startswith(".") and not (each.name == "cache" and each.is_dir()):
                yield from _files(each)
