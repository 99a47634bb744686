"""`corebound nightly`: measure, detect regressions and publish; resumes after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.commands.publish import Branch, Push, Squash, To
from corebound.cli.options import Config, Json, MaybeFiles, Quiet, Records, Wait, notifier, seconds
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.records.jsonl import RECORDS
from corebound.scenario.models import ProfileName
from corebound.workflow import projects
from corebound.workflow.nightly import (
    DEFAULT_PUBLIC_SITE,
    NIGHTS,
    NightlyRequest,
    run_nightly,
)
from corebound.workflow.nightly_summary import summary_document, summary_text

WEBHOOK = "COREBOUND_WEBHOOK"


def nightly(
    files: MaybeFiles = None,
    *,
    profile: Annotated[
        ProfileName, typer.Option("--profile", help="How thoroughly to measure.")
    ] = "nightly",
    budget: Annotated[
        str, typer.Option("--budget", help="Start no launch after this time: 90s, 10m, 2h.")
    ] = "4h",
    wait: Wait = None,
    update: Annotated[
        bool, typer.Option("--update", help="First fetch and fast-forward the project under test.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Also check what `corebound tune` recommended on this host."),
    ] = False,
    to: To = None,
    branch: Branch = None,
    push: Push = None,
    squash: Squash = False,
    site_url: Annotated[
        str | None, typer.Option("--site-url", help="Public URL of the site, for links.")
    ] = None,
    summary_file: Annotated[
        Path | None, typer.Option("--summary", help="Also write the summary to this file.")
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", envvar=WEBHOOK, help="POST the summary to this URL, as JSON."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not resume an interrupted nightly run.")
    ] = False,
    nights: Annotated[Path, typer.Option("--nights", help="Folder of journals and logs.")] = NIGHTS,
    config: Config = projects.CONFIG,
    records: Records = RECORDS,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure, report regressions and publish the site.

    An interrupted nightly run resumes.

    Examples:
        corebound nightly
        corebound nightly --update --budget 2h --branch gh-pages --push origin
    """
    request = NightlyRequest(
        files=tuple(files or (projects.DEFAULT_SCENARIOS,)),
        profile=profile,
        budget_s=seconds(budget),
        wait_s=seconds(wait, option="--wait") if wait else 0.0,
        update=update,
        verify=verify,
        # Without a place to publish to, a complete site is still written, to the default folder.
        to=DEFAULT_PUBLIC_SITE if to is None and branch is None else to,
        branch=branch,
        push=push,
        squash=squash,
        site_url=site_url,
        config=config,
        records=records,
        summary_file=summary_file,
        webhook=webhook,
    )
    summary = run_nightly(
        request, nights, notifier(Console(stderr=True, quiet=quiet, soft_wrap=True)), fresh=fresh
    )
    if as_json:
        print_json(summary_document(summary))
    else:
        typer.echo(summary_text(summary))
    raise typer.Exit(summary.exit_code)
