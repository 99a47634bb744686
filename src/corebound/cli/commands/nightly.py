"""`corebound nightly`: measure, detect regressions and publish; resumes after an interruption."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from corebound.cli.commands import run
from corebound.cli.commands.publish import Branch, Push, Squash, To
from corebound.cli.options import Config, Json, MaybeFiles, Records, Wait
from corebound.cli.output.terminal import Console
from corebound.errors import CoreboundError
from corebound.machine import discovery, identity
from corebound.records.jsonl import RECORDS
from corebound.scenario.models import ProfileName
from corebound.workflow import projects
from corebound.workflow.nightly import commands, night, summary
from corebound.workflow.nightly.commands import Asked
from corebound.workflow.nightly.journal import Journal, begin, unfinished
from corebound.workflow.nightly.summary import Summary

WEBHOOK = "COREBOUND_WEBHOOK"


def nightly(
    files: MaybeFiles = None,
    *,
    profile: Annotated[
        ProfileName, typer.Option("--profile", help="How thoroughly to measure.")
    ] = "nightly",
    budget: Annotated[
        str, typer.Option("--budget", help="Start no launch after this: 90s, 10m, 2h.")
    ] = "4h",
    wait: Wait = None,
    update: Annotated[
        bool, typer.Option("--update", help="Fetch the project under test first, fast-forward.")
    ] = False,
    to: To = None,
    branch: Branch = None,
    push: Push = None,
    squash: Squash = False,
    site_url: Annotated[
        str | None, typer.Option("--site-url", help="Where readers see the site, for links.")
    ] = None,
    summary_file: Annotated[
        Path | None, typer.Option("--summary", help="Write the summary there too.")
    ] = None,
    hook: Annotated[
        str | None,
        typer.Option("--webhook", envvar=WEBHOOK, help="Send the summary there, as JSON."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin a new night although one was cut short.")
    ] = False,
    nights: Annotated[
        Path, typer.Option("--nights", help="The folder of journals and logs.")
    ] = Path("reports/nights"),
    config: Config = projects.CONFIG,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Measure, tell what became slower, publish.

    All that a night does, in one command; a night that was killed is gone on with.
    """
    asked = Asked(
        files=tuple(files or (commands.SCENARIOS,)),
        profile=profile,
        budget_s=run.seconds(budget),
        wait_s=0.0 if wait is None else run.seconds(wait, option="--wait"),
        update=update,
        # Without a place to publish to, a complete site is still written, to the default folder.
        to=commands.PUBLIC if to is None and branch is None else to,
        branch=branch,
        push=push,
        squash=squash,
        site_url=site_url,
        config=config,
        records=records,
    )
    asked.check()
    console = Console(stderr=True, soft_wrap=True)
    host = identity.host(discovery.live())
    with night.alone(nights) as held:
        journal = _journal(nights, asked, console, fresh=fresh)
        outcome = night.carry_on(
            commands.steps(asked, journal, host.id),
            journal,
            held=held,
            now=_now,
            said=lambda what: console.print(Text(what)),
        )
        told = Summary(
            night=journal.stamp,
            host=host.name,
            project=Path.cwd().name,
            outcome=outcome,
            regressions=_said(journal, "regressions") if "regressions" in outcome.codes else None,
            site=site_url,
            partial=(_said(journal, "run") or {}).get("ending") == "out of time",
            snapshot=(_said(journal, "run") or {}).get("snapshot"),
        )
        typer.echo(summary.as_json(told) if as_json else summary.text(told))
        untold = _tell(told, summary_file, hook, console)
        # A failed nightly run can be resumed once the cause is fixed.
        if outcome.failure is None:
            journal.over(outcome.exit_code, _now())
    raise typer.Exit(outcome.exit_code or untold)


def _journal(nights: Path, asked: Asked, console: Console, *, fresh: bool) -> Journal:
    now = datetime.now(UTC)
    found = None if fresh else unfinished(nights, asked.words, now)
    if found is None:
        return begin(nights, asked.words, now)
    console.print(Text(f"Going on with the night of {found.stamp}, which was cut short."))
    return found


def _said(journal: Journal, step: str) -> dict[str, Any] | None:
    """The JSON output of a step; None if it has none."""
    try:
        found = json.loads((journal.folder / f"{step}.out").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _tell(told: Summary, file: Path | None, hook: str | None, console: Console) -> int:
    """Write and send the summary; returns the exit code of a failure, or 0."""
    code = 0
    try:
        if file is not None:
            summary.write(summary.text(told), file)
    except CoreboundError as error:
        console.print(Text(str(error)))
        code = error.exit_code
    try:
        if hook:
            summary.send(summary.document(told), hook)
    except CoreboundError as error:
        console.print(Text(str(error)))
        code = error.exit_code
    return code


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
