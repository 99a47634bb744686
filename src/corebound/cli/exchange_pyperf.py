"""`corebound import pyperf`: what pyperf measured, as histories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.exchange_histories import Bar, Count, tell
from corebound.cli.options import RECORDS, Json, ProjectName, Records
from corebound.cli.terminal import Console
from corebound.exchange import kept, pyperf_files


def pyperf(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files that pyperf wrote.")
    ],
    *,
    project: ProjectName = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Import what pyperf measured: a point of each benchmark's history a file."""
    name = project or "pyperf"
    with Bar(Console(stderr=True)) as bar:
        found = pyperf_files.read_all(files, project=name, progress=bar.show)
    tell(
        name,
        (Count(found.files, "files", "file"),),
        kept.keep(name, found.series, records),
        found.faults,
        as_json=as_json,
    )
