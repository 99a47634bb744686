"""`corebound environment`: create, list and remove the environments that scenarios run in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound import units
from corebound.cli.options import Json
from corebound.cli.output.json import indented
from corebound.cli.output.terminal import Console
from corebound.errors import InputError
from corebound.launch import environments
from corebound.scenario.cell import PROJECT
from corebound.workflow import scenarios as workflow_scenarios

app = typer.Typer(help="Make, list and remove what scenarios run in.", no_args_is_help=True)


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
    console = Console(stderr=True)
    if not names and not scenarios:
        raise InputError(
            what="no environment was named.",
            where="corebound environment make",
            fix="Name some that `corebound environment list` shows, or pass --for scenarios/.",
        )
    for name in dict.fromkeys((*(names or ()), *_needed(scenarios or ()))):
        made = _make(name, console)
        typer.echo(f"{name}: ready, {len(made.lock.packages)} packages, {made.python}")


def _needed(scenarios: Sequence[Path]) -> tuple[str, ...]:
    """The environments of the scenarios, except corebound's own Python and what asv builds."""
    if not scenarios:
        return ()
    cells = workflow_scenarios.cells_of(workflow_scenarios.load_all(scenarios, ()))
    found = dict.fromkeys(cell.environment for cell in cells)
    ours = {environments.HOST, PROJECT}
    return tuple(name for name in found if name.partition("@")[0] not in ours)


def _make(name: str, console: Console) -> environments.Environment:
    with console.status(Text(f"{name}: …")) as status:

        def say(what: str) -> None:
            status.update(Text(f"{name}: {what}"))
            if not console.is_terminal:
                console.print(f"{name}: {what}")

        return environments.make(name, Path.cwd(), say)


@app.command("list")
def list_(
    *,
    as_json: Json = False,
) -> None:
    """List environments: their state, the disk space they take, their Python and their folder.

    States: ready; changed, if a requirements file or Python has changed since; not made; old, if
    a newer one is ready; no file, if this suite has no requirements file of that name.
    """
    environments.sweep()
    rows = environments.standing(Path.cwd())
    if as_json:
        typer.echo(indented(rows))
        return
    for one in rows:
        size = "–" if one.size_bytes is None else units.size(one.size_bytes)
        python, path = one.python or "–", one.path or "–"
        typer.echo(f"{one.name:20} {one.state:9} {size:>9}  {python:8} {path}")


@app.command()
def remove(
    names: Annotated[list[str], typer.Argument(help="Names that `environment list` shows.")],
) -> None:
    """Remove environments from the disk, older ones of the same names included.

    One that a run is using is kept: the command then exits with 3.
    """
    for name in dict.fromkeys(names):
        count, size_bytes = environments.remove(name)
        folders = "1 folder" if count == 1 else f"{count} folders"
        typer.echo(f"{name}: removed {folders}, {units.size(size_bytes)}")
