"""`corebound regressions`: list the change points of all histories, and record decisions."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound import text as corebound_text
from corebound.analysis.change_history import ChangeHistory, size_with_interval
from corebound.cli.options import Format, Output
from corebound.cli.output.console import Console
from corebound.cli.output.junit import TestCase, TestFailure, junit_xml
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.sections import print_text_or_markdown
from corebound.errors import InputError
from corebound.present.changes import Address
from corebound.present.regressions import described, regressions_parts, regressions_sections
from corebound.records.decisions import DECISIONS_FILE, State
from corebound.records.history import is_primary
from corebound.records.jsonl import RECORDS
from corebound.report.urls import pages_at
from corebound.scenario.metrics import JudgedBy
from corebound.stats.history.alerts import HistoryChange
from corebound.workflow import projects
from corebound.workflow.options import Config, Metric, Option, Records, Status, Wait, seconds
from corebound.workflow.regressions import (
    AnalysedHistory,
    analyse_history,
    confirm_open_changes,
    record_decision,
)


def regressions(
    *,
    form: Format = "text",
    records: Records = RECORDS,
    status: Status = DECISIONS_FILE,
    metric: Metric = "time",
    site: Annotated[str, Option("Folder or URL of the site, for links.")] = "reports/site",
    confirm: Annotated[bool, Option("Measure suspected regressions again first.")] = False,
    budget_s: Annotated[
        float | None,
        Option("End --confirm after this time: 90s, 10m, 2h.", name="--budget", parse=seconds),
    ] = None,
    wait_s: Wait = 0.0,
    show_all: Annotated[
        bool, Option("Also list old, recovered and decided changes.", name="--all")
    ] = False,
    accept: Annotated[
        str | None, Option("Acknowledge a change, or all of a commit.", metavar="ID")
    ] = None,
    fixed: Annotated[
        str | None, Option("Record that a change or a commit is fixed.", metavar="ID")
    ] = None,
    reopen: Annotated[str | None, Option("Revoke a decision.", metavar="ID")] = None,
    because: Annotated[str | None, Option("Reason for the decision.")] = None,
    config: Config = projects.CONFIG,
    console: Console,
) -> Output:
    """List the commits that made benchmarks slower or faster.

    Exits with 1 if a primary benchmark has a new regression, else with 5 if a series could not be
    analysed. Secondary benchmarks are listed, but do not change the exit code.

    Examples:
        corebound regressions
        corebound regressions --confirm --format junit
        corebound regressions --accept 7c1e0f2aab --because "parses more input"
    """
    analysed = _analyse(console, records=records, status=status, metric=metric)
    decision = _decision(accept=accept, fixed=fixed, reopen=reopen)
    if decision is not None:
        state, change_id = decision
        decided = record_decision(state, change_id, because, analysed, status)
        what = change_id if len(decided) == 1 else f"{change_id}, {len(decided)} changes,"
        line = corebound_text.one_line(f"{what} is {state}: recorded in {status}.")
        changes = [each.id for each in decided]
        document = {"id": change_id, "state": state, "changes": changes, "status": str(status)}
        return Output(document, partial(typer.echo, line))
    if confirm:
        analysed = confirm_open_changes(
            analysed,
            TerminalReporter(console),
            config=config,
            wait_s=wait_s,
            budget_s=budget_s,
        )
    history, address, folder = analysed.history, pages_at(site, metric), analysed.records_folder

    def show() -> None:
        if form == "junit":
            typer.echo(_junit(history, address))
        else:
            is_markdown = form == "md"
            sections = regressions_sections(
                history, address, records=folder, show_all=show_all, brief=is_markdown
            )
            print_text_or_markdown(sections, is_markdown=is_markdown)

    document_of = partial(regressions_parts, history, address, records=folder)
    return Output(document_of, show, analysed.exit_code)


def _analyse(console: Console, *, records: Path, status: Path, metric: JudgedBy) -> AnalysedHistory:
    # Progress is shown only on a terminal, and only temporarily.
    with console.status("Analysing the history") as shown:

        def progress(done: int, total: int) -> None:
            if console.is_terminal:
                shown.update(Text(f"Analysing the history: {done:,} of {total:,} series"))

        return analyse_history(records, status, console.print_line, progress, metric=metric)


def _decision(
    *, accept: str | None, fixed: str | None, reopen: str | None
) -> tuple[State, str] | None:
    """The requested decision and the change's id; None if there is no request."""
    options: tuple[tuple[State, str | None], ...] = (
        ("accepted", accept),
        ("fixed", fixed),
        ("open", reopen),
    )
    decisions = [(state, change_id) for state, change_id in options if change_id is not None]
    if len(decisions) > 1:
        raise InputError(
            what="--accept, --fixed and --reopen exclude each other.",
            where="corebound regressions",
            fix="Pass one of them.",
        )
    return decisions[0] if decisions else None


def _junit(history: ChangeHistory, address: Address) -> str:
    """Render a test suite: new regressions fail, series without results or analysis are errors.

    Early warnings and regressions of secondary benchmarks appear in the case's output.
    """
    changes_by_series: dict[str, list[HistoryChange]] = {}
    for each in history.assessed.values():
        changes_by_series.setdefault(each.change.series.id, []).append(each)
    cases = []
    for series in history.series:
        changes = changes_by_series.get(series.id, [])
        alarms = [each for each in changes if each.is_alarm and is_primary(series)]
        others = [each for each in changes if each.is_open and each not in alarms]
        failure = TestFailure(
            type="regression",
            message="; ".join(size_with_interval(each.change) for each in alarms),
            details="\n\n".join(described(each, history, address) for each in alarms),
        )
        errors = []
        if series.id in history.failing:
            since = history.failing[series.id].since
            message = f"no result since {since.at}: {since.missing or 'unknown reason'}"
            errors.append(TestFailure(type="no result", message=message))
        if series.id in history.not_analysed:
            message = f"not analysed: {history.not_analysed[series.id]}"
            errors.append(TestFailure(type="not analysed", message=message))
        host = series.host if series.project is None else f"{series.project}.{series.host}"
        cases.append(
            TestCase(
                classname=f"{host}.{series.scenario}",
                name=series.cell or "default",
                failure=failure if alarms else None,
                errors=tuple(errors),
                output="\n\n".join(described(each, history, address) for each in others),
            )
        )
    return junit_xml("corebound regressions", cases)
