"""`corebound calibrate`: a scenario's baseline against itself: what differs is noise."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import typer
from msgspec.structs import replace
from rich.text import Text

from corebound.cli import calibrate_words, doctor, measure, outcome, projects, session, suite
from corebound.cli.documents import indented
from corebound.cli.measuring import Budget, Files, Profile, Seed, Wait, take_host, typed
from corebound.cli.options import RECORDS, Json, Records
from corebound.cli.session import Session, Wanted
from corebound.cli.suite import Loaded
from corebound.cli.terminal import Console
from corebound.errors import NO_ANSWER
from corebound.model.plan import Cell
from corebound.planning.assemble import Planned
from corebound.planning.expand import baseline_of
from corebound.runner import Task
from corebound.stats.calibrated import COPIES, COPY, calibrated
from corebound.stats.calibration import LEAST_PAIRS
from corebound.store import calibrations, jsonl


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
    budget_s = None if budget is None else measure.seconds(budget)
    wait_s = 0.0 if wait is None else measure.seconds(wait, option="--wait")
    console = Console(stderr=True)
    wanted = Wanted(files=tuple(files), profile=profile, only=(), seed=seed, records=records)
    with ExitStack() as stack:
        take_host(stack, wait_s=wait_s)
        ready = doctor.preflight(_prepared(wanted, records, console), console)
        launches, ending = measure.carry_out(
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
            calibrations.keep(one, records)
            found.append(one)
    if as_json:
        typer.echo(indented(found))
    else:
        answer = Console()
        answer.print(calibrate_words.table(found))
        answer.print(Text(calibrate_words.EXPLAINED))
        answer.print(Text(f"Records: {ready.file}"), soft_wrap=True)
    told = outcome.Told(
        run=ready.run, file=ready.file, launches=launches, ending=ending, unfit=ready.unfit
    )
    raise typer.Exit(outcome.exit_code(told) or (0 if found else NO_ANSWER))


def _prepared(wanted: Wanted, records: Path, console: Console) -> Session:
    """A run of two copies of each scenario's baseline, kept beside the nights."""
    loaded = suite.load_all(wanted.files, wanted.only, wanted.profile)
    baselines = tuple(replace(one, cells=(baseline(one),)) for one in loaded)
    run, tasks = session.planned(baselines, wanted, projects.teller(console))
    return Session(
        run=run,
        file=jsonl.file_of(run, calibrations.folder_of(records)),
        tasks=tuple(copied(task) for task in tasks),
        done=(),
        note=None,
    )


def baseline(one: Loaded) -> Cell:
    """The cell that a scenario is calibrated with: what its first cell is compared with."""
    return baseline_of(one.cells[0], one.cells, one.scenario) or one.cells[0]


def copied(task: Task) -> Task:
    """The task with every cell twice, each as often as its profile allows at most.

    The copies differ in name alone: they are placed, launched and judged like any two cells.
    """
    return Task(
        # Without a baseline of its own the first cell is what the others are compared with.
        scenario=task.scenario.model_copy(update={"baseline": None}),
        planned=tuple(_copy(planned, name) for planned in task.planned for name in COPIES),
    )


def _copy(planned: Planned, name: str) -> Planned:
    launches = planned.measure.launches
    most = launches.model_copy(update={"min": launches.max})
    return replace(
        planned,
        cell=replace(planned.cell, axes=(*planned.cell.axes, (COPY, name))),
        measure=planned.measure.model_copy(update={"launches": most}),
    )
