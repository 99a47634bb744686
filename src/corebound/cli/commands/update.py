"""`corebound update`: fetch the latest commits of the project under test."""

import typer

from corebound.cli.options import Json, Quiet, notifier
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.text import one_line
from corebound.workflow import projects
from corebound.workflow.options import Config


def update(
    *, config: Config = projects.CONFIG, quiet: Quiet = False, as_json: Json = False
) -> None:
    """Fetch and fast-forward the project under test.

    Examples:
        corebound update
        corebound update --config benchmarks/asv.conf.json
    """
    updated = projects.update(config=config, notify=notifier(Console(stderr=True, quiet=quiet)))
    if as_json:
        print_json(updated)
        return
    commit = updated.commit
    typer.echo(f"{updated.project}: {commit.sha[:10]} {one_line(commit.subject)}")
