"""`corebound export`: write records in the formats of other tools."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Json, Records, notifier
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.errors import InputError, encodable
from corebound.records.jsonl import RECORDS
from corebound.workflow.export import Format, export_histories, export_runs


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
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="For history: scenario, imported project or benchmark, by name or pattern;"
            " or the id of a series; repeatable.",
        ),
    ] = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Write records for other tools, or as a table.

    Examples:
        corebound export csv --out launches.csv
        corebound export asv --out .asv/results
        corebound export pyperf --run 1f0c2d3e --out run.json
        corebound export history --only 'io.*' --out points.csv
    """
    notify = notifier(Console(stderr=True))
    option = "--run" if format_ is Format.HISTORY else "--only"
    if (run if format_ is Format.HISTORY else only) is not None:
        raise InputError(
            what=f"{format_} cannot be combined with this option.",
            where=option,
            fix=f"Leave out {option}.",
        )
    if format_ is Format.HISTORY:
        faults = export_histories(out, records, only=only or ())
    else:
        faults = export_runs(format_, out, records, run=run)
    for fault in faults:
        notify(f"warning: {fault}")
    if as_json:
        print_json({"out": encodable(str(out)), "faults": [asdict(fault) for fault in faults]})
    else:
        typer.echo(encodable(str(out)))
