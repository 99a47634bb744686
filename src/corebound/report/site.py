"""The only writer of the site: reads templates and assets, writes whole files or none."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

from corebound.errors import Fault, refusals_told
from corebound.model.calibration import Calibration
from corebound.model.profile import ImportedProfile
from corebound.model.regression import Confirmation, Decision
from corebound.model.series import Series
from corebound.report.compiled import Compiled
from corebound.report.folder import Folder
from corebound.report.pages import Inputs, Pair, Progress, pages
from corebound.report.render import Renderer
from corebound.report.shelf import Shelf
from corebound.report.view.addresses import raw_file
from corebound.report.view.latest import latest_studies
from corebound.report.view.narrowed import narrowed_words
from corebound.report.view.profiles_before import with_profiles_before
from corebound.report.view.records import Record
from corebound.report.view.study import Study
from corebound.stats.profiles import Profiles
from corebound.stats.segment import Memory
from corebound.store import jsonl
from corebound.store.traces import folder_of


def write(
    records: Sequence[Record],
    out: Path,
    *,
    now: str,
    kept: Path | None = None,
    profiles: Sequence[ImportedProfile] = (),
    series: Sequence[Series] = (),
    decisions: Sequence[Decision] = (),
    confirmations: Sequence[Confirmation] = (),
    calibrations: Sequence[Calibration] = (),
    memory: Memory | None = None,
    sources: Mapping[str, str] | None = None,
    stamps: Mapping[str, str] | None = None,
    compared: Sequence[Pair] = (),
    asked: str = "",
    only: Sequence[str] = (),
    profiled: Mapping[str, Profiles] | None = None,
    own: Path | None = None,
    faults: Sequence[Fault] = (),
    progress: Progress = lambda _what, _done, _all: None,
) -> Path:
    """Write the site: an overview, a page a scenario, run, host, history, and the assets.

    The same records and moment give the same bytes, whatever site was there before. Each file
    appears whole, and one that would not change is left alone; what of the site before is no
    part of this one is removed.

    Args:
        records: Every run with its launches, in any order.
        out: Where the site goes; made if need be.
        now: ISO moment to put on the pages.
        kept: The folder of records, for them and the traces beside them; None: without.
        profiles: Operator profiles that were imported.
        series: Histories, our own joined over the runs, and imported ones.
        decisions: What people decided of changes, in the order of their file.
        confirmations: What re-runs said of changes.
        calibrations: The noise of hosts, for the verdicts.
        memory: Steps that were found before; what is found now is added.
        sources: For each imported project a hash of all that its series are read from:
            of what has not changed the pages are not made again.
        stamps: For each run, by its id, what tells whether its records are as they were:
            if so its page is not made again.
        compared: What gets a page beside the latest runs.
        asked: The folder of records as commands on pages have to name it; empty where that
            is the usual one.
        only: Names, or patterns of them, that were asked for; empty where all of it was.
        profiled: The operator profiles of each run, by its id.
        own: The folder of what this user's corebound keeps for itself; None: nothing is kept there.
        faults: What of the records could not be read.
        progress: Called with what is done, how many of it are, and of how many.

    Returns:
        The path of the overview.

    Raises:
        InputError: the site cannot be written there, or runs or commits that are to be
            compared cannot be.
        ScenarioFaults: a recorded scenario is none this version can read.
    """
    index = out / "index.html"
    with refusals_told(
        "the site cannot be written",
        where=out,
        mend="Choose another folder with --out, or make this one writable.",
    ):
        studies = with_profiles_before(
            latest_studies(records), (run for run, _ in records), profiled or {}
        )
        traces = {study.scenario.name: _traces(study, kept) for study in studies}
        folder = Folder(out)
        for found in traces.values():
            for launch, file in found.items():
                folder.put(_trace_name(launch), file.read_bytes())
        if kept is not None:
            for run, _ in records:
                _put_raw(jsonl.file_of(run, kept), folder, raw_file(run))
        inputs = Inputs(
            records=records,
            studies=studies,
            now=now,
            profiles=profiles,
            series=series,
            decisions=decisions,
            confirmations=confirmations,
            calibrations=calibrations,
            traces={
                name: {launch: _trace_name(launch) for launch in found}
                for name, found in traces.items()
            },
            raw=_are_there(records, kept),
            memory=memory,
            sources=sources or {},
            stamps=stamps or {},
            compared=compared,
            asked=asked,
            only=only,
            faults=faults,
            progress=progress,
        )
        shelf = Shelf(out, kept, _source("templates"))

        def holds(name: str, key: str) -> bool:
            is_held = shelf.holds(name, key)
            if is_held:
                folder.keep(name)
            return is_held

        for name, text in pages(inputs, _renderer(asked, only, own), holds):
            data = _packed(text.encode()) if name.endswith(".gz") else text.encode()
            folder.put(name, data)
            shelf.took(name, data)
        shelf.close()
        for asset in sorted(_source("assets").iterdir()):
            folder.put(f"assets/{asset.name}", asset.read_bytes())
        folder.close()
    return index


def _renderer(asked: str, only: Sequence[str] = (), own: Path | None = None) -> Renderer:
    return Renderer(
        {path.name: path.read_text("utf-8") for path in sorted(_source("templates").iterdir())},
        records=asked,
        note=narrowed_words(only),
        compiled=None if own is None else Compiled(own),
    )


def _are_there(records: Sequence[Record], kept: Path | None) -> bool:
    return kept is not None and all(jsonl.file_of(run, kept).is_file() for run, _ in records)


def _put_raw(source: Path, folder: Folder, name: str) -> None:
    """Keep a copy of a run's records, gzipped; one that is newer than they are is theirs."""
    if not source.is_file():
        return
    file = folder.at / name
    if file.is_file() and file.stat().st_mtime_ns > source.stat().st_mtime_ns:
        folder.keep(name)
    else:
        folder.put(name, gzip.compress(source.read_bytes(), mtime=0))


def _traces(study: Study, kept: Path | None) -> dict[str, Path]:
    """The traces of a study that are there, by launch."""
    if kept is None:
        return {}
    folder = folder_of(jsonl.file_of(study.run, kept))
    named = {
        launch.id: folder / Path(launch.trace).name for launch in study.profiles if launch.trace
    }
    return {launch: file for launch, file in named.items() if file.is_file()}


def _trace_name(launch: str) -> str:
    return f"traces/{launch}.json.gz"


def _source(kind: str) -> Path:
    """Templates or assets: beside this module where installed, else the checkout's."""
    here = Path(__file__).resolve().parent
    installed = here / kind
    return installed if installed.is_dir() else here.parents[2] / "reports" / kind


def _packed(data: bytes) -> bytes:
    """Gzipped, the same each time; a tenth smaller would take more than twice as long."""
    return gzip.compress(data, compresslevel=1, mtime=0)
