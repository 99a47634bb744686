"""`corebound environment`: make the environments that scenarios run in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from corebound.launch import environment

app = typer.Typer(help="Make and list what scenarios run in.", no_args_is_help=True)


@app.command()
def make(
    names: Annotated[list[str], typer.Argument(help="Names of environments/NAME.txt.")],
) -> None:
    """Make environments, each once: the next call finds it by the content of its file."""
    console = Console(stderr=True, highlight=False)
    for name in names:
        made = _make(name, console)
        console.print(f"{name}: ready, {len(made.lock.packages)} packages, {made.python}")


def _make(name: str, console: Console) -> environment.Environment:
    with console.status(f"{name}: …") as status:

        def say(what: str) -> None:
            status.update(f"{name}: {what}")
            if not console.is_terminal:
                console.print(f"{name}: {what}")

        return environment.make(name, Path.cwd(), say)


@app.command("list")
def list_(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the environments of this suite, and whether each has been made."""
    suite = Path.cwd()
    made = {name: environment.find(name, suite) for name in environment.names(suite)}
    if as_json:
        typer.echo(
            json.dumps(
                {name: str(one.python) if one else None for name, one in made.items()}, indent=1
            )
        )
        return
    for name, one in made.items():
        typer.echo(f"{name:20} {one.python if one else 'not made'}")
