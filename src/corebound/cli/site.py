"""`corebound report`: the static site."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from corebound.errors import Fault, ScenarioFaults
from corebound.model.record import Run
from corebound.planning.load import load_document
from corebound.report import site
from corebound.store import jsonl, profiles
from corebound.store.jsonl import Stored

Records = Annotated[Path, typer.Option("--records", help="The folder of records.")]


def report(
    *,
    records: Records = Path("reports/records"),
    out: Annotated[Path, typer.Option("--out", help="Where the site goes.")] = Path("reports/site"),
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Render the static site from every record there is."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    stored = [jsonl.read(file) for file in jsonl.files(records)]
    readable = [_readable(one) for one in stored]
    imported, unreadable = profiles.read_all(records)
    for fault in (*(fault for _, faults in readable for fault in faults), *unreadable):
        console.print(Text(f"warning: {fault}"))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    index = site.write(
        [(run, one.launches) for one, (run, _) in zip(stored, readable, strict=True)],
        out,
        now=now,
        kept=records,
        profiles=imported,
    )
    typer.echo(index.resolve())
    if open_:
        typer.launch(str(index.resolve()))


def _readable(one: Stored) -> tuple[Run, tuple[Fault, ...]]:
    """The run without the scenarios that this version cannot read, and what is wrong with it."""
    faults = list(one.faults)
    sources = []
    for source in one.run.scenarios:
        try:
            load_document(source.document, f"{one.file}:{source.path}")
            sources.append(source)
        except ScenarioFaults as error:
            faults += error.faults
    return replace(one.run, scenarios=tuple(sources)), tuple(faults)
