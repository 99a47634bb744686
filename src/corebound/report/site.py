"""The only writer of the site: reads templates and assets, writes whole files or none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from corebound.errors import InputError
from corebound.model.record import Launch, Run
from corebound.report.render import Renderer
from corebound.report.view.export import cells_csv, cells_json
from corebound.report.view.overview import overview_page
from corebound.report.view.scenario import scenario_page
from corebound.report.view.study import latest_studies
from corebound.store import jsonl


def write(records: Sequence[tuple[Run, tuple[Launch, ...]]], out: Path, *, now: str) -> Path:
    """Write the site: an overview, a page a scenario, its figures, the assets.

    The same records and moment give the same bytes. Each file appears whole,
    and one that would not change is left alone.

    Args:
        records: Every run with its launches, in any order.
        out: Where the site goes; made if need be.
        now: ISO moment to put on the pages.

    Returns:
        The path of the overview.

    Raises:
        InputError: the site cannot be written there.
        ScenarioFaults: a recorded scenario is none this version can read.
    """
    index = out / "index.html"
    try:
        for name, text in files(records, now=now):
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
    records: Sequence[tuple[Run, tuple[Launch, ...]]], *, now: str
) -> Iterator[tuple[str, str]]:
    """Every page and data file as (path within the site, text), the overview last.

    The overview comes last so that what it links to is there before it.
    """
    renderer = Renderer(
        {path.name: path.read_text("utf-8") for path in sorted(_source("templates").iterdir())}
    )
    studies = latest_studies(records)
    for study in studies:
        name = study.scenario.name
        records_file = jsonl.file_of(study.run, Path()).as_posix()
        page = scenario_page(study, now=now, records_file=records_file)
        yield f"data/{name}.csv", cells_csv(study)
        yield f"data/{name}.json", cells_json(study)
        yield f"scenario/{name}.html", renderer.scenario(page)
    yield "index.html", renderer.overview(overview_page(studies, now=now))


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
