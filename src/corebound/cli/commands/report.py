"""`corebound report`: render the static site."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from corebound import clock
from corebound.analysis.host_records import Record
from corebound.cli.options import Records, Status, notifier
from corebound.cli.output.console import Console
from corebound.cli.serve import serve_site
from corebound.errors import Fault, InputError, encodable
from corebound.launch.environments import cache_dir
from corebound.records import documents, history_files, jsonl
from corebound.records.decisions import (
    DECISIONS_FILE,
    read_decisions_file,
)
from corebound.records.history import Series
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import ImportedProfile
from corebound.records.run_record import Run
from corebound.report import site
from corebound.report.inputs import Progress, RequestedComparison, SiteInputs
from corebound.stats.history.series import joined
from corebound.workflow.change_point_cache import cached_change_points
from corebound.workflow.process_pool import forked_map
from corebound.workflow.projects import Notify
from corebound.workflow.resolve_refs import StoredRun, resolve_commits, resolve_runs
from corebound.workflow.run_index import auxiliary_runs, earlier_results, indexed_runs


def report(
    *,
    records: Records = RECORDS,
    out: Annotated[Path, typer.Option("--out", help="Folder to write the site to.")] = Path(
        "reports/site"
    ),
    status: Status = DECISIONS_FILE,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Scenario, or imported project, benchmark or profile; a name or pattern;"
            " repeatable.",
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare", metavar="A..B", help="Add a page for two runs or commits; repeatable."
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the site in the browser.")] = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Serve the site on this machine, and update it."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of --serve; 0: any free port.")
    ] = 8000,
) -> None:
    """Write the static site from all records.

    Examples:
        corebound report --open
        corebound report --serve
        corebound report --only 'resnet50*' --compare v1.2..v1.3
    """
    if records != RECORDS and not records.is_dir():
        # Check this before a typing mistake overwrites an existing site.
        raise InputError(
            what="not a folder." if records.exists() else "no such folder.",
            where=str(records),
            fix="Name the folder of records, or measure into it first: `corebound run --records`.",
        )
    if out.exists() and not out.is_dir():
        raise InputError(
            what="not a folder.",
            where=str(out),
            fix="Name a folder with --out; it is created if necessary.",
        )
    console = Console(stderr=True, soft_wrap=True)

    def build() -> Path:
        # Progress is shown only on a terminal, and only temporarily.
        with console.status("Writing the report") as shown:

            def progress(step: str, done: int, total: int) -> None:
                if console.is_terminal:
                    shown.update(Text(f"{step}: {done:,} of {total:,}"))

            return _build(
                notifier(console),
                progress,
                records=records,
                out=out,
                status=status,
                only=only or (),
                compare=compare or (),
            )

    index = build()
    typer.echo(encodable(str(index.resolve())))
    if open_:
        typer.launch(str(index.resolve()))
    if serve:
        serve_site(out, (records, status), build, notifier(console), port=port)


def _build(
    notify: Notify,
    progress: Progress,
    *,
    records: Path,
    out: Path,
    status: Path,
    only: Sequence[str],
    compare: Sequence[str],
) -> Path:
    """Write the site and report unreadable records; returns its first page."""
    faults: list[Fault] = []
    runs = list(indexed_runs(records, faults))
    profiles, unreadable_profiles = documents.read_profiles(records)
    imported, damaged_histories = history_files.read_all(records)
    decisions, decision_faults = read_decisions_file(status)
    calibrations, damaged_calibrations = documents.read_calibrations(records)
    confirmations, damaged_confirmations = documents.read_confirmations(records)
    past = earlier_results((*runs, *auxiliary_runs(records, faults)))
    faults += (fault for run in runs for fault in run.summary.faults)
    for fault in (
        *faults,
        *unreadable_profiles,
        *damaged_histories,
        *decision_faults,
        *damaged_calibrations,
        *damaged_confirmations,
    ):
        notify(f"warning: {fault}")
    if not (runs or profiles or imported):
        notify(f"warning: no records in {records}: measure first with `corebound run`")
    own_series = joined(series for run in runs for series in run.summary.series)
    content = select_content(
        SiteContent(
            records=tuple((run.summary.run, run.launches) for run in runs),
            series=(*own_series, *imported),
            profiles=profiles,
        ),
        only,
    )
    with cached_change_points(records, all_series=not only) as cache:
        return site.write(
            SiteInputs(
                records=content.records,
                now=clock.utc_now().isoformat(timespec="seconds"),
                profiles=content.profiles,
                series=content.series,
                past=past,
                decisions=decisions,
                confirmations=confirmations,
                calibrations=calibrations,
                memory=cache,
                sources=history_files.sources(
                    {series.project for series in imported if series.project}, records
                ),
                # With a selection, some launches of a run may be missing.
                stamps={} if only else {run.summary.run.id: run.summary.stamp for run in runs},
                profiled={run.summary.run.id: run.summary.profiles for run in runs},
                records_folder="" if records == RECORDS else encodable(str(records)),
                only=only,
                compared=[
                    _pair(argument, [run.summary.run for run in runs], imported, records)
                    for argument in compare
                ],
                faults=faults,
                mapper=forked_map,
                progress=progress,
                warn=lambda text: notify(f"warning: {text}"),
            ),
            out,
            records=records,
            cache_folder=cache_dir(),
        )


def _pair(
    argument: str, runs: Sequence[Run], imported: Sequence[Series], records: Path
) -> RequestedComparison:
    """Resolve two runs to compare, or two imported commits.

    Raises:
        InputError: The text is malformed, or nothing matches.
    """
    before, dots, after = argument.partition("..")
    if not (before and dots and after):
        raise InputError(
            what=f"`{argument}` does not name two runs or commits.",
            where="--compare",
            fix="Write A..B: each the id of a run or its start, or a measured commit.",
        )
    recorded = [StoredRun(file=jsonl.file_of(run, records), run=run) for run in runs]
    try:
        pair = resolve_runs(before, after, recorded, records)
    except InputError:
        commits = resolve_commits(before, after, imported)
        if commits is None:
            raise
        return RequestedComparison(project=commits[0], before=commits[1], after=commits[2])
    for stored in pair:
        if stored not in recorded:
            raise InputError(
                what="this run is not among the records of the site.",
                where=str(stored.file),
                fix=f"Copy it into {records}, or use `corebound compare`.",
            )
    return RequestedComparison(before=pair[0].run.id, after=pair[1].run.id)


class SiteContent(Struct, frozen=True, kw_only=True):
    """What a site shows.

    Attributes:
        records: Every run with its launches.
        series: Every history.
        profiles: The imported operator profiles.
    """

    records: tuple[Record, ...]
    series: tuple[Series, ...]
    profiles: tuple[ImportedProfile, ...]


def select_content(content: SiteContent, only: Sequence[str]) -> SiteContent:
    """Select scenarios and imported data by name.

    Args:
        content: The complete content.
        only: Names, or shell patterns of names; without any, everything is selected.

    Raises:
        InputError: No name matches.
    """
    if not only:
        return content

    def matches(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in only)

    records: list[Record] = []
    for run, launches in content.records:
        sources = tuple(
            source for source in run.scenarios if matches(str(source.document.get("name")))
        )
        if sources:
            selected = tuple(launch for launch in launches if matches(launch.cell.scenario))
            records.append((replace(run, scenarios=sources), selected))
    series = tuple(
        one_series
        for one_series in content.series
        if matches(one_series.scenario)
        or (one_series.project is not None and matches(one_series.project))
    )
    profiles = tuple(profile for profile in content.profiles if matches(profile.name))
    if not records and not series and not profiles:
        raise InputError(
            what="no scenario and no imported project, benchmark or profile has this name.",
            where=f"--only {' --only '.join(only)}",
            fix="Give a name that the report shows, or a pattern such as 'resnet50*'.",
        )
    return SiteContent(records=tuple(records), series=series, profiles=profiles)
