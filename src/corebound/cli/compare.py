"""`corebound compare`: two runs, or two commits' records, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from corebound.cli.compare_words import as_json, as_markdown, show
from corebound.cli.options import Records
from corebound.cli.runs_meant import Kept, meant_pair
from corebound.report.view.comparing import compare_runs
from corebound.report.view.noise import floors
from corebound.report.view.records import Record
from corebound.store import calibrations, jsonl
from corebound.store.jsonl import Stored

Format = Literal["text", "md"]


def compare(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A run (id, its beginning, file) or a commit.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The same, to hold against the first.")],
    *,
    records: Records = Path("reports/records"),
    json: Annotated[bool, typer.Option("--json", help="Everything, for scripts.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="text or md.")] = "text",
    all_: Annotated[bool, typer.Option("--all", help="Also what does not clearly differ.")] = False,
) -> None:
    """Compare two runs, or the latest runs of two commits."""
    console = Console(highlight=False, soft_wrap=True)
    kept = [Kept(file=file, run=jsonl.read_run(file)) for file in jsonl.files(records)]
    one, two = (jsonl.read(meant.file) for meant in meant_pair(before, after, kept, records))
    for fault in (*one.faults, *two.faults):
        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"warning: {fault}"))
    found = compare_runs(_record(one), _record(two))
    noise = floors(calibrations.read_all(records)[0], found.after, launches=found.launches)
    if json:
        typer.echo(as_json(found, noise=noise))
    elif format_ == "md":
        typer.echo(as_markdown(found, all_=all_, noise=noise))
    else:
        show(found, console, all_=all_, noise=noise)


def _record(stored: Stored) -> Record:
    return stored.run, stored.launches
