"""Writes the site: the only module that reads templates and assets and writes pages."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_studies, with_profiles_before
from corebound.errors import refusals_told
from corebound.records import jsonl
from corebound.records.run_record import Run
from corebound.records.traces import file_of, folder_of
from corebound.report.bytecode_cache import Compiled
from corebound.report.elements import narrowed_words
from corebound.report.inputs import Inputs
from corebound.report.page_cache import Shelf
from corebound.report.render import Renderer
from corebound.report.site_directory import Folder
from corebound.report.site_pages import pages
from corebound.report.urls import raw_file, trace_file


def write(inputs: Inputs, out: Path, *, kept: Path | None = None, own: Path | None = None) -> Path:
    """Write the site: an overview; pages for scenarios, runs, hosts and histories; the assets.

    The same records and timestamp give the same bytes, whatever site was there before. Each file is
    written atomically, and unchanged files are left alone. Files of the previous site that are not
    part of this one are removed.

    Args:
        inputs: The data that the site is made from.
        out: The folder of the site; created if it does not exist.
        kept: The folder of records, for copies of them and of traces; None: no copies.
        own: The cache folder of this user; None: no cache.

    Returns:
        The path of the overview.

    Raises:
        InputError: the site cannot be written there, or requested runs or commits are not
            comparable.
        ScenarioFaults: this version cannot read a recorded scenario.
    """
    with refusals_told(
        "the site cannot be written",
        where=out,
        fix="Choose another folder with --out, or make this one writable.",
    ):
        runs = [run for run, _ in inputs.records]
        studies = with_profiles_before(latest_studies(inputs.records), runs, inputs.profiled)
        folder = Folder(out)
        traces: dict[str, str] = {}
        raw = False
        if kept is not None:
            traces = _put_traces(studies, kept, folder)
            raw = _put_raw(runs, kept, folder)
        shelf = Shelf(out, kept, _source("templates"))

        def holds(name: str, key: str) -> bool:
            is_held = shelf.holds(name, key)
            if is_held:
                folder.keep(name)
            return is_held

        renderer = _renderer(inputs, own)
        for name, text in pages(inputs, studies, renderer, holds, traces=traces, raw=raw):
            data = _packed(text.encode()) if name.endswith(".gz") else text.encode()
            folder.put(name, data)
            shelf.took(name, data)
        shelf.close()
        for asset in sorted(_source("assets").iterdir()):
            folder.put(f"assets/{asset.name}", asset.read_bytes())
        folder.close()
    return out / "index.html"


def _renderer(inputs: Inputs, own: Path | None = None) -> Renderer:
    return Renderer(
        {path.name: path.read_text("utf-8") for path in sorted(_source("templates").iterdir())},
        records=inputs.records_folder,
        note=narrowed_words(inputs.only),
        bytecode_cache=None if own is None else Compiled(own),
    )


def _put_raw(runs: Sequence[Run], kept: Path, folder: Folder) -> bool:
    """Copy each run's records into the site, gzipped; return whether all of them are there."""
    of_all = True
    for run in runs:
        source, name = jsonl.file_of(run, kept), raw_file(run)
        copy = folder.at / name
        if not source.is_file():
            of_all = False
        elif copy.is_file() and copy.stat().st_mtime_ns > source.stat().st_mtime_ns:
            # The copy is newer than the records, so it is up to date.
            folder.keep(name)
        else:
            folder.put(name, gzip.compress(source.read_bytes(), mtime=0))
    return of_all


def _put_traces(studies: Sequence[ScenarioResult], kept: Path, folder: Folder) -> dict[str, str]:
    """Copy the existing traces into the site; return the path of each by launch."""
    found: dict[str, str] = {}
    for study in studies:
        beside = folder_of(jsonl.file_of(study.run, kept))
        for launch in study.profiles:
            if launch.trace and (file := file_of(beside, launch.id)).is_file():
                found[launch.id] = trace_file(launch.id)
                folder.put(found[launch.id], file.read_bytes())
    return found


def _source(kind: str) -> Path:
    """The folder of templates or assets: beside this module if installed, else in the checkout."""
    here = Path(__file__).resolve().parent
    installed = here / kind
    return installed if installed.is_dir() else here.parents[2] / "reports" / kind


def _packed(data: bytes) -> bytes:
    """Gzip with reproducible bytes.

    Compressing a tenth better would take more than twice as long.
    """
    return gzip.compress(data, compresslevel=1, mtime=0)
