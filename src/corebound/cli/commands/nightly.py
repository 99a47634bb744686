"""`corebound nightly`: measure, detect regressions and publish; resumes after an interruption."""

import typer

from corebound.cli.options import Json, Quiet, notifier
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.workflow.nightly import NightlyRequest, run_nightly


def nightly(request: NightlyRequest, *, quiet: Quiet = False, as_json: Json = False) -> None:
    """Measure, report regressions and publish the site.

    An interrupted nightly run resumes.

    Examples:
        corebound nightly
        corebound nightly --update --budget 2h --branch gh-pages --push origin
    """
    summary = run_nightly(request, notifier(Console(stderr=True, quiet=quiet, soft_wrap=True)))
    if as_json:
        print_json(summary.document)
    else:
        typer.echo(summary.text)
    raise typer.Exit(summary.exit_code)
