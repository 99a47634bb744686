"""`corebound nightly`: measure, detect regressions and publish; resumes after an interruption."""

import typer

from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.workflow.nightly import NightlyRequest, run_nightly


def nightly(request: NightlyRequest, console: Console) -> Output:
    """Measure, report regressions and publish the site.

    An interrupted nightly run resumes.

    Examples:
        corebound nightly
        corebound nightly --update --budget 2h --branch gh-pages --push origin
    """
    summary = run_nightly(request, console.print_line)
    return Output(summary, lambda: typer.echo(summary.text), summary.exit_code)
