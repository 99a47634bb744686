"""`corebound reproduce`: measure a recorded result again under the same conditions, and compare."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from corebound.analysis.comparison import earlier_runs
from corebound.asv_bridge.project import open_project
from corebound.cli import noise_notes, options
from corebound.cli.commands import doctor, run
from corebound.cli.options import Config, Json, Records, Unlocked, Wait, take_host
from corebound.cli.output import reproduce as output_reproduce
from corebound.cli.output.reproduce import ReproduceResult
from corebound.cli.output.terminal import Console
from corebound.errors import HostError, InputError, LaunchError
from corebound.records import jsonl
from corebound.records.jsonl import RECORDS, Stored
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.loader import load_document
from corebound.scenario.models import Scenario, measure_for
from corebound.stats.between_runs import BetweenRuns, between_runs
from corebound.stats.comparison import compare
from corebound.stats.history.series import environment_keys_of_run
from corebound.stats.launch_summary import summarise
from corebound.workflow import compare_commits, prepare, projects
from corebound.workflow.prepare import PreparedRun, RunRequest
from corebound.workflow.projects import Say
from corebound.workflow.run_index import REPRODUCTIONS, past_of_pair
from corebound.workflow.scenarios import Loaded

# An estimate of the spread needs several launches, even if fewer were recorded.
_FEWEST_LAUNCHES = 3


def reproduce(
    record: Annotated[
        str, typer.Argument(metavar="RECORD[:CELL]", help="A run's file, its id or its beginning.")
    ],
    *,
    cell: Annotated[
        str | None, typer.Option("--cell", help="The cell's key or id, as reports show it.")
    ] = None,
    launches: Annotated[
        int | None,
        typer.Option("--launches", min=2, max=1000, help="Else as many as were recorded."),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Measure although host or environment differ.")
    ] = False,
    unlocked: Unlocked = False,
    wait: Wait = None,
    config: Config = projects.CONFIG,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Measure a figure again, and say if it holds.

    Exits with 1 if it does not.
    """
    console = Console(stderr=True, soft_wrap=True)
    wait_s = 0.0 if wait is None else run.seconds(wait, option="--wait")
    stored, named = _meant(record, records)
    before, chosen = stored.run, _chosen(stored, cell or named)
    source = before.source_of(chosen.scenario)
    if source is None:
        raise InputError(
            what=f"the run holds no scenario {chosen.scenario}, which its launches are of.",
            where=str(stored.file),
            fix="Fetch the file again from where it was copied, or name another run.",
        )
    scenario = load_document(source.document, source.path)
    own = [one for one in stored.launches if one.kind == "measure" and one.cell.id == chosen.id]
    way = measure_for(scenario, before.profile)
    old = summarise(chosen, own, way.warmup)
    with ExitStack() as stack:
        take_host(stack, unlocked=unlocked, wait_s=wait_s)
        say = options.teller(console)
        has_tree = before.commit is not None and before.commit.tree is not None
        snapshots = open_project(config, say).store if has_tree else None
        path = prepare.checked_out(before, source.path, scenario, stack, snapshots)
        wanted = RunRequest(
            files=(path,), profile=before.profile, only=(chosen.id,), seed=None, config=config
        )
        ready, differing = _prepared(stored, chosen, scenario, wanted, say, anyway=anyway)
        count = launches or max(_FEWEST_LAUNCHES, len(old.launches))
        ready = replace(
            ready,
            file=jsonl.file_of(ready.run, records / REPRODUCTIONS),
            tasks=compare_commits.with_launches(ready.tasks, count),
        )
        ready = doctor.preflight(ready, console)
        done, _ = run.execute_run(ready, None, console, stack, operators=False)
    new = summarise(chosen, [one for one in done if one.kind == "measure"], way.warmup)
    between = _between(records, chosen, own, (before, ready.run))
    compared = compare(new, old, margin=way.margin, between=between)
    if compared is None or new.median_ns is None or old.median_ns is None:
        raise _no_figure(chosen, done, ready.file)
    told = ReproduceResult(
        cell=chosen,
        before=before,
        after=ready.run,
        records=(stored.file, ready.file),
        medians_ns=(old.median_ns, new.median_ns),
        launches=(len(old.launches), len(new.launches)),
        comparison=compared,
        between=between,
        margin=way.margin,
        differing=differing,
        noise=noise_notes.beside(
            records, ready.run, [source], launches=min(len(old.launches), len(new.launches))
        ),
    )
    typer.echo(output_reproduce.as_json(told) if as_json else output_reproduce.text(told))
    raise typer.Exit(1 if told.holds is False else 0)


