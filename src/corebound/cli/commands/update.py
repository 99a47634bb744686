"""`corebound update`: fetch the latest commits of the project under test."""

import typer

from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.text import one_line
from corebound.workflow import projects
from corebound.workflow.options import Config


def update(*, config: Config = projects.CONFIG, console: Console) -> Output:
    """Fetch and fast-forward the project under test.

    Examples:
        corebound update
        corebound update --config benchmarks/asv.conf.json
    """
    updated = projects.update(config=config, notify=console.print_line)
    commit = updated.commit
    line = f"{updated.project}: {commit.sha[:10]} {one_line(commit.subject)}"
    return Output(updated, lambda: typer.echo(line))
