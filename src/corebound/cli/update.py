"""`corebound update`: the project under test, brought up to date."""

from __future__ import annotations

import typer
from rich.console import Console

from corebound.cli import projects
from corebound.cli.projects import Config


def update(*, config: Config = projects.CONFIG) -> None:
    """Fetch the project under test.

    A checkout is fast-forwarded, and nothing else is done to it.
    """
    say = projects.teller(Console(stderr=True, highlight=False, soft_wrap=True))
    project = projects.opened(config, say)
    project.update()
    commit = project.commit(projects.CHECKED_OUT)
    typer.echo(f"{project.name}: {commit.sha[:10]} {commit.subject}")
