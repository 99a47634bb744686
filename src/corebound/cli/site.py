"""`corebound report`: the static site."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from corebound.cli import regressions_status
from corebound.errors import Fault, ScenarioFaults
from corebound.model.record import Run
from corebound.planning.load import load_document
from corebound.report import site
from corebound.stats.regressions import changes
from corebound.stats.regressions_judged import states
from corebound.stats.series import joined, series_of_run
from corebound.store import calibrations, histories, jsonl, profiles
from corebound.store.jsonl import Stored

Records = Annotated[Path, typer.Option("--records", help="The folder of records.")]


def report(
    *,
    records: Records = Path("reports/records"),
    out: Annotated[Path, typer.Option("--out", help="Where the site goes.")] = Path("reports/site"),
    status: regressions_status.Status = regressions_status.STATUS,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
) -> None:
    """Render the static site from every record there is."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    stored = [jsonl.read(file) for file in jsonl.files(records)]
    readable = [without_the_unreadable(one) for one in stored]
    imported, unreadable = profiles.read_all(records)
    elsewhere, lost = histories.read_all(records)
    decisions, flaws = regressions_status.read(status)
    noise, damaged = calibrations.read_all(records)
    of_runs = (fault for _, faults in readable for fault in faults)
    for fault in (*of_runs, *unreadable, *lost, *flaws, *damaged):
        console.print(Text(f"warning: {fault}"))
    known = [(run, one.launches) for one, (run, _) in zip(stored, readable, strict=True)]
    own = joined(series for record in known for series in series_of_run(*record))
    series = (*own, *elsewhere)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    index = site.write(
        known,
        out,
        now=now,
        kept=records,
        profiles=imported,
        series=series,
        # A change is looked for only where something was decided about one.
        statuses=states(changes(series), decisions) if decisions else {},
        calibrations=noise,
    )
    typer.echo(index.resolve())
    if open_:
        typer.launch(str(index.resolve()))


def without_the_unreadable(one: Stored) -> tuple[Run, tuple[Fault, ...]]:
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
