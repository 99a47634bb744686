"""`corebound list`, `show` and `log`: what was measured, and what a launch printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from corebound.analysis.wording import count
from corebound.cli.commands.run import print_run
from corebound.cli.options import Json, Records
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.json import print_json
from corebound.errors import Fault, InputError
from corebound.records import jsonl
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import Launch
from corebound.scenario.cell import cell_identity
from corebound.workflow.execute import RunResult
from corebound.workflow.resolve_refs import StoredRun, matching_runs
from corebound.workflow.run_index import drop_unreadable_scenarios

# Counting its launches reads the whole file of a run.
_NEWEST = 20

RunName = Annotated[
    str | None, typer.Argument(help="The id of a run, the start of it, or its file; the latest.")
]


def list_(
    *,
    records: Records = RECORDS,
    every: Annotated[bool, typer.Option("--all", help="List every run, not only 20.")] = False,
    as_json: Json = False,
) -> None:
    """List runs, the newest first.

    Examples:
        corebound list
        corebound list --all --json
    """
    stored = sorted(_runs(records), key=lambda one: one.run.started_at, reverse=True)
    shown = stored if every else stored[:_NEWEST]
    counted = [(one, _counts(jsonl.read(one.file).launches)) for one in shown]
    if as_json:
        print_json([_document(one, launches) for one, launches in counted])
        return
    console = Console()
    table = Table(box=None, padding=(0, 1))
    for heading in ("run", "started", "scenarios", "launches", "commit"):
        table.add_column(heading, no_wrap=heading in {"run", "started"}, overflow="fold")
    for one, launches in counted:
        run = one.run
        names = ", ".join(source.document["name"] for source in run.scenarios)
        started = run.started_at.replace("T", " ")[:16]
        commit = run.commit.name if run.commit is not None else "-"
        counts = ", ".join(f"{number} {status}" for status, number in launches.items())
        table.add_row(run.id, started, Text(names), counts or "none", Text(commit))
    print_table(table, console)
    if hidden := len(stored) - len(shown):
        console.print(Text(f"{count(hidden, 'older run')} not shown: `corebound list --all`."))


def show(name: RunName = None, *, records: Records = RECORDS, as_json: Json = False) -> None:
    """Show the results of a run, as `corebound run` prints them.

    Examples:
        corebound show
        corebound show 1f2e3d4c
    """
    stored = _run(name, records)
    recorded = jsonl.read(stored.file)
    run, faults = drop_unreadable_scenarios(recorded)
    _warn(faults)
    # An interrupted run cannot be told from a complete one without planning it again.
    result = RunResult(run=run, file=stored.file, launches=recorded.launches, ending="complete")
    if as_json:
        print_json(result.document)
    else:
        print_run(result, Console())


def log(
    name: RunName = None,
    launch: Annotated[
        str | None, typer.Argument(help="The id of a launch; the last one that failed.")
    ] = None,
    *,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Print the output of a launch, with its traceback.

    Examples:
        corebound log
        corebound log 1f2e3d4c hashing-0-1
    """
    stored = _run(name, records)
    found = _launch(jsonl.read(stored.file).launches, stored, launch)
    if as_json:
        print_json(
            {
                **cell_identity(found.cell.scenario, found.cell.key),
                "run": found.run,
                "launch": found.id,
                "status": found.status,
                "reason": found.reason,
                "log": found.log,
            }
        )
        return
    why = "" if found.reason is None else f": {found.reason}"
    Console(stderr=True).print(
        Text(f"{found.cell.id}, launch {found.id}, {found.status}{why}"), soft_wrap=True
    )
    typer.echo(found.log, nl=not found.log.endswith("\n"))


def _launch(launches: tuple[Launch, ...], stored: StoredRun, name: str | None) -> Launch:
    if name is None:
        failed = [one for one in launches if one.status in {"failed", "timed-out"}]
        if failed:
            return failed[-1]
        raise InputError(
            what="no launch of this run failed.",
            where=str(stored.file),
            fix="Name a launch; their ids are in the records.",
        )
    for one in launches:
        if one.id == name:
            return one
    ids = ", ".join(one.id for one in launches[:8])
    raise InputError(
        what=f"this run has no launch `{name}`.", where=str(stored.file), fix=f"It has {ids}, …"
    )


def _runs(records: Path) -> list[StoredRun]:
    faults: list[Fault] = []
    stored = [StoredRun(file=file, run=run) for file, run in jsonl.runs(records, faults)]
    _warn(faults)
    if not stored:
        raise InputError(
            what="no run is recorded here.",
            where=str(records),
            fix="Measure something: `corebound run FILE`. Or name a folder with --records.",
        )
    return stored


def _run(name: str | None, records: Path) -> StoredRun:
    runs = _runs(records)
    matches = runs if name is None else matching_runs(name, runs, records)
    return max(matches, key=lambda one: (one.run.started_at, one.run.id))


def _warn(faults: Sequence[Fault]) -> None:
    console = Console(stderr=True)
    for fault in faults:
        console.print(Text(f"warning: {fault}"), soft_wrap=True)


def _counts(launches: tuple[Launch, ...]) -> dict[str, int]:
    return dict(Counter(launch.status for launch in launches))


def _document(stored: StoredRun, launches: dict[str, int]) -> dict[str, object]:
    run = stored.run
    return {
        "run": run.id,
        "file": str(stored.file),
        "started_at": run.started_at,
        "host": run.host.name,
        "scenarios": [source.document["name"] for source in run.scenarios],
        "profile": run.profile,
        "commit": run.commit.name if run.commit is not None else None,
        "launches": launches,
    }