def _between(
    records: Path, cell: Cell, launches: Sequence[Launch], pair: tuple[Run, Run]
) -> BetweenRuns:
    """Run-to-run variation of the cell, from other runs measured like the first."""
    past = past_of_pair(records, pair)
    environment_key = environment_keys_of_run(pair[0], launches)[cell.id]
    return between_runs(earlier_runs(past, cell, pair, environment_key))


def _prepared(
    stored: Stored, chosen: Cell, scenario: Scenario, wanted: RunRequest, say: Say, *, anyway: bool
) -> tuple[PreparedRun, tuple[str, ...]]:
    """Prepare the run that repeats the measurement; also lists differences that `anyway` accepts.

    HostError: The host or the environment differs.
        HostError: host or environment differ.
    """
    before = stored.run
    differing = [*prepare.host_differs(before)]
    if not anyway:
        _refuse(differing, stored)
    loaded = Loaded(path=wanted.files[0], scenario=scenario, cells=(_as_it_was(chosen, before),))
    run, tasks = prepare.planned((loaded,), wanted, say, seed=before.seed)
    differing += prepare.environment_differs(chosen, before, run)
    if not anyway:
        _refuse(differing, stored)
    run = replace(run, commit=before.commit)
    return PreparedRun(run=run, file=stored.file, tasks=tasks, done=(), note=None), tuple(differing)


def _no_figure(chosen: Cell, done: Sequence[Launch], file: Path) -> LaunchError:
    reasons = dict.fromkeys(one.reason for one in done if one.reason)
    return LaunchError(
        what=f"measured again, {chosen.id} gave no figure: {'; '.join(reasons) or 'none ok'}",
        where=str(file),
        fix="Look into those records: `corebound reproduce` launched what was recorded.",
    )


def _meant(record: str, records: Path) -> tuple[Stored, str | None]:
    """Resolve the run, and the cell if it is named.

    Raises:
        InputError: No run matches, or several do.
    """
    if Path(record).is_file():
        return jsonl.read(Path(record)), None
    for place in (place for place, letter in enumerate(record) if letter == ":"):
        if Path(record[:place]).is_file():
            return jsonl.read(Path(record[:place])), record[place + 1 :]
    name, _, cell = record.partition(":")
    files = [file for file in jsonl.files(records) if _id(file).startswith(name)] if name else []
    exact = [file for file in files if _id(file) == name] or files
    if len(exact) != 1:
        said = "no run" if not exact else f"{len(exact)} runs"
        raise InputError(
            what=f"{said} of the records begin{'' if exact else 's'} so, and no file is so called.",
            where=f"{name}, in {records}",
            fix="Name a file of records, or a run by the id that pages and `run` show.",
        )
    return jsonl.read(exact[0]), cell or None


def _id(file: Path) -> str:
    """A run's id, which is the end of its file's name."""
    return file.stem.rpartition("-")[2]


def _chosen(stored: Stored, name: str | None) -> Cell:
    measured_cells = {
        one.cell.id: one.cell
        for one in stored.launches
        if one.kind == "measure" and one.status == "ok"
    }
    found = [cell for cell in measured_cells.values() if name in {None, cell.key, cell.id}]
    if len(found) == 1:
        return found[0]
    known = sorted(cell.id for cell in (found or measured_cells.values()))
    listed = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    raise InputError(
        what=f"{len(found)} cells with a figure are meant; there are: {listed or 'none'}.",
        where=str(stored.file),
        fix="Name one with --cell.",
    )


def _refuse(differing: list[str], stored: Stored) -> None:
    if differing:
        raise HostError(
            what=f"this cannot be measured as it was: {'; '.join(differing)}.",
            where=str(stored.file),
            fix="Reproduce it where and as it was measured, or pass --anyway to see what it"
            " comes to as things are.",
        )


def _as_it_was(cell: Cell, before: Run) -> Cell:
    """Replace a cell's reference to the checked-out commit with the commit of that time."""
    lock = before.lock_of(cell.environment)
    if cell.environment != PROJECT or cell.commit or lock is None or lock.commit is None:
        return cell
    return replace(cell, commit=lock.commit.sha if lock.commit.tree is None else lock.commit.name)
