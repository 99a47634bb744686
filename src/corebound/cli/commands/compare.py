"""`corebound compare`: compare two runs, or the results of two commits, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from corebound.analysis.change_history import build_change_history
from corebound.analysis.commit_comparison import compare_commits
from corebound.analysis.comparison import compare_runs
from corebound.analysis.host_records import Record
from corebound.analysis.noise_floor import floors
from corebound.cli.options import Records
from corebound.cli.output.compare import (
    ComparisonText,
    as_json,
    as_markdown,
    of_commits,
    of_runs,
    show,
)
from corebound.cli.output.terminal import Console
from corebound.errors import Fault, InputError
from corebound.records import documents, history_files, jsonl
from corebound.records.jsonl import RECORDS, Stored
from corebound.workflow.change_point_cache import known_steps
from corebound.workflow.process_pool import forked
from corebound.workflow.resolve_refs import StoredRun, meant_commits, meant_pair
from corebound.workflow.run_index import past_of_pair, without_the_unreadable

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


def _told(before: str, after: str, records: Path) -> ComparisonText:
    faults: list[Fault] = []
    kept = [StoredRun(file=file, run=run) for file, run in jsonl.runs(records, faults)]
    try:
        meant = meant_pair(before, after, kept, records)
    except InputError:
        imported, damaged = history_files.read_all(records)
        _warn((*faults, *damaged))
        commits = meant_commits(before, after, imported)
        if commits is None:
            raise
        own = (one for one in imported if one.project == commits[0])
        # Thousands of series that were never analysed before take a minute.
        with (
            Console(stderr=True).status("looking for what changed between"),
            known_steps(records, of_all=False) as memory,
        ):
            known = build_change_history(own, memory=memory, mapper=forked)
            return of_commits(compare_commits(*commits, known))
    one, two = (jsonl.read(each.file) for each in meant)
    records_of_pair = (_record(one, faults), _record(two, faults))
    noises, damaged = documents.read_calibrations(records)
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
