"""`corebound regressions`: list the change points of all histories, and record decisions."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from corebound.cli import confirm_regressions
from corebound.cli.commands import run
from corebound.cli.confirm_regressions import measure_both
from corebound.cli.options import Config, Json, Records, Status, Wait
from corebound.cli.output import regressions as output_regressions
from corebound.cli.output.json import indented
from corebound.cli.output.regressions import RegressionsResult, beside, document, junit
from corebound.cli.output.terminal import Console
from corebound.errors import InputError
from corebound.records import documents
from corebound.records.decisions import Decision, State
from corebound.records.history import Series
from corebound.records.jsonl import RECORDS
from corebound.stats.history.alerts import AssessedChange, assess_changes
from corebound.stats.history.regressions import Analysis, Change, analyse, failing
from corebound.stats.history.series import ended
from corebound.text import one_line
from corebound.workflow import projects
from corebound.workflow.change_point_cache import known_steps
from corebound.workflow.decisions_file import STATUS, add, decided
from corebound.workflow.process_pool import forked
from corebound.workflow.run_index import Suite, suite_of

REGRESSION = 1
# The exit code if no regression is known, but some series could not be analysed.
_NO_ANSWER = 5

Format = Literal["text", "md", "json", "junit"]


def regressions(
    *,
    form: Annotated[Format, typer.Option("--format", help="How to tell it.")] = "text",
    records: Records = RECORDS,
    status: Status = STATUS,
    site: Annotated[str, typer.Option("--site", help="Where the site is, for the links.")] = (
        "reports/site"
    ),
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Measure again what is suspected, before it alarms.")
    ] = False,
    wait: Wait = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List also what is old, recovered or decided.")
    ] = False,
    accept: Annotated[
        str | None, typer.Option("--accept", metavar="ID", help="Say that a change may stay.")
    ] = None,
    fixed: Annotated[
        str | None, typer.Option("--fixed", metavar="ID", help="Say that a change is mended.")
    ] = None,
    reopen: Annotated[
        str | None, typer.Option("--reopen", metavar="ID", help="Take a decision back.")
    ] = None,
    because: Annotated[str | None, typer.Option("--because", help="Why, in words.")] = None,
    config: Config = projects.CONFIG,
    as_json: Json = False,
) -> None:
    """Tell what changed over the nights.

    Exits with 1 where a new regression stands, else with 5 where a series could not be analysed.
    """
    wait_s = 0.0 if wait is None else run.seconds(wait, option="--wait")
    console = Console(stderr=True, soft_wrap=True)
    decisions = decided(status)
    suite = suite_of(records)
    for fault in suite.faults:
        console.print(Text(f"warning: {fault}"))
    latest = max(suite.runs.values(), key=lambda run: (run.started_at, run.id), default=None)
    snapshot = None
    if latest is not None:
        snapshot = latest.snapshot_in([one.name for one in latest.environments])
    if latest is not None and snapshot is not None:
        console.print(
            Text(
                one_line(
                    f"The latest run, {latest.id}, measured uncommitted changes, {snapshot.name}:"
                    " it is not part of the history."
                )
            )
        )
    if not suite.series and snapshot is None:
        # A mistyped or damaged folder must not look like a nightly run without regressions.
        raise InputError(
            what="there is nothing in it that could be judged.",
            where=str(records),
            fix="Measure first (`corebound run`), import a history, or name the folder of"
            " records with --records.",
        )
    over = ended(suite.series)
    going = tuple(one for one in suite.series if one.id not in over)
    shown = _analysis(suite.series, over, records, console)
    every = (*shown.changes, *shown.early_warnings)
    known, damaged = documents.read_confirmations(records)
    for fault in damaged:
        console.print(Text(f"warning: {fault}"))
    about = assess_changes(every, decisions, known, ended=over)
    asked = _asked(accept=accept, fixed=fixed, reopen=reopen)
    if asked is not None:
        state, name = asked
        _decide(state, _named(name, about, records), because, status)
        console.print(Text(f"{name} is {state}: kept in {status}."))
        return
    if confirm:
        _confirm(about, suite, records, console, config=config, wait_s=wait_s)
        known, _ = documents.read_confirmations(records)
        about = assess_changes(every, decisions, known, ended=over)
    told = RegressionsResult(
        judged=about,
        failing=failing(going),
        not_analysed=shown.not_analysed,
        series=suite.series,
        going=going,
        site=site,
        everything=everything,
        beside=beside(every, suite, records),
    )
    typer.echo(_formatted(told, "json" if as_json else form))
    if told.alarms:
        raise typer.Exit(REGRESSION)
    raise typer.Exit(_NO_ANSWER if told.not_analysed else 0)


def _analysis(
    series: Sequence[Series], over: Container[str], records: Path, console: Console
) -> Analysis:
    # Progress is shown only on a terminal, and only temporarily.
    with known_steps(records, of_all=True) as memory, console.status("looking for steps") as shown:

        def progress(done: int, every: int) -> None:
            if console.is_terminal:
                shown.update(f"looking for steps in series: {done:,} of {every:,}")

        return analyse(series, ended=over, memory=memory, mapper=forked, progress=progress)


def _formatted(told: RegressionsResult, form: Format) -> str:
    if form == "json":
        return indented(document(told))
    if form == "md":
        return output_regressions.markdown(told)
    return junit(told) if form == "junit" else output_regressions.text(told)


def _asked(
    *, accept: str | None, fixed: str | None, reopen: str | None
) -> tuple[State, str] | None:
    """The requested decision and the change's id; None if there is no request."""
    every: tuple[tuple[State, str | None], ...] = (
        ("accepted", accept),
        ("fixed", fixed),
        ("open", reopen),
    )
    asked = [(state, name) for state, name in every if name is not None]
    if len(asked) > 1:
        raise InputError(
            what="two decisions at once.",
            where="corebound regressions",
            fix="Pass one of --accept, --fixed and --reopen.",
        )
    return asked[0] if asked else None


def _named(name: str, about: tuple[AssessedChange, ...], records: Path) -> AssessedChange:
    found = next((one for one in about if name in {one.id, one.change.id}), None)
    if found is None:
        raise InputError(
            what=f"there is no change `{name}` in these records.",
            where=str(records),
            fix="`corebound regressions --all` lists all, each with its id.",
        )
    return found


def _decide(state: State, found: AssessedChange, because: str | None, status: Path) -> None:
    """Append a decision to the file; existing content stays unchanged.

    Raises:
        InputError: A change is accepted without a reason, or the file cannot be extended.
    """
    if state == "accepted" and not (because and because.strip()):
        raise InputError(
            what="a regression that is accepted without a reason is a riddle next year.",
            where="--accept",
            fix='Say why: --because "the new parser checks what it reads".',
        )
    decision = Decision(
        id=found.id,
        state=state,
        because=" ".join((because or "").split()) or f"it was said to be {state}",
        at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        place=found.change.place,
    )
    add(decision, status)


def _confirm(
    about: tuple[AssessedChange, ...],
    suite: Suite,
    records: Path,
    console: Console,
    *,
    config: Path,
    wait_s: float,
) -> None:
    """Measure open changes again that have no confirmation yet, or are due for another."""
    due: list[Change] = [
        one.change
        for one in about
        if one.is_open and (one.confirmation is None or one.confirmation.answer == "impossible")
    ]
    both = partial(
        measure_both,
        folder=documents.confirmations_folder(records),
        config=config,
        console=console,
        wait_s=wait_s,
    )
    confirm_regressions.confirm(due, suite, records, console, both=both, wait_s=wait_s)
