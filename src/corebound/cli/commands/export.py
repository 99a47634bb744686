"""`corebound export`: write records in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Records, notifier
from corebound.cli.output.console import Console
from corebound.errors import encodable
from corebound.records.jsonl import RECORDS
from corebound.workflow.export import Format, export_runs


def export(
    format_: Annotated[Format, typer.Argument(metavar="FORMAT", help=", ".join(Format))],
    *,
    out: Annotated[
        Path, typer.Option("--out", help="File to write; for asv, the folder of its results.")
    ],
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="Id of the run; default: the latest, or all for asv, csv and parquet."
        ),
    ] = None,
    records: Records = RECORDS,
) -> None:
    """Write records for other tools, or as a table.

    Examples:
        corebound export csv --out launches.csv
        corebound export asv --out .asv/results
        corebound export pyperf --run 1f0c2d3e --out run.json
    """
    notify = notifier(Console(stderr=True))
    for fault in export_runs(format_, out, records, run=run):
        notify(f"warning: {fault}")
    typer.echo(encodable(str(out)))
