"""`corebound report`: the static site."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli import regressions_status, serve
from corebound.cli.commits_meant import meant_commits
from corebound.cli.forking import forked
from corebound.cli.known_steps import known_steps
from corebound.cli.options import RECORDS, Records
from corebound.cli.runs_known import known_runs, past_of_known, runs_beside
from corebound.cli.runs_meant import Kept, meant_pair
from corebound.cli.site_only import Known, narrowed
from corebound.cli.terminal import Console
from corebound.errors import Fault, InputError, encodable
from corebound.launch.own_folder import own_folder
from corebound.model.run import Run
from corebound.model.series import Series
from corebound.report import site
from corebound.report.inputs import Inputs, Pair, Progress
from corebound.stats.series import joined
from corebound.store import calibrations, confirmations, histories, jsonl, profiles


def report(
    *,
    records: Records = RECORDS,
    out: Annotated[Path, typer.Option("--out", help="Where the site goes.")] = Path("reports/site"),
    status: regressions_status.Status = regressions_status.STATUS,
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
        # Before a site that is there is lost to a typing mistake.
        raise InputError(
            what="this is a file, no folder." if records.exists() else "there is no such folder.",
            where=str(records),
            mend="Name the folder of records, or measure into it first: `corebound run --records`.",
        )
    if out.exists() and not out.is_dir():
        raise InputError(
            what="this is a file, and a site is a folder.",
            where=str(out),
            mend="Name a folder with --out; it is made if need be.",
        )
    console = Console(stderr=True, soft_wrap=True)

    def made() -> Path:
        # Only a terminal shows it, and only while it lasts.
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
    """Make the site, and tell what of the records could not be read; its first page."""
    of_runs: list[Fault] = []
    runs = list(known_runs(records, of_runs))
    imported, unreadable = profiles.read_all(records)
    elsewhere, lost = histories.read_all(records)
    decisions, flaws = regressions_status.read(status)
    noise, damaged = calibrations.read_all(records)
    again, torn = confirmations.read_all(records)
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
            Inputs(
                records=known.records,
                now=now,
                profiles=known.profiles,
                series=known.series,
                past=past,
                decisions=decisions,
                confirmations=again,
                calibrations=noise,
                memory=memory,
                sources=histories.sources(
                    {one.project for one in elsewhere if one.project}, records
                ),
                # Of a run's launches some may have been left out.
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


def _pair(asked: str, runs: Sequence[Run], imported: Sequence[Series], records: Path) -> Pair:
    """Two runs that are to be compared, or two commits that were imported.

    Raises:
        InputError: they are not named like this, or none is meant.
    """
    before, dots, after = asked.partition("..")
    if not (before and dots and after):
        raise InputError(
            what=f"`{asked}` names no two runs or commits.",
            where="--compare",
            mend="Write A..B: each a run's id or its beginning, or a commit that was measured.",
        )
    kept = [Kept(file=jsonl.file_of(run, records), run=run) for run in runs]
    try:
        pair = meant_pair(before, after, kept, records)
    except InputError:
        commits = meant_commits(before, after, imported)
        if commits is None:
            raise
        return Pair(project=commits[0], before=commits[1], after=commits[2])
    for one in pair:
        if one not in kept:
            raise InputError(
                what="this run is not among the records that the site is made of.",
                where=str(one.file),
                mend=f"Copy it into {records}, or look at it with `corebound compare`.",
            )
    return Pair(before=pair[0].run.id, after=pair[1].run.id)
