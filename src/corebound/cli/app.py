"""The command line: parse, dispatch, print errors for people; exit codes of every command.

0 ok · 1 a regression or a claim failed, where asked to judge · 2 bad input ·
3 the host cannot · 4 launches failed · 130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from corebound import __version__
from corebound.cli import (
    bisect,
    calibrate,
    compare,
    compare_commits,
    doctor,
    environments,
    exchange,
    export,
    measure,
    plan,
    regressions,
    site,
)
from corebound.errors import CoreboundError

app = typer.Typer(
    name="corebound",
    help="Which cores and how many threads, is that still as fast, and can the answer be trusted?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
app.command("doctor")(doctor.doctor)
app.command("topology")(plan.topology)
app.command("check")(plan.check)
app.command("plan")(plan.plan)
app.command("run")(measure.run)
app.command("compare")(compare.compare)
app.command("compare-commits")(compare_commits.compare_commits)
app.command("bisect")(bisect.bisect)
app.command("calibrate")(calibrate.calibrate)
app.command("regressions")(regressions.regressions)
app.command("report")(site.report)
app.command("schema")(plan.schema)
app.add_typer(environments.app, name="environment")
app.add_typer(exchange.app, name="import")
app.command("export")(export.export)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"corebound {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say the version and end.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options of corebound itself."""


def main() -> None:
    """Run the command line; never returns."""
    try:
        app()
    except CoreboundError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(str(error)))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
