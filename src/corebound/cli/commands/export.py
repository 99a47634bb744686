"""`corebound export`: write records in the formats of other tools."""

from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.records.jsonl import RECORDS
from corebound.workflow import export as workflow
from corebound.workflow.export import Format
from corebound.workflow.options import Argument, Option, Records


def export(
    format_: Annotated[Format, Argument(", ".join(Format), metavar="FORMAT")],
    *,
    out: Annotated[Path, Option("File to write; for asv, the folder of its results.")],
    run: Annotated[
        str | None, Option("Id of the run; default: the latest, or all for asv, csv and parquet.")
    ] = None,
    only: Annotated[
        tuple[str, ...],
        Option(
            "For history: scenario, imported project or benchmark, by name or pattern;"
            " or the id of a series; repeatable."
        ),
    ] = (),
    records: Records = RECORDS,
) -> Output:
    """Write records for other tools, or as a table.

    Examples:
        corebound export csv --out launches.csv
        corebound export asv --out .asv/results
        corebound export pyperf --run 1f0c2d3e --out run.json
        corebound export history --only 'io.*' --out points.csv
    """
    exported = workflow.export(format_, out, run=run, only=only or None, records=records)
    for fault in exported.faults:
        Console(stderr=True).print_line(f"warning: {fault}")
    return Output(exported, lambda: typer.echo(exported.document["out"]))
