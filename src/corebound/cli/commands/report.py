"""`corebound report`: render the static site."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from corebound.analysis.host_records import Record
from corebound.cli import options, serve
from corebound.cli.options import Records
from corebound.cli.output.terminal import Console
from corebound.errors import Fault, InputError, encodable
from corebound.launch.environments import own_folder
from corebound.records import documents, history_files, jsonl
from corebound.records.history import Series
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import ImportedProfile
from corebound.records.run_record import Run
from corebound.report import site
from corebound.report.inputs import Progress, RequestedComparison, SiteInputs
from corebound.stats.history.series import joined
from corebound.workflow import decisions_file
from corebound.workflow.change_point_cache import known_steps
from corebound.workflow.process_pool import forked
from corebound.workflow.resolve_refs import StoredRun, meant_commits, meant_pair
from corebound.workflow.run_index import known_runs, past_of_known, runs_beside


class Known(Struct, frozen=True, kw_only=True):
    """The input of a report.

    Attributes:
        records: Every run with its launches.
        series: Every history.
        profiles: The imported operator profiles.
    """

    records: tuple[Record, ...]
    series: tuple[Series, ...]
    profiles: tuple[ImportedProfile, ...]


def narrowed(known: Known, wanted: Sequence[str]) -> Known:
    """Select scenarios and imported data by name.

    Args:
        known: The complete input.
        wanted: Names, or shell patterns of names; without any, everything is selected.

    Raises:
        InputError: No name matches.
    """
    if not wanted:
        return known

    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in wanted)

    kept: list[Record] = []
    for run, launches in known.records:
        sources = tuple(one for one in run.scenarios if is_wanted(str(one.document.get("name"))))
        if sources:
            own = tuple(launch for launch in launches if is_wanted(launch.cell.scenario))
            kept.append((replace(run, scenarios=sources), own))
    series = tuple(
        one
        for one in known.series
        if is_wanted(one.scenario) or (one.project is not None and is_wanted(one.project))
    )
    profiles = tuple(one for one in known.profiles if is_wanted(one.name))
    if not kept and not series and not profiles:
        raise InputError(
            what="no scenario has such a name, and no imported project, benchmark or profile.",
            where=f"--only {' --only '.join(wanted)}",
            fix="Give a name that the report shows, or a pattern such as 'resnet50*'.",
        )
    return Known(records=tuple(kept), series=series, profiles=profiles)


def report(
    *,
    records: Records = RECORDS,
    out: Annotated[Path, typer.Option("--out", help="Where the site goes.")] = Path("reports/site"),
    status: options.Status = decisions_file.STATUS,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="A scenario, or an imported project, benchmark or profile; a pattern; repeatable.",
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="A..B",
            help="A page of these two runs or commits too; may be repeated.",
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    serve_: Annotated[
        bool,
        typer.Option("--serve", help="Serve it to this machine, and follow new records."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where --serve does; 0: any free.")
    ] = 8000,
) -> None:
    """Render the static site from every record there is."""
    if records != RECORDS and not records.is_dir():
        # Check this before a typing mistake overwrites an existing site.
        raise InputError(
            what="this is a file, no folder." if records.exists() else "there is no such folder.",
            where=str(records),
            fix="Name the folder of records, or measure into it first: `corebound run --records`.",
        )
    if out.exists() and not out.is_dir():
        raise InputError(
            what="this is a file, and a site is a folder.",
            where=str(out),
            fix="Name a folder with --out; it is made if need be.",
        )
    console = Console(stderr=True, soft_wrap=True)

    def made() -> Path:
        # Progress is shown only on a terminal, and only temporarily.
        with console.status("making the report") as shown:

            def progress(what: str, done: int, every: int) -> None:
                if console.is_terminal:
                    shown.update(Text(f"{what}: {done:,} of {every:,}"))

            return _made(
                console,
                progress,
                records=records,
                out=out,
                status=status,
                only=only or (),
                compare=compare or (),
            )

    index = made()
    typer.echo(encodable(str(index.resolve())))
    if open_:
        typer.launch(str(index.resolve()))
    if serve_:
        serve.serve(out, (records, status), made, console, port=port)


def _made(
    console: Console,
    progress: Progress,
    *,
    records: Path,
    out: Path,
    status: Path,
    only: Sequence[str],
    compare: Sequence[str],
) -> Path:
    """Write the site and report unreadable records; returns its first page."""
    of_runs: list[Fault] = []
    runs = list(known_runs(records, of_runs))
    imported, unreadable = documents.read_profiles(records)
    elsewhere, lost = history_files.read_all(records)
    decisions, flaws = decisions_file.read(status)
    noise, damaged = documents.read_calibrations(records)
    again, torn = documents.read_confirmations(records)
    past = past_of_known((*runs, *runs_beside(records, of_runs)))
    of_runs += (fault for one in runs for fault in one.abstract.faults)
    for fault in (*of_runs, *unreadable, *lost, *flaws, *damaged, *torn):
        console.print(Text(f"warning: {fault}"))
    if not (runs or imported or elsewhere):
        console.print(Text(f"warning: no records in {records}: measure first, with corebound run"))
    every = [(one.abstract.run, one.launches) for one in runs]
    own = joined(series for one in runs for series in one.abstract.series)
    known = narrowed(
        Known(records=tuple(every), series=(*own, *elsewhere), profiles=imported), only
    )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with known_steps(records, of_all=not only) as memory:
        return site.write(
            SiteInputs(
                records=known.records,
                now=now,
                profiles=known.profiles,
                series=known.series,
                past=past,
                decisions=decisions,
                confirmations=again,
                calibrations=noise,
                memory=memory,
                sources=history_files.sources(
                    {one.project for one in elsewhere if one.project}, records
                ),
                # With a selection, some launches of a run may be missing.
                stamps={} if only else {one.abstract.run.id: one.abstract.stamp for one in runs},
                profiled={one.abstract.run.id: one.abstract.profiles for one in runs},
                records_folder="" if records == RECORDS else encodable(str(records)),
                only=only,
                compared=[
                    _pair(asked, [run for run, _ in every], elsewhere, records) for asked in compare
                ],
                faults=of_runs,
                mapper=forked,
                progress=progress,
                warn=lambda text: console.print(Text(f"warning: {text}")),
            ),
            out,
            kept=records,
            own=own_folder(),
        )


def _pair(
    asked: str, runs: Sequence[Run], imported: Sequence[Series], records: Path
) -> RequestedComparison:
    """Resolve two runs to compare, or two imported commits.

    Raises:
        InputError: The text is malformed, or nothing matches.
    """
    before, dots, after = asked.partition("..")
    if not (before and dots and after):
        raise InputError(
            what=f"`{asked}` names no two runs or commits.",
            where="--compare",
            fix="Write A..B: each a run's id or its beginning, or a commit that was measured.",
        )
    kept = [StoredRun(file=jsonl.file_of(run, records), run=run) for run in runs]
    try:
        pair = meant_pair(before, after, kept, records)
    except InputError:
        commits = meant_commits(before, after, imported)
        if commits is None:
            raise
        return RequestedComparison(project=commits[0], before=commits[1], after=commits[2])
    for one in pair:
        if one not in kept:
            raise InputError(
                what="this run is not among the records that the site is made of.",
                where=str(one.file),
                fix=f"Copy it into {records}, or look at it with `corebound compare`.",
            )
    return RequestedComparison(before=pair[0].run.id, after=pair[1].run.id)
