"""`corebound list`, `show` and `log`: what was measured, and what a launch printed."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from corebound.analysis.launch_counts import LaunchCounts, launch_counts
from corebound.analysis.wording import count
from corebound.cli.commands.run import print_run
from corebound.cli.options import Output
from corebound.cli.output.console import Console, print_table
from corebound.records import jsonl
from corebound.records.jsonl import RECORDS
from corebound.workflow.options import Argument, Metric, Option, Records
from corebound.workflow.recorded_runs import (
    RecordedRun,
    find_run,
    launch_log,
    list_runs,
    recorded_result,
    recorded_run,
)

# Counting its launches reads the whole file of a run.
_NEWEST = 20

RunName = Annotated[
    str | None, Argument("The id of a run, the start of it, or its file; the latest.")
]


def list_(
    *,
    records: Records = RECORDS,
    every: Annotated[bool, Option("List every run, not only 20.", name="--all")] = False,
) -> Output:
    """List runs, the newest first.

    Examples:
        corebound list
        corebound list --all --json
    """
    stored = list_runs(records, Console(stderr=True).print_line)
    shown = stored if every else stored[:_NEWEST]
    runs = [
        (recorded_run(stored), launch_counts(stored.launches))
        for stored in (jsonl.read(each.file) for each in shown)
    ]
    hidden = len(stored) - len(shown)
    return Output([run for run, _ in runs], partial(_show_list, runs, hidden, Console()))


def _show_list(
    runs: Sequence[tuple[RecordedRun, LaunchCounts]], hidden: int, console: Console
) -> None:
    table = Table(box=None, padding=(0, 1))
    for heading in ("run", "started", "scenarios", "launches", "commit"):
        table.add_column(heading, no_wrap=heading in {"run", "started"}, overflow="fold")
    for run, counts in runs:
        started = run.started_at.replace("T", " ")[:16]
        names = Text(", ".join(run.scenarios))
        table.add_row(run.run, started, names, counts.says, Text(run.commit or "-"))
    print_table(table, console)
    if hidden:
        console.print(Text(f"{count(hidden, 'older run')} not shown: `corebound list --all`."))


def show(
    name: RunName = None,
    *,
    metric: Metric = "time",
    records: Records = RECORDS,
) -> Output:
    """Show the results of a run, as `corebound run` prints them.

    Examples:
        corebound show
        corebound show 1f2e3d4c --metric memory
    """
    notify = Console(stderr=True).print_line
    result = recorded_result(find_run(name, records, notify), notify).judged_by(metric)
    return Output(result, partial(print_run, result, Console()))


def log(
    name: RunName = None,
    launch: Annotated[str | None, Argument("The id of a launch; the last one that failed.")] = None,
    *,
    records: Records = RECORDS,
) -> Output:
    """Print the output of a launch, with its traceback.

    Examples:
        corebound log
        corebound log 1f2e3d4c hashing-0-1
    """
    notes = Console(stderr=True)
    found = launch_log(find_run(name, records, notes.print_line), launch)

    def show() -> None:
        why = "" if found.reason is None else f": {found.reason}"
        notes.print_line(f"{found.id}, launch {found.launch}, {found.status}{why}")
        typer.echo(found.log, nl=not found.log.endswith("\n"))

    return Output(found, show)
