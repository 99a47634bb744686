"""`corebound run`: measure scenarios, or resume an interrupted run."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.text import Text

from corebound.cli import crash, options
from corebound.cli.commands import doctor
from corebound.cli.options import (
    Budget,
    Config,
    Json,
    MaybeFiles,
    Only,
    Profile,
    ProjectPython,
    Records,
    Seed,
    Unlocked,
    Wait,
    take_host,
)
from corebound.cli.output import run as output_run
from corebound.cli.output.progress import Progress
from corebound.cli.output.terminal import Console
from corebound.errors import InputError
from corebound.launch import scratch
from corebound.records import jsonl, traces
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import Launch
from corebound.runner import Clock, Ending, Runner, launcher
from corebound.workflow import prepare, prioritise, projects
from corebound.workflow.prepare import PreparedRun, RunRequest
from corebound.workflow.projects import Committed

# 9 digits of seconds are 31 years.
BUDGET = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)


def run(
    files: MaybeFiles = None,
    *,
    profile: Profile = None,
    only: Only = None,
    budget: Budget = None,
    seed: Seed = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run that was interrupted last.")
    ] = False,
    unlocked: Unlocked = False,
    wait: Wait = None,
    operators: Annotated[
        bool,
        typer.Option("--operators/--no-operators", help="Profile operators where asked for."),
    ] = True,
    favour_doubtful: Annotated[
        bool,
        typer.Option(
            "--favour-doubtful", help="More of the time for what the last run left undecided."
        ),
    ] = False,
    config: Config = projects.CONFIG,
    project_python: ProjectPython = None,
    committed: Committed = False,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Measure every cell, in random order, block by block.

    Each launch is recorded as it ends.
    """
    budget_s = None if budget is None else seconds(budget)
    wait_s = 0.0 if wait is None else seconds(wait, option="--wait")
    wanted = RunRequest(
        files=tuple(files or ()),
        profile=profile,
        only=tuple(only or ()),
        seed=seed,
        config=config,
        python=project_python,
        committed=committed,
        records=records,
    )
    if not wanted.files and not resume:
        raise InputError(
            what="no scenario was named.",
            where="corebound run",
            fix="Name scenario files or folders, or pass --resume to go on with the latest run.",
        )
    console = Console(stderr=True)
    with ExitStack() as stack:
        take_host(stack, unlocked=unlocked, wait_s=wait_s)
        say = options.teller(console)
        if resume:
            ready = prepare.resume(wanted, records, say, operators=operators)
        else:
            ready = prepare.begin(wanted, records, say)
        if ready.note is not None:
            console.print(Text(ready.note))
        if favour_doubtful:
            ready = replace(ready, tasks=prioritise.favoured(ready.tasks, ready.run, records))
        ready = doctor.preflight(ready, console)
        launches, ending = execute_run(ready, budget_s, console, stack, operators=operators)
    told = output_run.RunResult(
        run=ready.run, file=ready.file, launches=launches, ending=ending, unfit=ready.unfit
    )
    if as_json:
        typer.echo(output_run.as_json(told))
    else:
        output_run.show(told, Console())
    raise typer.Exit(output_run.exit_code(told))


def seconds(text: str, *, option: str = "--budget") -> float:
    """Parse a duration: `90s`, `10m`, `1h30m`.

    Args:
        text: The text that the user typed.
        option: The option it belongs to.

    Raises:
        InputError: The text is not a duration.
    """
    found = BUDGET.fullmatch(text)
    if not text or found is None:
        raise InputError(
            what=f"`{text}` is not a length of time.",
            where=option,
            fix="Write it like 90s, 10m or 1h30m, of at most 31 years.",
        )
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return float(hours * 3600 + minutes * 60 + rest)


def execute_run(
    ready: PreparedRun,
    budget_s: float | None,
    console: Console,
    stack: ExitStack,
    *,
    operators: bool,
    again: str = "corebound run --resume",
) -> tuple[tuple[Launch, ...], Ending]:
    """Execute a run; each launch is on disk as soon as it ends, whatever happens later.

    Args:
        ready: What to measure.
        budget_s: Start no launch after this many seconds; None sets no limit.
        console: Shows the progress.
        stack: Cleans up everything started here.
        operators: Whether to profile operators in scenarios that request it.
        again: The command that resumes the run after an interruption.

    Raises:
        HostError: Another run is writing to the same records.
    """
    if ready.file.exists():
        appender = jsonl.Appender(ready.file)
        stack.callback(appender.close)
        # Another run may have written to the file before this process locked it.
        done = jsonl.read(ready.file).launches
    else:
        appender = jsonl.begin(replace(ready.run, budget_s=budget_s), ready.file)
        stack.callback(appender.close)
        done = ()
    launches = list(done)

    def append(launch: Launch) -> None:
        appender.append(launch)
        launches.append(launch)

    folder = stack.enter_context(scratch.made())
    progress = stack.enter_context(Progress(console, done=len(launches), budget_s=budget_s))
    try:
        ending = Runner(
            ready.run,
            ready.tasks,
            done=done,
            append=append,
            launch=launcher(
                stack,
                folder,
                traces.folder_of(ready.file),
                progress.tick,
                gpus=len(ready.run.host.gpus or ()),
            ),
            observer=progress,
            clock=Clock(monotonic_s=time.monotonic, now=_now),
            budget_s=budget_s,
            operators=operators,
        ).run()
    except BaseException as error:
        if crash.interruption(error) is not None:
            console.print(Text(f"Stopped. Go on with `{again}`."))
        raise
    return tuple(launches), ending


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
