"""`corebound update`: the project under test, brought up to date."""

from __future__ import annotations

import typer

from corebound.cli import projects
from corebound.cli.projects import Config
from corebound.cli.terminal import Console
from corebound.foreign import one_line
from corebound.fronts.project import open_project


def update(*, config: Config = projects.CONFIG) -> None:
    """Fetch the project under test.

    A checkout is fast-forwarded, and nothing else is done to it.
    """
    say = projects.teller(Console(stderr=True, soft_wrap=True))
    project = open_project(config, say)
    project.update()
    commit = project.commit(project.checked_out)
    typer.echo(f"{project.name}: {commit.sha[:10]} {one_line(commit.subject)}")
