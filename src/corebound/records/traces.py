"""Chrome traces of profiled launches, gzipped, beside the file of records they belong to."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from corebound.errors import refusals_told
from corebound.records import atomic_write
from corebound.text import path_component


def folder_of(records: Path) -> Path:
    """Where the traces of a run are kept, given its file of records."""
    return records.with_suffix(".traces")


def file_of(folder: Path, launch: str) -> Path:
    """Where a launch's trace is kept, given the run's folder of traces and the launch's id."""
    return folder / f"{path_component(launch)}.json.gz"


def keep(trace: Path, folder: Path, launch: str) -> Path:
    """Keep a launch's trace; the file appears whole or not at all.

    Args:
        trace: What the profiler wrote.
        folder: Where it goes; made if need be.
        launch: The launch's id.

    Returns:
        The file it is kept in.

    Raises:
        InputError: it cannot be written.
    """
    kept = file_of(folder, launch)
    with (
        refusals_told(
            "a trace could not be kept",
            where=kept,
            mend="Make room, then continue with `corebound run --resume`.",
        ),
        atomic_write.atomic_write(kept) as fresh,
        trace.open("rb") as source,
        fresh.open("wb") as target,
        # Neither name nor time within, so that the same trace is the same file.
        gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed)
    return kept
