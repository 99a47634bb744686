"""Write records in the formats of other tools, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from corebound.errors import InputError
from corebound.records.jsonl import RECORDS
from corebound.workflow.export import Export, Format, export_records


def export(
    file_format: str,
    out: str | PathLike[str],
    *,
    run: str | None = None,
    only: Sequence[str] | None = None,
    records: str | PathLike[str] = RECORDS,
) -> Export:
    """Write recorded runs or histories for other tools, as `corebound export` does.

    Args:
        file_format: `asv`, `pyperf`, `bencher`, `github-action-benchmark`, `csv`, `parquet`,
            `openmetrics` or `history`.
        out: The file to write; for asv, the folder of its results.
        run: The id of the run; None is the latest, or all for asv, CSV and Parquet. Not for
            `history`.
        only: For `history`: ids of series, or names of scenarios, benchmarks and projects, or shell
            patterns of names; None is all.
        records: The folder of records.

    Returns:
        The file, and what could not be read or has no place in the format; `document` is what
        `corebound export --json` prints.

    Raises:
        InputError: The format is unknown, an argument does not fit it, nothing can be exported, or
            a file cannot be written.
    """
    if file_format not in {*Format}:
        raise InputError(
            what=f"`{file_format}` is not a format.",
            where="corebound.export",
            fix=f"The formats are {', '.join(Format)}.",
        )
    return export_records(Format(file_format), Path(out), Path(records), run=run, only=only)
