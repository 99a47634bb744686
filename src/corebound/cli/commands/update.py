"""`corebound update`: fetch the latest commits of the project under test."""

from __future__ import annotations

import typer

from corebound.asv_bridge.project import open_project
from corebound.cli import options
from corebound.cli.options import Config
from corebound.cli.output.terminal import Console
from corebound.text import one_line
from corebound.workflow import projects


def update(*, config: Config = projects.CONFIG) -> None:
    """Fetch the project under test.

    A checkout is fast-forwarded, and nothing else is done to it.
    """
    say = options.teller(Console(stderr=True, soft_wrap=True))
    project = open_project(config, say)
    project.update()
    commit = project.commit(project.checked_out)
    typer.echo(f"{project.name}: {commit.sha[:10]} {one_line(commit.subject)}")
