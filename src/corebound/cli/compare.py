"""`corebound compare`: two runs, or two commits' records or imported figures, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from corebound.cli.commits_meant import meant_commits
from corebound.cli.compare_words import Told, as_json, as_markdown, of_commits, of_runs, show
from corebound.cli.forking import forked
from corebound.cli.known_steps import known_steps
from corebound.cli.options import RECORDS, Records
from corebound.cli.runs_known import past_of_pair, without_the_unreadable
from corebound.cli.runs_meant import Kept, meant_pair
from corebound.cli.terminal import Console
from corebound.errors import Fault, InputError
from corebound.report.view.chronicle import chronicle
from corebound.report.view.commits_compared import compare_commits
from corebound.report.view.comparing import compare_runs
from corebound.report.view.noise import floors
from corebound.report.view.records import Record
from corebound.store import calibrations, histories, jsonl
from corebound.store.jsonl import Stored

Format = Literal["text", "md"]


def compare(
    before: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A run (id, its beginning, file) or a commit (hash, tag)."
        ),
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The same, to hold against the first.")],
    *,
    records: Records = RECORDS,
    json: Annotated[bool, typer.Option("--json", help="Everything, for scripts.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="text or md.")] = "text",
    all_: Annotated[bool, typer.Option("--all", help="Also what does not clearly differ.")] = False,
) -> None:
    """Compare two runs, or two commits, measured or imported."""
    console = Console(soft_wrap=True)
    told = _told(before, after, records)
    if json:
        typer.echo(as_json(told))
    elif format_ == "md":
        typer.echo(as_markdown(told, all_=all_))
    else:
        show(told, console, all_=all_)


def _told(before: str, after: str, records: Path) -> Told:
    faults: list[Fault] = []
    kept = [Kept(file=file, run=run) for file, run in jsonl.runs(records, faults)]
    try:
        meant = meant_pair(before, after, kept, records)
    except InputError:
        imported, damaged = histories.read_all(records)
        _warn((*faults, *damaged))
        commits = meant_commits(before, after, imported)
        if commits is None:
            raise
        own = (one for one in imported if one.project == commits[0])
        # Of thousands of series that nothing was looked for in before it takes a minute.
        with (
            Console(stderr=True).status("looking for what changed between"),
            known_steps(records, of_all=False) as memory,
        ):
            known = chronicle(own, memory=memory, mapper=forked)
            return of_commits(compare_commits(*commits, known))
    one, two = (jsonl.read(each.file) for each in meant)
    records_of_pair = (_record(one, faults), _record(two, faults))
    noises, damaged = calibrations.read_all(records)
    _warn((*faults, *damaged))
    past = past_of_pair(records, (one.run, two.run))
    found = compare_runs(*records_of_pair, past)
    return of_runs(found, floors(noises, found.after, launches=found.launches))


def _record(stored: Stored, faults: list[Fault]) -> Record:
    run, unreadable = without_the_unreadable(stored)
    faults += unreadable
    return run, stored.launches


def _warn(faults: Iterable[Fault]) -> None:
    console = Console(stderr=True, soft_wrap=True)
    for fault in faults:
        console.print(Text(f"warning: {fault}"))
