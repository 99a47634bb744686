"""Store Chrome traces of profiled launches, gzipped, beside the record file of their run."""

import gzip
import shutil
from pathlib import Path

from corebound.errors import report_os_errors
from corebound.records import atomic_write
from corebound.text import path_component


def folder_of(records: Path) -> Path:
    """The folder of a run's traces, given its record file."""
    return records.with_suffix(".traces")


def file_of(folder: Path, launch: str) -> Path:
    """The file of a launch's trace, given the run's folder of traces and the launch's id."""
    return folder / f"{path_component(launch)}.json.gz"


def keep(trace: Path, folder: Path, launch: str) -> Path:
    """Store a launch's trace atomically.

    Args:
        folder: The destination folder; created if necessary.
        launch: The launch's id.

    Returns:
        The file, written as a whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    target_file = file_of(folder, launch)
    with (
        report_os_errors(
            "a trace could not be stored",
            where=target_file,
            fix="Free some space, then continue with `corebound run --resume`.",
        ),
        atomic_write.atomic_write(target_file) as fresh,
        trace.open("rb") as source,
        fresh.open("wb") as target,
        # Without name and time in the header, so that the same trace gives the same file.
        gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed)
    return target_file
