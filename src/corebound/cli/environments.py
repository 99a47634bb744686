"""`corebound environment`: make the environments that scenarios run in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from corebound.cli import suite
from corebound.cli.options import Json
from corebound.errors import InputError
from corebound.launch import environment
from corebound.planning.expand import PROJECT

app = typer.Typer(help="Make and list what scenarios run in.", no_args_is_help=True)


@app.command()
def make(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of environments/NAME.txt.")
    ] = None,
    *,
    scenarios: Annotated[
        list[Path] | None,
        typer.Option("--for", help="Scenario files, or folders of them: all that they run in."),
    ] = None,
) -> None:
    """Make environments, each once: the next call finds it by the content of its file."""
    console = Console(stderr=True, highlight=False)
    if not names and not scenarios:
        raise InputError(
            what="no environment was named.",
            where="corebound environment make",
            mend="Name some that `corebound environment list` shows, or pass --for scenarios/.",
        )
    for name in dict.fromkeys((*(names or ()), *_needed(scenarios or ()))):
        made = _make(name, console)
        console.print(f"{name}: ready, {len(made.lock.packages)} packages, {made.python}")


def _needed(scenarios: Sequence[Path]) -> tuple[str, ...]:
    """What scenarios run in, but for our own Python and what asv builds."""
    if not scenarios:
        return ()
    cells = suite.cells_of(suite.load_all(scenarios, ()))
    found = dict.fromkeys(cell.environment for cell in cells)
    ours = {environment.HOST, PROJECT}
    return tuple(name for name in found if name.partition("@")[0] not in ours)


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
    as_json: Json = False,
) -> None:
    """List the environments of this suite, and whether each has been made."""
    here = Path.cwd()
    made = {name: environment.find(name, here) for name in environment.names(here)}
    if as_json:
        typer.echo(
            json.dumps(
                {name: str(one.python) if one else None for name, one in made.items()}, indent=1
            )
        )
        return
    for name, one in made.items():
        typer.echo(f"{name:20} {one.python if one else 'not made'}")
