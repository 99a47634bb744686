"""`corebound calibrate`: find the noise floor by measuring a scenario's baseline against itself."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import typer
from msgspec.structs import replace
from rich.text import Text

from corebound.cli import options
from corebound.cli.commands import doctor
from corebound.cli.commands import run as commands_run
from corebound.cli.options import (
    Budget,
    Files,
    Json,
    Profile,
    Records,
    Seed,
    Wait,
    take_host,
    typed,
)
from corebound.cli.output import calibrate as output_calibrate
from corebound.cli.output import run as output_run
from corebound.cli.output.json import indented
from corebound.cli.output.terminal import Console
from corebound.errors import NO_ANSWER
from corebound.planning.plan import PlannedCell
from corebound.records import documents, jsonl
from corebound.records.jsonl import RECORDS
from corebound.runner import Task
from corebound.scenario.cell import Cell
from corebound.scenario.select import baseline_of
from corebound.stats.noise_floor import COPIES, COPY, LEAST_PAIRS, calibrated
from corebound.workflow import prepare, scenarios
from corebound.workflow.prepare import PreparedRun, RunRequest
from corebound.workflow.scenarios import Loaded


def calibrate(
    files: Files,
    *,
    profile: Profile = None,
    budget: Budget = None,
    seed: Seed = None,
    wait: Wait = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Measure how small a difference this host can show."""
    budget_s = None if budget is None else commands_run.seconds(budget)
    wait_s = 0.0 if wait is None else commands_run.seconds(wait, option="--wait")
    console = Console(stderr=True)
    wanted = RunRequest(files=tuple(files), profile=profile, only=(), seed=seed, records=records)
    with ExitStack() as stack:
        take_host(stack, wait_s=wait_s)
        ready = doctor.preflight(_prepared(wanted, records, console), console)
        launches, ending = commands_run.execute_run(
            ready,
            budget_s,
            console,
            stack,
            operators=False,
            again=typed(),
        )
    found = []
    for source in ready.run.scenarios:
        name = source.document["name"]
        one = calibrated(
            ready.run, source, [each for each in launches if each.cell.scenario == name]
        )
        if one is None:
            console.print(Text(f"{name}: fewer than {LEAST_PAIRS} pairs of launches are ok."))
        else:
            documents.keep_calibration(one, records)
            found.append(one)
    if as_json:
        typer.echo(indented(found))
    else:
        answer = Console()
        answer.print(output_calibrate.table(found))
        answer.print(Text(output_calibrate.EXPLAINED))
        answer.print(Text(f"Records: {ready.file}"), soft_wrap=True)
    told = output_run.RunResult(
        run=ready.run, file=ready.file, launches=launches, ending=ending, unfit=ready.unfit
    )
    raise typer.Exit(output_run.exit_code(told) or (0 if found else NO_ANSWER))


def _prepared(wanted: RunRequest, records: Path, console: Console) -> PreparedRun:
    """Prepare a run with two copies of each scenario's baseline, kept apart from nightly runs."""
    loaded = scenarios.load_all(wanted.files, wanted.only, wanted.profile)
    baselines = tuple(replace(one, cells=(baseline(one),)) for one in loaded)
    run, tasks = prepare.planned(baselines, wanted, options.teller(console))
    return PreparedRun(
        run=run,
        file=jsonl.file_of(run, documents.calibrations_folder(records)),
        tasks=tuple(copied(task) for task in tasks),
        done=(),
        note=None,
    )


def baseline(one: Loaded) -> Cell:
    """The cell to calibrate a scenario with: the baseline of its first cell, or that cell."""
    return baseline_of(one.cells[0], one.cells, one.scenario) or one.cells[0]


def copied(task: Task) -> Task:
    """Duplicate every cell, with the largest number of launches that its profile allows.

    The copies differ only in name: they are placed, launched and compared like any two cells.
    """
    return Task(
        # Without an explicit baseline, the first cell is the baseline.
        scenario=task.scenario.model_copy(update={"baseline": None}),
        planned=tuple(_copy(planned, name) for planned in task.planned for name in COPIES),
    )


def _copy(planned: PlannedCell, name: str) -> PlannedCell:
    launches = planned.measure.launches
    most = launches.model_copy(update={"min": launches.max})
    return replace(
        planned,
        cell=replace(planned.cell, axes=(*planned.cell.axes, (COPY, name))),
        measure=planned.measure.model_copy(update={"launches": most}),
    )
