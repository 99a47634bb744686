"""`corebound update`: fetch the latest commits of the project under test."""

from __future__ import annotations

import typer

from corebound.asv_bridge.project import open_project
from corebound.cli.options import Config, Json, Quiet, notifier
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.text import one_line
from corebound.workflow import projects


def update(
    *, config: Config = projects.CONFIG, quiet: Quiet = False, as_json: Json = False
) -> None:
    """Fetch and fast-forward the project under test.

    Examples:
        corebound update
        corebound update --config benchmarks/asv.conf.json
    """
    project = open_project(config, notifier(Console(stderr=True, quiet=quiet)))
    project.update()
    commit = project.commit(project.checked_out)
    if as_json:
        print_json({"project": project.name, "commit": commit})
        return
    typer.echo(f"{project.name}: {commit.sha[:10]} {one_line(commit.subject)}")
