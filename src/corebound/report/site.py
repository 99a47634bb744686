"""The only writer of the site: reads templates and assets, writes whole files or none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from corebound.errors import InputError
from corebound.model.record import ImportedProfile, Launch, Run
from corebound.report.render import Renderer
from corebound.report.view.claims import claims_page
from corebound.report.view.export import cells_csv, cells_json, imported_csv, operators_csv
from corebound.report.view.operators_page import operators_page
from corebound.report.view.overview import overview_page
from corebound.report.view.scenario import scenario_page
from corebound.report.view.study import Study, latest_studies
from corebound.store import jsonl
from corebound.store.traces import folder_of


def write(
    records: Sequence[tuple[Run, tuple[Launch, ...]]],
    out: Path,
    *,
    now: str,
    kept: Path | None = None,
    profiles: Sequence[ImportedProfile] = (),
) -> Path:
    """Write the site: an overview, a page a scenario, its figures, the assets.

    The same records and moment give the same bytes. Each file appears whole,
    and one that would not change is left alone.

    Args:
        records: Every run with its launches, in any order.
        out: Where the site goes; made if need be.
        now: ISO moment to put on the pages.
        kept: The folder of records, for the traces beside them; None: without.
        profiles: Operator profiles that were imported.

    Returns:
        The path of the overview.

    Raises:
        InputError: the site cannot be written there.
        ScenarioFaults: a recorded scenario is none this version can read.
    """
    index = out / "index.html"
    try:
        studies = latest_studies(records)
        traces = {study.scenario.name: _traces(study, kept) for study in studies}
        for found in traces.values():
            for launch, file in found.items():
                _put(out / _trace_name(launch), file.read_bytes())
        for name, text in _files(studies, now=now, traces=traces, profiles=profiles):
            _put(out / name, text.encode())
        for asset in sorted(_source("assets").iterdir()):
            _put(out / "assets" / asset.name, asset.read_bytes())
    except OSError as error:
        raise InputError(
            what=f"the site cannot be written: {error.strerror}.",
            where=str(error.filename or out),
            mend="Choose another folder with --out, or make this one writable.",
        ) from error
    return index


def files(
    records: Sequence[tuple[Run, tuple[Launch, ...]]],
    *,
    now: str,
    profiles: Sequence[ImportedProfile] = (),
) -> Iterator[tuple[str, str]]:
    """Every page and data file as (path within the site, text), the overview last.

    The overview comes last so that what it links to is there before it.
    """
    yield from _files(latest_studies(records), now=now, traces={}, profiles=profiles)


def _files(
    studies: Sequence[Study],
    *,
    now: str,
    traces: Mapping[str, Mapping[str, Path]],
    profiles: Sequence[ImportedProfile],
) -> Iterator[tuple[str, str]]:
    renderer = Renderer(
        {path.name: path.read_text("utf-8") for path in sorted(_source("templates").iterdir())}
    )
    for study in studies:
        name = study.scenario.name
        records_file = jsonl.file_of(study.run, Path()).as_posix()
        addresses = {launch: f"../{_trace_name(launch)}" for launch in traces.get(name, {})}
        page = scenario_page(study, now=now, records_file=records_file, traces=addresses)
        yield f"data/{name}.csv", cells_csv(study)
        yield f"data/{name}.json", cells_json(study)
        if operators := operators_csv(study):
            yield f"data/{name}.operators.csv", operators
        yield f"scenario/{name}.html", renderer.scenario(page)
    pages: list[tuple[str, str]] = []
    if (claims := claims_page(studies, now=now)) is not None:
        yield "claims.html", renderer.claims(claims)
        pages.append(("Claims: published, and measured here", "claims.html"))
    if (operators_of_all := operators_page(studies, profiles, now=now)) is not None:
        if imported := imported_csv(profiles):
            yield "data/imported.operators.csv", imported
        yield "operators.html", renderer.operators(operators_of_all)
        pages.append(("Operators: where the time of a step goes", "operators.html"))
    yield "index.html", renderer.overview(overview_page(studies, now=now, pages=pages))


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


def _put(file: Path, data: bytes) -> None:
    """Write a file in one step; a reader sees the old one or the new one."""
    try:
        if file.read_bytes() == data:
            return
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fresh.write_bytes(data)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
